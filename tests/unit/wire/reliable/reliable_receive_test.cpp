// What has arrived, and the news that its sender is gone.

#include <gtest/gtest.h>

#include <utility>

#include "tests/unit/wire/reliable/reliable_world.h"

namespace portofu {
namespace {

using reliable_test::bad_network;
using reliable_test::kMillisecond;
using reliable_test::kSecond;
using reliable_test::Party;
using reliable_test::ReliableWorld;

TEST(ReliableReceive, Killed_peer__has_unheard_packets_until_they_are_taken) {
  ReliableWorld world;
  Link* link = world.connect(0, 1);
  Link* back = world.connect(1, 0);
  ASSERT_TRUE(link != nullptr && back != nullptr && world.settle());
  ReliableWire& wire = *world.parties[0].wire;
  const std::uint64_t life = link->life;
  EXPECT_EQ(life, world.parties[1].life);
  EXPECT_FALSE(wire.has_unheard(world.parties[1].id, life));
  world.parties[0].stopped = true;
  ASSERT_TRUE(world.send(1, *back, 1) && world.send(1, *back, 2, /*answer=*/true));
  world.run(kMillisecond);
  world.kill(1);
  EXPECT_TRUE(wire.has_unheard(world.parties[1].id, life));
  EXPECT_FALSE(wire.has_unheard(world.parties[1].id, life + 1));
  EXPECT_FALSE(wire.has_unheard(world.parties[2].id, life));
  Packet packet;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(wire.peek(packet));
    EXPECT_EQ(packet.source_context->life, life);
    EXPECT_TRUE(wire.has_unheard(world.parties[1].id, life));
    wire.release();
  }
  EXPECT_FALSE(wire.has_unheard(world.parties[1].id, life));
}

/// Lets others send much, and says who is unreachable when the test wants it.
class FloodedEndpoint final : public DatagramEndpoint {
 public:
  explicit FloodedEndpoint(std::unique_ptr<DatagramEndpoint> inner) : inner_(std::move(inner)) {}
  std::uint32_t max_bytes() const override { return inner_->max_bytes(); }
  bool send(ProcessId peer, TrafficClass traffic, std::span<const std::byte> head,
            std::span<const std::byte> body) override {
    return inner_->send(peer, traffic, head, body);
  }
  std::uint32_t receive(std::byte* buffer, ProcessId* source) override {
    if (flood == 0) return inner_->receive(buffer, source);
    --flood;
    *source = {1, 999};
    buffer[0] = std::byte{0};
    return 1;
  }
  bool has_datagrams() override { return flood != 0 || unreachable.pid != 0 || inner_->has_datagrams(); }
  bool take_unreachable(ProcessId* peer) override {
    if (unreachable.pid == 0) return inner_->take_unreachable(peer);
    *peer = std::exchange(unreachable, {});
    return true;
  }
  std::uint64_t now_ns() const override { return inner_->now_ns(); }

  int flood = 0;
  ProcessId unreachable;

 private:
  std::unique_ptr<DatagramEndpoint> inner_;
};

/// Connects process 0 to process 1 and sends a packet at once.
void send_first(ReliableWorld& world) {
  Link* link = nullptr;
  while (world.parties[0].wire->connect(world.parties[1].id, &link) != ConnectResult::kConnected) world.run(1000);
  ASSERT_TRUE(world.send(0, *link, 0));
}

// What a program sees of it may end the process at once: the answer must have a way by then.
TEST(ReliableReceive, First_packet__is_given_out_when_there_is_a_link_back) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ReliableWorld world(bad_network(), seed);
    send_first(world);
    const Party& receiver = world.parties[1];
    while (receiver.taken.empty() && world.network.now_ns() < kSecond) world.run(1000);
    ASSERT_EQ(receiver.taken.size(), 1u);
    Link* back = nullptr;
    EXPECT_EQ(receiver.wire->connect(world.parties[0].id, &back), ConnectResult::kConnected);
  }
}

TEST(ReliableReceive, First_packet__is_given_out_though_its_sender_is_gone_before_there_is_a_link_back) {
  ReliableWorld world;
  send_first(world);
  const Party& receiver = world.parties[1];
  while (receiver.wire->receive_held().now == 0 && world.network.now_ns() < kSecond) world.run(500);
  ASSERT_TRUE(receiver.taken.empty());
  world.kill(0);
  world.run(kSecond, true);
  EXPECT_EQ(receiver.taken.size(), 1u);
  EXPECT_EQ(receiver.closed.size(), 1u);
  EXPECT_EQ(receiver.wire->link_count(), 0u) << "nothing is left";
}

