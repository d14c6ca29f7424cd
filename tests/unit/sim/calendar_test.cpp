// Tests of lib/sim/calendar.cpp: uses of one thing that do not overlap.

#include "lib/sim/calendar.h"

#include <gtest/gtest.h>

namespace portofu::sim {
namespace {

TEST(Calendar, Empty__is_free_at_once) { EXPECT_EQ(Calendar().find(7, 100), 7u); }

TEST(Calendar, Uses__follow_each_other) {
  Calendar calendar;
  calendar.reserve(10, 5);
  EXPECT_EQ(calendar.find(0, 10), 0u) << "ends when the use begins";
  EXPECT_EQ(calendar.find(0, 11), 15u);
  EXPECT_EQ(calendar.find(12, 1), 15u);
  EXPECT_EQ(calendar.find(15, 1), 15u);
}

TEST(Calendar, A_gap__is_taken_by_what_fits) {
  Calendar calendar;
  calendar.reserve(0, 10);
  calendar.reserve(20, 10);
  EXPECT_EQ(calendar.find(3, 10), 10u);
  EXPECT_EQ(calendar.find(3, 11), 30u);
  calendar.reserve(10, 10);
  EXPECT_EQ(calendar.size(), 1u) << "uses without a gap between them are one";
  EXPECT_EQ(calendar.find(3, 1), 30u);
}

TEST(Calendar, A_use_before_others__is_put_in_its_place) {
  Calendar calendar;
  calendar.reserve(100, 10);
  calendar.reserve(50, 10);
  calendar.reserve(0, 10);
  EXPECT_EQ(calendar.size(), 3u);
  EXPECT_EQ(calendar.find(0, 40), 10u);
  EXPECT_EQ(calendar.find(0, 41), 110u);
  calendar.reserve(60, 40);
  EXPECT_EQ(calendar.size(), 2u);
}

TEST(Calendar, Past__is_forgotten) {
  Calendar calendar;
  for (std::uint64_t i = 0; i < 1000; ++i) calendar.reserve(10 * i, 5);
  calendar.forget(9000);
  EXPECT_EQ(calendar.size(), 100u);
  EXPECT_EQ(calendar.find(9000, 5), 9005u);
  calendar.forget(20000);
  EXPECT_EQ(calendar.size(), 0u);
}

}  // namespace
}  // namespace portofu::sim
