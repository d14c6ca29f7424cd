#pragma once
// The critical path as a section of the page of a job.

#include <string>

#include "lib/sim/network.h"
#include "lib/tools/ptl_sim/critical_path.h"

namespace portofu::tools {

/// What it goes into over time, and its longest parts.
std::string path_section(const CriticalPath& path, const History& history, const sim::Network& network);

}  // namespace portofu::tools
