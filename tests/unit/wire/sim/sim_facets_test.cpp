// Tests of engine/wire/sim/sim_facets.cpp: what the simulated wire does beside carrying packets, and what it leaves
// out.

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "engine/wire/sim/sim_network.h"
#include "tests/unit/wire/sim/sim_traffic.h"

namespace portofu {
namespace {

using sim_traffic::connect;
using sim_traffic::kAll;
using sim_traffic::kAnne;
using sim_traffic::kBen;

constexpr int kManyTries = 100;

/// Two processes and a link from the first to the second.
class SimFacets : public testing::Test {
 protected:
  SimFacets() : network(7, kAll), alice(network.attach(kAnne)), bob(network.attach(kBen)), link(connect(*alice, kBen)) {
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 7);
  }

  static PacketHeader header_of(std::uint32_t bytes) {
    PacketHeader header{};
    header.type = PacketType::kPut;
    header.payload_bytes = bytes;
    return header;
  }

  /// Lends bytes of the source as the packet at `offset` of the message, however often that is refused.
  void lend(std::uint64_t message, std::uint32_t offset, std::uint32_t bytes) {
    const Loan loan{source.data() + offset, bytes, message, offset, false};
    int tries = 0;
    while (!alice->lend(*link, loan)) ASSERT_LT(++tries, kManyTries);
    alice->publish(*link, header_of(bytes));
  }

  /// The next packet, which must be there.
  Packet peek() {
    Packet packet;
    EXPECT_TRUE(bob->peek(packet));
    return packet;
  }

  /// Asks until it is not refused. @return false: it always is
  template <class Ask>
  static bool soon(Ask&& ask) {
    for (int i = 0; i < kManyTries; ++i) {
      if (ask()) return true;
    }
    return false;
  }

