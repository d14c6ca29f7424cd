#pragma once
// What every way to other nodes has to know of the job.

#include <cstdint>
#include <string>
#include <vector>

#include "engine/topology/process_id.h"

namespace portofu {

/// Fixed for the life of an endpoint.
struct FabricOptions {
  ProcessId self;
  std::uint32_t job_key = 0;
  std::uint32_t uid = 0;
  std::string provider;              ///< Of libfabric; empty: the first that can do what is needed.
  std::uint32_t base_port = 0;       ///< The port of a process is this + its PID, in all processes of the job.
  std::vector<std::uint32_t> nodes;  ///< NIDs that anything may come from; empty: any.
};

}  // namespace portofu
