// When what is done by time is due.

#include "engine/run/timers.h"

#include <gtest/gtest.h>

namespace portofu {
namespace {

TEST(Timers, Check__is_due_at_once_and_then_once_a_period) {
  Timers timers(2);
  EXPECT_EQ(timers.check_ns(), 2'000'000u);
  EXPECT_TRUE(timers.are_due(5));
  EXPECT_FALSE(timers.are_due(5 + 1'999'999));
  EXPECT_TRUE(timers.are_due(5 + 2'000'000));
  EXPECT_FALSE(timers.are_due(5 + 2'000'001));
}

TEST(Timers, Names__have_a_pause_of_their_own) {
  Timers timers(1);
  EXPECT_TRUE(timers.are_names_due(0));
  EXPECT_TRUE(timers.are_due(kNamesPauseNs - 1));
  EXPECT_FALSE(timers.are_names_due(kNamesPauseNs - 1));
  EXPECT_TRUE(timers.are_names_due(kNamesPauseNs));
}

TEST(Timers, Time__is_wanted_in_one_cycle_of_many) {
  Timers timers(1);
  std::uint32_t wanted = 0;
  for (std::uint32_t cycle = 0; cycle < 3 * kCyclesPerClock; ++cycle) wanted += timers.wants_time() ? 1 : 0;
  EXPECT_EQ(wanted, 3u);
}

}  // namespace
}  // namespace portofu
