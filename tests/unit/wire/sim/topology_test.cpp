// Tests of engine/wire/sim/topology.cpp: ways through the kinds of network.

#include "engine/wire/sim/topology.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>

namespace portofu {
namespace {

constexpr LinkFigures kPlain{.latency_ns = 10};

std::string name_of(const Topology& topology, std::uint32_t link) {
  return topology.link_name(link, [](std::uint32_t node) { return "node " + std::to_string(node); });
}

TEST(Topology, Crossbar__has_one_link_in_and_one_out) {
  const Topology topology = Topology::crossbar(5, kPlain);
  EXPECT_EQ(topology.node_count(), 5u);
  EXPECT_EQ(topology.route(1, 4).size(), 2u);
  EXPECT_EQ(topology.route(1, 4)[0], topology.route(1, 3)[0]) << "the sender's";
  EXPECT_EQ(topology.route(1, 4)[1], topology.route(2, 4)[1]) << "the receiver's";
  EXPECT_EQ(topology.latency_ns(0, 1), 20u);
}

TEST(Topology, Hypercube__takes_a_link_for_each_wrong_bit_the_lowest_first) {
  const Topology topology = Topology::hypercube(4, kPlain);
  EXPECT_EQ(topology.node_count(), 16u);
  for (std::uint32_t from = 0; from < 16; ++from) {
    for (std::uint32_t to = 0; to < 16; ++to)
      EXPECT_EQ(topology.route(from, to).size(), 2 + static_cast<std::size_t>(std::popcount(from ^ to)));
  }
  EXPECT_EQ(topology.route(0, 0b0110)[1], topology.route(0, 0b0010)[1]);
}

// The guide, 1.1: A, B, C have lengths 2, 3, 2, and B is a ring.
TEST(Topology, Tofu__takes_the_shorter_way_round_its_rings) {
  const Topology topology = Topology::tofu_d(4, 1, 1);
  EXPECT_EQ(topology.node_count(), 4u * 12);
  const auto hops = [&](std::uint32_t from, std::uint32_t to) { return topology.route(from, to).size() - 2; };
  const std::uint32_t b = 4 * 2;  // Stride of B.
  EXPECT_EQ(hops(0, 1), 1u);
  EXPECT_EQ(hops(0, 2), 2u);
  EXPECT_EQ(hops(0, 3), 1u) << "X is a ring of four";
  EXPECT_EQ(hops(0, 2 * b), 1u) << "B is a ring of three";
  EXPECT_EQ(topology.latency_ns(0, 1), 490u) << "one hop";
  EXPECT_EQ(topology.latency_ns(0, 2), 590u) << "each further one";
}

// The guide, 2.4: first to A, B, C of the path, then to X, Y, Z of the receiver, and to its A, B, C.
TEST(Topology, Path__decides_where_X_Y_and_Z_are_crossed) {
  const Topology topology = Topology::tofu_d(5, 1, 1);
  const std::uint32_t a = 5;  // Strides.
  const std::uint32_t b = 5 * 2;
  const std::uint32_t from = 1;
  const std::uint32_t to = 3 + 2 * b;
  std::vector<std::uint32_t> links;
  const auto names = [&](const std::array<std::uint32_t, 3>& path) {
    std::vector<std::string> found;
    topology.find_route_by(path, from, to, &links);
    for (const std::uint32_t link : links) found.push_back(name_of(topology, link));
    return found;
  };
  using Names = std::vector<std::string>;
  const auto of = [](const char* direction, std::uint32_t node) {
    return direction + (" of node " + std::to_string(node));
  };
  const std::string into = "node 1 into the network";
  const std::string out = "network to node " + std::to_string(to);
  EXPECT_EQ(names({0, 0, 0}), (Names{into, of("X+", 1), of("X+", 2), of("B-", 3), out})) << "the sender's own";
  EXPECT_EQ(links, topology.route(from, to));
  EXPECT_EQ(names({0, 2, 0}), (Names{into, of("B-", 1), of("X+", 1 + 2 * b), of("X+", 2 + 2 * b), out}));
  EXPECT_EQ(names({0, 1, 0}), (Names{into, of("B+", 1), of("X+", 1 + b), of("X+", 2 + b), of("B+", 3 + b), out}));
  EXPECT_EQ(names({1, 0, 0}),
            (Names{into, of("A+", 1), of("X+", 1 + a), of("X+", 2 + a), of("A-", 3 + a), of("B-", 3), out}));
}

TEST(Topology, Mesh__goes_the_only_way) {
  const Topology topology = Topology::grid({5, 1, 1, 1, 1, 1}, {}, kPlain);
  EXPECT_EQ(topology.route(0, 4).size(), 2u + 4);
  EXPECT_EQ(topology.route(4, 0).size(), 2u + 4);
}

/// Sees every link of the way once, none of which is another node's end.
void expect_simple_ways(const Topology& topology, std::size_t most_links) {
  for (std::uint32_t from = 0; from < topology.node_count(); ++from) {
    for (std::uint32_t to = 0; to < topology.node_count(); ++to) {
      const auto links = topology.route(from, to);
      ASSERT_LE(links.size(), most_links) << from << " to " << to;
      EXPECT_EQ(std::set<std::uint32_t>(links.begin(), links.end()).size(), links.size()) << from << " to " << to;
      for (std::size_t i = 0; i < links.size(); ++i) {
        ASSERT_LT(links[i], topology.links().size());
        EXPECT_EQ(topology.is_end(links[i]), i == 0 || i + 1 == links.size());
      }
    }
  }
}

TEST(Topology, Fat_tree__has_as_few_levels_as_will_do) {
  EXPECT_EQ(Topology::most_fat_tree_nodes(4), 16u);
  const Topology lone = Topology::fat_tree(4, 4, kPlain);
  EXPECT_EQ(lone.route(0, 3).size(), 2u) << "one switch";
  const Topology leaves = Topology::fat_tree(8, 4, kPlain);
  EXPECT_EQ(leaves.route(0, 1).size(), 2u) << "of the same leaf";
  EXPECT_EQ(leaves.route(0, 7).size(), 4u) << "up and down";
  const Topology pods = Topology::fat_tree(16, 4, kPlain);
  EXPECT_EQ(pods.route(0, 3).size(), 4u) << "of the same pod";
  EXPECT_EQ(pods.route(0, 15).size(), 6u) << "over a core";
  for (const Topology* topology : {&lone, &leaves, &pods}) {
    EXPECT_FALSE(topology->is_direct());
    expect_simple_ways(*topology, 6);
  }
}

TEST(Topology, Fat_tree__brings_what_two_nodes_receive_by_different_links) {
  const Topology topology = Topology::fat_tree(16, 4, kPlain);
  std::set<std::uint32_t> links;
  std::size_t count = 0;
  for (std::uint32_t i = 0; i < 8; ++i) {  // Every node of the left half to one of the right: nobody shares a link.
    for (const std::uint32_t link : topology.route(i, i + 8)) {
      links.insert(link);
      ++count;
    }
  }
  EXPECT_EQ(links.size(), count);
}

TEST(Topology, Dragonfly__takes_one_link_between_groups_and_one_inside_of_each) {
  const Topology topology = Topology::dragonfly({.groups = 5, .routers = 2, .nodes = 2, .global_links = 2}, kPlain);
  EXPECT_EQ(topology.node_count(), 20u);
  expect_simple_ways(topology, 2 + 3);
  EXPECT_EQ(topology.route(0, 1).size(), 2u) << "of the same router";
  EXPECT_EQ(topology.route(0, 2).size(), 3u) << "of the same group";
  std::set<std::uint32_t> between;
  for (std::uint32_t to = 4; to < 20; to += 4) {
    for (const std::uint32_t link : topology.route(0, to)) {
      if (name_of(topology, link).starts_with("group 0 to")) between.insert(link);
    }
  }
  EXPECT_EQ(between.size(), 4u) << "a link to each other group";
}

TEST(Topology, Names__tell_links_apart) {
  for (const Topology& topology :
       {Topology::tofu_d(2, 1, 1), Topology::fat_tree(16, 4, kPlain), Topology::crossbar(3, kPlain),
        Topology::dragonfly({.groups = 3, .routers = 2, .nodes = 1, .global_links = 1}, kPlain)}) {
    std::set<std::string> names;
    std::set<std::uint32_t> links;
    for (std::uint32_t from = 0; from < topology.node_count(); ++from) {
      for (std::uint32_t to = 0; to < topology.node_count(); ++to) {
        for (const std::uint32_t link : topology.route(from, to)) {
          links.insert(link);
          names.insert(name_of(topology, link));
        }
      }
    }
    EXPECT_EQ(names.size(), links.size());
  }
  const Topology torus = Topology::tofu_d(1, 1, 1);
  EXPECT_EQ(name_of(torus, torus.route(0, 1)[1]), "A+ of node 0");
  EXPECT_TRUE(torus.is_direct());
}

TEST(Topology, Ways__meet_only_where_they_must) {
  const Topology topology = Topology::grid({3, 3, 1, 1, 1, 1}, {}, kPlain);
  const auto one = topology.route(0, 2);
  const auto other = topology.route(2, 0);
  std::set<std::uint32_t> links(one.begin(), one.end());
  links.insert(other.begin(), other.end());
  EXPECT_EQ(links.size(), one.size() + other.size()) << "each direction has its own links";
}

// The thesis, 6.1.4.
TEST(Topology, Funet__has_three_buffers_of_which_one_is_kept) {
  const Topology topology = Topology::funet(3);
  EXPECT_EQ(topology.node_count(), 8u);
  EXPECT_EQ(topology.links()[0].queue_datagrams, 3u);
  EXPECT_EQ(topology.links()[0].reserved_datagrams, 1u);
  EXPECT_EQ(topology.links()[0].bytes_per_us, 100u) << "two halfwords per cycle of 40 ns";
  EXPECT_EQ(topology.links()[0].latency_ns, 240u);
}

}  // namespace
}  // namespace portofu
