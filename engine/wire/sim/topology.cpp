#include "engine/wire/sim/topology.h"

#include <algorithm>

#include "engine/queue/assert.h"

namespace portofu {
namespace {

constexpr std::size_t kDirections = 2;  ///< Down and up.

}  // namespace

Topology::Topology(std::uint32_t node_count, const LinkFigures& figures)
    : node_count_(node_count), links_(std::size_t{node_count} * 2, figures) {
  PORTOFU_ASSERT(node_count > 0);
}

Topology Topology::crossbar(std::uint32_t node_count, const LinkFigures& figures) { return {node_count, figures}; }

Topology Topology::hypercube(std::uint32_t dimensions, const LinkFigures& figures) {
  PORTOFU_ASSERT(dimensions <= kMostDimensions);
  std::array<std::uint32_t, kMostDimensions> lengths{};
  lengths.fill(1);
  std::fill_n(lengths.begin(), dimensions, 2);
  return grid(lengths, {}, figures);
}

Topology Topology::grid(const std::array<std::uint32_t, kMostDimensions>& lengths,
                        const std::array<bool, kMostDimensions>& wraps, const LinkFigures& figures) {
  std::uint32_t node_count = 1;
  for (const std::uint32_t length : lengths) node_count *= length;
  Topology topology(node_count, figures);
  topology.lengths_ = lengths;
  topology.wraps_ = wraps;
  topology.links_.resize(node_count * (2 + kMostDimensions * kDirections), figures);
  return topology;
}

Topology Topology::tofu_d(std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  constexpr std::uint64_t kFirstHopNs = 490;
  constexpr std::uint64_t kHopNs = 100;
  constexpr std::uint64_t kTniCount = 6;
  const LinkFigures hop{.latency_ns = kHopNs, .bytes_per_us = 6800};
  Topology topology = grid({x, y, z, 2, 3, 2}, {true, true, true, false, true, false}, hop);
  for (std::uint32_t node = 0; node < 2 * topology.node_count_; ++node) {
    LinkFigures& end = topology.links_[node];  // Into and out of the network: all that is not a hop.
    end.latency_ns = (kFirstHopNs - kHopNs) / 2;
    end.bytes_per_us = kTniCount * hop.bytes_per_us;
  }
  return topology;
}

Topology Topology::funet(std::uint32_t dimensions) {
  constexpr std::uint64_t kCycleNs = 40;
  return hypercube(dimensions, {.latency_ns = (5 + 1) * kCycleNs,
                                .bytes_per_us = 4 * 1000 / kCycleNs,
                                .queue_datagrams = 3,
                                .reserved_datagrams = 1});
}

/// The neighbour that is one step nearer in the dimension; `at` if it is right already.
std::uint32_t Topology::next_node(std::uint32_t at, std::uint32_t to, std::size_t dimension, bool* up) const {
  std::uint32_t stride = 1;
  for (std::size_t i = 0; i < dimension; ++i) stride *= lengths_[i];
  const std::uint32_t length = lengths_[dimension];
  const std::uint32_t here = at / stride % length;
  const std::uint32_t there = to / stride % length;
  if (here == there) return at;
  const std::uint32_t distance_up = (there + length - here) % length;
  *up = wraps_[dimension] ? 2 * distance_up <= length : there > here;
  const std::uint32_t next = (*up ? here + 1 : here + length - 1) % length;
  return at - here * stride + next * stride;
}

std::vector<std::uint32_t> Topology::route(std::uint32_t from, std::uint32_t to) const {
  std::vector<std::uint32_t> links{into_network(from)};
  std::uint32_t at = from;
  for (std::size_t dimension = 0; dimension < kMostDimensions && lengths_[dimension] > 0; ++dimension) {
    for (std::uint32_t steps = lengths_[dimension]; steps > 0; --steps) {
      bool up = false;
      const std::uint32_t next = next_node(at, to, dimension, &up);
      if (next == at) break;
      const std::size_t link = 2 * node_count_ + (at * kMostDimensions + dimension) * kDirections + (up ? 1 : 0);
      links.push_back(static_cast<std::uint32_t>(link));
      at = next;
    }
  }
  links.push_back(out_of_network(to));
  return links;
}

std::uint64_t Topology::latency_ns(std::uint32_t from, std::uint32_t to) const {
  std::uint64_t latency_ns = 0;
  for (const std::uint32_t link : route(from, to)) latency_ns += links_[link].latency_ns;
  return latency_ns;
}

}  // namespace portofu
