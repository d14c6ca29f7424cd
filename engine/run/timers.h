#pragma once
// When what a loop does by time is due. The loop asks for the time rarely: it costs as much as a look.

#include <cstdint>

#include "engine/run/wait_limits.h"

namespace portofu {

/// All on duty.
class Timers {
 public:
  /// @param check_ms  PORTOFU_PEER_CHECK_MS
  explicit Timers(std::uint32_t check_ms) : check_ns_(std::uint64_t{check_ms} * 1'000'000) {}

  /// Between two looks after the dead and the late.
  std::uint64_t check_ns() const { return check_ns_; }

  /// To be asked once a cycle: whether to ask for the time now.
  bool wants_time() { return ++cycles_ % kCyclesPerClock == 0; }

  /// Whether to look after the dead and the late. Then it is not due again for a while.
  bool are_due(std::uint64_t now_ns) { return is_due(now_ns, &next_ns_, check_ns_); }
  /// The same of the names of the segment.
  bool are_names_due(std::uint64_t now_ns) { return is_due(now_ns, &next_names_ns_, kNamesPauseNs); }

 private:
  static bool is_due(std::uint64_t now_ns, std::uint64_t* next_ns, std::uint64_t pause_ns) {
    if (now_ns < *next_ns) return false;
    *next_ns = now_ns + pause_ns;
    return true;
  }

  std::uint64_t check_ns_;
  std::uint64_t next_ns_ = 0;
  std::uint64_t next_names_ns_ = 0;
  std::uint32_t cycles_ = 0;  ///< Mod 2^32.
};

}  // namespace portofu
