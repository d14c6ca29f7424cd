#pragma once
// The steps of all lanes put together: one clock, packets with both ends, spans of calls and waits.

#include <cstdint>
#include <string>
#include <vector>

#include "lib/tools/ptl_trace/step_reader.h"

namespace portofu::tools {

/// One step of one lane.
struct StepPlace {
  std::uint32_t lane = 0;
  std::uint32_t index = 0;
  friend bool operator==(const StepPlace&, const StepPlace&) = default;
};
inline constexpr std::uint32_t kNoStep = UINT32_MAX;

/// A packet, or an acknowledgement, of which both ends were recorded.
struct Flow {
  StepPlace out;
  StepPlace in;
  // Of the first packet of a request, at its target; kNoStep: it was not.
  std::uint32_t match = kNoStep;
  std::uint32_t deliver = kNoStep;
};

/// From one step of a thread to another one.
struct Span {
  enum class Kind : std::uint8_t { kCall, kWait, kSleep };
  Kind kind;
  std::uint32_t lane;
  std::uint32_t begin;  ///< Index of its first step, which says more.
  std::int64_t begin_ns;
  std::int64_t end_ns;  ///< If it never ended: when the lane was last seen.
  std::uint32_t thread;
  std::uint64_t empty_looks;  ///< kWait by looks.
};

/// A count and the operation that it has started.
struct TriggerArrow {
  std::uint32_t lane;
  std::uint32_t count;
  std::uint32_t trigger;
};

/// How a link or an interface was in use, in stretches of time.
struct LinkUse {
  std::string name;
  std::int64_t stretch_ns = 1;
  std::vector<double> busy_percent;
  std::vector<double> waiting;  ///< Packets that waited for it, on the average.
};

/// The thread of processes in virtual time, of which one calls.
inline constexpr std::uint32_t kCallingThread = 1'000'000;

struct Timeline {
  std::vector<LaneSteps> lanes;
  std::vector<std::vector<std::int64_t>> at_ns;  ///< Of each step; 0 is the first of all.
  std::vector<std::int64_t> seen_ns;             ///< Of each lane: when it wrote down something, a step or the time.
  std::vector<Flow> flows;                       ///< By the time when they went out.
  std::vector<Span> spans;
  std::vector<TriggerArrow> triggers;
  std::vector<LinkUse> links;  ///< In virtual time only, the busiest first.
  std::int64_t end_ns = 0;
  std::uint64_t packets_without_target = 0;  ///< Went out, and nobody recorded that they came in.
  std::uint64_t packets_without_source = 0;

  const StepRecord& step(StepPlace place) const { return lanes[place.lane].steps[place.index]; }
  std::int64_t ns(StepPlace place) const { return at_ns[place.lane][place.index]; }
  /// The lane that the process had then; kNoStep: it was not recorded. A PID may have had several owners.
  std::uint32_t lane_of(ProcessId id, std::int64_t then_ns) const;
};

/// Lanes of one machine have one clock. Those of another one are set by what messages in both directions took at least:
/// half the difference of the two is the distance of the clocks.
Timeline merge(std::vector<LaneSteps> lanes);

/// Whether a packet is the first one of a request.
bool is_request(const StepRecord& packet);

}  // namespace portofu::tools
