#pragma once
// Reads files of steps: copies, whose numbers are checked before they are used. The owner may be writing, or dead.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/door/inspection.h"

namespace portofu::tools {

/// The same moment by the clock of records and in nanoseconds of CLOCK_MONOTONIC.
struct ClockPair {
  std::uint64_t ticks = 0;
  std::uint64_t ns = 0;
};

/// What one lane has done.
struct LaneSteps {
  ProcessId id;
  std::uint32_t os_pid = 0;
  std::int32_t rank = -1;  ///< -1: not known.
  std::string machine;     ///< Whoever shares it shares the clock.
  std::string host;
  std::string program;
  bool alive = false;
  ClockPair first;
  ClockPair last;                       ///< 0, 0: there is none.
  std::uint64_t first_realtime_ns = 0;  ///< The moment of `first`.
  std::uint64_t written = 0;            ///< Steps that it has ever written.
  std::uint64_t lost = 0;               ///< Steps that there was no room for.
  std::uint64_t left_out = 0;           ///< Steps that were not read, because they are late (late_steps.h).
  std::vector<StepRecord> steps;        ///< Of a ring the last ones.
};

inline constexpr std::uint64_t kAllSteps = UINT64_MAX;

/// @param until_ticks  later steps are left out; 0: all are
/// @return nothing, with reason, if it is no file of steps of this version
std::optional<LaneSteps> read_steps(const std::string& path, std::string* why, std::uint64_t until_ticks = kAllSteps);

/// The ticks of one step in so many of a file that has a log; what it costs is to read it.
inline constexpr std::uint64_t kSampled = 1024;
std::vector<std::uint64_t> sample_ticks(const std::string& path);

/// All files of steps in a directory that belong to this user, sorted by rank, process and lane.
/// @param prefix      of their names
/// @param most        steps of all of them; if there are more, the first ones, of all lanes until the same moment
/// @param complaints  a line for each that cannot be read
std::vector<LaneSteps> read_all_steps(const std::string& directory, const std::string& prefix, std::uint64_t most,
                                      std::vector<std::string>* complaints);

/// Now, by the clock of records on this machine, and which machine that is.
ClockPair clock_now();
std::string this_machine();

}  // namespace portofu::tools
