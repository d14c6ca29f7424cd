// Loops of non-blocking calls with a clock of the test's own: who spins, who yields, who sleeps, and for how long. What
// a real kernel adds is in tests/process/idle_test.cpp.

#include "engine/run/poll_policy.h"

#include <gtest/gtest.h>

namespace portofu {
namespace {

constexpr std::uint32_t kSpin = 64;
constexpr std::uint64_t kSleepAfterUs = 200;
constexpr std::uint64_t kPatienceNs = kSleepAfterUs * 1000 * kPollPatience;

constexpr std::uint64_t kMsNs = 1'000'000;
static_assert(kPatienceNs / 8 > kShortestPollSleepNs);

/// A caller of non-blocking calls that find nothing, and the world around it.
class PollPolicyTest : public testing::Test, protected PollSigns {
 protected:
  std::uint64_t now_ns() override {
    ++clock_looks;
    return now;
  }
  std::uint64_t lane_uses() override { return uses; }
  bool awaits_something() override { return awaits; }
  bool is_heap_published() override { return heap; }

  /// One call that finds nothing, and the rest that it takes.
  IdleAdvice call() {
    now += call_ns;
    const IdleAdvice advice = searching ? policy.advise_search(*this) : policy.advise_poll(*this);
    busy += call_ns;
    if (advice == IdleAdvice::kSpin) return advice;
    const std::uint64_t before = now;
    const std::uint64_t rest = advice == IdleAdvice::kYield ? yield_ns : policy.sleep_ns();
    now += rest;
    (advice == IdleAdvice::kYield ? busy : slept) += rest;
    (advice == IdleAdvice::kYield ? yields : sleeps) += 1;
    policy.note_rest(advice, before, now);
    return advice;
  }
  void call_for(std::uint64_t ns) {
    for (const std::uint64_t end = now + ns; now < end;) call();
  }

