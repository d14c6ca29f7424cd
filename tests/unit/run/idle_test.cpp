// Spin, then yield, then sleep: what an empty look is followed by, and what is learned from yields. Time is the test's.

#include "engine/run/idle.h"

#include <gtest/gtest.h>

namespace portofu {
namespace {

class IdleTest : public testing::Test {
 protected:
  static constexpr std::uint32_t kSpins = 16;
  static constexpr std::uint64_t kSleepAfterNs = 1000;

  IdleAdvice next() {
    return streak.next([this] {
      ++clock_reads;
      return now_ns;
    });
  }
  void spin_out() {
    for (std::uint32_t i = 0; i < streak.spins(); ++i) ASSERT_EQ(next(), IdleAdvice::kSpin) << i;
  }

  std::uint64_t now_ns = 5000;
  int clock_reads = 0;
  IdleStreak streak{kSpins, kSleepAfterNs};
};

TEST_F(IdleTest, Spinning__comes_first_and_costs_no_look_at_the_clock) {
  spin_out();
  EXPECT_EQ(clock_reads, 0);
  EXPECT_EQ(next(), IdleAdvice::kYield);
  EXPECT_EQ(clock_reads, 1);
}

TEST_F(IdleTest, Sleep__is_advised_when_the_streak_is_long_enough) {
  spin_out();
  EXPECT_EQ(next(), IdleAdvice::kYield);
  now_ns += kSleepAfterNs - 1;
  EXPECT_EQ(next(), IdleAdvice::kYield);
  now_ns += 1;
  EXPECT_EQ(next(), IdleAdvice::kSleep);
  EXPECT_EQ(next(), IdleAdvice::kSleep) << "until something is found";
}

TEST_F(IdleTest, Sleep__is_not_advised_before_there_are_as_many_looks_as_set) {
  IdleStreak patient(0, kSleepAfterNs, 100);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(patient.next([this] { return now_ns += kSleepAfterNs; }), IdleAdvice::kYield) << i;
  }
  EXPECT_EQ(patient.next([this] { return now_ns; }), IdleAdvice::kSleep);
  patient.reset();
  EXPECT_EQ(patient.next([this] { return now_ns; }), IdleAdvice::kYield) << "the number counts from now";
}

TEST_F(IdleTest, Reset__begins_with_spinning_again) {
  spin_out();
  next();
  now_ns += 2 * kSleepAfterNs;
  EXPECT_EQ(next(), IdleAdvice::kSleep);
  streak.reset();
  EXPECT_EQ(streak.yielding_ns(now_ns), 0u);
  spin_out();
  EXPECT_EQ(next(), IdleAdvice::kYield) << "the length counts from now";
}

TEST_F(IdleTest, Length__of_the_yielding_part) {
  EXPECT_EQ(streak.yielding_ns(now_ns), 0u);
  spin_out();
  EXPECT_EQ(streak.yielding_ns(now_ns), 0u);
  next();
  EXPECT_EQ(streak.yielding_ns(now_ns + 300), 300u);
}

TEST_F(IdleTest, Long_yield__halves_the_spins_down_to_a_few) {
  streak.learn_from_yield(kSharedYieldNs + 1);
  EXPECT_EQ(streak.spins(), kSpins / 2);
  for (int i = 0; i < 10; ++i) streak.learn_from_yield(1'000'000);
  EXPECT_EQ(streak.spins(), kFewestSpins);
}

TEST_F(IdleTest, Short_yields__double_the_spins_up_to_the_setting) {
  const auto yield_shortly = [this](std::uint32_t times) {
    for (std::uint32_t i = 0; i < times; ++i) EXPECT_FALSE(streak.learn_from_yield(kSharedYieldNs));
  };
  streak.set_spins(6);
  yield_shortly(kShortYields - 1);
  EXPECT_EQ(streak.spins(), 6u) << "one of them says little";
  yield_shortly(1);
  EXPECT_EQ(streak.spins(), 12u);
  yield_shortly(kShortYields);
  EXPECT_EQ(streak.spins(), kSpins);
  yield_shortly(2 * kShortYields);
  EXPECT_EQ(streak.spins(), kSpins);
}

TEST_F(IdleTest, Short_yields__count_only_in_a_row) {
  for (int i = 0; i < 10; ++i) streak.learn_from_yield(1'000'000);
  for (int i = 0; i < 100; ++i) {
    for (std::uint32_t k = 1; k < kShortYields; ++k) streak.learn_from_yield(0);
    EXPECT_TRUE(streak.learn_from_yield(1'000'000));
  }
  EXPECT_EQ(streak.spins(), kFewestSpins) << "the core was shared all the time";
}

TEST_F(IdleTest, Learned_spins__hold_for_the_next_streak) {
  streak.learn_from_yield(1'000'000);
  streak.reset();
  spin_out();
  EXPECT_EQ(next(), IdleAdvice::kYield);
}

TEST_F(IdleTest, No_spins__yields_at_once_and_never_sleeps_where_that_is_set_so) {
  IdleStreak restless(0, UINT64_MAX);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(restless.next([this] { return now_ns += 1'000'000'000; }), IdleAdvice::kYield);
  }
}

/// A caller that takes what there is until there is no more.
class SecondLookTest : public ::testing::Test {
 protected:
  /// A look that finds something, and one behind it. @return whether that was left out
  bool find_and_look(bool second_finds = false) {
    EXPECT_FALSE(look.skip()) << "the first look behind something else is never left out";
    look.learn(true);
    look.expect();
    if (look.skip()) return true;
    look.learn(second_finds);
    return false;
  }
  void be_barren() {
    for (std::uint32_t i = 0; i < kBarren; ++i) {
      EXPECT_FALSE(find_and_look());
      look.forget();
    }
  }

  SecondLook look;
};

TEST_F(SecondLookTest, Barren__is_left_out_after_a_while) {
  be_barren();
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(find_and_look());
    look.forget();
  }
}

TEST_F(SecondLookTest, Never_two_in_a_row) {
  be_barren();
  EXPECT_TRUE(find_and_look());
  EXPECT_FALSE(look.skip());
}

TEST_F(SecondLookTest, Fruitful__is_never_left_out) {
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(find_and_look(true));
}

TEST_F(SecondLookTest, What_it_would_have_found__brings_it_back) {
  be_barren();
  EXPECT_TRUE(find_and_look());
  // The look behind the one that was left out finds something at once, without anything in between.
  for (std::uint32_t i = 0; i < kBarren; ++i) {
    EXPECT_FALSE(find_and_look());
    look.forget();
  }
  EXPECT_TRUE(find_and_look());
}

TEST_F(SecondLookTest, What_always_has_something_else_in_between__is_looked_at_now_and_then) {
  be_barren();
  std::uint32_t left_out = 0;
  while (find_and_look(true)) {
    look.forget();
    ASSERT_LE(++left_out, kLeftOut);
  }
  EXPECT_FALSE(find_and_look()) << "one has found something";
}

TEST_F(SecondLookTest, Something_else_in_between__makes_it_a_first_look) {
  be_barren();
  EXPECT_FALSE(look.skip());
  look.learn(true);
  look.expect();
  look.forget();
  EXPECT_FALSE(look.skip());
}

}  // namespace
}  // namespace portofu
