// Registered memory as peers see it: found, withdrawn, full, and never half-written.

#include "engine/segment/region_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

namespace portofu {
namespace {

PublishedRegion region_of(std::uint32_t stag, std::uint64_t value) {
  return {region_key(3, stag), value, value + 1, static_cast<std::uint32_t>(value % 8), value % 2 == 0};
}

struct RegionTableTest : testing::Test {
  std::unique_ptr<RegionTableShared> table{new RegionTableShared{}};
  FoundRegion found;
};

TEST_F(RegionTableTest, Region__is_found_by_queue_and_stag_until_it_is_withdrawn) {
  EXPECT_FALSE(find_published_region(*table, region_key(3, 7), &found));
  ASSERT_TRUE(publish_region(*table, region_of(7, 100)));
  ASSERT_TRUE(publish_region(*table, region_of(8, 201)));
  ASSERT_TRUE(find_published_region(*table, region_key(3, 7), &found));
  EXPECT_EQ(found.start, 100u);
  EXPECT_EQ(found.bytes, 101u);
  EXPECT_EQ(found.user, 4u);
  EXPECT_TRUE(found.writable);
  ASSERT_TRUE(find_published_region(*table, region_key(3, 8), &found));
  EXPECT_FALSE(found.writable);
  EXPECT_FALSE(find_published_region(*table, region_key(4, 7), &found)) << "another control queue";
  withdraw_region(*table, region_key(3, 7));
  EXPECT_FALSE(find_published_region(*table, region_key(3, 7), &found));
  EXPECT_TRUE(find_published_region(*table, region_key(3, 8), &found));
  withdraw_region(*table, region_key(3, 7));  // Not there: nothing happens.
}

TEST_F(RegionTableTest, Key_that_is_there__is_not_taken_again) {
  ASSERT_TRUE(publish_region(*table, region_of(7, 100)));
  EXPECT_FALSE(publish_region(*table, region_of(7, 200)));
  withdraw_region(*table, region_key(3, 7));
  EXPECT_FALSE(find_published_region(*table, region_key(3, 7), &found)) << "there was one of them";
  EXPECT_TRUE(publish_region(*table, region_of(7, 200)));
}

TEST_F(RegionTableTest, Entry__is_found_with_its_bits_and_rights) {
  PublishedRegion entry{.key = entry_key(3, 255, 0x1234), .start = 4096, .bytes = 100, .user = UINT32_MAX};
  entry.readable = false;
  entry.match_bits = 0x1234;
  ASSERT_TRUE(is_entry_key(entry.key));
  ASSERT_FALSE(is_entry_key(region_key(3, 255)));
  ASSERT_TRUE(publish_region(*table, entry));
  ASSERT_TRUE(find_published_region(*table, entry.key, &found));
  EXPECT_EQ(found.match_bits, 0x1234u);
  EXPECT_EQ(found.user, UINT32_MAX);
  EXPECT_FALSE(found.readable);
  EXPECT_FALSE(found.writable);
  EXPECT_FALSE(find_published_region(*table, entry_key(3, 254, 0x1234), &found));
  EXPECT_FALSE(find_published_region(*table, entry_key(2, 255, 0x1234), &found));
  EXPECT_FALSE(find_published_region(*table, entry_key(3, 255, 0x1235), &found));
}

TEST_F(RegionTableTest, Full_table__takes_no_more_and_loses_nothing) {
  std::uint32_t taken = 0;
  for (std::uint32_t stag = 0; stag < 2 * kRegionSlots; ++stag) taken += publish_region(*table, region_of(stag, stag));
  EXPECT_LE(taken, kRegionSlots);
  EXPECT_GT(taken, kRegionSlots / 2);
  std::uint32_t listed = 0;
  for (std::uint32_t stag = 0; stag < 2 * kRegionSlots; ++stag) {
    if (!find_published_region(*table, region_key(3, stag), &found)) continue;
    EXPECT_EQ(found.start, stag);
    ++listed;
  }
  EXPECT_EQ(listed, taken);
}

TEST_F(RegionTableTest, Reader__never_sees_half_of_a_change) {
  std::atomic<bool> end{false};
  std::thread owner([&] {
    for (std::uint64_t value = 1; !end.load(); ++value) {
      publish_region(*table, region_of(7, value));
      withdraw_region(*table, region_key(3, 7));
    }
  });
  int seen = 0;
  for (int i = 0; i < 200000 || seen == 0; ++i) {
    if (!find_published_region(*table, region_key(3, 7), &found)) continue;
    ++seen;
    ASSERT_EQ(found.bytes, found.start + 1);
    ASSERT_EQ(found.user, found.start % 8);
    ASSERT_EQ(found.writable, found.start % 2 == 0);
  }
  end.store(true);
  owner.join();
}

TEST(RegionTable, Found_region__tells_when_it_is_gone) {
  const auto table = std::make_unique<RegionTableShared>();
  ASSERT_TRUE(publish_region(*table, region_of(7, 1)));
  FoundRegion found;
  ASSERT_TRUE(find_published_region(*table, region_key(3, 7), &found));
  EXPECT_EQ(found.sequence->load(), found.seen);
  withdraw_region(*table, region_key(3, 7));
  EXPECT_NE(found.sequence->load(), found.seen);
}

/// Guide, 2.2.12 and 3.7: where a range may lie, and what is wrong with those that do not.
TEST(RegionTable, Judgement__of_bounds_and_access) {
  constexpr std::uint64_t kBytes = 100;
  EXPECT_EQ(judge_region(kBytes, true, 0, 100, true), RegionVerdict::kFine);
  EXPECT_EQ(judge_region(kBytes, true, 99, 1, true), RegionVerdict::kFine);
  EXPECT_EQ(judge_region(kBytes, true, 100, 0, true), RegionVerdict::kFine) << "nothing, at the end";
  EXPECT_EQ(judge_region(kBytes, true, 99, 2, true), RegionVerdict::kTooLong);
  EXPECT_EQ(judge_region(kBytes, true, 0, UINT64_MAX, false), RegionVerdict::kTooLong);
  EXPECT_EQ(judge_region(kBytes, true, 100, 1, false), RegionVerdict::kBehind);
  EXPECT_EQ(judge_region(kBytes, true, UINT64_MAX, 2, false), RegionVerdict::kBehind);
  EXPECT_EQ(judge_region(kBytes, true, 101, 0, false), RegionVerdict::kBehind);
  EXPECT_EQ(judge_region(kBytes, false, 0, 100, false), RegionVerdict::kFine);
  EXPECT_EQ(judge_region(kBytes, false, 0, 1, true), RegionVerdict::kReadOnly);
}

}  // namespace
}  // namespace portofu
