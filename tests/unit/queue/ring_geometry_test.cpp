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

TEST(RingGeometry, Smallest__works_and_carries_the_same_packets) {
  for (const RingGeometry& usual : {RingGeometry{}, RingGeometry{4, 16384, 8192}, RingGeometry{4096, 1u << 20, 8192},
                                    RingGeometry{16, 8192, 4032}}) {
    const RingGeometry small = usual.smallest();
    EXPECT_TRUE(small.valid());
    EXPECT_EQ(small.max_payload_bytes, usual.max_payload_bytes);
    EXPECT_LE(small.bytes(), usual.bytes());
  }
  EXPECT_LE(RingGeometry{}.smallest().bytes(), 20480u);
}

}  // namespace
}  // namespace portofu
