// The contract of wire.h over a network that keeps no promise.

#include "engine/wire/reliable/reliable_wire.h"

#include <gtest/gtest.h>

#include "tests/unit/wire/reliable/reliable_world.h"

namespace portofu {
namespace {

using reliable_test::bad_network;
using reliable_test::kMillisecond;
using reliable_test::kSecond;
using reliable_test::Party;
using reliable_test::ReliableWorld;

constexpr std::uint32_t kMany = 2000;

// ---- Exactly once, in order ----------------------------------------------------------------------------------------

struct Fault {
  const char* name;
  LossyOptions options;
};

void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

class ReliableWireFaults : public testing::TestWithParam<Fault> {};

TEST_P(ReliableWireFaults, Packets__arrive_once_and_in_order) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ReliableWorld world(GetParam().options, seed);
    Link* link = world.connect(0, 1);
    ASSERT_NE(link, nullptr);
    world.send_all(0, *link, 0, kMany / 4);
    ASSERT_TRUE(world.settle());
    world.expect_taken(1, 0, 0, kMany / 4);
    EXPECT_FALSE(link->lost);
    EXPECT_EQ(world.parties[0].wire->send_held().now, 0u);
    EXPECT_EQ(world.parties[1].wire->receive_held().now, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, ReliableWireFaults,
    testing::Values(Fault{"none", {}}, Fault{"loss", {.loss = 300}}, Fault{"duplicates", {.duplicates = 500}},
                    Fault{"reordering", {.reordered = 500}}, Fault{"damage", {.damaged = 300}},
                    Fault{"late", {.delay = DelayKind::kPareto, .mean_delay_ns = 200'000}},
                    Fault{"small_datagrams", {.max_datagram_bytes = 1472, .loss = 100, .reordered = 100}},
                    Fault{"small_buffers", {.receive_datagrams = 4}}, Fault{"everything", bad_network()}),
    [](const auto& fault) { return fault.param.name; });

TEST(ReliableWire, Lost_and_damaged_frames__are_noticed_and_sent_again) {
  ReliableWorld world(bad_network());
  Link* link = world.connect(0, 1);
  ASSERT_NE(link, nullptr);
  world.send_all(0, *link, 0, kMany);
  ASSERT_TRUE(world.settle());
  EXPECT_GT(world.parties[0].count(Counter::kFramesSentAgain), kMany / 20) << "one of ten is lost";
  EXPECT_LT(world.parties[0].count(Counter::kFramesSentAgain), kMany) << "what is only late is not all sent again";
  EXPECT_GT(world.parties[1].count(Counter::kFramesDamaged), 0u);
  EXPECT_GT(world.parties[1].count(Counter::kFramesDuplicate), 0u);
}

// Who leaves waits a second for links that are being opened (Engine::kLingerNs).
TEST(ReliableWire, Link__opens_within_a_second_where_half_is_lost) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    ReliableWorld world({.loss = 500}, seed);
    ASSERT_NE(world.connect(0, 1), nullptr) << "seed " << seed;
    EXPECT_LT(world.network.now_ns(), kSecond) << "seed " << seed;
  }
}

TEST(ReliableWire, Datagrams_of_others__are_not_taken) {
  ReliableWorld world;
  const auto stranger = world.network.attach({1, 7}, 3);
  std::vector<std::byte> noise(200, std::byte{0x5a});
  ASSERT_TRUE(stranger->send(world.parties[0].id, TrafficClass::kRequest, noise, noise));
  FrameHeader header{};  // A sound frame of a link that was never opened.
  header.kind = FrameKind::kData;
  header.link = 1;
  header.acceptance = 2;
  header.fragment_count = 1;
  header.packet_bytes = 200;
  seal_frame(header, noise);
  ASSERT_TRUE(stranger->send(world.parties[0].id, TrafficClass::kRequest, std::as_bytes(std::span(&header, 1)), noise));
  world.run(kMillisecond);
  EXPECT_TRUE(world.parties[0].taken.empty());
  EXPECT_EQ(world.parties[0].count(Counter::kFramesDamaged), 1u);
  EXPECT_EQ(world.parties[0].count(Counter::kFramesRefused), 1u);
  EXPECT_EQ(world.parties[0].wire->link_count(), 0u) << "it makes no state";
}

// ---- Windows and classes -------------------------------------------------------------------------------------------

TEST(ReliableWire, Silent_peer__holds_one_window_and_nothing_of_others) {
  ReliableWorld world;
  Link* stuck = world.connect(0, 1);
  Link* good = world.connect(0, 2);
  ASSERT_TRUE(stuck != nullptr && good != nullptr);
  world.parties[1].stopped = true;
  std::uint32_t sent = 0;
  while (world.send(0, *stuck, sent, false, 4096)) ++sent;
  EXPECT_LE(sent, kWindowFrames);
  EXPECT_LE(world.parties[0].wire->send_held().most, kWindowFrames * (4096 + sizeof(PacketHeader)));
  world.send_all(0, *good, 0, kMany);
  world.run(10 * kMillisecond);
  world.expect_taken(2, 0, 0, kMany);
  world.parties[1].stopped = false;
  ASSERT_TRUE(world.settle());
  world.expect_taken(1, 0, 0, sent);
}

TEST(ReliableWire, Claim__fails_when_the_window_is_full_and_has_room_again_says_when_it_is_not) {
  ReliableWorld world;
  Link* link = world.connect(0, 1);
  ASSERT_NE(link, nullptr);
  std::uint32_t sent = 0;
  while (world.send(0, *link, sent)) ++sent;
  EXPECT_EQ(sent, kWindowFrames);
  EXPECT_FALSE(world.parties[0].wire->has_room_again());
  world.run(kMillisecond);
  EXPECT_TRUE(world.parties[0].wire->has_room_again());
  EXPECT_FALSE(world.parties[0].wire->has_room_again());
  EXPECT_TRUE(world.send(0, *link, sent));
}

TEST(ReliableWire, Connect_in_progress__is_over_when_has_room_again_says_so_once) {
  ReliableWorld world;
  Link* link = nullptr;
  ASSERT_EQ(world.parties[0].wire->connect(world.parties[1].id, &link), ConnectResult::kInProgress);
  EXPECT_FALSE(world.parties[0].wire->has_room_again());
  world.run(100 * kMillisecond);
  EXPECT_TRUE(world.parties[0].wire->has_room_again());
  EXPECT_FALSE(world.parties[0].wire->has_room_again());
  EXPECT_EQ(world.parties[0].wire->connect(world.parties[1].id, &link), ConnectResult::kConnected);
  world.kill(2);
  EXPECT_EQ(world.parties[0].wire->connect(world.parties[2].id, &link), ConnectResult::kInProgress);
  world.run(kSecond, true);
  EXPECT_TRUE(world.parties[0].wire->has_room_again()) << "Nobody has the address.";
  EXPECT_EQ(world.parties[0].wire->connect(world.parties[2].id, &link), ConnectResult::kNoSuchPeer);
}

// A request may wait for answers; answers that wait for requests would close the circle (the thesis, 2.10).
TEST(ReliableWire, Answer__overtakes_a_full_window_of_requests) {
  ReliableWorld world;
  Link* link = world.connect(0, 1);
  ASSERT_NE(link, nullptr);
  world.parties[1].stopped = true;
  std::uint32_t sent = 0;
  while (world.send(0, *link, sent)) ++sent;
  EXPECT_TRUE(world.send(0, *link, 7777, true)) << "its room takes nothing else";
  world.run(kMillisecond);
  world.parties[1].stopped = false;
  ASSERT_TRUE(world.settle());
  ASSERT_EQ(world.parties[1].taken.size(), sent + 1);
  EXPECT_EQ(world.parties[1].taken.front().number, 7777u);
}

TEST(ReliableWire, Answers__have_an_end_too) {
  ReliableWorld world;
  Link* link = world.connect(0, 1);
  ASSERT_NE(link, nullptr);
  world.parties[1].stopped = true;
  std::uint32_t sent = 0;
  while (world.send(0, *link, sent, true)) ++sent;
  EXPECT_EQ(sent, kWindowFrames);
  EXPECT_TRUE(world.send(0, *link, 7777, false)) << "and leave requests theirs";
}

// Portals 4.3, 2.2: "messages may be dropped by the network".
TEST(ReliableWire, Packet_that_may_be_lost__is_sent_once_and_keeps_its_order) {
  LossyOptions options;
  options.loss = 200;
  ReliableWorld world(options);
  Link* link = world.connect(0, 1);
  ASSERT_NE(link, nullptr);
  const auto send_losable = [&](std::uint32_t number) {
    std::byte* room = world.parties[0].wire->claim(*link, 1);
    if (room == nullptr) return false;
    *room = static_cast<std::byte>(number);
    PacketHeader header{};
    header.type = PacketType::kPut;
    header.operation_id = 0;
    header.hdr_data = number;
    header.payload_bytes = 1;
    header.length = 1;
    header.wire_word = kMayBeLost;
    world.parties[0].wire->publish(*link, header);
    EXPECT_EQ(world.parties[0].wire->send_held().now, 0u) << "nothing is kept";
    return true;
  };
  std::vector<std::uint64_t> taken;
  const auto take = [&] {
    Packet packet;
    while (world.parties[1].wire->peek(packet)) {
      taken.push_back(packet.header.hdr_data);
      world.parties[1].wire->release();
    }
  };
  world.parties[1].stopped = true;  // Taken here.
  for (std::uint32_t number = 0; number < kMany;) {
    number += send_losable(number) ? 1 : 0;
    world.run(10'000);
    take();
  }
  for (int i = 0; i < 1000; ++i) {
    world.run(kMillisecond);
    take();
  }
  EXPECT_TRUE(std::is_sorted(taken.begin(), taken.end()));
  EXPECT_EQ(std::adjacent_find(taken.begin(), taken.end()), taken.end());
  EXPECT_NEAR(static_cast<double>(taken.size()), 0.8 * kMany, 0.05 * kMany) << "what is lost is not sent again";
  EXPECT_TRUE(world.parties[0].wire->is_settled());
}

TEST(ReliableWire, Discard__sends_nothing) {
  ReliableWorld world;
  Link* link = world.connect(0, 1);
  ASSERT_NE(link, nullptr);
  ASSERT_NE(world.parties[0].wire->claim(*link, 8), nullptr);
  world.parties[0].wire->discard(*link);
  world.send_all(0, *link, 0, 3);
  ASSERT_TRUE(world.settle());
  world.expect_taken(1, 0, 0, 3);
}

// ---- Opening, closing, lives ---------------------------------------------------------------------------------------

TEST(ReliableWire, Nobody_there__is_no_such_peer_within_a_second) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    ReliableWorld world(bad_network(), seed);
    world.kill(1);
    const std::uint64_t began_ns = world.network.now_ns();
    EXPECT_EQ(world.connect(0, 1), nullptr);
    EXPECT_LT(world.network.now_ns() - began_ns, kSecond) << "seed " << seed;
  }
}

TEST(ReliableWire, To_oneself__works) {
  ReliableWorld world;
  Link* link = world.connect(0, 0);
  ASSERT_NE(link, nullptr);
  world.send_all(0, *link, 0, 50);
  ASSERT_TRUE(world.settle());
  world.expect_taken(0, 0, 0, 50);
}

TEST(ReliableWire, Disconnect__delivers_what_was_published_and_then_closes_the_source) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ReliableWorld world(bad_network(), seed);
    std::uint32_t sent = 0;
    for (std::uint32_t round = 1; round <= 3; ++round) {
      Link* link = world.connect(0, 1);
      ASSERT_NE(link, nullptr);
      while (world.send(0, *link, sent)) ++sent;
      world.parties[0].wire->disconnect(link);
    }
    ASSERT_TRUE(world.settle());
    world.run(kSecond);
    world.expect_taken(1, 0, 0, sent);
    EXPECT_EQ(world.parties[1].closed.size(), 3u);
    EXPECT_EQ(world.parties[0].wire->link_count() + world.parties[1].wire->link_count(), 0u) << "nothing is left";
  }
}

