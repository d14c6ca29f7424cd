#pragma once
// Where the links of a simulated network lie, and which of them a datagram takes. Every node has a link into the
// network and one out of it; the rest is the topology's. Routes are static: one path for each pair of nodes.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace portofu {

/// Of one directed link, with the queue in front of it.
struct LinkFigures {
  std::uint64_t latency_ns = 1000;       ///< From the last byte in to the last byte out.
  std::uint64_t bytes_per_us = 0;        ///< 1000 is 1 GB/s; 0: no limit.
  std::uint32_t queue_datagrams = 1024;  ///< That wait for the link, at most.
  std::uint32_t reserved_datagrams = 0;  ///< Of them, for answers only.
};

inline constexpr std::size_t kMostDimensions = 6;

/// Nodes are numbered from 0.
class Topology {
 public:
  /// Every node reaches every other through one switch that is never in the way.
  static Topology crossbar(std::uint32_t node_count, const LinkFigures& figures);

  /// 2^dimensions nodes; a route corrects the lowest wrong bit first.
  static Topology hypercube(std::uint32_t dimensions, const LinkFigures& figures);

  /// Mesh or torus of up to six dimensions; a route corrects one dimension after the other, the shorter way round.
  /// @param lengths  nodes in each dimension, at least 1
  /// @param wraps    whether the dimension is a ring
  static Topology grid(const std::array<std::uint32_t, kMostDimensions>& lengths,
                       const std::array<bool, kMostDimensions>& wraps, const LinkFigures& figures);

  /// Tofu-D: coordinates X, Y, Z, and A, B, C of 2, 3, 2 with a ring in B (guide, 1.1). 6.8 GB/s a link. 0.49 us from
  /// memory to memory over one hop, and 0.1 us for each further one, are the figures published by its makers.
  static Topology tofu_d(std::uint32_t x, std::uint32_t y, std::uint32_t z);

  /// FUNet: the thesis' hypercube of Arctic routers at 25 MHz (6.1.4): 4 bytes a cycle, 5 cycles through a router and
  /// one along the wire, three buffers, of which one is for packets of high priority.
  static Topology funet(std::uint32_t dimensions);

  std::uint32_t node_count() const { return node_count_; }
  const std::vector<LinkFigures>& links() const { return links_; }

  /// Links of the way from one node to another or to itself, in order; the first is the sender's, the last the
  /// receiver's.
  std::vector<std::uint32_t> route(std::uint32_t from, std::uint32_t to) const;

  /// Time on the way if nothing else is on it.
  std::uint64_t latency_ns(std::uint32_t from, std::uint32_t to) const;

 private:
  Topology(std::uint32_t node_count, const LinkFigures& figures);

  std::uint32_t into_network(std::uint32_t node) const { return node; }
  std::uint32_t out_of_network(std::uint32_t node) const { return node_count_ + node; }
  std::uint32_t next_node(std::uint32_t at, std::uint32_t to, std::size_t dimension, bool* up) const;

  std::uint32_t node_count_;
  std::array<std::uint32_t, kMostDimensions> lengths_{};  ///< 0: no such dimension.
  std::array<bool, kMostDimensions> wraps_{};
  std::vector<LinkFigures> links_;  ///< Into, out of, and then for each node and dimension down and up.
};

}  // namespace portofu
