#pragma once
// From the clock of records to nanoseconds, one map for all lanes of a machine.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lib/tools/ptl_trace/step_reader.h"

namespace portofu::tools {

struct ClockMap {
  ClockPair origin;
  double ns_a_tick = 1;
  std::int64_t shift_ns = 0;  ///< Added: from CLOCK_MONOTONIC of the machine to the time of the trace.

  std::int64_t ns_of(std::uint64_t ticks) const {
    const auto since = static_cast<double>(static_cast<std::int64_t>(ticks - origin.ticks));
    return static_cast<std::int64_t>(origin.ns) + static_cast<std::int64_t>(since * ns_a_tick) + shift_ns;
  }
  std::uint64_t ticks_of(std::int64_t ns) const {
    const auto since = static_cast<double>(ns - shift_ns - static_cast<std::int64_t>(origin.ns));
    return origin.ticks + static_cast<std::uint64_t>(static_cast<std::int64_t>(since / ns_a_tick));
  }
};

/// One for each machine, so that all show CLOCK_REALTIME.
std::map<std::string, ClockMap> clocks_of_machines(const std::vector<LaneSteps>& lanes);

/// From the pairs of all lanes of a machine that are farthest apart, and from this very moment if it is our own
/// machine.
ClockMap clock_of_machine(const std::vector<LaneSteps>& lanes, const std::string& machine);

}  // namespace portofu::tools
