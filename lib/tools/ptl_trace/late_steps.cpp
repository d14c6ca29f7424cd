#include "lib/tools/ptl_trace/late_steps.h"

#include <algorithm>
#include <fstream>
#include <limits>

#include "lib/tools/ptl_trace/clock_map.h"

namespace portofu::tools {
namespace {

/// That a step takes with all that is made of it: packets with both ends, spans, times.
constexpr std::uint64_t kBytesAStep = 128;
constexpr std::uint64_t kFewestSteps = 1'000'000;

}  // namespace

std::vector<std::uint64_t> late_steps_begin(const std::vector<LaneSteps>& lanes, const std::vector<std::string>& paths,
                                            std::uint64_t most) {
  const auto clocks = clocks_of_machines(lanes);
  std::vector<std::int64_t> sampled_ns;
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    const ClockMap& clock = clocks.at(lanes[i].machine);
    for (const std::uint64_t ticks : sample_ticks(paths[i])) sampled_ns.push_back(clock.ns_of(ticks));
  }
  const std::uint64_t place = most / kSampled;
  std::vector<std::uint64_t> begin(lanes.size(), kAllSteps);
  if (place >= sampled_ns.size()) return begin;
  const auto late = sampled_ns.begin() + static_cast<std::ptrdiff_t>(place);
  std::ranges::nth_element(sampled_ns, late);
  for (std::size_t i = 0; i < lanes.size(); ++i)
    begin[i] = std::max<std::uint64_t>(clocks.at(lanes[i].machine).ticks_of(*late), 1);
  return begin;
}

std::uint64_t most_steps_in_memory() {
  std::ifstream file("/proc/meminfo");
  std::uint64_t kibibytes = 0;
  for (std::string name; kibibytes == 0 && file >> name;) {
    if (name == "MemAvailable:") file >> kibibytes;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::max(kFewestSteps, kibibytes * 1024 / 2 / kBytesAStep);
}

}  // namespace portofu::tools
