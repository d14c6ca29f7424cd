// What copies cost, smoothed, and which of two copies a process has to make.

#include "engine/wire/shm/copy_cost.h"

#include <gtest/gtest.h>

namespace portofu {
namespace {

constexpr std::uint64_t kUnit = CopyCost<4>::kUnitBytes;

TEST(CopyCost, First_look__is_what_is_known_and_each_later_one_counts_a_part) {
  CopyCost<4> cost;
  EXPECT_EQ(cost.ns(), 0u);
  EXPECT_EQ(cost.note(2000, kUnit / 2), 4000u);
  EXPECT_EQ(cost.ns(), 4000u);
  cost.note(2000, kUnit);
  EXPECT_EQ(cost.ns(), 3500u);
  cost.note(1'000'000, kUnit);
  EXPECT_EQ(cost.ns(), 4375u) << "one copy that was interrupted counts as twice as long at most";
  cost.forget();
  EXPECT_EQ(cost.ns(), 0u);
}

TEST(CopyCost, Of_the_first_looks__the_best_one_counts) {
  CopyCost<4> cost{2};
  cost.note(16'000, kUnit, 8);
  EXPECT_EQ(cost.ns(), 16'000u);
  cost.note(4000, kUnit);
  EXPECT_EQ(cost.ns(), 4000u);
  cost.note(8000, kUnit);
  EXPECT_EQ(cost.ns(), 5000u) << "later ones count a part each";
  cost.forget();
  cost.note(16'000, kUnit);
  cost.note(4000, kUnit);
  EXPECT_EQ(cost.ns(), 4000u) << "what is forgotten begins anew";
}

TEST(CopyCost, Several_copies_that_were_timed_together__count_as_so_many_looks) {
  CopyCost<4> together, one_by_one;
  for (CopyCost<4>* cost : {&together, &one_by_one}) cost->note(4000, kUnit);
  const auto note_three = [&](std::uint64_t ns) {
    together.note(ns, kUnit, 3);
    for (int i = 0; i < 3; ++i) one_by_one.note(ns, kUnit);
    EXPECT_EQ(together.ns(), one_by_one.ns());
  };
  note_three(4800);
  EXPECT_GT(together.ns(), 4400u);
  note_three(2000);
  EXPECT_LT(together.ns(), 3100u);
}

TEST(CopyCost, Several_copies_of_which_one_was_interrupted__count_as_one_look) {
  CopyCost<4> cost;
  cost.note(4000, kUnit);
  cost.note(6000, kUnit, 8);
  EXPECT_EQ(cost.ns(), 4500u);
  for (int i = 0; i < 16; ++i) cost.note(6000, kUnit, 8);
  EXPECT_GT(cost.ns(), 5900u) << "what lasts is no interruption";
}

TEST(LongTraffic, Process_that_only_sends_or_mostly__has_one_copy_to_make) {
  LongTraffic traffic;
  EXPECT_FALSE(traffic.goes_both_ways());
  traffic.note_sent(3000);
  EXPECT_FALSE(traffic.goes_both_ways());
  traffic.note_received(1500);
  EXPECT_FALSE(traffic.goes_both_ways());
  traffic.note_received(1);
  EXPECT_TRUE(traffic.goes_both_ways());
}

TEST(LongTraffic, What_was_long_ago__counts_ever_less) {
  constexpr std::uint64_t kPiece = LongTraffic::kWindowBytes / 16;
  LongTraffic traffic;
  for (int i = 0; i < 1000; ++i) traffic.note_received(kPiece);
  int until_known = 0;
  for (; until_known < 1000 && traffic.goes_both_ways(); ++until_known) traffic.note_sent(kPiece);
  EXPECT_GT(until_known, 8);
  EXPECT_LE(until_known, 2 * 16);
  int back = 0;
  for (; back < 1000 && !traffic.goes_both_ways(); ++back) traffic.note_received(kPiece);
  EXPECT_LE(back, 16);
}

}  // namespace
}  // namespace portofu
