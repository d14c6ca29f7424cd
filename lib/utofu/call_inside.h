#pragma once
// Which VCQs threads are in calls with, written down for the checker. The guide lets one thread at a time manage STADDs
// and communicate by VCQs that share a CQ, unless they are thread-safe (2.5). Here all calls take turns by the duty, so
// whoever is on duty while another thread has come, waits, rests or goes would meet that thread on a machine. Without a
// checker a call reads one word that nobody writes.

#include <utofu.h>

#include <array>
#include <atomic>

#include "engine/door/process.h"
#include "engine/door/tofu.h"

namespace portofu::utofu {

/// A call that the guide wants to be alone, from its begin to its end.
class CallInside {
 public:
  /// A call comes. Before it takes the duty.
  /// @param alone  false: another thread may be in it
  explicit CallInside(utofu_vcq_hdl_t hdl, bool alone = true)
      : is_seen_(alone && is_watched_.load(std::memory_order_relaxed)) {
    if (is_seen_) [[unlikely]]
      take_seat(hdl);
  }
  ~CallInside() {
    if (is_seen_) [[unlikely]]
      take_seat(0);
  }
  CallInside(const CallInside&) = delete;
  CallInside& operator=(const CallInside&) = delete;

  /// On duty: tells the checker of other threads that are in calls with VCQs of the same CQ.
  void look_around(Core& core, const VirtualControlQueue& vcq) const {
    if (is_seen_) [[unlikely]]
      tell_others(core, vcq);
  }

  /// From now on calls are written down. There is a checker.
  static void watch() { is_watched_.store(true, std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kSeats = 64;  ///< Of more threads some share a seat, and less is seen.

  static std::atomic<utofu_vcq_hdl_t>& own_seat();
  static void take_seat(utofu_vcq_hdl_t hdl);
  static void tell_others(Core& core, const VirtualControlQueue& vcq);

  static std::atomic<bool> is_watched_;
  /// Handles of the VCQs; 0: the thread is in no call. (Acquire and release: a handle that is seen was written by a
  /// call that has begun, and a call that is not seen has ended.)
  static std::array<std::atomic<utofu_vcq_hdl_t>, kSeats> seats_;

  bool is_seen_;
};

}  // namespace portofu::utofu
