#pragma once
// What a job in virtual time has taken, as a table and as JSON.

#include <string>

#include "lib/sim/network.h"
#include "lib/tools/ptl_sim/coordinator.h"
#include "lib/tools/ptl_sim/critical_path.h"

namespace portofu::tools {

/// For people: the job, its ranks, and what was busy longest.
std::string report_text(const Coordinator& coordinator, const sim::Network& network);

/// For people: what determines the end of the job.
std::string path_text(const CriticalPath& path, const History& history, const sim::Network& network);

struct JsonOptions {
  std::uint32_t per_node = 1;
  bool has_messages = false;  ///< Each message is in it.
  int status = 0;             ///< Exit status of the job.
  std::string complaint;      ///< Why ptl_sim has ended it; empty: it has not.
};

/// All of it; lib/virtual_report.md has the keys.
std::string report_json(const Coordinator& coordinator, const sim::Network& network, const CriticalPath& path,
                        const JsonOptions& options);

}  // namespace portofu::tools