TEST(ReliableWire, Killed_peer__is_noticed_within_a_second) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ReliableWorld world(bad_network(), seed);
    Link* link = world.connect(0, 1);
    Link* back = world.connect(1, 0);
    ASSERT_TRUE(link != nullptr && back != nullptr);
    world.send_all(1, *back, 0, 5);
    ASSERT_TRUE(world.settle());
    world.kill(1);
    world.run(kSecond - 1, true);
    EXPECT_TRUE(link->lost);
    EXPECT_EQ(world.parties[0].closed.size(), 1u) << "and its link to us is over";
    world.parties[0].wire->disconnect(link);
    world.run(kMillisecond);
    EXPECT_EQ(world.parties[0].wire->link_count(), 0u) << "nothing is left";
  }
}

// As kernels say it: six times, then once a second.
TEST(ReliableWire, Killed_peer__is_noticed_soon_with_much_under_way) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    LossyOptions options;
    options.loss = seed % 2 == 0 ? 0 : 100;
    options.notices_in_a_row = 6;
    ReliableWorld world(options, seed);
    Link* link = world.connect(0, 1);
    ASSERT_NE(link, nullptr);
    world.send_all(0, *link, 0, 50);
    ASSERT_TRUE(world.settle());
    for (std::uint32_t number = 50; number < 70; ++number) ASSERT_TRUE(world.send(0, *link, number));
    world.kill(1);
    world.run(300 * kMillisecond, true);
    EXPECT_TRUE(link->lost);
  }
}

