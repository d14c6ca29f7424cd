// Tests of engine/wire/sim/sim_wire.cpp: the contract of wire.h, function by function.

#include "engine/wire/sim/sim_wire.h"

#include <gtest/gtest.h>

#include <set>

#include "engine/wire/sim/sim_network.h"
#include "tests/unit/wire/sim/sim_traffic.h"

namespace portofu {
namespace {

using sim_traffic::connect;
using sim_traffic::kManyPolls;
using sim_traffic::numbered;
using sim_traffic::receive;
using sim_traffic::receive_all;
using sim_traffic::Received;
using sim_traffic::send;

constexpr ProcessId kAlice{1, 10};
constexpr ProcessId kBob{1, 11};
constexpr ProcessId kCarol{2, 10};

constexpr SimOptions kNoDelay{
    .max_payload_bytes = 4096, .max_link_packets = 4, .max_delay_polls = 0, .max_connect_in_progress = 0};

/// Two processes and a link from the first to the second.
struct Pair {
  explicit Pair(std::uint64_t seed, const SimOptions& options = {})
      : network(seed, options), alice(network.attach(kAlice)), bob(network.attach(kBob)), link(connect(*alice, kBob)) {}

  SimNetwork network;
  std::unique_ptr<SimWire> alice;
  std::unique_ptr<SimWire> bob;
  Link* link;  ///< From alice to bob.
};

// ---- connect, disconnect -------------------------------------------------------------------------------------------

TEST(SimWireConnect, Nobody_there__is_no_such_peer) {
  SimNetwork network(1);
  const auto alice = network.attach(kAlice);
  Link* link = nullptr;
  EXPECT_EQ(alice->connect(kBob, &link), ConnectResult::kNoSuchPeer);
  EXPECT_EQ(link, nullptr);
}

TEST(SimWireConnect, In_progress__is_bounded_and_varies_with_the_seed) {
  std::set<int> attempt_counts;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SimNetwork network(seed, {.max_connect_in_progress = 2});
    const auto alice = network.attach(kAlice);
    const auto bob = network.attach(kBob);
    Link* link = nullptr;
    int attempt_count = 1;
    while (alice->connect(kBob, &link) == ConnectResult::kInProgress) ++attempt_count;
    ASSERT_NE(link, nullptr);
    EXPECT_EQ(link->peer, kBob);
    EXPECT_FALSE(link->lost);
    attempt_counts.insert(attempt_count);
  }
  EXPECT_EQ(attempt_counts, (std::set<int>{1, 2, 3}));
}

TEST(SimWireConnect, Peer_dies_while_in_progress__is_no_such_peer_and_nobody_hears_of_it) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SimNetwork network(seed);
    const auto alice = network.attach(kAlice);
    const auto bob = network.attach(kBob);
    Link* link = nullptr;
    if (alice->connect(kBob, &link) != ConnectResult::kInProgress) continue;
    network.kill(kBob);
    EXPECT_EQ(alice->connect(kBob, &link), ConnectResult::kNoSuchPeer);
    EXPECT_EQ(alice->check_peers(), 0);
  }
}

TEST(SimWireConnect, Second_time__finds_the_same_link) {
  Pair pair(1);
  EXPECT_EQ(connect(*pair.alice, kBob), pair.link);
}

TEST(SimWireConnect, To_oneself__works) {
  SimNetwork network(1);
  const auto alice = network.attach(kAlice);
  EXPECT_TRUE(send(*alice, *connect(*alice, kAlice), 7));
  EXPECT_EQ(receive_all(*alice), numbered(kAlice, 7, 8));
}

TEST(SimWireDisconnect, Published_packets__are_still_delivered_and_then_the_source_closes) {
  Pair pair(3, {.max_link_packets = 1});
  ASSERT_TRUE(send(*pair.alice, *pair.link, 0));
  pair.alice->disconnect(pair.link);
  ProcessId source;
  void* context = nullptr;
  EXPECT_FALSE(pair.bob->take_closed_source(&source, &context));
  EXPECT_EQ(receive_all(*pair.bob), numbered(kAlice, 0, 1));
  EXPECT_TRUE(pair.bob->take_closed_source(&source, &context));
  EXPECT_EQ(source, kAlice);
  EXPECT_FALSE(pair.bob->take_closed_source(&source, &context));
}

