// Tests of engine/wire/sim/sim_medium.cpp: lives of processes, and links between them.

#include "engine/wire/sim/sim_medium.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace portofu {
namespace {

constexpr ProcessId kFrom{1, 10};
constexpr ProcessId kTo{1, 11};

SimPacket a_packet() { return {PacketHeader{}, SimPayload(8), 0}; }

struct SimMediumTest : testing::Test {
  SimMediumTest() {
    medium.endpoints.push_back({kFrom, true, nullptr});
    medium.endpoints.push_back({kTo, true, nullptr});
  }
  /// A link that was handed out, with so many packets on it.
  SimLink& link_with(int packets) {
    SimLink& link = medium.make_link(0, 1);
    link.connected = true;
    for (int i = 0; i < packets; ++i) link.packets.push_back(a_packet());
    return link;
  }

  SimMedium medium{SimOptions{}, SimRandom(7), {}, {}};
};

TEST(SimPayload, Bytes__are_aligned_and_show_that_nobody_wrote_them) {
  const SimPayload payload(100);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(payload.data()) % 64, 0u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(payload.data()[i], std::byte{0xee});
}

TEST_F(SimMediumTest, Next_life_of_a_process__is_found_in_its_place) {
  EXPECT_EQ(medium.find_living(kTo), 1u);
  medium.end(1, true);
  EXPECT_EQ(medium.find_living(kTo), std::nullopt);
  medium.endpoints.push_back({kTo, true, nullptr});
  EXPECT_EQ(medium.find_living(kTo), 2u);
}

TEST_F(SimMediumTest, Link__knows_both_lives_and_draws_its_bounds) {
  for (int i = 0; i < 100; ++i) {
    const SimLink& link = medium.make_link(0, 1);
    EXPECT_EQ(link.peer, kTo);
    EXPECT_EQ(link.source.life, 1u);
    EXPECT_EQ(link.life, 2u);
    EXPECT_GE(link.capacity_packets, 1u);
    EXPECT_LE(link.capacity_packets, medium.options.max_link_packets);
    EXPECT_LE(link.in_progress_left, medium.options.max_connect_in_progress);
  }
}

TEST_F(SimMediumTest, Sender_that_ends__loses_nothing_and_its_end_is_known) {
  const SimLink& link = link_with(50);
  medium.end(0, false);
  EXPECT_EQ(link.packets.size(), 50u);
  EXPECT_TRUE(link.lost);
  EXPECT_TRUE(link.sender_end_known);
}

TEST_F(SimMediumTest, Sender_that_is_killed__loses_its_last_packets_and_nobody_knows) {
  std::size_t lost = 0;
  for (int i = 0; i < 20; ++i) {
    medium.endpoints[0].alive = true;
    const SimLink& link = link_with(50);
    medium.end(0, true);
    EXPECT_LE(link.packets.size(), 50u);
    EXPECT_FALSE(link.sender_end_known);
    lost += 50 - link.packets.size();
  }
  EXPECT_GT(lost, 0u);
}

TEST_F(SimMediumTest, Receiver_that_ends__closes_its_end_alone) {
  const SimLink& link = link_with(1);
  medium.end(1, true);
  EXPECT_FALSE(link.receiver_open);
  EXPECT_TRUE(link.sender_open);
}

TEST_F(SimMediumTest, Links_that_nobody_holds__are_collected) {
  SimLink& link = link_with(1);
  link_with(1);
  medium.end(1, false);
  medium.collect_links();
  EXPECT_EQ(medium.links.size(), 2u) << "their senders may still name them";
  link.sender_holds = false;
  medium.collect_links();
  EXPECT_EQ(medium.links.size(), 1u);
}

TEST_F(SimMediumTest, Lent_memory__is_read_while_its_owner_lives) {
  const std::array<char, 6> lent{"words"};
  std::array<std::byte, 6> read{};
  const SimLink& link = link_with(0);
  EXPECT_TRUE(link.lender.read_lent(reinterpret_cast<std::uintptr_t>(lent.data()), read.data(), read.size()));
  EXPECT_EQ(std::memcmp(read.data(), lent.data(), lent.size()), 0);
  medium.end(0, true);
  EXPECT_FALSE(link.lender.read_lent(reinterpret_cast<std::uintptr_t>(lent.data()), read.data(), read.size()));
  EXPECT_TRUE(link.lender.is_gone());
}

}  // namespace
}  // namespace portofu
