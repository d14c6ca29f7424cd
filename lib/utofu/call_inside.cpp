#include "lib/utofu/call_inside.h"

#include "lib/utofu/library.h"

namespace portofu::utofu {

std::atomic<bool> CallInside::is_watched_{false};
std::array<std::atomic<utofu_vcq_hdl_t>, CallInside::kSeats> CallInside::seats_{};

std::atomic<utofu_vcq_hdl_t>& CallInside::own_seat() {
  static std::atomic<std::size_t> seats_taken{0};
  static thread_local const std::size_t own = seats_taken.fetch_add(1, std::memory_order_relaxed) % kSeats;
  return seats_[own];
}

void CallInside::take_seat(utofu_vcq_hdl_t hdl) { own_seat().store(hdl, std::memory_order_release); }

void CallInside::tell_others(Core& core, const VirtualControlQueue& vcq) {
  const auto& own = own_seat();
  const utofu_vcq_hdl_t own_hdl = own.load(std::memory_order_relaxed);
  Checker* const checker = core.checker();
  if (checker == nullptr || vcq.thread_safe) return;
  for (const auto& seat : seats_) {
    const utofu_vcq_hdl_t hdl = seat.load(std::memory_order_acquire);
    if (&seat == &own || hdl == 0 || engine_number(hdl) != engine_number(own_hdl)) continue;
    const VirtualControlQueue* const other = core.tofu->vcq(to_handle(hdl));
    if (other == nullptr || other->thread_safe) continue;
    if (core.tofu->queue(queue_number(other->id)) == core.tofu->queue(queue_number(vcq.id)))
      checker->tofu.meets(vcq, *other);
  }
}

}  // namespace portofu::utofu