TEST(ReliableWire, Nobody_there__is_known_when_the_node_says_it_once) {
  LossyOptions options;
  options.notices_in_a_row = 1;
  ReliableWorld world(options);
  world.kill(1);
  Link* link = nullptr;
  EXPECT_EQ(world.parties[0].wire->connect(world.parties[1].id, &link), ConnectResult::kInProgress);
  world.run(300 * kMillisecond, true);
  EXPECT_EQ(world.parties[0].wire->connect(world.parties[1].id, &link), ConnectResult::kNoSuchPeer);
}

// News that is about an earlier process, and comes late, is about nobody else.
TEST(ReliableWire, Restarted_peer__is_not_taken_for_the_dead_one) {
  ReliableWorld world;
  world.kill(1);
  Link* link = nullptr;
  EXPECT_EQ(world.parties[0].wire->connect(world.parties[1].id, &link), ConnectResult::kInProgress);
  world.parties[0].stopped = true;
  world.run(kMillisecond);  // Nobody takes the news that nobody is there.
  world.start(1);
  world.parties[0].stopped = false;
  link = world.connect(0, 1);
  ASSERT_NE(link, nullptr);
  world.parties[1].stopped = true;
  ASSERT_TRUE(world.send(0, *link, 0));
  world.run(2 * kSecond, true);
  EXPECT_FALSE(link->lost);
}