// ---- claim, publish, discard ---------------------------------------------------------------------------------------

TEST(SimWireClaim, Room__is_aligned_and_never_null) {
  Pair pair(1, kNoDelay);
  for (const std::uint32_t payload_bytes : {0u, 1u, 63u, 4096u}) {
    std::byte* room = pair.alice->claim(*pair.link, payload_bytes);
    ASSERT_NE(room, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(room) % 64, 0u);
    pair.alice->discard(*pair.link);
  }
}

TEST(SimWireClaim, Full_link__refuses_until_a_packet_is_released) {
  Pair pair(1, kNoDelay);
  std::uint32_t sent = 0;
  while (send(*pair.alice, *pair.link, sent)) ++sent;
  EXPECT_GE(sent, 1u);
  EXPECT_LE(sent, kNoDelay.max_link_packets);
  EXPECT_FALSE(pair.alice->has_room_again());

  // Peeked is not yet released.
  Packet packet;
  ASSERT_TRUE(pair.bob->peek(packet));
  EXPECT_FALSE(pair.alice->has_room_again());
  pair.bob->release();
  EXPECT_TRUE(pair.alice->has_room_again());
  EXPECT_FALSE(pair.alice->has_room_again());  // Said once.
  EXPECT_TRUE(send(*pair.alice, *pair.link, sent));
}

TEST(SimWireClaim, Capacity__varies_with_the_seed) {
  std::set<std::uint32_t> capacities;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Pair pair(seed, kNoDelay);
    std::uint32_t sent = 0;
    while (send(*pair.alice, *pair.link, sent)) ++sent;
    capacities.insert(sent);
  }
  EXPECT_EQ(capacities, (std::set<std::uint32_t>{1, 2, 3, 4}));
}

TEST(SimWireHasRoomAgain, Without_a_refused_claim__is_false) {
  Pair pair(1, kNoDelay);
  EXPECT_FALSE(pair.alice->has_room_again());
}

TEST(SimWireDiscard, Claimed_room__is_free_again_and_nothing_arrives) {
  Pair pair(1, {.max_link_packets = 1, .max_delay_polls = 0});
  ASSERT_NE(pair.alice->claim(*pair.link, 8), nullptr);
  pair.alice->discard(*pair.link);
  EXPECT_TRUE(receive_all(*pair.bob).empty());
  EXPECT_TRUE(send(*pair.alice, *pair.link, 1));
}

TEST(SimWirePublish, Less_than_claimed__arrives_short) {
  Pair pair(1, kNoDelay);
  std::memset(pair.alice->claim(*pair.link, 100), 0x5a, 100);
  PacketHeader header{};
  header.payload_bytes = 3;
  header.match_bits = 0x1234;
  pair.alice->publish(*pair.link, header);
  Packet packet;
  ASSERT_TRUE(pair.bob->peek(packet));
  EXPECT_EQ(packet.source, kAlice);
  EXPECT_EQ(packet.header.payload_bytes, 3u);
  EXPECT_EQ(packet.header.match_bits, 0x1234u);
  EXPECT_EQ(packet.payload.here()[2], std::byte{0x5a});
  pair.bob->release();
}

// ---- peek, release, has_packets ------------------------------------------------------------------------------------

TEST(SimWirePeek, Delay__is_bounded_and_varies_with_the_seed) {
  std::set<int> delays;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Pair pair(seed, {.max_delay_polls = 3});
    ASSERT_TRUE(send(*pair.alice, *pair.link, 1));
    int delay = 0;
    while (!receive(*pair.bob) && delay < kManyPolls) ++delay;
    delays.insert(delay);
  }
  EXPECT_EQ(delays, (std::set<int>{0, 1, 2, 3}));
}

TEST(SimWirePeek, One_source__stays_in_order) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Pair pair(seed);
    std::vector<Received> all;
    for (std::uint32_t sent = 0; sent < 200;) {
      if (send(*pair.alice, *pair.link, sent, sent % 5 * 64)) ++sent;
      if (const auto received = receive(*pair.bob)) all.push_back(*received);
    }
    for (const Received& received : receive_all(*pair.bob)) all.push_back(received);
    ASSERT_EQ(all, numbered(kAlice, 0, 200)) << "seed " << seed;
  }
}