  PollPolicy policy{kSpin, kSleepAfterUs};
  std::uint64_t now = 1'000'000'000;
  std::uint64_t call_ns = 100;   ///< One call, with what its caller does in between.
  std::uint64_t yield_ns = 200;  ///< One yield; more than kSharedYieldNs: somebody else ran.
  std::uint64_t uses = 0;
  bool awaits = true;
  bool heap = false;
  bool searching = false;
  std::uint64_t busy = 0;   ///< Time awake.
  std::uint64_t slept = 0;  ///< Time asleep.
  int yields = 0;
  int sleeps = 0;
  int clock_looks = 0;
};

TEST_F(PollPolicyTest, Spinning__looks_at_the_clock_with_every_64th_call_only) {
  // The first look at the clock finds that the caller came from elsewhere.
  for (std::uint32_t i = 1; i < kPollsPerMark + kSpin; ++i) ASSERT_EQ(call(), IdleAdvice::kSpin) << i;
  EXPECT_EQ(clock_looks, 1);
  EXPECT_EQ(call(), IdleAdvice::kYield);
}

TEST_F(PollPolicyTest, Thousand_calls__do_not_sleep) {
  for (int i = 0; i < 1000; ++i) call();
  EXPECT_EQ(sleeps, 0);
}

TEST_F(PollPolicyTest, Sleep__comes_after_both_the_patience_and_the_calls) {
  const std::uint64_t start = now;
  int calls = 0;
  for (; sleeps == 0; ++calls) call();
  EXPECT_GE(now - start, kPatienceNs);
  EXPECT_GE(static_cast<std::uint64_t>(calls), kFewestPolls);
  EXPECT_LT(now - start, 2 * kPatienceNs);
  EXPECT_GE(slept, kPatienceNs / 8) << "an eighth of the time waited";
  EXPECT_LT(slept, kPatienceNs / 7);
}

TEST_F(PollPolicyTest, Staying_away__is_no_other_work_and_counts_as_several_looks) {
  call_ns = 100 + kStayAwayNs;
  int calls = 0;
  for (bool spins = true; spins; ++calls) {
    spins = call() == IdleAdvice::kSpin;
    policy.note_stay_away();
  }
  EXPECT_LE(calls, static_cast<int>(2 * kPollsPerMark)) << "it yields, as a loop that waits";
  EXPECT_LT(calls, static_cast<int>(kPollsPerMark + kSpin / 2)) << "sooner than without";
}

TEST_F(PollPolicyTest, Staying_away__of_several_threads_at_once_does_not_end_the_streak) {
  for (std::uint32_t i = 0; i < 2 * kPollsPerMark; ++i) {
    call();
    policy.note_stay_away();
  }
  EXPECT_GT(yields, 0);
}

TEST_F(PollPolicyTest, Slow_yields__do_not_make_it_sleep_before_the_calls_are_made) {
  yield_ns = 20'000;
  for (std::uint64_t i = 0; i < kFewestPolls - 1; ++i) call();
  EXPECT_EQ(sleeps, 0);
}

TEST_F(PollPolicyTest, Young_loop__sleeps_no_longer_than_it_is_awake) {
  call_for(kYoungLoopNs - kMsNs);
  EXPECT_GT(sleeps, 0);
  EXPECT_GE(busy, slept);
}

TEST_F(PollPolicyTest, Old_loop__sleeps_with_every_64th_call_at_most_and_longer) {
  call_for(2 * kYoungLoopNs);
  sleeps = yields = 0;
  slept = busy = 0;
  constexpr int kCalls = 6400;
  for (int i = 0; i < kCalls; ++i) call();
  EXPECT_GE(sleeps, kCalls / 64 - 1);
  EXPECT_LE(sleeps, kCalls / 64 + 1);
  EXPECT_EQ(slept / static_cast<std::uint64_t>(sleeps), kLongestPollSleepNs);
}

TEST_F(PollPolicyTest, Old_loop_that_works_between_its_calls__does_not_sleep) {
  call_for(2 * kYoungLoopNs);
  call_ns = 1100;  // 64 of these take longer than a tight loop.
  call_for(kMsNs);
  sleeps = 0;
  call_for(50 * kMsNs);
  EXPECT_EQ(sleeps, 0);
}

TEST_F(PollPolicyTest, Loop_that_awaits_nothing__yields_with_every_64th_call_and_never_sleeps) {
  awaits = false;
  for (int i = 0; i < 1000; ++i) call();
  yields = 0;
  constexpr int kCalls = 640'000;
  for (int i = 0; i < kCalls; ++i) call();
  EXPECT_EQ(yields, kCalls / 64);
  EXPECT_EQ(sleeps, 0);
}

TEST_F(PollPolicyTest, Loop_that_awaits_nothing_where_others_need_the_core__yields_with_every_call) {
  awaits = false;
  yield_ns = 2000;
  for (int i = 0; i < 1000; ++i) call();
  EXPECT_TRUE(policy.shares_core());
  yields = 0;
  for (int i = 0; i < 1000; ++i) call();
  EXPECT_EQ(yields, 1000);
}

TEST_F(PollPolicyTest, What_begins_to_be_awaited__is_seen) {
  awaits = false;
  call_for(2 * kPatienceNs);
  ASSERT_EQ(sleeps, 0);
  awaits = true;
  call_for(2 * kMsNs);
  EXPECT_GT(sleeps, 0);
}

TEST_F(PollPolicyTest, Searches__yield_and_never_sleep_whatever_is_awaited) {
  searching = true;
  yield_ns = 2000;
  call_for(3 * kYoungLoopNs);
  EXPECT_EQ(sleeps, 0);
  EXPECT_GT(yields, 1000);
}

/// Its thread looks into another engine of the process, too, and what it waits for may come there.
TEST_F(PollPolicyTest, Turns_with_other_engines__never_sleep) {
  for (const std::uint64_t end = now + 3 * kYoungLoopNs; now < end;) {
    policy.note_other_engines();
    for (int i = 0; i < 8; ++i) call();
  }
  EXPECT_EQ(sleeps, 0);
  call_for(3 * kPatienceNs);
  EXPECT_GT(sleeps, 0) << "the last one";
}

TEST_F(PollPolicyTest, Published_heap__lets_it_yield_only) {
  heap = true;
  call_for(2 * kYoungLoopNs);
  EXPECT_EQ(sleeps, 0);
  EXPECT_GT(yields, 1000);
}

TEST_F(PollPolicyTest, Uses_of_memory_past_the_duty__are_no_idle_time) {
  for (int round = 0; round < 1000; ++round) {
    ++uses;
    for (int i = 0; i < 8 * static_cast<int>(kSpin); ++i) call();
  }
  EXPECT_EQ(sleeps, 0);
}

TEST_F(PollPolicyTest, Work_found__start_and_end_of_a_wait__begin_anew) {
  const auto is_spinning_again = [&] { return call() == IdleAdvice::kSpin; };
  const auto yield_once = [&] {
    while (call() != IdleAdvice::kYield) {
    }
  };
  yield_once();
  policy.note_start();
  EXPECT_TRUE(is_spinning_again());
  yield_once();
  policy.note_end();
  EXPECT_TRUE(is_spinning_again());
  yield_once();
  policy.note_found();
  EXPECT_FALSE(is_spinning_again()) << "what was there before is no end of waiting";
  policy.note_work();
  policy.note_found();
  EXPECT_TRUE(is_spinning_again());
}

TEST_F(PollPolicyTest, Caller_that_stays_away__begins_anew) {
  call_for(kPatienceNs / 2);
  now += kAwayNs + 1;
  EXPECT_EQ(call(), IdleAdvice::kSpin) << "once, for long";
  call_for(kPatienceNs / 2);
  int spins = 0;
  for (std::uint32_t i = 0; i <= kMostAways; ++i) {
    now += kTightCallNs + 1;
    if (call() == IdleAdvice::kSpin) ++spins;
  }
  EXPECT_EQ(spins, 1) << "several times in 64 calls";
}

TEST_F(PollPolicyTest, Caller_that_is_late_behind_a_long_rest__was_not_away) {
  yield_ns = 10 * kAwayNs;  // A turn of somebody else.
  while (call() != IdleAdvice::kYield) {
  }
  now += kAwayNs;
  EXPECT_EQ(call(), IdleAdvice::kYield) << "less than an eighth of the rest";
}

TEST_F(PollPolicyTest, Loop_that_is_not_tight__never_leaves_its_spins) {
  call_ns = kTightLoopNs / kPollsPerMark + 1;
  call_for(10 * kPatienceNs);
  EXPECT_LE(yields, 1);
  EXPECT_EQ(sleeps, 0);
}

TEST_F(PollPolicyTest, Looks_behind_LINKs__are_left_out_but_not_without_end) {
  for (std::uint32_t i = 0; i < kMostLinks; ++i) ASSERT_TRUE(policy.skips_look(true)) << i;
  EXPECT_FALSE(policy.skips_look(true));
  policy.note_look();
  EXPECT_TRUE(policy.skips_look(true));
  EXPECT_FALSE(policy.skips_look(false));
}

TEST_F(PollPolicyTest, Barren_second_looks__are_left_out_until_something_is_started) {
  const auto find_then_look = [&] {
    EXPECT_FALSE(policy.skips_look(false)) << "a first look";
    policy.note_second_look(true);
    const bool skipped = policy.skips_look(false);
    if (!skipped) policy.note_second_look(false);
    return skipped;
  };
  for (std::uint32_t i = 0; i < kBarren; ++i) ASSERT_FALSE(find_then_look()) << i;
  EXPECT_TRUE(find_then_look());
  policy.note_second_look(true);
  policy.note_start();
  EXPECT_FALSE(policy.skips_look(false));
}

TEST_F(PollPolicyTest, Yields_that_take_long__are_learned_for_other_streaks) {
  EXPECT_EQ(policy.spins(), kSpin);
  policy.note_yield(kSharedYieldNs + 1);
  EXPECT_EQ(policy.spins(), kSpin / 2);
  EXPECT_TRUE(policy.shares_core());
  policy.note_yield(kSharedYieldNs);
  EXPECT_FALSE(policy.shares_core());
}

/// With PORTOFU_STALL_S.
TEST_F(PollPolicyTest, Caller__that_waits_at_a_descriptor_sleeps_there_unless_it_was_back_at_once) {
  EXPECT_TRUE(policy.is_sleeper(now));
  now += kShortestAwayNs - 1;
  EXPECT_FALSE(policy.is_sleeper(now)) << "it only looks";
  policy.note_work();
  EXPECT_FALSE(policy.is_sleeper(now)) << "and what it finds does not make it sleep";
  now += kShortestAwayNs;
  EXPECT_TRUE(policy.is_sleeper(now)) << "now it did";
  for (int i = 0; i < 10; ++i) {
    policy.note_work();
    EXPECT_TRUE(policy.is_sleeper(now)) << "something woke it at once";
  }
}

class PollPolicyStallTest : public PollPolicyTest {
 protected:
  static constexpr std::uint64_t kStallNs = 1000 * kMsNs;

