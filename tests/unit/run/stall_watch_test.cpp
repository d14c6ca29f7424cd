#include "engine/run/stall_watch.h"

#include <gtest/gtest.h>

namespace portofu {
namespace {

constexpr std::uint64_t kStallNs = 5'000'000'000;
constexpr std::uint64_t kStartNs = 1'000'000'000;

/// A loop of looks that find nothing.
class StallWatchTest : public testing::Test {
 protected:
  bool look_after(std::uint64_t ns) {
    now += ns;
    return watch.is_look_due(now, news);
  }
  bool wait_for(std::uint64_t ns) {
    now += ns;
    return watch.is_look_due(now, news, ns);
  }
  /// Looks as seldom as one may that only waits.
  bool look_for(std::uint64_t ns) {
    look_after(ns / 2);
    return look_after(ns - ns / 2);
  }
  /// Up to the end of the first look at why.
  void stall() {
    look_after(0);
    ASSERT_TRUE(look_for(kStallNs));
    ASSERT_TRUE(watch.note_first_look(watch.since_ns(), now));
  }

  StallWatch watch{kStallNs};
  std::uint64_t now = kStartNs;
  std::uint64_t news = 7;
};

TEST_F(StallWatchTest, Setting__of_0_is_never) {
  Settings settings;
  EXPECT_FALSE(StallWatch(stall_ns_of(settings)).is_on());
  settings.stall_s = 5;
  EXPECT_EQ(stall_ns_of(settings), kStallNs);
  EXPECT_TRUE(watch.is_on());
}

TEST_F(StallWatchTest, Loop__looks_why_when_it_has_lasted_and_again_a_little_later) {
  EXPECT_FALSE(look_after(0));
  EXPECT_FALSE(look_for(kStallNs - 1));
  EXPECT_TRUE(look_after(1));
  EXPECT_FALSE(watch.is_second());
  EXPECT_EQ(watch.since_ns(), kStartNs);
  EXPECT_TRUE(watch.note_first_look(kStartNs, now));
  EXPECT_FALSE(look_after(kBetweenLooksWhyNs - 1));
  EXPECT_TRUE(look_after(1));
  EXPECT_TRUE(watch.is_second());
  EXPECT_EQ(watch.since_ns(), kStartNs);
}

TEST_F(StallWatchTest, Loop__tells_once) {
  stall();
  ASSERT_TRUE(look_after(kBetweenLooksWhyNs));
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(look_for(kStallNs));
}

TEST_F(StallWatchTest, Other_thread__does_not_look_while_one_takes_the_first_look) {
  look_after(0);
  ASSERT_TRUE(look_for(kStallNs));
  EXPECT_FALSE(look_for(kStallNs));
}

TEST_F(StallWatchTest, News__begin_another_wait) {
  look_after(0);
  ++news;
  EXPECT_FALSE(look_after(kStallNs / 2));
  EXPECT_FALSE(look_for(kStallNs - 1));
  EXPECT_TRUE(look_after(1));
}

TEST_F(StallWatchTest, News__between_the_looks_leave_nothing_to_tell) {
  stall();
  ++news;
  EXPECT_FALSE(look_after(kBetweenLooksWhyNs));
  EXPECT_TRUE(look_for(kStallNs));
  EXPECT_FALSE(watch.is_second()) << "another wait has a first look of its own";
}

TEST_F(StallWatchTest, First_look__that_is_over_after_its_wait_is_dropped) {
  look_after(0);
  ASSERT_TRUE(look_for(kStallNs));
  const std::uint64_t since_ns = watch.since_ns();
  ++news;
  look_after(1);
  EXPECT_FALSE(watch.note_first_look(since_ns, now));
  EXPECT_FALSE(watch.note_first_look(watch.since_ns(), now)) << "nobody took one for this wait";
}

TEST_F(StallWatchTest, Wait__that_was_told_of_is_not_told_again) {
  look_after(0);
  watch.note_told();
  EXPECT_FALSE(look_for(kStallNs));
}

TEST_F(StallWatchTest, Program__that_was_away_for_longer_did_not_only_wait) {
  look_after(0);
  EXPECT_FALSE(look_after(kStallNs / 2 + 1));
  EXPECT_FALSE(look_after(kStallNs / 2));
  EXPECT_TRUE(look_after(kStallNs / 2));
  EXPECT_EQ(watch.since_ns(), now - kStallNs);
}

TEST_F(StallWatchTest, Waits_with_a_time__are_no_time_away) {
  look_after(0);
  EXPECT_FALSE(wait_for(kStallNs - 1));
  EXPECT_TRUE(wait_for(kStallNs - 1));
  EXPECT_EQ(watch.since_ns(), kStartNs);
}

TEST_F(StallWatchTest, News__in_the_middle_of_a_wait_begin_another_one_behind_it) {
  look_after(0);
  ++news;
  EXPECT_FALSE(wait_for(kStallNs));
  EXPECT_EQ(watch.since_ns(), now);
}

}  // namespace
}  // namespace portofu