TEST(SimWirePeek, Two_sources__come_in_any_order) {
  std::set<std::uint32_t> first;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SimNetwork network(seed);
    const auto alice = network.attach(kAlice);
    const auto bob = network.attach(kBob);
    const auto carol = network.attach(kCarol);
    ASSERT_TRUE(send(*alice, *connect(*alice, kCarol), 1));
    ASSERT_TRUE(send(*bob, *connect(*bob, kCarol), 2));
    const auto all = receive_all(*carol);
    ASSERT_EQ(all.size(), 2u);
    first.insert(all[0].number);
  }
  EXPECT_EQ(first, (std::set<std::uint32_t>{1, 2}));
}

TEST(SimWirePeek, Source_context__is_kept_per_source_until_it_closes) {
  Pair pair(1, kNoDelay);
  int mine = 0;
  Packet packet;
  ASSERT_TRUE(send(*pair.alice, *pair.link, 1));
  ASSERT_TRUE(pair.bob->peek(packet));
  EXPECT_EQ(packet.source_context->engines, nullptr);
  packet.source_context->engines = &mine;
  pair.bob->release();

  ASSERT_TRUE(send(*pair.alice, *pair.link, 2));
  ASSERT_TRUE(pair.bob->peek(packet));
  EXPECT_EQ(packet.source_context->engines, &mine);
  pair.bob->release();

  pair.alice->disconnect(pair.link);
  ProcessId source;
  void* context = nullptr;
  ASSERT_TRUE(pair.bob->take_closed_source(&source, &context));
  EXPECT_EQ(context, &mine);

  // A new link is a new source.
  ASSERT_TRUE(send(*pair.alice, *connect(*pair.alice, kBob), 3));
  ASSERT_TRUE(pair.bob->peek(packet));
  EXPECT_EQ(packet.source_context->engines, nullptr);
  pair.bob->release();
}

TEST(SimWireHasUnheard, Packet__of_a_life_is_unheard_until_it_is_released) {
  Pair pair(1, kNoDelay);
  Link* back = connect(*pair.bob, kAlice);
  const std::uint64_t life = back->life;
  EXPECT_FALSE(pair.bob->has_unheard(kAlice, life));
  ASSERT_TRUE(send(*pair.alice, *pair.link, 1));
  EXPECT_TRUE(pair.bob->has_unheard(kAlice, life));
  EXPECT_FALSE(pair.bob->has_unheard(kAlice, life + 1));
  Packet packet;
  ASSERT_TRUE(pair.bob->peek(packet));
  EXPECT_EQ(packet.source_context->life, life);
  EXPECT_TRUE(pair.bob->has_unheard(kAlice, life));
  pair.bob->release();
  EXPECT_FALSE(pair.bob->has_unheard(kAlice, life));
}

TEST(SimWireHasUnheard, Next_life__is_another_one) {
  SimNetwork network(1, kNoDelay);
  const auto bob = network.attach(kBob);
  auto alice = network.attach(kAlice);
  Link* back = connect(*bob, kAlice);
  network.kill(kAlice);
  alice.reset();
  alice = network.attach(kAlice);
  ASSERT_TRUE(send(*alice, *connect(*alice, kBob), 1));
  EXPECT_FALSE(bob->has_unheard(kAlice, back->life));
  Packet packet;
  ASSERT_TRUE(bob->peek(packet));
  EXPECT_NE(packet.source_context->life, back->life);
  bob->release();
}

TEST(SimWireHasPackets, True__means_that_peek_finds_one) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Pair pair(seed);
    EXPECT_FALSE(pair.bob->has_packets());
    ASSERT_TRUE(send(*pair.alice, *pair.link, 1));
    int polls = 0;
    while (!pair.bob->has_packets() && polls < kManyPolls) ++polls;
    EXPECT_TRUE(receive(*pair.bob).has_value());
    EXPECT_FALSE(pair.bob->has_packets());
  }
}

}  // namespace
}  // namespace portofu