// Nothing of a former life, and nothing twice: what was published before the death arrives before it is told, as far as
// it arrives at all; what the new life sends comes behind.
TEST(ReliableWire, Restarted_sender__is_a_new_source_behind_the_old_one) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    LossyOptions options = bad_network();
    options.delay = DelayKind::kPareto;
    options.mean_delay_ns = 3 * kMillisecond;
    ReliableWorld world(options, seed);
    std::uint32_t next_number = 0;
    std::vector<std::uint32_t> firsts;
    for (int life = 0; life < 4; ++life) {
      Link* link = world.connect(0, 1);
      ASSERT_NE(link, nullptr);
      firsts.push_back(next_number);
      for (int i = 0; i < 40 && world.send(0, *link, next_number); ++i) ++next_number;
      world.run(world.random.below(5 * kMillisecond));
      if (life == 3) break;
      world.kill(0);
      world.start(0);
    }
    ASSERT_TRUE(world.settle());
    std::vector<std::uint32_t> seen;
    for (const auto& taken : world.parties[1].taken) seen.push_back(taken.number);
    EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
    EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end()) << "twice";
    for (std::size_t i = 1; i < seen.size(); ++i) {
      const bool begins = std::count(firsts.begin(), firsts.end(), seen[i]) != 0;
      EXPECT_TRUE(seen[i] == seen[i - 1] + 1 || begins) << "a hole before " << seen[i];
    }
    EXPECT_EQ(std::count_if(seen.begin(), seen.end(), [&](std::uint32_t n) { return n >= firsts.back(); }),
              next_number - firsts.back())
        << "the last life has sent all";
  }
}

