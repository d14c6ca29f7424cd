#pragma once
// The simulator's side of the test: makes wires for many engines in one process, kills and restarts them, and takes
// every decision from one seed. No threads, no clock: time passes when a wire is polled.
//
// First form: links are FIFO and exactly once, as wire.h promises. What varies is which source is offered next, how
// many polls a packet stays invisible, how few packets a link holds, how long a connect is in progress, and which
// unread packets of a killed process are still delivered.

#include <cstdint>
#include <memory>

#include "engine/topology/process_id.h"
#include "engine/wire/sim/sim_medium.h"
#include "engine/wire/sim/sim_wire.h"

namespace portofu {

/// One simulated network. Outlives the wires that it makes. Used by one thread.
class SimNetwork {
 public:
  /// @param seed  decides everything; the same seed, options and calls give the same run
  explicit SimNetwork(std::uint64_t seed, const SimOptions& options = {});

  SimNetwork(const SimNetwork&) = delete;
  SimNetwork& operator=(const SimNetwork&) = delete;

  /// Makes the wire of a process. Destroying the wire is an orderly end: what it published is still delivered.
  /// @param process  no living process may have this id; one that was killed or has ended may have had it
  std::unique_ptr<SimWire> attach(ProcessId process);

  /// Ends a process at once, as kill -9 does, between any two calls of its wire. Of what it published and nobody has
  /// peeked, a seeded part is still delivered: on each link, the first few. Its peers learn of the death as on a real
  /// node: from check_peers, or when they connect to its successor. Its wire stays valid, and does nothing any more.
  void kill(ProcessId process);

  /// Breaks the link from one living process to another, if there is one, as a fabric that loses packets with a
  /// connection, or a receiver that cannot take them. Both ends learn it as they learn of a death.
  void break_link(ProcessId from, ProcessId to);

  /// Draws a number for the test's own decisions, such as which engine steps next.
  /// @param bound  >= 1
  /// @return 0 .. bound - 1
  std::uint64_t choose(std::uint64_t bound);

  /// True if no living process has a packet that it has not released.
  bool quiet() const;

  /// Where a living process lists what its peers may use. @pre SimOptions::shows_memory
  RegionTableShared& regions(ProcessId process);

  /// Whether some peer says that it is using an entry of the process (MappedRegion::visited).
  bool is_visited(ProcessId process, std::uint64_t key) const;

 private:
  SimMedium medium_;
};

}  // namespace portofu