  std::array<std::byte, 256> source{};
  std::array<std::byte, 256> target{};
  SimNetwork network;
  std::unique_ptr<SimWire> alice;
  std::unique_ptr<SimWire> bob;
  Link* link;  ///< From alice to bob.
};

TEST(SimFacetsOptions, Wires__have_no_facet_that_was_not_asked_for) {
  SimNetwork network(1);
  const auto wire = network.attach(kAnne);
  EXPECT_EQ(wire->loans(), nullptr);
  EXPECT_EQ(wire->copies(), nullptr);
  EXPECT_EQ(wire->peer_memory(), nullptr);
  EXPECT_EQ(wire->completions(), nullptr);
  EXPECT_EQ(wire->other_nodes(), nullptr);
}

TEST_F(SimFacets, Lend__leaves_the_payload_where_it_is_until_it_is_released) {
  lend(0, 0, 64);
  const Packet packet = peek();
  ASSERT_TRUE(packet.payload.is_in_memory());
  source[3] = std::byte{99};
  ASSERT_TRUE(packet.payload.read_to(target.data(), 64));
  EXPECT_EQ(std::memcmp(source.data(), target.data(), 64), 0);
  EXPECT_FALSE(alice->has_taken(*link, 1));
  bob->release();
  EXPECT_TRUE(alice->has_room_again());
  EXPECT_TRUE(alice->has_taken(*link, 1));
}

TEST_F(SimFacets, Discard__takes_a_loan_back) {
  ASSERT_TRUE(soon([&] { return alice->lend(*link, {source.data(), 64, 0, 0, true}); }));
  alice->discard(*link);
  ASSERT_NE(alice->claim(*link, 8), nullptr);
  alice->publish(*link, header_of(8));
  EXPECT_TRUE(peek().payload.is_here());
}

TEST_F(SimFacets, Lender__that_is_killed__is_gone_with_its_memory) {
  std::optional<Packet> packet;
  for (int i = 0; i < kManyTries && !packet; ++i) {  // A kill loses what nobody has peeked.
    lend(0, 0, 64);
    packet = peek();
  }
  network.kill(kAnne);
  EXPECT_FALSE(packet->payload.read_to(target.data(), 64));
  EXPECT_TRUE(packet->payload.is_lost());
}

TEST_F(SimFacets, Help__writes_the_last_packets_of_a_message_to_where_it_was_offered_a_place) {
  for (std::uint32_t offset = 0; offset < 192; offset += 64) lend(0, offset, 64);
  static_cast<void>(peek());
  EXPECT_FALSE(alice->help(*link)) << "nothing is offered";
  bob->offer(target.data(), 192);
  bob->release();
  ASSERT_TRUE(soon([&] { return alice->help(*link); }));
  EXPECT_EQ(std::memcmp(source.data() + 128, target.data() + 128, 64), 0);
  EXPECT_EQ(target[64], std::byte{0});
  EXPECT_TRUE(peek().payload.is_in_memory());
  bob->release();
  EXPECT_TRUE(peek().payload.is_placed());
}

TEST_F(SimFacets, Help__keeps_within_what_was_offered_and_ends_when_it_is_taken_back) {
  for (std::uint32_t offset = 0; offset < 192; offset += 64) lend(0, offset, 64);
  static_cast<void>(peek());
  bob->offer(target.data(), 150);
  EXPECT_FALSE(soon([&] { return alice->help(*link); })) << "the last packet does not lie within it";
  bob->offer(target.data(), 192);
  bob->take_offers_back(kAnne);
  EXPECT_FALSE(soon([&] { return alice->help(*link); }));
}

TEST_F(SimFacets, Read_later__gives_nothing_back_before_all_is_done) {
  lend(0, 0, 64);
  lend(1, 64, 64);
  for (int i = 0; i < 2; ++i) {
    static_cast<void>(peek());
    ASSERT_TRUE(soon([&] { return bob->read_later(target.data() + 64 * i, 64); }));
    bob->release();
  }
  EXPECT_FALSE(alice->has_taken(*link, 1));
  EXPECT_EQ(bob->read_now(), 3u);
  EXPECT_EQ(std::memcmp(source.data(), target.data(), 128), 0);
  EXPECT_TRUE(bob->acknowledge(kAnne, 5)) << "of what was read";
  EXPECT_FALSE(alice->has_taken(*link, 1));
  bob->give_back_read();
  EXPECT_TRUE(alice->has_taken(*link, 2));
}

TEST_F(SimFacets, Acknowledgements__come_in_their_order) {
  lend(0, 0, 64);
  const Packet peeked = peek();
  EXPECT_FALSE(bob->acknowledge(kBen, 1)) << "nothing comes from there";
  EXPECT_TRUE(bob->acknowledge(kAnne, 1));
  const std::uint64_t life = peeked.source_context->life;
  bob->release();
  EXPECT_FALSE(bob->acknowledge(kAnne, 2)) << "its packet was released";
  EXPECT_TRUE(bob->acknowledge_released(kAnne, life, 2)) << "of a packet that another wire holds back";
  EXPECT_FALSE(bob->acknowledge_released(kAnne, life + 100, 3)) << "of another life";
  EXPECT_TRUE(alice->has_acknowledgement(*link));
  EXPECT_EQ(alice->take_acknowledgement(*link), 1u);
  EXPECT_EQ(alice->take_acknowledgement(*link), 2u);
  EXPECT_EQ(alice->take_acknowledgement(*link), 0u);
  EXPECT_FALSE(alice->has_acknowledgement(*link));
}

TEST_F(SimFacets, Region__is_reached_until_it_is_withdrawn) {
  PublishedRegion region;
  region.key = region_key(3, 4);
  region.start = reinterpret_cast<std::uintptr_t>(target.data());
  region.bytes = 100;
  region.user = 2;
  region.writable = true;
  ASSERT_TRUE(publish_region(network.regions(kBen), region));
  MappedRegion mapped;
  ASSERT_TRUE(soon([&] { return alice->find_mapped(*link, region.key, &mapped); }));
  EXPECT_EQ(mapped.memory, target.data());
  MappedRegion published;
  ASSERT_TRUE(alice->find_published(*link, region.key, &published));
  EXPECT_EQ(published.bytes, 100u);
  mapped.visited->store(region.key);
  EXPECT_TRUE(network.is_visited(kBen, region.key));
  EXPECT_FALSE(network.is_visited(kAnne, region.key));
  const DirectPut put{3, 2, 4, 90, source.data(), 10};
  EXPECT_TRUE(soon([&] { return alice->put_directly(*link, put); }));
  EXPECT_EQ(std::memcmp(source.data(), target.data() + 90, 10), 0);
  EXPECT_FALSE(soon([&] { return alice->put_directly(*link, {3, 2, 4, 91, source.data(), 10}); })) << "it is too long";
  withdraw_region(network.regions(kBen), region.key);
  EXPECT_FALSE(soon([&] { return alice->find_mapped(*link, region.key, &mapped); }));
  EXPECT_FALSE(soon([&] { return alice->put_directly(*link, put); }));
  EXPECT_FALSE(alice->find_published(*link, region.key, &published));
}

TEST_F(SimFacets, Link__has_settled_when_what_is_not_settled_is_released) {
  EXPECT_TRUE(alice->has_settled(*link));
  lend(0, 0, 64);
  EXPECT_FALSE(alice->has_settled(*link));
  static_cast<void>(peek());
  bob->release();
  EXPECT_TRUE(alice->has_settled(*link));
}

}  // namespace
}  // namespace portofu