// wire.h: the engine hears of the end of a life before it hears the next one.
TEST(ReliableWire, Restarted_sender__is_not_heard_before_its_former_life_was_told_to_be_over) {
  ReliableWorld world;
  Party& sender = world.parties[0];
  Party& receiver = world.parties[1];
  Link* link = world.connect(0, 1);
  ASSERT_NE(link, nullptr);
  ASSERT_TRUE(world.settle());
  receiver.stopped = true;  // Its engine takes nothing; its wire goes on.
  const auto go_on = [&] {
    for (int i = 0; i < 20; ++i) {
      world.run(kMillisecond);
      receiver.wire->check_peers();
    }
  };
  ASSERT_TRUE(world.send(0, *link, 1));
  go_on();
  world.kill(0);
  world.start(0);
  for (int i = 0; i < 100 && sender.wire->connect(receiver.id, &link) != ConnectResult::kConnected; ++i) go_on();
  ASSERT_TRUE(world.send(0, *link, 2));
  go_on();
  Packet packet;
  ASSERT_TRUE(receiver.wire->peek(packet));
  EXPECT_EQ(packet.header.operation_id, 1u);
  receiver.wire->release();
  ASSERT_FALSE(receiver.wire->peek(packet)) << "it has not been told yet";
  ProcessId source;
  void* context = nullptr;
  ASSERT_TRUE(receiver.wire->take_closed_source(&source, &context));
  EXPECT_EQ(source, sender.id);
  ASSERT_TRUE(receiver.wire->peek(packet));
  EXPECT_EQ(packet.header.operation_id, 2u);
  receiver.wire->release();
}

TEST(ReliableWire, Restarted_receiver__gets_nothing_of_its_former_life) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    LossyOptions options = bad_network();
    options.delay = DelayKind::kPareto;
    options.mean_delay_ns = 3 * kMillisecond;
    ReliableWorld world(options, seed);
    Link* link = world.connect(0, 1);
    ASSERT_NE(link, nullptr);
    std::uint32_t sent = 0;
    while (world.send(0, *link, sent)) ++sent;
    world.run(world.random.below(3 * kMillisecond));
    world.kill(1);
    world.parties[1].taken.clear();
    world.start(1);
    world.run(kSecond, true);
    EXPECT_TRUE(link->lost);
    EXPECT_TRUE(world.parties[1].taken.empty());
    world.parties[0].wire->disconnect(link);
    link = world.connect(0, 1);
    ASSERT_NE(link, nullptr);
    world.send_all(0, *link, 500, 600);
    ASSERT_TRUE(world.settle());
    world.expect_taken(1, 0, 500, 600);
  }
}

// wire.h: before the engine handles the first packet of a new life it looks whether its own link leads to the old one.
TEST(ReliableWire, Link_to_a_former_life__is_lost_when_the_new_one_is_heard) {
  ReliableWorld world;
  Link* link = world.connect(0, 1);
  ASSERT_NE(link, nullptr);
  ASSERT_TRUE(world.settle());
  world.kill(1);
  world.start(1);
  Link* back = world.connect(1, 0);
  ASSERT_NE(back, nullptr);
  ASSERT_TRUE(world.send(1, *back, 1));
  world.run(kMillisecond);
  ASSERT_EQ(world.parties[0].taken.size(), 1u);
  EXPECT_TRUE(link->lost);
}

/// Party 1 begins anew, and its node tells party 0 that the former life is over.
void begin_next_life(ReliableWorld& world) {
  const std::uint64_t former = world.parties[1].life;
  world.kill(1);
  world.start(1);
  world.parties[0].wire->end_life(world.parties[1].id, former);
}

// The way back to one who has opened a link is made unseen. Its node says that this life is over before the engine asks
// for a link.
TEST(ReliableWire, Link_to_a_life_that_is_over__is_not_handed_out) {
  ReliableWorld world;
  ASSERT_NE(world.connect(1, 0), nullptr);
  ASSERT_TRUE(world.settle());
  begin_next_life(world);
  const Link* const link = world.connect(0, 1);
  ASSERT_NE(link, nullptr);
  EXPECT_EQ(link->life, world.parties[1].life);
}

