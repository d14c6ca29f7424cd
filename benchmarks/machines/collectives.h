#pragma once
// Collective operations by engines in one process, on a machine in virtual time: all of it is done by interfaces, and
// the processors only begin and see the end.

#include <cstdint>
#include <string>

#include "benchmarks/machines/schedules.h"
#include "lib/sim/machine.h"

namespace portofu::machines {

struct CollectiveTime {
  double us = 0;  ///< From the calls of all, at one time, to the last that has seen the end.
  std::uint64_t packets = 0;
  std::string complaint;  ///< What went wrong; empty if nothing.
};

/// The nodes of a job on tofud: a box as near to a cube as powers of two come.
std::string box_of(std::uint32_t log2_ranks);

/// A barrier of uTofu by gates, whose circuit is configured as in the guide (5.2.1). A second one begins late at one
/// rank, and must not end before.
/// @param log2_ranks  at least 1
CollectiveTime barrier(const sim::Machine& machine, std::uint32_t log2_ranks, Algorithm algorithm);

/// The sum of a number of every rank with triggered operations of Portals: atomics add, and puts bring the sum to those
/// who have not added it up. Every rank must have it.
CollectiveTime allreduce(const sim::Machine& machine, std::uint32_t log2_ranks, Algorithm algorithm);

}  // namespace portofu::machines
