// Sixteen bytes that are compared at once.

#include "engine/match/tag_group.h"

#include <gtest/gtest.h>

namespace portofu {
namespace {

TEST(TagGroup, New_group__is_free_without_its_overflow_byte) {
  const TagGroup group;
  EXPECT_EQ(group.slots_with(0), 0x7fffu);
  EXPECT_EQ(group.slots_with(1), 0u);
}

TEST(TagGroup, Slots_with__finds_every_tag) {
  TagGroup group;
  group.tags[0] = 0x81;
  group.tags[7] = 0x81;
  group.tags[14] = 0xff;
  EXPECT_EQ(group.slots_with(0x81), 0x0081u);
  EXPECT_EQ(group.slots_with(0xff), 0x4000u);
  EXPECT_EQ(group.slots_with(0), 0x7fffu & ~0x4081u);
}

TEST(TagGroup, Slots_with__does_not_take_the_overflow_count_for_a_tag) {
  TagGroup group;
  group.overflow = 0x42;
  EXPECT_EQ(group.slots_with(0x42), 0u);
}

TEST(TagGroup, Overflow__counts_up_and_down_and_sticks_at_its_end) {
  TagGroup group;
  group.count_passing();
  group.count_passing();
  group.count_passing_back();
  EXPECT_EQ(group.overflow, 1);
  for (int i = 0; i < 300; ++i) group.count_passing();
  EXPECT_EQ(group.overflow, 255);
  group.count_passing_back();
  EXPECT_EQ(group.overflow, 255);
}

}  // namespace
}  // namespace portofu
