#pragma once
// A timeline in the trace event format of Chrome, which Perfetto reads, too.

#include <cstdint>
#include <cstdio>

#include "lib/tools/ptl_trace/timeline.h"

namespace portofu::tools {

/// Packets that went out and came in, and what was done without one.
std::uint64_t count_flows(const Timeline& timeline);

/// Writes it all, up to the moment when there were so many flows: one is written with both ends or not at all.
/// @return false if the file cannot be written
bool write_chrome_json(const Timeline& timeline, std::uint64_t most_flows, std::FILE* file);

/// "rank 3: program (10.0.0.1:42)"
std::string process_label(const LaneSteps& lane);

}  // namespace portofu::tools
