// What the clock makes a reliable wire do: send again, ask who is silent, wait, give up.

#include <gtest/gtest.h>

#include "engine/wire/reliable/reliable_wire.h"
#include "tests/unit/wire/reliable/reliable_world.h"

namespace portofu {
namespace {

using reliable_test::bad_network;
using reliable_test::kMillisecond;
using reliable_test::kSecond;
using reliable_test::Party;
using reliable_test::ReliableWorld;

// One packet at a time, and what is overtaken waits 10 ms. Late acknowledgements are not to be taken for long round
// trips.
TEST(ReliableTimers, Acknowledgement_that_comes_late__does_not_make_the_sender_patient) {
  LossyOptions options;
  options.loss = 100;
  options.reordered = 125;
  ReliableWorld world(options, 3);
  Link* link = world.connect(0, 1);
  ASSERT_NE(link, nullptr);
  const std::uint64_t begin_ns = world.network.now_ns();
  for (std::uint32_t i = 0; i < 500; ++i) {
    ASSERT_TRUE(world.send(0, *link, i, 64));
    while (world.parties[1].taken.size() <= i) world.run(kMillisecond / 10);
  }
  EXPECT_LT(world.network.now_ns() - begin_ns, kSecond / 2);
}

TEST(ReliableTimers, Silent_peer__is_asked_by_single_frames) {
  ReliableWorld world;
  Link* link = world.connect(0, 1);
  ASSERT_NE(link, nullptr);
  world.parties[1].stopped = true;
  while (world.send(0, *link, 0)) {
  }
  world.run(50 * kMillisecond);
  const std::uint64_t before = world.parties[0].count(Counter::kFramesSent);
  world.run(4 * kSecond);
  EXPECT_LT(world.parties[0].count(Counter::kFramesSent) - before, 40u);
  EXPECT_FALSE(link->lost);
}

// What else is sent to a dead process uses up what kernels say of it.
TEST(ReliableTimers, Silent_peer__gets_questions_only_and_everything_once_it_answers) {
  ReliableWorld world;
  Link* link = world.connect(0, 1);
  ASSERT_NE(link, nullptr);
  world.parties[1].stopped = true;
  ASSERT_TRUE(world.send(0, *link, 0));
  world.run(150 * kMillisecond);
  const std::uint64_t sent = world.parties[0].count(Counter::kFramesSent);
  const std::uint64_t again = world.parties[0].count(Counter::kFramesSentAgain);
  for (std::uint32_t number = 1; number < 40; ++number) ASSERT_TRUE(world.send(0, *link, number));
  world.run(kSecond);
  EXPECT_LE(world.parties[0].count(Counter::kFramesSent) - sent, 10u);
  EXPECT_EQ(world.parties[0].count(Counter::kFramesSentAgain), again);
  world.parties[1].stopped = false;
  world.run(200 * kMillisecond);
  world.expect_taken(1, 0, 0, 40);
}

TEST(ReliableTimers, Stopped_peer__is_waited_for) {
  ReliableWorld world(bad_network());
  Link* link = world.connect(0, 1);
  ASSERT_NE(link, nullptr);
  ASSERT_TRUE(world.settle());
  world.parties[1].stopped = true;
  std::uint32_t sent = 0;
  while (world.send(0, *link, sent)) ++sent;
  world.run(5 * kSecond, true);
  EXPECT_FALSE(link->lost);
  world.parties[1].stopped = false;
  world.run(kSecond, true);
  world.expect_taken(1, 0, 0, sent);
}

// A process that was stopped may send before it looks.
TEST(ReliableTimers, Stop_of_this_process__is_no_silence_of_the_peer_though_it_sends_first) {
  ReliableWorld world;
  Link* link = world.connect(0, 1);
  ASSERT_TRUE(link != nullptr && world.settle());
  for (Party& party : world.parties) party.stopped = true;
  ASSERT_TRUE(world.send(0, *link, 0));
  world.run(60 * kSecond);
  ASSERT_TRUE(world.send(0, *link, 1));
  for (Party& party : world.parties) party.stopped = false;
  world.run(kSecond, true);
  EXPECT_FALSE(link->lost);
  world.expect_taken(1, 0, 0, 2);
}

TEST(ReliableTimers, Silent_node__is_given_up_after_the_limit) {
  ReliableWorld world;
  Link* link = world.connect(0, 1);
  ASSERT_NE(link, nullptr);
  world.network.kill_node(1);
  world.parties[1].wire.reset();
  ASSERT_TRUE(world.send(0, *link, 1));
  world.run(9 * kSecond, true);
  EXPECT_FALSE(link->lost);
  world.run(2 * kSecond, true);
  EXPECT_TRUE(link->lost);
}

}  // namespace
}  // namespace portofu