TEST(ReliableReceive, News_of_the_unreachable__are_taken_behind_what_these_have_sent) {
  ReliableWorld world;
  Party& party = world.parties[0];
  world.kill(0);
  auto made = std::make_unique<FloodedEndpoint>(world.network.attach(party.id, 0));
  FloodedEndpoint& endpoint = *made;
  party.wire = std::make_unique<ReliableWire>(std::move(made), ReliableOptions{.life = 5}, Counters(party.counters));
  Link* link = world.connect(0, 1);
  Link* back = world.connect(1, 0);
  ASSERT_TRUE(link != nullptr && back != nullptr && world.settle());
  world.parties[1].stopped = true;
  endpoint.unreachable = world.parties[1].id;
  world.run(200 * kMillisecond);
  EXPECT_FALSE(link->lost) << "once is not certain";
  party.stopped = true;
  ASSERT_TRUE(world.send(1, *back, 1));
  world.run(kMillisecond);
  endpoint.flood = 1000;
  endpoint.unreachable = world.parties[1].id;
  party.stopped = false;
  for (int i = 0; i < 20; ++i) world.look(party);
  world.expect_taken(0, 1, 1, 2);
}

// Whoever asked for a process that had ended, and has answers for it that are lost, refuses its link. The next process
// under the name is not to be refused in its place.
TEST(ReliableReceive, Process_that_comes_when_nobody_was_there_for_long__is_not_refused) {
  for (std::uint64_t gone_ms = 130; gone_ms < 175; ++gone_ms) {
    SCOPED_TRACE(testing::Message() << "gone for " << gone_ms << " ms");
    LossyOptions options;
    options.notices_in_a_row = 1;
    ReliableWorld world(options);
    const ProcessId id = world.parties[1].id;
    ReliableWire& asking = *world.parties[0].wire;
    Link* link = nullptr;
    const auto ask = [&] {
      if (asking.connect(id, &link) == ConnectResult::kNoSuchPeer) asking.give_up(id);
    };
    world.kill(1);
    for (std::uint64_t ms = 0; ms < gone_ms; ++ms) {
      ask();
      world.run(kMillisecond);
    }
    world.start(1);
    Link* back = nullptr;
    while (world.parties[1].wire->connect(world.parties[0].id, &back) != ConnectResult::kConnected) {
      ask();
      world.run(1000);
    }
    ASSERT_TRUE(world.send(1, *back, 0));
    for (int ms = 0; ms < 300; ++ms) {
      ask();
      world.run(kMillisecond);
    }
    EXPECT_FALSE(back->lost);
    world.expect_taken(0, 1, 0, 1);
    EXPECT_EQ(asking.connect(id, &link), ConnectResult::kConnected);
  }
}

// What an attempt has found that nobody waits for any more says nothing to who asks later: somebody has begun since,
// and stands still.
TEST(ReliableReceive, Who_asks_anew__is_not_refused_for_what_was_found_before) {
  LossyOptions options;
  options.notices_in_a_row = 1;
  for (const std::uint64_t rest_ms : {0, 100, 200, 2000}) {
    SCOPED_TRACE(testing::Message() << "asked anew after " << rest_ms << " ms");
    ReliableWorld world(options);
    const ProcessId id = world.parties[1].id;
    ReliableWire& asking = *world.parties[0].wire;
    world.kill(1);
    Link* link = nullptr;
    EXPECT_EQ(asking.connect(id, &link), ConnectResult::kInProgress);
    world.run(kMillisecond);  // It hears that nobody is there.
    world.start(1);
    world.parties[1].stopped = true;
    world.run(rest_ms * kMillisecond);
    asking.ask_anew(id);
    for (int ms = 0; ms < 1000; ++ms) {
      ASSERT_EQ(asking.connect(id, &link), ConnectResult::kInProgress) << "behind " << ms << " ms";
      world.run(kMillisecond);
    }
    world.parties[1].stopped = false;
    EXPECT_NE(world.connect(0, 1), nullptr);
  }
}

TEST(ReliableReceive, Who_asks_anew_where_nobody_is__is_told) {
  LossyOptions options;
  options.notices_in_a_row = 1;
  ReliableWorld world(options);
  world.kill(1);
  for (int i = 0; i < 3; ++i) {
    world.parties[0].wire->ask_anew(world.parties[1].id);
    EXPECT_EQ(world.connect(0, 1), nullptr);
  }
}

}  // namespace
}  // namespace portofu
