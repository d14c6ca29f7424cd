#pragma once
// What the launcher of a job tells its processes about other nodes, by its environment.

#include <functional>

namespace portofu {

/// Whether the job has processes on other nodes, by the variables of Open MPI (OMPI_COMM_WORLD_SIZE and _LOCAL_SIZE),
/// MPICH's Hydra (PMI_SIZE and MPI_LOCALNRANKS) or Slurm (SLURM_STEP_NUM_NODES).
/// @param get_variable  std::getenv, or a test's own
bool launcher_spans_nodes(const std::function<const char*(const char* name)>& get_variable);

}  // namespace portofu
