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
  topology.kind_ = Kind::kGrid;
  topology.lengths_ = lengths;
  topology.wraps_ = wraps;
  topology.links_.resize(node_count * (2 + kMostDimensions * kDirections), figures);
  return topology;
}

Topology Topology::fat_tree(std::uint32_t node_count, std::uint32_t ports, const LinkFigures& figures) {
  PORTOFU_ASSERT(ports >= 2 && ports % 2 == 0 && node_count <= most_fat_tree_nodes(ports));
  Topology topology(node_count, figures);
  if (node_count <= ports) return topology;
  topology.kind_ = Kind::kFatTree;
  const std::uint32_t up = topology.ports_up_ = ports / 2;
  topology.leaf_count_ = (node_count + up - 1) / up;
  const bool has_cores = topology.leaf_count_ > ports;
  topology.pod_leaves_ = has_cores ? up : topology.leaf_count_;
  const std::uint32_t pods = (topology.leaf_count_ + topology.pod_leaves_ - 1) / topology.pod_leaves_;
  const std::uint32_t core_links = has_cores ? pods * up * up * 2 : 0;
  topology.links_.resize(2 * node_count + topology.leaf_count_ * up * 2 + core_links, figures);
  return topology;
}

Topology Topology::dragonfly(const DragonflyShape& shape, const LinkFigures& figures) {
  PORTOFU_ASSERT(shape.groups <= shape.routers * shape.global_links + 1);
  const std::uint32_t router_count = shape.groups * shape.routers;
  Topology topology(router_count * shape.nodes, figures);
  topology.kind_ = Kind::kDragonfly;
  topology.dragonfly_ = shape;
  topology.links_.resize(2 * topology.node_count_ + router_count * shape.routers + shape.groups * shape.groups,
                         figures);
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

void Topology::cross_grid(std::uint32_t from, std::uint32_t to, std::vector<std::uint32_t>* links) const {
  std::uint32_t at = from;
  for (std::size_t dimension = 0; dimension < kMostDimensions && lengths_[dimension] > 0; ++dimension) {
    for (std::uint32_t steps = lengths_[dimension]; steps > 0; --steps) {
      bool up = false;
      const std::uint32_t next = next_node(at, to, dimension, &up);
      if (next == at) break;
      const std::size_t link = 2 * node_count_ + (at * kMostDimensions + dimension) * kDirections + (up ? 1 : 0);
      links->push_back(static_cast<std::uint32_t>(link));
      at = next;
    }
  }
}

/// Between a leaf and the switch above it that its port leads to.
std::uint32_t Topology::leaf_link(std::uint32_t leaf, std::uint32_t port, bool up) const {
  return 2 * node_count_ + (leaf * ports_up_ + port) * 2 + (up ? 1 : 0);
}

/// Between the switch of a pod above its leaves' `port` and one of its cores.
std::uint32_t Topology::core_link(std::uint32_t pod, std::uint32_t port, std::uint32_t core, bool up) const {
  return leaf_link(leaf_count_, 0, false) + ((pod * ports_up_ + port) * ports_up_ + core) * 2 + (up ? 1 : 0);
}

void Topology::climb_tree(std::uint32_t from, std::uint32_t to, std::vector<std::uint32_t>* links) const {
  const std::uint32_t from_leaf = from / ports_up_;
  const std::uint32_t to_leaf = to / ports_up_;
  if (from_leaf == to_leaf) return;
  const std::uint32_t port = to % ports_up_;
  const std::uint32_t core = to_leaf % ports_up_;
  const std::uint32_t from_pod = from_leaf / pod_leaves_;
  const std::uint32_t to_pod = to_leaf / pod_leaves_;
  links->push_back(leaf_link(from_leaf, port, true));
  if (from_pod != to_pod) {
    links->push_back(core_link(from_pod, port, core, true));
    links->push_back(core_link(to_pod, port, core, false));
  }
  links->push_back(leaf_link(to_leaf, port, false));
}

/// From a router to another of its group, both counted from 0 in all groups.
std::uint32_t Topology::local_link(std::uint32_t router, std::uint32_t to) const {
  return 2 * node_count_ + router * dragonfly_.routers + to % dragonfly_.routers;
}

/// Port 0 of a group leads to the next group, and so on round.
std::uint32_t Topology::global_link(std::uint32_t group, std::uint32_t port) const {
  return local_link(dragonfly_.groups * dragonfly_.routers, 0) + group * dragonfly_.groups + port;
}

void Topology::cross_groups(std::uint32_t from, std::uint32_t to, std::vector<std::uint32_t>* links) const {
  const auto& [groups, routers, nodes, global_links] = dragonfly_;
  std::uint32_t at = from / nodes;
  const std::uint32_t end = to / nodes;
  const std::uint32_t from_group = at / routers;
  const std::uint32_t to_group = end / routers;
  const auto go_to = [&](std::uint32_t router) {
    if (at != router) links->push_back(local_link(at, router));
    at = router;
  };
  if (from_group != to_group) {
    const std::uint32_t port_out = (to_group + groups - from_group - 1) % groups;
    const std::uint32_t port_in = (from_group + groups - to_group - 1) % groups;
    go_to(from_group * routers + port_out / global_links);
    links->push_back(global_link(from_group, port_out));
    at = to_group * routers + port_in / global_links;
  }
  go_to(end);
}

void Topology::find_route(std::uint32_t from, std::uint32_t to, std::vector<std::uint32_t>* links) const {
  links->assign(1, into_network(from));
  if (kind_ == Kind::kGrid) cross_grid(from, to, links);
  if (kind_ == Kind::kFatTree) climb_tree(from, to, links);
  if (kind_ == Kind::kDragonfly) cross_groups(from, to, links);
  links->push_back(out_of_network(to));
}

void Topology::find_route_by(const std::array<std::uint32_t, 3>& path, std::uint32_t from, std::uint32_t to,
                             std::vector<std::uint32_t>* links) const {
  PORTOFU_ASSERT(kind_ == Kind::kGrid && path[0] < lengths_[3] && path[1] < lengths_[4] && path[2] < lengths_[5]);
  const std::uint32_t group = lengths_[0] * lengths_[1] * lengths_[2];  // Places with the same last three.
  const std::uint32_t on_path = (path[0] + lengths_[3] * (path[1] + lengths_[4] * path[2])) * group;
  links->assign(1, into_network(from));
  cross_grid(from, on_path + from % group, links);
  cross_grid(on_path + from % group, on_path + to % group, links);
  cross_grid(on_path + to % group, to, links);
  links->push_back(out_of_network(to));
}

std::vector<std::uint32_t> Topology::route(std::uint32_t from, std::uint32_t to) const {
  std::vector<std::uint32_t> links;
  find_route(from, to, &links);
  return links;
}

std::string Topology::link_name(std::uint32_t link, const std::function<std::string(std::uint32_t)>& node_name) const {
  const auto text = [](std::uint32_t number) { return std::to_string(number); };
  if (link < node_count_) return node_name(link) + " into the network";
  if (link < 2 * node_count_) return "network to " + node_name(link - node_count_);
  const std::uint32_t number = link - 2 * node_count_;
  if (kind_ == Kind::kGrid) {
    const std::uint32_t at = number / (kMostDimensions * kDirections);
    const std::string letter(1, "XYZABC"[number / kDirections % kMostDimensions]);
    return letter + (number % kDirections == 1 ? "+" : "-") + " of " + node_name(at);
  }
  if (kind_ == Kind::kFatTree) {
    const char* const direction = number % 2 == 1 ? " up" : " down";
    const std::uint32_t port = number / 2;
    const std::uint32_t leaf_ports = leaf_count_ * ports_up_;
    if (port < leaf_ports) return "leaf " + text(port / ports_up_) + " port " + text(port % ports_up_) + direction;
    return "pod " + text((port - leaf_ports) / (ports_up_ * ports_up_)) + " core port " +
           text((port - leaf_ports) % (ports_up_ * ports_up_)) + direction;
  }
  const std::uint32_t locals = dragonfly_.groups * dragonfly_.routers * dragonfly_.routers;
  if (number < locals)
    return "router " + text(number / dragonfly_.routers) + " to the " + text(number % dragonfly_.routers) +
           ". of its group";
  const std::uint32_t from = (number - locals) / dragonfly_.groups;
  return "group " + text(from) + " to group " +
         text((from + (number - locals) % dragonfly_.groups + 1) % dragonfly_.groups);
}

std::uint64_t Topology::latency_ns(std::uint32_t from, std::uint32_t to) const {
  std::uint64_t latency_ns = 0;
  for (const std::uint32_t link : route(from, to)) latency_ns += links_[link].latency_ns;
  return latency_ns;
}

}  // namespace portofu
