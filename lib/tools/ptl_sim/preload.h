#pragma once
// What ranks load before all else, so that they see virtual time, and what their launcher and their OpenMP are told.

namespace portofu::tools {

/// LD_PRELOAD for the ranks gets libportofu_clock.so, before what it has already.
/// @return false if the library is not there, as in builds with sanitizers; nothing has changed then
bool preload_clock();

/// Open MPI's mpirun starts more ranks than there are cores, and leaves it to the system where they run, unless the
/// user has said otherwise: one of them runs at a time.
void let_mpirun_share_cores();

/// Threads of OpenMP that have nothing to do sleep, unless the user has said otherwise. Those that look for work again
/// and again take the cores from the rank that has its turn, which then seems to poll its memory.
void let_openmp_sleep();

}  // namespace portofu::tools
