#include "lib/utofu/call_inside.h"

#include "lib/utofu/library.h"

namespace portofu::utofu {

std::atomic<bool> CallInside::is_watched{false};
std::array<std::atomic<utofu_vcq_hdl_t>, CallInside::kSeats> CallInside::seats{};

void CallInside::enter(utofu_vcq_hdl_t hdl) {
  static std::atomic<std::size_t> seats_taken{0};
  static thread_local const std::size_t own = seats_taken.fetch_add(1, std::memory_order_relaxed) % kSeats;
  seat_ = &seats[own];
  seat_->store(hdl, std::memory_order_release);
}

void CallInside::tell_others(Core& core, const VirtualControlQueue& vcq) const {
  Checker* const checker = core.checker();
  if (checker == nullptr || vcq.thread_safe) return;
  const utofu_vcq_hdl_t own = seat_->load(std::memory_order_relaxed);
  for (const auto& seat : seats) {
    const utofu_vcq_hdl_t hdl = seat.load(std::memory_order_acquire);
    if (&seat == seat_ || hdl == 0 || engine_number(hdl) != engine_number(own)) continue;
    const VirtualControlQueue* const other = core.tofu->vcq(to_handle(hdl));
    if (other == nullptr || other->thread_safe) continue;
    if (core.tofu->queue(queue_number(other->id)) == core.tofu->queue(queue_number(vcq.id)))
      checker->tofu.meets(vcq, *other);
  }
}

}  // namespace portofu::utofu
