#pragma once
// Where processes and their threads run on this machine, and what they share there.

#include <cstdint>
#include <string>
#include <vector>

#include "lib/tools/machine.h"

namespace portofu::tools {

/// A thread as the kernel knows it.
struct ThreadPlace {
  int number = 0;    ///< Of the kernel.
  std::string name;  ///< Those of the library are called portofu.
  int cpu = -1;      ///< Where it ran last; -1: nobody tells.
};

/// @param os_pid  a process; one that has ended has none
std::vector<ThreadPlace> threads_of(std::uint32_t os_pid);

/// The machine: a line for all cores that share an L3 cache and a NUMA domain, and one for each domain that is not as
/// far from all as from itself.
std::string machine_text(const Machine& machine);

/// A line for each thread: its CPU, and core, cache and domain of that.
std::string threads_text(const Machine& machine, const std::vector<ThreadPlace>& threads);

/// How near the application threads of two processes have run last: "on one core", "sharing L3 cache 0", "in NUMA
/// domain 0", "in NUMA domains 0 and 1, distance 21", and from the nearest pair to the farthest if these differ.
/// @return an empty text if the machine knows no pair of them
std::string distance_text(const Machine& machine, const std::vector<ThreadPlace>& ones,
                          const std::vector<ThreadPlace>& others);

}  // namespace portofu::tools
