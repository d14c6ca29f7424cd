// Tests of engine/wire/sim/topology.cpp: ways through the three kinds of network.

#include "engine/wire/sim/topology.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>

namespace portofu {
namespace {

constexpr LinkFigures kPlain{.latency_ns = 10};

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

TEST(Topology, Mesh__goes_the_only_way) {
  const Topology topology = Topology::grid({5, 1, 1, 1, 1, 1}, {}, kPlain);
  EXPECT_EQ(topology.route(0, 4).size(), 2u + 4);
  EXPECT_EQ(topology.route(4, 0).size(), 2u + 4);
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
