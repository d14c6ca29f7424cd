// Tests of lib/sim/network.cpp: what a message takes, by a machine of round numbers.

#include "lib/sim/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace portofu::sim {
namespace {

constexpr std::uint64_t kNs = 1000;

/// A line of nodes: 1 GB/s, 1 us a hop, packets of 100 bytes, all steps of an interface told apart by their digit.
Machine line_machine() {
  Machine machine;
  machine.topology.kind = TopologyKind::kTorus;
  machine.topology.lengths = {0, 1, 1, 1, 1, 1};
  machine.links = {.lanes = 1, .lane_gb_s = 1, .latency_ps = 1000 * kNs, .mtu_bytes = 100, .header_bytes = 0};
  machine.node.injection_gb_s = 1000;
  machine.interfaces = {.count = 2,
                        .gb_s = 1,
                        .command_ps = 1'000'000 * kNs,
                        .dma_read_ps = 2'000'000 * kNs,
                        .dma_write_ps = 4'000'000 * kNs,
                        .atomic_ps = 10'000'000 * kNs,
                        .send_ps = 20'000'000 * kNs,
                        .receive_ps = 40'000'000 * kNs,
                        .request_ps = 100'000'000 * kNs,
                        .gate_ps = 200'000'000 * kNs};
  return machine;
}

/// The same without steps of the interface.
Machine quick_machine() {
  Machine machine = line_machine();
  machine.interfaces = {.count = 2, .gb_s = 1};
  return machine;
}

Network make_network(const Machine& machine, const char* nodes = "8x1x1x1x1x1") {
  std::string why;
  auto layout = lay_out(machine, nodes, &why);
  EXPECT_TRUE(layout) << why;
  return Network(machine, std::move(*layout));
}

std::uint64_t ns_of(const Machine& machine, const Packet& packet) {
  return make_network(machine).send(0, packet).arrived_ps / kNs;
}

TEST(Network, Kind_of_message__has_its_steps) {
  const auto steps_ms = [](PacketKind kind) {
    return ns_of(line_machine(), {.from_node = 0, .to_node = 1, .bytes = 8, .kind = kind}) / 1'000'000;
  };
  EXPECT_EQ(steps_ms(PacketKind::kPut), 1u + 2 + 20 + 40 + 4) << "command, read, send, receive, write";
  EXPECT_EQ(steps_ms(PacketKind::kInlinePut), 1u + 20 + 40 + 4) << "nothing is read";
  EXPECT_EQ(steps_ms(PacketKind::kTriggeredPut), 100u + 2 + 20 + 40 + 4);
  EXPECT_EQ(steps_ms(PacketKind::kGetRequest), 1u + 20 + 40) << "nothing is read or written";
  EXPECT_EQ(steps_ms(PacketKind::kGetReply), 100u + 2 + 20 + 40 + 4);
  EXPECT_EQ(steps_ms(PacketKind::kAtomicRequest), 1u + 20 + 40);
  EXPECT_EQ(steps_ms(PacketKind::kAtomicReply), 100u + 10 + 20 + 40 + 4);
  EXPECT_EQ(steps_ms(PacketKind::kAck), 20u + 40);
  EXPECT_EQ(steps_ms(PacketKind::kGate), 200u + 20 + 40);
}

TEST(Network, Way__takes_its_hops_and_the_bytes_once) {
  EXPECT_EQ(ns_of(quick_machine(), {.from_node = 0, .to_node = 1, .bytes = 50}), 1000u + 50);
  EXPECT_EQ(ns_of(quick_machine(), {.from_node = 0, .to_node = 3, .bytes = 50}), 3000u + 50) << "cut through";
  EXPECT_EQ(ns_of(quick_machine(), {.from_node = 2, .to_node = 2, .bytes = 50}), 50u) << "no link";
  EXPECT_EQ(ns_of(quick_machine(), {.from_node = 0, .to_node = 1, .bytes = 0}), 1000u);
}

TEST(Network, Long_message__is_packets_with_headers) {
  Machine machine = quick_machine();
  machine.links.header_bytes = 10;
  EXPECT_EQ(ns_of(machine, {.from_node = 0, .to_node = 1, .bytes = 250}), 1000u + 250 + 3 * 10);
  Network network = make_network(machine);
  EXPECT_EQ(network.send(0, {.from_node = 0, .to_node = 1, .bytes = 250}).left_ps, 280 * kNs) << "read, and on its way";
}

TEST(Network, Slowest_part__sets_the_pace) {
  Machine machine = quick_machine();
  machine.interfaces.gb_s = 4;
  EXPECT_EQ(ns_of(machine, {.from_node = 0, .to_node = 2, .bytes = 100}), 2000u + 100);
  machine.links.lanes = 4;
  machine.interfaces.gb_s = 0.5;
  EXPECT_EQ(ns_of(machine, {.from_node = 0, .to_node = 2, .bytes = 100}), 2000u + 200);
}

TEST(Network, Messages_of_one_interface__follow_each_other) {
  Network network = make_network(quick_machine());
  EXPECT_EQ(network.send(0, {.from_node = 0, .to_node = 1, .bytes = 100}).arrived_ps, 1100 * kNs);
  EXPECT_EQ(network.send(0, {.from_node = 0, .to_node = 1, .bytes = 100}).arrived_ps, 1200 * kNs);
  EXPECT_EQ(network.send(5000 * kNs, {.from_node = 0, .to_node = 1, .bytes = 100}).arrived_ps, 6100 * kNs);
}

TEST(Network, Gap__holds_the_next_message_and_not_this_one) {
  Machine machine = quick_machine();
  machine.interfaces.gap_ps = 500 * kNs;
  Network network = make_network(machine);
  EXPECT_EQ(network.send(0, {.from_node = 0, .to_node = 1, .bytes = 10}).arrived_ps, 1010 * kNs);
  EXPECT_EQ(network.send(0, {.from_node = 0, .to_node = 1, .bytes = 10}).arrived_ps, 1510 * kNs);
  EXPECT_EQ(network.send(0, {.from_node = 0, .to_node = 1, .interface = 1, .bytes = 10}).arrived_ps, 1020 * kNs)
      << "another interface, the same link";
}

/// Its memory is free when it has left, and its packets follow each other.
TEST(Network, Gap__holds_no_packet_of_the_same_message) {
  Machine machine = quick_machine();
  machine.interfaces.gap_ps = 500 * kNs;
  machine.links.mtu_bytes = 100;
  Network network = make_network(machine);
  const Passage passage = network.send(0, {.from_node = 0, .to_node = 1, .bytes = 200});
  EXPECT_EQ(passage.left_ps, 200 * kNs);
  EXPECT_EQ(passage.arrived_ps, 1200 * kNs);
  EXPECT_EQ(passage.waited_ps, 0u);
  EXPECT_EQ(network.send(0, {.from_node = 0, .to_node = 1, .bytes = 10}).arrived_ps, 1510 * kNs);
}

TEST(Network, Link__is_shared_by_interfaces_and_by_ways) {
  Network network = make_network(quick_machine());
  network.send(0, {.from_node = 0, .to_node = 2, .bytes = 100});
  EXPECT_EQ(network.send(0, {.from_node = 0, .to_node = 1, .interface = 1, .bytes = 100}).arrived_ps, 1200 * kNs);
  EXPECT_EQ(network.send(500 * kNs, {.from_node = 1, .to_node = 2, .bytes = 100}).arrived_ps, 1600 * kNs)
      << "before the other packet is there";
  EXPECT_EQ(network.send(1050 * kNs, {.from_node = 1, .to_node = 2, .interface = 1, .bytes = 100}).arrived_ps,
            2200 * kNs)
      << "behind it";
  EXPECT_EQ(network.send(1060 * kNs, {.from_node = 1, .to_node = 0, .bytes = 100}).arrived_ps, 2160 * kNs)
      << "the other direction is another link";
}

TEST(Network, Injection__bounds_all_interfaces_of_a_node_together) {
  Machine machine = quick_machine();
  machine.node.injection_gb_s = 0.5;
  machine.interfaces.count = 2;
  Network network = make_network(machine);
  network.send(0, {.from_node = 3, .to_node = 2, .bytes = 100});
  EXPECT_EQ(network.send(0, {.from_node = 3, .to_node = 4, .interface = 1, .bytes = 100}).arrived_ps, 1400 * kNs);
}

TEST(Network, Receiver__takes_one_packet_after_the_other) {
  Network network = make_network(quick_machine());
  EXPECT_EQ(network.send(0, {.from_node = 3, .to_node = 4, .bytes = 100}).arrived_ps, 1100 * kNs);
  EXPECT_EQ(network.send(0, {.from_node = 5, .to_node = 4, .bytes = 100}).arrived_ps, 1200 * kNs);
  EXPECT_EQ(network.send(0, {.from_node = 5, .to_node = 4, .interface = 1, .bytes = 100, .to_interface = 1}).arrived_ps,
            1200 * kNs)
      << "behind the other on the link, and another interface";
}

TEST(Network, Messages_between_two_interfaces__arrive_in_order) {
  Machine machine = line_machine();
  machine.interfaces.dma_write_ps = 4000 * kNs;
  Network network = make_network(machine);
  const Passage put = network.send(0, {.from_node = 0, .to_node = 1, .bytes = 100, .kind = PacketKind::kInlinePut});
  const Passage request = network.send(0, {.from_node = 0, .to_node = 1, .bytes = 0, .kind = PacketKind::kGetRequest});
  EXPECT_GE(request.arrived_ps, put.arrived_ps);
}

TEST(Network, Full_buffer__holds_what_is_behind_it) {
  const auto second_arrives_ns = [](std::uint32_t buffer_bytes) {
    Machine machine = quick_machine();
    machine.links.buffer_bytes = buffer_bytes;
    Network network = make_network(machine);
    // The link 1 to 2 is in use for long; two packets come to it over the link 0 to 1, and then one that leaves at 1.
    network.send(0, {.from_node = 1, .to_node = 2, .bytes = 5000});
    network.send(0, {.from_node = 0, .to_node = 2, .interface = 1, .bytes = 200});
    return network.send(0, {.from_node = 0, .to_node = 1, .interface = 0, .bytes = 100}).arrived_ps / kNs;
  };
  EXPECT_EQ(second_arrives_ns(0), 1300u) << "room for all";
  EXPECT_EQ(second_arrives_ns(300), 1300u);
  EXPECT_GT(second_arrives_ns(200), 5000u) << "both wait in the way of the third";
}

TEST(Network, Uses__tell_where_and_how_long) {
  Network network = make_network(quick_machine());
  EXPECT_TRUE(network.uses().empty());
  network.send(0, {.from_node = 0, .to_node = 1, .bytes = 100});
  network.send(0, {.from_node = 0, .to_node = 1, .interface = 1, .bytes = 100});
  std::vector<std::string> names;
  for (const auto& [name, use] : network.uses()) {
    names.push_back(name);
    EXPECT_EQ(std::accumulate(use->busy_by_slice.begin(), use->busy_by_slice.end(), std::uint64_t{0}), use->busy_ps)
        << name;
    if (name != "X+ of node 0") continue;
    EXPECT_EQ(use->packets, 2u);
    EXPECT_EQ(use->bytes, 200u);
    EXPECT_EQ(use->busy_ps, 200 * kNs);
    EXPECT_EQ(use->waited_ps, 99'900u) << "100 ns at 1 GB/s, less 0.1 ns for the way into the network";
    EXPECT_EQ(use->longest_wait_ps, use->waited_ps);
  }
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("node 0 into the network", "network to node 1", "X+ of node 0",
                                                     "interface 0 of node 0, out", "interface 1 of node 0, out",
                                                     "interface 0 of node 1, in", "interface 1 of node 1, in"));
}

TEST(Network, Names__are_of_nodes_of_the_job) {
  Machine machine = quick_machine();
  machine.topology.lengths = {0, 0, 0, 2, 3, 2};
  Network network = make_network(machine, "3x1x1");
  network.send(0, {.from_node = 1, .to_node = 2, .bytes = 100});
  std::vector<std::string> names;
  for (const auto& [name, use] : network.uses()) names.push_back(name);
  // Along the side of three: A+, then X+ (engine/topology/node_shape.h).
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("node 1 into the network", "X+ of node 1", "network to node 2",
                                                     "interface 0 of node 1, out", "interface 0 of node 2, in"));
  EXPECT_EQ(network.layout().place_name(network.layout().places[2]), "node 2");
  EXPECT_THAT(network.layout().place_name(23), ::testing::StartsWith("place 23")) << "the box has three of 24";
}

