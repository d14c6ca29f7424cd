#pragma once

namespace portofu {

/// Whether a thread is in MPI_Init.
bool is_starting_mpi();

}  // namespace portofu
