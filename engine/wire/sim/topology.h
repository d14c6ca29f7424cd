#pragma once
// Where the links of a simulated network lie, and which of them a datagram takes. Every node has a link into the
// network and one out of it; the rest is the topology's. Routes are static: one path for each pair of nodes.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
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

/// Groups of routers: a router has links to all others of its group, and some to other groups. A group has one link to
/// each other group.
struct DragonflyShape {
  std::uint32_t groups = 1;
  std::uint32_t routers = 1;       ///< Of a group.
  std::uint32_t nodes = 1;         ///< Of a router.
  std::uint32_t global_links = 1;  ///< Of a router; groups <= routers * global_links + 1.
};

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

  /// Switches in as few levels as will do, up to three, with as many links up as down: a lone switch, leaves below
  /// spines, or pods of leaves below cores. A route goes up by the number of the receiver, so that what different nodes
  /// receive comes by different switches.
  /// @param node_count  at most most_fat_tree_nodes(ports)
  /// @param ports       of a switch, even, at least 2
  static Topology fat_tree(std::uint32_t node_count, std::uint32_t ports, const LinkFigures& figures);
  static std::uint64_t most_fat_tree_nodes(std::uint64_t ports) { return ports * (ports / 2) * (ports / 2); }

  /// A route takes the one link between both groups, and a link inside of each where it must.
  static Topology dragonfly(const DragonflyShape& shape, const LinkFigures& figures);

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

  /// The same into a vector that has room from an earlier time.
  void find_route(std::uint32_t from, std::uint32_t to, std::vector<std::uint32_t>* links) const;

  /// The same by a path of a grid of six dimensions: in the last three first to the coordinates of the path, then in
  /// the first three to the receiver's, and in the last three at last (uTofu guide, 2.4).
  /// @param path  less than the lengths of the last three dimensions
  void find_route_by(const std::array<std::uint32_t, 3>& path, std::uint32_t from, std::uint32_t to,
                     std::vector<std::uint32_t>* links) const;

  /// Of a grid; those that it does not have are 1.
  const std::array<std::uint32_t, kMostDimensions>& lengths() const { return lengths_; }

  /// Whether the link is a node's, into the network or out of it.
  bool is_end(std::uint32_t link) const { return link < 2 * node_count_; }

  /// Whether a node has its router in itself, so that its ends are no cables.
  bool is_direct() const { return kind_ == Kind::kGrid; }

  /// For people: "X+ of node 5".
  /// @param node_name  of a node by its number: "node 5"
  std::string link_name(std::uint32_t link, const std::function<std::string(std::uint32_t)>& node_name) const;

  /// Time on the way if nothing else is on it.
  std::uint64_t latency_ns(std::uint32_t from, std::uint32_t to) const;

 private:
  enum class Kind : std::uint8_t { kCrossbar, kGrid, kFatTree, kDragonfly };

  Topology(std::uint32_t node_count, const LinkFigures& figures);

  std::uint32_t into_network(std::uint32_t node) const { return node; }
  std::uint32_t out_of_network(std::uint32_t node) const { return node_count_ + node; }
  std::uint32_t next_node(std::uint32_t at, std::uint32_t to, std::size_t dimension, bool* up) const;
  void cross_grid(std::uint32_t from, std::uint32_t to, std::vector<std::uint32_t>* links) const;
  void climb_tree(std::uint32_t from, std::uint32_t to, std::vector<std::uint32_t>* links) const;
  void cross_groups(std::uint32_t from, std::uint32_t to, std::vector<std::uint32_t>* links) const;
  std::uint32_t leaf_link(std::uint32_t leaf, std::uint32_t port, bool up) const;
  std::uint32_t core_link(std::uint32_t pod, std::uint32_t port, std::uint32_t core, bool up) const;
  std::uint32_t local_link(std::uint32_t router, std::uint32_t to) const;
  std::uint32_t global_link(std::uint32_t group, std::uint32_t port) const;

  Kind kind_ = Kind::kCrossbar;
  std::uint32_t node_count_;
  std::array<std::uint32_t, kMostDimensions> lengths_{};  ///< 0: no such dimension.
  std::array<bool, kMostDimensions> wraps_{};
  std::uint32_t ports_up_ = 0;    ///< Of a switch of a fat tree, which has as many down.
  std::uint32_t leaf_count_ = 0;  ///< Switches of a fat tree with nodes.
  std::uint32_t pod_leaves_ = 0;  ///< Leaves that reach each other without cores.
  DragonflyShape dragonfly_;
  /// Into, out of, and then of a grid for each node and dimension down and up; of a fat tree for each leaf and port up
  /// and down, then for each pod, port and core; of a dragonfly for each router and router of its group, then for each
  /// group and port.
  std::vector<LinkFigures> links_;
};

}  // namespace portofu
