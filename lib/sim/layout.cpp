#include "lib/sim/layout.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <numeric>

namespace portofu::sim {
namespace {

constexpr std::uint64_t kMostNodes = 1 << 17;

/// "2x3x2" as numbers. @return empty if it is something else
std::vector<std::uint32_t> parse_lengths(std::string_view text) {
  std::vector<std::uint32_t> lengths;
  const char* next = text.data();
  const char* const end = next + text.size();
  for (;; ++next) {
    std::uint32_t length = 0;
    const auto [rest, error] = std::from_chars(next, end, length);
    if (error != std::errc{} || length == 0) return {};
    lengths.push_back(length);
    next = rest;
    if (next == end) return lengths;
    if (*next != 'x') return {};
  }
}

std::vector<std::uint32_t> in_order(std::uint32_t count) {
  std::vector<std::uint32_t> places(count);
  std::iota(places.begin(), places.end(), 0);
  return places;
}

/// A torus of these lengths; what is shorter than on the machine is no ring.
Topology make_torus(const TopologyFigures& machine, const std::array<std::uint32_t, 6>& lengths) {
  std::array<bool, 6> wraps = machine.wraps;
  for (std::size_t i = 0; i < wraps.size(); ++i) {
    if (machine.lengths[i] != 0 && lengths[i] != machine.lengths[i]) wraps[i] = false;
  }
  return Topology::grid(lengths, wraps, {});
}

std::uint32_t place_in(const std::array<std::uint32_t, 6>& lengths, const Coordinates& at) {
  std::uint32_t place = 0;
  for (std::size_t i = at.size(); i-- > 0;) place = place * lengths[i] + at[i];
  return place;
}

std::optional<Layout> lay_out_lengths(const Machine& machine, const std::vector<std::uint32_t>& given,
                                      std::string* why) {
  std::array<std::uint32_t, 6> lengths{};
  std::copy(given.begin(), given.end(), lengths.begin());
  const NodeShape shape{.sides = lengths, .is_torus = true};
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const std::uint32_t most = machine.topology.lengths[i] != 0 ? machine.topology.lengths[i] : 256;
    if (lengths[i] <= most) continue;
    *why = "dimension " + std::to_string(i + 1) + " of " + machine.name + " has at most " + std::to_string(most) +
           " nodes, not " + std::to_string(lengths[i]);
    return std::nullopt;
  }
  Layout layout{make_torus(machine.topology, lengths), {}, {}};
  layout.places = in_order(layout.topology.node_count());
  for (const std::uint32_t place : layout.places) layout.coordinates.push_back(shape.coordinates(place));
  return layout;
}

/// A box of nodes on the smallest torus around it. Its groups of nodes are whole, as those of the machine.
std::optional<Layout> lay_out_box(const Machine& machine, std::string_view nodes, std::string* why) {
  const std::optional<NodeShape> shape = NodeShape::parse(nodes);
  if (!shape || machine.topology.lengths != std::array<std::uint32_t, 6>{0, 0, 0, 2, 3, 2}) {
    *why = std::string(nodes) + ": a job on " + machine.name + " has six lengths" +
           (shape ? "" : ", or up to three sides, of " + NodeShape::most_sides_text() + " nodes at most");
    return std::nullopt;
  }
  std::array<std::uint32_t, 6> lengths = machine.topology.lengths;
  for (std::size_t i = 0; i < 3; ++i) lengths[i] = (shape->sides[i] + lengths[i + 3] - 1) / lengths[i + 3];
  Layout layout{make_torus(machine.topology, lengths), {}, {}};
  for (std::uint32_t node = 0; node < shape->count(); ++node) {
    layout.coordinates.push_back(shape->coordinates(node));
    layout.places.push_back(place_in(lengths, layout.coordinates.back()));
  }
  return layout;
}

std::optional<Layout> lay_out_count(const Machine& machine, std::uint32_t count, std::string* why) {
  const TopologyFigures& figures = machine.topology;
  if (figures.kind == TopologyKind::kHypercube) {
    // The guest of a larger cube is a corner of it: a route through it changes one bit after the other.
    const auto dimensions = static_cast<std::uint32_t>(std::bit_width(count - 1));
    if (dimensions > kMostDimensions) {
      *why = machine.name + " has at most " + std::to_string(1u << kMostDimensions) + " nodes";
      return std::nullopt;
    }
    return Layout{Topology::hypercube(dimensions, {}), in_order(count), {}};
  }
  if (figures.kind == TopologyKind::kFatTree) {
    const std::uint64_t most = Topology::most_fat_tree_nodes(figures.switch_ports);
    if (count <= most) return Layout{Topology::fat_tree(count, figures.switch_ports, {}), in_order(count), {}};
    *why = machine.name + " has at most " + std::to_string(most) + " nodes, not " + std::to_string(count);
    return std::nullopt;
  }
  if (figures.kind == TopologyKind::kDragonfly) {
    const std::uint32_t in_group = figures.routers_per_group * figures.nodes_per_router;
    const DragonflyShape shape{(count + in_group - 1) / in_group, figures.routers_per_group, figures.nodes_per_router,
                               figures.global_links_per_router};
    if (shape.groups <= shape.routers * shape.global_links + 1)
      return Layout{Topology::dragonfly(shape, {}), in_order(count), {}};
    *why = machine.name + " has at most " + std::to_string((shape.routers * shape.global_links + 1) * in_group) +
           " nodes, not " + std::to_string(count);
    return std::nullopt;
  }
  return Layout{Topology::crossbar(count, {}), in_order(count), {}};
}

}  // namespace

std::string Layout::place_name(std::uint32_t place) const {
  const auto found = std::find(places.begin(), places.end(), place);
  if (found == places.end()) return "place " + std::to_string(place);
  return "node " + std::to_string(found - places.begin());
}

std::optional<Layout> lay_out(const Machine& machine, std::string_view nodes, std::string* why) {
  const std::vector<std::uint32_t> lengths = parse_lengths(nodes);
  double count = 1;
  for (const std::uint32_t length : lengths) count *= length;
  if (lengths.empty() || lengths.size() > kMostDimensions || count > double{kMostNodes}) {
    *why = "nodes: \"" + std::string(nodes) + "\" is no number like 12 and no lengths like 2x3x2, of " +
           std::to_string(kMostNodes) + " nodes at most";
    return std::nullopt;
  }
  if (machine.topology.kind != TopologyKind::kTorus)
    return lay_out_count(machine, static_cast<std::uint32_t>(count), why);
  if (lengths.size() == kMostDimensions) return lay_out_lengths(machine, lengths, why);
  return lay_out_box(machine, nodes, why);
}

}  // namespace portofu::sim
