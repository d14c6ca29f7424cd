#pragma once
// What a timeline says in numbers.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lib/tools/ptl_trace/timeline.h"

namespace portofu::tools {

/// A process, or one thread of time: what it did with it.
struct ProcessSummary {
  std::string label;
  std::int64_t lived_ns = 0;                   ///< From its first step to its last.
  std::int64_t in_calls_ns = 0;                ///< Of all threads together.
  std::map<std::string, std::int64_t> waited;  ///< By cause, see wait_cause.
  std::int64_t asleep_ns = 0;                  ///< Of the waits.
};

/// What one process has sent to another.
struct PairTraffic {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
};

struct SlowMessage {
  std::size_t flow;  ///< Index in Timeline::flows.
  std::int64_t took_ns;
};

struct Summary {
  std::uint64_t steps = 0;
  std::uint64_t lost_steps = 0;
  std::uint64_t late_steps = 0;  ///< That were left out (LaneSteps::left_out).
  std::uint64_t messages = 0;    ///< Requests: puts, gets, atomics, also those that needed no packet.
  std::uint64_t direct = 0;      ///< Of these, in memory that both sides map.
  std::uint64_t bytes = 0;
  std::map<int, std::uint64_t> sizes;  ///< By size class; see size_class.
  std::uint64_t matches = 0;
  std::uint64_t unexpected = 0;         ///< Of the matches.
  std::map<int, std::uint64_t> depths;  ///< Matches by size class of the entries that were passed over.
  std::uint32_t deepest = 0;
  std::vector<ProcessSummary> processes;
  std::vector<std::size_t> process_of;                                 ///< Of each lane: index in `processes`.
  std::map<std::pair<std::size_t, std::size_t>, PairTraffic> traffic;  ///< By processes, from and to.
  std::vector<std::size_t> untaken;  ///< Requests that came in and were not delivered: index in Timeline::flows.
  std::vector<SlowMessage> slowest;  ///< From packet out to delivered; the slowest first, ten at most.
};

/// 0 for 0; else one class for each power of two: 1 is 1, 2 is 2..3, 3 is 4..7.
int size_class(std::uint64_t amount);
/// "0", "1", "2..3"
std::string class_text(int size_class);

Summary summarize(const Timeline& timeline);

/// What the timeline lacks, a sentence for each; empty: nothing.
std::vector<std::string> gaps_text(const Summary& summary);

/// For a terminal.
std::string summary_text(const Timeline& timeline, const Summary& summary);

/// "12.3 us"
std::string time_text(std::int64_t ns);
/// "put of 8 bytes, rank 0 to rank 1"
std::string message_text(const Timeline& timeline, const Flow& flow);

}  // namespace portofu::tools
