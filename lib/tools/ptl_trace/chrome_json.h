#pragma once
// A timeline in the trace event format of Chrome, which Perfetto reads, too.

#include <cstdint>
#include <cstdio>

#include "lib/tools/ptl_trace/timeline.h"

namespace portofu::tools {

/// Writes it all, up to the moment when so many messages have gone out: a flow is written with both ends or not at all.
/// @return false if the file cannot be written
bool write_chrome_json(const Timeline& timeline, std::uint64_t most_flows, std::FILE* file);

/// "rank 3: program (10.0.0.1:42)"
std::string process_label(const LaneSteps& lane);

}  // namespace portofu::tools
