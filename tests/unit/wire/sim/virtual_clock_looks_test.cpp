// Looks in vain of a program that does not wait by them, and goes on: they take their own time.

#include <thread>

#include "engine/wire/sim/virtual_clock.h"
#include "tests/unit/support/virtual_job.h"

namespace portofu {
namespace {

struct VirtualClockLooks : testing::Test {
  static constexpr std::uint64_t kLookPs = 30'000;

  void start(std::uint64_t look_ps = kLookPs) {
    job.header().poll_ps = look_ps;
    job.header().empty_poll_ps = look_ps;
    clock = VirtualClock::open(job.path(), 0, {1, 7}, &why);
    ASSERT_NE(clock, nullptr) << why;
    begin(job, *clock);
  }

  /// Looks in vain so often. Nothing comes, so each wait ends at its time. @return what they took
  std::uint64_t look(int count) {
    const std::uint64_t from_ps = clock->now_ps();
    std::atomic<bool> ends{false};
    std::thread coordinator([&] {
      for (; !ends; sched_yield()) {
        if (job.state() != VirtualState::kRunning) job.grant(job.page().until_ps.load());
      }
    });
    for (int i = 0; i < count; ++i) clock->pass();
    ends = true;
    coordinator.join();
    return clock->now_ps() - from_ps;
  }

  /// Sends something.
  void go_on() { clock->stamp(VirtualCall::kPut); }

  VirtualJob job{2};
  std::unique_ptr<VirtualClock> clock;
  std::string why;
};

/// Programs time loops of looks so.
TEST_F(VirtualClockLooks, After_a_read_of_the_clock__they_are_not_by_the_clock) {
  job.page().horizon_ps = kNeverPs;
  start();
  job.page().is_quiet = 1;
  look(600);
  clock->read(false);
  for (int i = 0; i < 3; ++i) {
    clock->read(false);
    EXPECT_LT(look(500), 2000 * kLookPs) << i;
  }
}

/// However many there are between two reads.
TEST_F(VirtualClockLooks, With_a_timeout__wait_up_to_a_quarter_too_long) {
  constexpr std::uint64_t kTimeoutPs = 1'000'000'000'000;
  start();
  for (const int looks : {2, 3, 8, 100}) {
    const std::uint64_t began_ps = clock->read(false);
    int rounds = 0;
    for (; clock->read(false) < began_ps + kTimeoutPs; ++rounds) look(looks);
    EXPECT_LE(clock->read(false), began_ps + kTimeoutPs + kTimeoutPs / 4) << looks;
    EXPECT_LT(rounds, 1200) << looks << ": each takes turns";
    go_on();
  }
}

/// Only the first such wait is longer than its looks, and they take few turns from then on.
TEST_F(VirtualClockLooks, With_a_short_timeout__wait_no_longer_than_their_own_time) {
  constexpr std::uint64_t kTimeoutPs = 1'000'000'000;
  constexpr int kLooks = 1000;
  start();
  std::uint32_t turns = 0;
  for (int i = 0; i < 3; ++i) {
    go_on();
    const std::uint64_t began_ps = clock->read(false);
    turns = job.page().turn;
    while (clock->read(false) < began_ps + kTimeoutPs) look(kLooks);
    turns = job.page().turn - turns;
    const std::uint64_t most_ps = i == 0 ? 20 * kTimeoutPs : kTimeoutPs + kTimeoutPs / 4;
    EXPECT_LE(clock->read(false), began_ps + most_ps + kLooks * kLookPs) << i;
  }
  EXPECT_LT(turns, 2000u);
}

/// A message ends a wait for several looks, too.
TEST_F(VirtualClockLooks, With_a_timeout__end_when_something_comes) {
  start();
  for (int i = 0; i < 20; ++i) {
    clock->read(false);
    look(200);
  }
  clock->read(false);
  look(100);
  const std::uint64_t from_ps = clock->now_ps();
  std::thread coordinator([&] {
    if (job.await(VirtualState::kPolling)) job.grant(from_ps + 2 * kLookPs);
  });
  std::uint64_t now_ps = from_ps;
  for (int i = 0; i < 100 && now_ps < from_ps + kLookPs + 1; ++i) {
    clock->pass();
    now_ps = clock->now_ps();
  }
  coordinator.join();
  EXPECT_EQ(now_ps, from_ps + 2 * kLookPs);
}

TEST_F(VirtualClockLooks, Going_on__is_learned_by_the_next_looks) {
  start();
  EXPECT_GT(look(40), 50 * kLookPs) << "it may wait";
  go_on();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(look(40), 40 * kLookPs) << i;
    go_on();
  }
  EXPECT_GT(look(80), 90 * kLookPs) << "it may wait, after so many";
}

/// Each of these is a way to go on without what one has looked for.
TEST_F(VirtualClockLooks, Going_on__may_be_a_wait_or_a_sleep) {
  start();
  look(40);
  EXPECT_FALSE(clock->wait(clock->now_ps()));
  EXPECT_EQ(look(40), 40 * kLookPs);
  look(40);
  std::thread coordinator([this] {
    if (job.await(VirtualState::kReady)) job.grant(job.page().clock_ps.load());
  });
  EXPECT_TRUE(clock->sleep(1));
  coordinator.join();
  EXPECT_EQ(look(80), 80 * kLookPs);
}

/// Its looks were a wait: the next ones may be one, too, and would take many turns.
TEST_F(VirtualClockLooks, Finding_something__teaches_nothing) {
  start();
  const std::uint64_t first_ps = look(40);
  clock->find();
  EXPECT_EQ(look(40), first_ps);
  go_on();
  EXPECT_EQ(look(40), 40 * kLookPs) << "but that does";
}

TEST_F(VirtualClockLooks, Very_many__are_a_wait_though_it_goes_on) {
  start();
  look(600);
  go_on();
  EXPECT_GT(look(40), 50 * kLookPs);
}

/// So slow ones are few in any wait. On a machine of quick ones a message takes dozens.
TEST_F(VirtualClockLooks, Slow_ones__wait_longer_only_after_many) {
  constexpr std::uint64_t kSlowPs = 5'500'000;
  start(kSlowPs);
  EXPECT_EQ(look(256), 256 * kSlowPs);
  EXPECT_GT(look(40), 50 * kSlowPs);
}

}  // namespace
}  // namespace portofu
