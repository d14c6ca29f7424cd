#pragma once
// The nodes of a job on a machine: how many, and where in its network.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/door/simulation.h"
#include "lib/sim/machine.h"

namespace portofu::sim {

struct Layout {
  Topology topology;
  std::vector<std::uint32_t> places;     ///< By node of the job: its number in the topology.
  std::vector<Coordinates> coordinates;  ///< By node of the job, on a torus; else empty.

  /// For people: "node 5" of the job, or "place 7" of the topology that is not a node of the job.
  std::string place_name(std::uint32_t place) const;

  std::uint32_t node_count() const { return static_cast<std::uint32_t>(places.size()); }
};

/// Lays the nodes of a job into the network of a machine.
/// @param nodes  "12": so many; "2x3x2": as many, on a torus of Tofu a box whose neighbours are neighbours there
///               (engine/topology/node_shape.h); six lengths: those of the torus itself, the first the fastest
/// @param why    one sentence on failure
std::optional<Layout> lay_out(const Machine& machine, std::string_view nodes, std::string* why);

}  // namespace portofu::sim
