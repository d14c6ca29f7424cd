#pragma once
// Which VCQs threads have called with, written down for the checker. The guide lets one thread at a time manage STADDs
// and communicate by VCQs that share a CQ, unless they are thread-safe (2.5). Here all calls take turns by the duty, so
// whoever waits for it while another thread has it would meet that on a machine. Without a checker a call reads one
// word that nobody writes, twice.

#include <utofu.h>

#include <array>
#include <atomic>

#include "engine/door/process.h"
#include "engine/door/tofu.h"

namespace portofu::utofu {

/// Calls that the guide wants to be alone.
class CallsInside {
 public:
  /// A call comes. Before it takes the duty.
  static void announce(utofu_vcq_hdl_t hdl) {
    if (is_watched_.load(std::memory_order_relaxed)) [[unlikely]]
      write_down(hdl);
  }

  /// On duty, in a call that was announced: tells the checker of other threads that have come, with VCQs of the same
  /// CQ. From now on the call is not seen by those that come later: it is they who are.
  static void look_around(Core& core, const VirtualControlQueue& vcq) {
    if (is_watched_.load(std::memory_order_relaxed)) [[unlikely]]
      tell_others(core, vcq);
  }

  /// From now on calls are written down. There is a checker.
  static void watch() { is_watched_.store(true, std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kSeats = 64;  ///< Of more threads some share a seat, and less is seen.

  static std::atomic<utofu_vcq_hdl_t>& own_seat();
  static void write_down(utofu_vcq_hdl_t hdl);
  static void tell_others(Core& core, const VirtualControlQueue& vcq);

  static std::atomic<bool> is_watched_;
  /// Handles of the VCQs; 0: the thread waits with none. (Acquire and release: a handle that is seen was announced.)
  static std::array<std::atomic<utofu_vcq_hdl_t>, kSeats> seats_;
};

}  // namespace portofu::utofu
