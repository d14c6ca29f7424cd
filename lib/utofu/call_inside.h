#pragma once
// Which VCQs threads are in calls of now, written down for the checker. The guide lets one thread at a time manage
// STADDs and communicate by VCQs that share a CQ, unless they are thread-safe (2.5). Here all calls take turns by the
// duty, so whoever waits for it while another thread is inside would meet that on a machine.

#include <utofu.h>

#include <array>
#include <atomic>

#include "engine/door/process.h"
#include "engine/door/tofu.h"

namespace portofu::utofu {

/// A call that the guide wants to be alone. Made before the duty is taken.
class CallInside {
 public:
  /// @param hdl    0: the call need not be alone
  explicit CallInside(utofu_vcq_hdl_t hdl) {
    if (hdl == 0 || !is_watched.load(std::memory_order_relaxed)) [[likely]]
      return;
    enter(hdl);
  }
  ~CallInside() {
    if (seat_ != nullptr) [[unlikely]]
      seat_->store(0, std::memory_order_release);
  }
  CallInside(const CallInside&) = delete;
  CallInside& operator=(const CallInside&) = delete;

  /// On duty: tells the checker of threads that are in calls of VCQs of the same CQ.
  void look_around(Core& core, const VirtualControlQueue& vcq) const {
    if (seat_ != nullptr) [[unlikely]]
      tell_others(core, vcq);
  }

  /// From now on calls are written down. A checker was made before.
  static void watch() { is_watched.store(true, std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kSeats = 64;  ///< Of more threads some share a seat, and less is seen.

  void enter(utofu_vcq_hdl_t hdl);
  void tell_others(Core& core, const VirtualControlQueue& vcq) const;

  static std::atomic<bool> is_watched;
  /// Handles of the VCQs; 0: the thread is in no such call. (Acquire and release: a handle that is seen was entered.)
  static std::array<std::atomic<utofu_vcq_hdl_t>, kSeats> seats;

  std::atomic<utofu_vcq_hdl_t>* seat_ = nullptr;  ///< Of the thread; nullptr: nothing is written down.
};

}  // namespace portofu::utofu
