// Which sizes a ring may have.

#include "engine/queue/ring_geometry.h"

#include <gtest/gtest.h>

namespace portofu {
namespace {

TEST(RingGeometry, Defaults__work_and_are_small) {
  constexpr RingGeometry ring;
  EXPECT_TRUE(ring.valid());
  EXPECT_EQ(ring.bytes(), kRingControlBytes + 128 * 128 + 32 * 1024);
  EXPECT_LE(63 * ((ring.bytes() + 4095) / 4096 * 4096), 4u << 20) << "63 talking peers must stay under 4 MiB";
}

TEST(RingGeometry, Valid__refuses_what_the_sequence_word_cannot_tell) {
  EXPECT_TRUE((RingGeometry{4, 128, 64}.valid()));
  EXPECT_TRUE((RingGeometry{32768, 1u << 20, 1u << 19}.valid()));
  EXPECT_FALSE((RingGeometry{0, 32768, 8192}.valid()));
  EXPECT_FALSE((RingGeometry{2, 32768, 8192}.valid()));
  EXPECT_FALSE((RingGeometry{100, 32768, 8192}.valid()));
  EXPECT_FALSE((RingGeometry{65536, 32768, 8192}.valid()));
  EXPECT_FALSE((RingGeometry{128, 0, 8192}.valid()));
  EXPECT_FALSE((RingGeometry{128, 30000, 8192}.valid()));
  EXPECT_FALSE((RingGeometry{128, 2u << 20, 8192}.valid()));
}

TEST(RingGeometry, Valid__wants_room_for_two_longest_payloads) {
  EXPECT_TRUE((RingGeometry{128, 16384, 8192}.valid()));
  EXPECT_FALSE((RingGeometry{128, 8192, 8192}.valid()));
  EXPECT_FALSE((RingGeometry{128, 32768, 0}.valid()));
  EXPECT_FALSE((RingGeometry{128, 32768, 100}.valid()));
}

TEST(RingGeometry, Round_up_to_granule__keeps_whole_granules) {
  EXPECT_EQ(round_up_to_granule(0), 0u);
  EXPECT_EQ(round_up_to_granule(1), 64u);
  EXPECT_EQ(round_up_to_granule(64), 64u);
  EXPECT_EQ(round_up_to_granule(65), 128u);
}

}  // namespace
}  // namespace portofu
