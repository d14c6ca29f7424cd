#include "lib/tools/ptl_trace/clock_map.h"

#include <algorithm>

namespace portofu::tools {

ClockMap clock_of_machine(const std::vector<LaneSteps>& lanes, const std::string& machine) {
  std::vector<ClockPair> pairs;
  for (const LaneSteps& lane : lanes) {
    if (lane.machine != machine) continue;
    pairs.push_back(lane.first);
    if (lane.last.ns != 0) pairs.push_back(lane.last);
  }
  if (machine == this_machine()) pairs.push_back(clock_now());
  ClockMap map;
  if (pairs.empty()) return map;
  const auto [first, last] = std::ranges::minmax_element(pairs, {}, &ClockPair::ticks);
  map.origin = *first;
  const std::uint64_t ticks = last->ticks - first->ticks;
  if (ticks != 0) map.ns_a_tick = static_cast<double>(last->ns - first->ns) / static_cast<double>(ticks);
  return map;
}

std::map<std::string, ClockMap> clocks_of_machines(const std::vector<LaneSteps>& lanes) {
  std::map<std::string, ClockMap> clocks;
  for (const LaneSteps& lane : lanes) {
    if (clocks.contains(lane.machine)) continue;
    ClockMap map = clock_of_machine(lanes, lane.machine);
    map.shift_ns = static_cast<std::int64_t>(lane.first_realtime_ns - lane.first.ns);
    clocks[lane.machine] = map;
  }
  return clocks;
}

}  // namespace portofu::tools
