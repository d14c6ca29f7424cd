#include "lib/tools/ptl_sim/evidence.h"

#include <gtest/gtest.h>

namespace portofu::tools {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

TEST(Lasting, Holds_for_the_time_between_looks) {
  Lasting nap(10 * kMs);
  EXPECT_EQ(nap.look(true, 1000 * kMs), 0u) << "nobody has looked before";
  EXPECT_EQ(nap.look(true, 1005 * kMs), 5 * kMs);
  EXPECT_EQ(nap.look(true, 1012 * kMs), 12 * kMs);
}

TEST(Lasting, Begins_anew_once_it_did_not_hold) {
  Lasting nap(10 * kMs);
  nap.look(true, 1000 * kMs);
  nap.look(true, 1005 * kMs);
  EXPECT_EQ(nap.look(false, 1006 * kMs), 0u);
  EXPECT_EQ(nap.look(true, 1007 * kMs), 0u) << "it did not hold at the look before";
  EXPECT_EQ(nap.look(true, 1008 * kMs), 1 * kMs);
}

/// Whoever looks may have been stopped for a minute.
TEST(Lasting, A_late_look_counts_for_little) {
  Lasting nap(10 * kMs);
  nap.look(true, 1000 * kMs);
  EXPECT_EQ(nap.look(true, 61'000 * kMs), 10 * kMs);
  EXPECT_EQ(nap.look(true, 61'001 * kMs), 11 * kMs);
}

}  // namespace
}  // namespace portofu::tools
