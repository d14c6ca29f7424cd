#pragma once
// Collective operations by engines in one process, on a machine in virtual time: all of it is done by interfaces, and
// the processors only begin and see the end.

#include <cstdint>
#include <string>

#include "lib/sim/machine.h"

namespace portofu::machines {

struct CollectiveTime {
  double us = 0;  ///< From the calls of all, at one time, to the last that has seen the end.
  std::uint64_t packets = 0;
  std::string complaint;  ///< What went wrong; empty if nothing.
};

/// A barrier of uTofu by recursive doubling, its gates as in the guide (5.2.1). A second one begins late at one rank,
/// and must not end before.
/// @param log2_ranks  at least 1
CollectiveTime barrier(const sim::Machine& machine, std::uint32_t log2_ranks);

/// The sum of a number of every rank by recursive doubling with triggered atomics of Portals: each stage adds what it
/// has to the next stage of itself and of its partner. Every rank must have the sum.
CollectiveTime allreduce(const sim::Machine& machine, std::uint32_t log2_ranks);

}  // namespace portofu::machines