// Its node has told us of the end sooner than the network brought its answer.
TEST(ReliableWire, Answer_of_a_life_that_is_over__makes_no_link) {
  ReliableWorld world;
  Link* link = nullptr;
  EXPECT_EQ(world.parties[0].wire->connect(world.parties[1].id, &link), ConnectResult::kInProgress);
  world.parties[0].stopped = true;
  world.run(kMillisecond);
  begin_next_life(world);
  world.parties[0].stopped = false;
  link = world.connect(0, 1);
  ASSERT_NE(link, nullptr);
  EXPECT_EQ(link->life, world.parties[1].life);
}

// The first word that the former life has said on its link comes when we have met the next one.
TEST(ReliableWire, Late_word_of_a_former_life__does_not_end_the_link_to_the_next_one) {
  ReliableWorld world;
  Link* back = nullptr;
  EXPECT_EQ(world.parties[1].wire->connect(world.parties[0].id, &back), ConnectResult::kInProgress);
  constexpr std::uint64_t kStepNs = 100;
  while (world.parties[0].wire->link_count() == 0) world.run(kStepNs);
  world.network.options().reordered = 1000;  // From now on all is set aside, for ten milliseconds.
  world.run(kMillisecond);
  world.network.options().reordered = 0;
  world.kill(1);
  world.start(1);
  Link* link = nullptr;
  while (world.parties[0].wire->connect(world.parties[1].id, &link) == ConnectResult::kInProgress) world.run(kStepNs);
  ASSERT_NE(link, nullptr);
  ASSERT_EQ(link->life, world.parties[1].life);
  world.parties[1].stopped = true;  // It has not yet made its own link to us, which would say that it is the next one.
  world.run(20 * kMillisecond);
  EXPECT_FALSE(link->lost);
}

TEST(ReliableWire, Partition__loses_the_link_and_nothing_arrives_twice_afterwards) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ReliableWorld world(bad_network(), seed);
    Link* link = world.connect(0, 1);
    ASSERT_NE(link, nullptr);
    std::uint32_t sent = 0;
    while (world.send(0, *link, sent)) ++sent;
    world.run(world.random.below(kMillisecond));
    world.network.set_parts({0, 1});
    world.run(30 * kSecond, true);
    EXPECT_TRUE(link->lost);
    const auto before = static_cast<std::uint32_t>(world.parties[1].taken.size());
    world.expect_taken(1, 0, 0, before);
    world.network.set_parts({});
    world.parties[0].wire->disconnect(link);
    link = world.connect(0, 1);
    ASSERT_NE(link, nullptr);
    world.send_all(0, *link, 1000, 1100);
    ASSERT_TRUE(world.settle());
    world.expect_taken(1, 0, 1000, 1100);
  }
}

// What the peer waits for may have been on the link that was lost: it must not believe that all is well.
TEST(ReliableWire, Lost_link__takes_the_link_of_the_peer_to_us_with_it) {
  ReliableWorld world;
  Link* link = world.connect(0, 1);
  Link* back = world.connect(1, 0);
  ASSERT_TRUE(link != nullptr && back != nullptr);
  ASSERT_TRUE(world.settle());
  world.network.set_parts({0, 1});
  ASSERT_TRUE(world.send(0, *link, 1));
  world.run(12 * kSecond);
  EXPECT_TRUE(link->lost);
  EXPECT_FALSE(back->lost) << "it has asked nothing";
  world.network.set_parts({});
  ASSERT_TRUE(world.send(1, *back, 2));
  world.run(kSecond);
  EXPECT_TRUE(back->lost);
  EXPECT_TRUE(world.parties[0].taken.empty());
}

TEST(ReliableWire, Give_up__makes_the_peer_lose_its_link_to_us) {
  ReliableWorld world;
  Link* back = world.connect(1, 0);
  ASSERT_NE(back, nullptr);
  ASSERT_TRUE(world.settle());
  world.parties[0].wire->give_up(world.parties[1].id);
  world.run(kMillisecond);
  EXPECT_TRUE(back->lost);
  EXPECT_EQ(world.parties[0].closed.size(), 1u);
  EXPECT_NE(world.connect(0, 1), nullptr) << "it can be tried again";
}

}  // namespace
}  // namespace portofu