// uTofu guide, 2.4.
TEST(Network, Path__leads_round_a_busy_link) {
  Machine machine = quick_machine();
  machine.topology.lengths = {0, 0, 0, 2, 3, 2};
  Network network = make_network(machine, "2x1x1x2x3x2");
  network.send(0, {.from_node = 0, .to_node = 1, .bytes = 5000});
  const Packet packet{.from_node = 0, .to_node = 1, .interface = 1, .bytes = 100};
  Packet round = packet;
  round.path = pack_path({1, 0, 0});
  EXPECT_EQ(network.send(0, round).arrived_ps, 3100 * kNs + 100)
      << "A, X and A; 0.1 ns behind the other into the network";
  EXPECT_GT(network.send(0, packet).arrived_ps, 6000 * kNs);
  round.path = 15;  // No place of a group of twelve.
  EXPECT_GT(network.send(0, round).arrived_ps, 6000 * kNs) << "as by default";
}

TEST(Network, Slices__become_longer_and_keep_their_sums) {
  Network network = make_network(quick_machine());
  for (std::uint64_t i = 0; i < 200; ++i) network.send(i * 100'000 * kNs, {.from_node = 0, .to_node = 1, .bytes = 100});
  EXPECT_EQ(network.slice_ps(), 8 * 1000 * kNs) << "20 ms in 4096 slices, of 1 us in the beginning";
  for (const auto& [name, use] : network.uses()) {
    EXPECT_LE(use->busy_by_slice.size(), 4096u);
    EXPECT_EQ(std::accumulate(use->busy_by_slice.begin(), use->busy_by_slice.end(), std::uint64_t{0}), use->busy_ps)
        << name;
  }
}

TEST(Network, Waiting__is_told_for_each_message_and_by_slice) {
  Network network = make_network(quick_machine());
  const Packet packet{.from_node = 0, .to_node = 2, .bytes = 1000};
  const Passage first = network.send(0, packet);
  EXPECT_EQ(first.waited_ps, 0u);
  EXPECT_EQ(first.waited_for, kNoStage);
  const Passage second = network.send(0, packet);
  EXPECT_EQ(second.waited_ps, 1000 * kNs) << "ten packets of 100 bytes at 1 GB/s";
  EXPECT_EQ(second.arrived_ps - second.waited_ps, first.arrived_ps);
  EXPECT_EQ(network.stage_name(second.waited_for), "interface 0 of node 0, out");
  // From another node over the same link: it comes there 1 us later, which is when the second of ten packets is there.
  const Passage crossing = network.send(0, {.from_node = 1, .to_node = 2, .bytes = 100});
  EXPECT_EQ(crossing.waited_ps, 0u) << "the link is free until the others come";
  const Passage late = network.send(1000 * kNs, {.from_node = 1, .to_node = 2, .bytes = 100});
  EXPECT_GT(late.waited_ps, 1000 * kNs) << "behind both, on the link or in the interface of node 2";
  std::uint64_t slices_ps = 0;
  std::uint64_t waited_ps = 0;
  for (const auto& [name, use] : network.uses()) {
    waited_ps += use->waited_ps;
    slices_ps = std::accumulate(use->waited_by_slice.begin(), use->waited_by_slice.end(), slices_ps);
  }
  EXPECT_EQ(slices_ps, waited_ps);
  EXPECT_GE(waited_ps, 1000 * kNs);
}

TEST(Network, Same_calls__give_the_same_times) {
  const auto run = [] {
    Network network = make_network(quick_machine(), "4x1x1x1x1x1");
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < 1000; ++i) {
      const Packet packet{.from_node = i * 7 % 4, .to_node = i * 5 % 4, .interface = i % 2, .bytes = i * 13 % 700};
      sum = sum * 31 + network.send(i * 100 * kNs, packet).arrived_ps;
    }
    return sum;
  };
  EXPECT_EQ(run(), run());
}

}  // namespace
}  // namespace portofu::sim
