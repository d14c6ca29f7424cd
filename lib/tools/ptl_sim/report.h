#pragma once
// What a job in virtual time has taken, as a table and as JSON.

#include <string>

#include "lib/sim/network.h"
#include "lib/tools/ptl_sim/coordinator.h"

namespace portofu::tools {

/// For people: the job, its ranks, and what was busy longest.
std::string report_text(const Coordinator& coordinator, const sim::Network& network);

/// All of it; README.md has the keys.
std::string report_json(const Coordinator& coordinator, const sim::Network& network, std::uint32_t per_node);

}  // namespace portofu::tools
