#pragma once
// What the launcher of a job tells its processes, by its environment: about other nodes, and what all of the job know.

#include <cstdint>
#include <functional>
#include <span>

#include "engine/topology/process_id.h"

namespace portofu {

/// Whether the job has processes on other nodes, by the variables of Open MPI (OMPI_COMM_WORLD_SIZE and _LOCAL_SIZE),
/// MPICH's Hydra (PMI_SIZE and MPI_LOCALNRANKS) or Slurm (SLURM_STEP_NUM_NODES).
/// @param get_variable  std::getenv, or a test's own
bool launcher_spans_nodes(const std::function<const char*(const char* name)>& get_variable);

/// Whether the processes of a job show that another node has this node's NID: more of them have it than Open MPI or
/// Hydra have started here.
/// @param processes  all of the job; if there are more or fewer than the launcher tells, they show nothing
/// @param own_nid    of this node
bool shows_same_nid(std::span<const ProcessId> processes, std::uint32_t own_nid,
                    const std::function<const char*(const char* name)>& get_variable);

/// A key that all processes of the job get from what its launcher tells all of them, and no other job has: the
/// transport key that mpirun of Open MPI draws, which is a secret, or the numbers of Slurm's job and step, which are
/// none.
/// @return 0 if there is neither
std::uint32_t job_key_of_launcher(const std::function<const char*(const char* name)>& get_variable);

/// The rank that Open MPI, PMIx, Hydra or Slurm has given the process; -1: none of them has.
std::int64_t rank_of_launcher(const std::function<const char*(const char* name)>& get_variable);

/// The same of this process, by its environment.
std::int64_t rank_of_launcher();

}  // namespace portofu
