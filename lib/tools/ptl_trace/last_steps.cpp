#include "lib/tools/ptl_trace/last_steps.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "lib/tools/ptl_trace/clock_map.h"
#include "lib/tools/ptl_trace/step_names.h"
#include "lib/tools/ptl_trace/step_reader.h"

namespace portofu::tools {
namespace {

/// When a lane wrote its last step; 0 if it has none.
std::int64_t end_of(const LaneSteps& lane, const ClockMap& clock) {
  return lane.steps.empty() ? 0 : clock.ns_of(lane.steps.back().ticks);
}

/// @param latest  end_of the lane that wrote last of all
void print_lane(const LaneSteps& lane, const ClockMap& clock, std::uint64_t count, std::int64_t latest) {
  std::printf("PID %u on node %s: %s %u (%s)", lane.id.pid, node_id_text(lane.id.nid).c_str(),
              lane.alive ? "process" : "DEAD, was process", lane.os_pid, lane.program.c_str());
  if (lane.rank >= 0) std::printf(", rank %d", lane.rank);
  std::printf(", %llu steps", static_cast<unsigned long long>(lane.written));
  const std::int64_t end = end_of(lane, clock);
  if (!lane.steps.empty() && end < latest)
    std::printf(", the last %.3f ms before the last of all", static_cast<double>(latest - end) / 1'000'000);
  std::printf("\n");
  if (lane.steps.empty()) return;
  const std::size_t begin = lane.steps.size() > count ? lane.steps.size() - count : 0;
  for (std::size_t i = begin; i < lane.steps.size(); ++i) {
    const StepRecord& step = lane.steps[i];
    std::printf("    %14.3f us  %s\n", static_cast<double>(clock.ns_of(step.ticks) - end) / 1000,
                step_text(step).c_str());
  }
}

}  // namespace

int print_last_steps(std::uint32_t pid, std::uint64_t count) {
  std::vector<std::string> complaints;
  const auto lanes = read_all_steps(SegmentOptions{}.directory, step_ring_prefix(), kAllSteps, &complaints);
  for (const std::string& line : complaints) std::fprintf(stderr, "ptl_trace: %s\n", line.c_str());
  const ClockMap clock = clock_of_machine(lanes, this_machine());
  std::int64_t latest = 0;
  for (const LaneSteps& lane : lanes) latest = std::max(latest, end_of(lane, clock));
  std::size_t shown = 0;
  for (const LaneSteps& lane : lanes) {
    if (pid != 0 && lane.id.pid != pid && lane.os_pid != pid) continue;
    print_lane(lane, clock, count, latest);
    ++shown;
  }
  if (shown != 0) return 0;
  std::fprintf(stderr, "ptl_trace: no such process records its steps: PORTOFU_RECORD=last lets it\n");
  return 1;
}

}  // namespace portofu::tools
