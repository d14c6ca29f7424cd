#include "lib/utofu/calls_inside.h"

#include "lib/utofu/library.h"

namespace portofu::utofu {

std::atomic<bool> CallsInside::is_watched_{false};
std::array<std::atomic<utofu_vcq_hdl_t>, CallsInside::kSeats> CallsInside::seats_{};

std::atomic<utofu_vcq_hdl_t>& CallsInside::own_seat() {
  static std::atomic<std::size_t> seats_taken{0};
  static thread_local const std::size_t own = seats_taken.fetch_add(1, std::memory_order_relaxed) % kSeats;
  return seats_[own];
}

void CallsInside::write_down(utofu_vcq_hdl_t hdl) { own_seat().store(hdl, std::memory_order_release); }

void CallsInside::tell_others(Core& core, const VirtualControlQueue& vcq) {
  const utofu_vcq_hdl_t own = own_seat().exchange(0, std::memory_order_acq_rel);
  Checker* const checker = core.checker();
  if (checker == nullptr || own == 0 || vcq.thread_safe) return;
  for (const auto& seat : seats_) {
    const utofu_vcq_hdl_t hdl = seat.load(std::memory_order_acquire);
    if (hdl == 0 || engine_number(hdl) != engine_number(own)) continue;
    const VirtualControlQueue* const other = core.tofu->vcq(to_handle(hdl));
    if (other == nullptr || other->thread_safe) continue;
    if (core.tofu->queue(queue_number(other->id)) == core.tofu->queue(queue_number(vcq.id)))
      checker->tofu.meets(vcq, *other);
  }
}

}  // namespace portofu::utofu