  PollPolicyStallTest() { call_ns = 1'000'000; }

  /// The calls of a loop that lasts, until one has to look why. @return 0: none has
  std::uint64_t calls_until_look(std::uint64_t most) {
    for (std::uint64_t calls = 1; calls <= most; ++calls) {
      now += call_ns;
      const IdleAdvice advice = searching ? stalling.advise_search(*this) : stalling.advise_poll(*this);
      if (advice == IdleAdvice::kLookWhy) return calls;
    }
    return 0;
  }

  PollPolicy stalling{kSpin, kSleepAfterUs, kStallNs};
  static constexpr std::uint64_t kCallsToStall = kStallNs / kMsNs + 2 * kPollsPerMark;
};

TEST_F(PollPolicyStallTest, Loop__that_works_between_its_calls_looks_why_too) {
  const std::uint64_t calls = calls_until_look(2 * kCallsToStall);
  EXPECT_GE(calls, kStallNs / kMsNs);
  EXPECT_LE(calls, kCallsToStall);
}

TEST_F(PollPolicyStallTest, Loop__that_yields_and_one_of_searches_look_why_too) {
  call_ns = 1000;
  EXPECT_NE(calls_until_look(kStallNs / 1000 + 2 * kPollsPerMark), 0u);
  stalling.note_work();
  searching = true;
  EXPECT_NE(calls_until_look(kStallNs / 1000 + 2 * kPollsPerMark), 0u);
}

TEST_F(PollPolicyStallTest, Loop__that_finds_the_ends_of_its_own_searches_waits_on) {
  std::uint64_t rounds = 0;
  for (; rounds < kCallsToStall && calls_until_look(1) == 0; ++rounds) stalling.note_found();
  EXPECT_LT(rounds, kCallsToStall);
}

TEST_F(PollPolicyStallTest, Loop__to_which_something_comes_or_that_starts_something_never_looks_why) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(calls_until_look(kStallNs / kMsNs / 2), 0u);
    stalling.note_work();
    EXPECT_EQ(calls_until_look(kStallNs / kMsNs / 2), 0u);
    stalling.note_start();
    EXPECT_EQ(calls_until_look(kStallNs / kMsNs / 2), 0u);
    ++uses;
  }
}

TEST_F(PollPolicyStallTest, Without_the_setting__no_loop_looks_why) {
  for (int i = 0; i < 5000; ++i) ASSERT_NE(call(), IdleAdvice::kLookWhy);
}

}  // namespace
}  // namespace portofu
