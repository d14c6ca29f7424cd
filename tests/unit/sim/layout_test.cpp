// Tests of lib/sim/layout.cpp: nodes of jobs in the networks of machines.

#include "lib/sim/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace portofu::sim {
namespace {

using ::testing::HasSubstr;

Machine machine_of(TopologyKind kind) {
  Machine machine;
  machine.name = "ours";
  machine.topology.kind = kind;
  machine.topology.lengths = {0, 0, 0, 2, 3, 2};
  machine.topology.wraps = {true, true, true, false, true, false};
  machine.topology.switch_ports = 4;
  machine.topology.routers_per_group = 2;
  machine.topology.nodes_per_router = 2;
  machine.topology.global_links_per_router = 1;
  return machine;
}

std::size_t hops(const Layout& layout, std::uint32_t from, std::uint32_t to) {
  return layout.topology.route(layout.places[from], layout.places[to]).size() - 2;
}

Layout laid_out(TopologyKind kind, std::string_view nodes) {
  std::string why;
  auto layout = lay_out(machine_of(kind), nodes, &why);
  EXPECT_TRUE(layout) << why;
  return std::move(layout).value_or(Layout{Topology::crossbar(1, {}), {}, {}});
}

std::string complaint(TopologyKind kind, std::string_view nodes) {
  std::string why;
  EXPECT_FALSE(lay_out(machine_of(kind), nodes, &why)) << nodes;
  return why;
}

TEST(Layout, Box__has_neighbours_that_are_neighbours_on_the_torus) {
  const Layout layout = laid_out(TopologyKind::kTorus, "4x3x2");
  ASSERT_EQ(layout.node_count(), 24u);
  EXPECT_EQ(std::set<std::uint32_t>(layout.places.begin(), layout.places.end()).size(), 24u);
  for (std::uint32_t node = 0; node < 24; ++node) {
    const std::uint32_t x = node % 4;
    const std::uint32_t y = node / 4 % 3;
    EXPECT_EQ(x == 3 ? 1 : hops(layout, node, node + 1), 1u) << node;
    EXPECT_EQ(y == 2 ? 1 : hops(layout, node, node + 4), 1u) << node;
    EXPECT_EQ(node >= 12 ? 1 : hops(layout, node, node + 12), 1u) << node;
  }
  EXPECT_EQ(layout.coordinates[2], (Coordinates{1, 0, 0, 1, 0, 0})) << "the snake turns";
}

TEST(Layout, Six_lengths__are_those_of_the_torus) {
  const Layout layout = laid_out(TopologyKind::kTorus, "3x1x1x2x3x2");
  ASSERT_EQ(layout.node_count(), 36u);
  EXPECT_EQ(layout.coordinates[35], (Coordinates{2, 0, 0, 1, 2, 1}));
  EXPECT_EQ(hops(layout, 0, 2), 1u) << "X is a ring";
  EXPECT_EQ(hops(layout, 0, 12), 1u) << "B is a ring: 0 and 2 are neighbours";
}

/// Ranks find out where they are by NodeShape, from the same text.
TEST(Layout, Torus__has_its_nodes_where_ranks_take_them_to_be) {
  for (const char* nodes : {"2x3x2x2x3x2", "3x1x2x1x3x2", "4x3x2", "7", "5x4"}) {
    const Layout layout = laid_out(TopologyKind::kTorus, nodes);
    const auto shape = NodeShape::parse(nodes);
    ASSERT_TRUE(shape) << nodes;
    ASSERT_EQ(layout.node_count(), shape->count()) << nodes;
    for (std::uint32_t node = 0; node < layout.node_count(); ++node)
      EXPECT_EQ(layout.coordinates[node], shape->coordinates(node)) << nodes << ", node " << node;
  }
}

TEST(Layout, Dimension_that_is_not_whole__is_no_ring) {
  const Machine machine = machine_of(TopologyKind::kTorus);
  std::string why;
  Machine longer = machine;
  longer.topology.lengths[0] = 5;
  const auto layout = lay_out(longer, "4x1x1x1x1x1", &why);
  ASSERT_TRUE(layout) << why;
  EXPECT_EQ(hops(*layout, 0, 3), 3u);
}

TEST(Layout, Other_networks__take_a_number_of_nodes) {
  EXPECT_EQ(hops(laid_out(TopologyKind::kHypercube, "32"), 0, 31), 5u);
  EXPECT_EQ(laid_out(TopologyKind::kHypercube, "1").node_count(), 1u);
  EXPECT_EQ(hops(laid_out(TopologyKind::kFatTree, "16"), 0, 15), 4u);
  EXPECT_EQ(hops(laid_out(TopologyKind::kCrossbar, "5"), 0, 4), 0u);
  const Layout dragonfly = laid_out(TopologyKind::kDragonfly, "3x4");
  EXPECT_EQ(dragonfly.node_count(), 12u);
  EXPECT_LE(hops(dragonfly, 0, 11), 3u);
}

TEST(Layout, What_does_not_fit__is_refused_with_what_does) {
  EXPECT_THAT(complaint(TopologyKind::kFatTree, "17"), HasSubstr("ours has at most 16 nodes, not 17"));
  EXPECT_THAT(complaint(TopologyKind::kDragonfly, "13"), HasSubstr("ours has at most 12 nodes, not 13"));
  EXPECT_THAT(complaint(TopologyKind::kHypercube, "65"), HasSubstr("ours has at most 64 nodes"));
  EXPECT_THAT(complaint(TopologyKind::kTorus, "1x1x1x3x3x2"),
              HasSubstr("dimension 4 of ours has at most 2 nodes, not 3"));
  EXPECT_THAT(complaint(TopologyKind::kTorus, "2x2x2x2"), HasSubstr("six lengths"));
  for (const char* nodes :
       {"", "0", "x", "2x", "2x0", "-1", "2 x 3", "1x1x1x1x1x1x1", "999999", "99999999999", "1000x1000"})
    EXPECT_THAT(complaint(TopologyKind::kCrossbar, nodes), HasSubstr("is no number like 12")) << nodes;
}

}  // namespace
}  // namespace portofu::sim
