// The arithmetic of the layout: nothing overlaps, everything is aligned, the head is small.

#include "engine/segment/layout.h"

#include <gtest/gtest.h>

namespace portofu {
namespace {

TEST(SegmentLayout, Parts__follow_each_other_without_overlap) {
  const SegmentLayout layout{1024, RingGeometry{}};
  ASSERT_TRUE(layout.valid());
  EXPECT_GE(layout.control_offset(), sizeof(SegmentDescriptorShared));
  EXPECT_GE(layout.slots_offset(), layout.control_offset() + sizeof(SegmentControlShared));
  EXPECT_GE(layout.rings_offset(), layout.slots_offset() + 1024 * sizeof(ChannelSlotShared));
  EXPECT_GE(layout.ring_stride_bytes(), layout.ring.bytes());
  EXPECT_EQ(layout.ring_offset(1) - layout.ring_offset(0), layout.ring_stride_bytes());
  EXPECT_EQ(layout.segment_bytes(), layout.ring_offset(1024));
  for (const std::uint64_t offset : {layout.rings_offset(), layout.ring_stride_bytes(), layout.segment_bytes()}) {
    EXPECT_EQ(offset % kPageBytes, 0u);
  }
}

TEST(SegmentLayout, Rings__begin_at_different_places_inside_their_pages) {
  const SegmentLayout layout{1024, RingGeometry{}};
  EXPECT_EQ(layout.ring_start(0), 0u);
  EXPECT_NE(layout.ring_start(0), layout.ring_start(1));
  for (const RingSize size : {RingSize::kUsual, RingSize::kSmallest}) {
    EXPECT_LE(layout.ring_pages_bytes(size), layout.ring_stride_bytes());
    for (std::uint32_t i = 0; i < 1024; ++i) {
      EXPECT_EQ(layout.ring_start(i, size) % 128, 0u);
      EXPECT_LE(layout.ring_start(i, size) + layout.ring_of(size).bytes(), layout.ring_pages_bytes(size));
    }
  }
}

TEST(SegmentLayout, Process_with_63_peers__stays_under_4_mib) {
  const SegmentLayout layout{1024, RingGeometry{}};
  EXPECT_LT(layout.rings_offset() + 63 * layout.ring_stride_bytes(), 4u << 20);
}

// What lib/README.md says of the size of /dev/shm.
TEST(SegmentLayout, Memory__is_what_people_are_told) {
  const SegmentLayout layout{1024, RingGeometry{}};
  EXPECT_LE(layout.rings_offset(), 140u << 10);
  EXPECT_LE(layout.ring_pages_bytes(RingSize::kUsual), 52u << 10);
  EXPECT_LE(layout.ring_pages_bytes(RingSize::kSmallest), 20u << 10);
}

TEST(SegmentLayout, Valid__refuses_sizes_without_sense) {
  EXPECT_FALSE((SegmentLayout{0, RingGeometry{}}.valid()));
  EXPECT_FALSE((SegmentLayout{kMaxChannelCount + 1, RingGeometry{}}.valid()));
  EXPECT_FALSE((SegmentLayout{16, RingGeometry{3, 32768, 8192}}.valid()));
}

TEST(SegmentLayout, Largest_sizes__do_not_overflow) {
  const SegmentLayout layout{kMaxChannelCount, RingGeometry{32768, 1u << 20, 1u << 19}, kMostAreaBytes};
  ASSERT_TRUE(layout.valid());
  EXPECT_GT(layout.segment_bytes(), std::uint64_t{kMaxChannelCount} * (3u << 20));
}

TEST(SegmentLayout, Send_area__lies_behind_the_rings_and_is_a_power_of_two) {
  const SegmentLayout layout{16, RingGeometry{}, kLeastAreaBytes};
  EXPECT_TRUE(layout.valid());
  EXPECT_EQ(layout.area_offset(), layout.ring_offset(16));
  EXPECT_EQ(layout.segment_bytes(), layout.area_offset() + kLeastAreaBytes);
  EXPECT_FALSE((SegmentLayout{16, RingGeometry{}, kLeastAreaBytes / 2}.valid()));
  EXPECT_FALSE((SegmentLayout{16, RingGeometry{}, 3 * kLeastAreaBytes}.valid()));
  EXPECT_FALSE((SegmentLayout{16, RingGeometry{}, 2 * kMostAreaBytes}.valid()));
}

}  // namespace
}  // namespace portofu
