// The index of a match list: classes that come and go, and the rest.

#include "engine/match/match_index.h"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

namespace portofu {
namespace {

constexpr ProcessId kIndexSource{3, 0};

struct MatchIndexTest : testing::Test {
  MatchEntry& add(std::uint64_t bits, std::uint64_t ignore_bits) {
    MatchEntry& entry = entries.emplace_back();
    entry.criteria = {bits, ignore_bits, kIndexSource, false, false};
    entry.order = entries.size();
    index.add(entry);
    return entry;
  }

  /// All candidates for a message, in the order in which they are offered.
  std::vector<MatchEntry*> candidates(std::uint64_t bits) {
    const MatchKey key{bits, kIndexSource};
    MatchCandidates found;
    index.collect(key, found);
    std::vector<MatchEntry*> offered;
    for (MatchEntry* entry = found.earliest(); entry != nullptr; entry = found.earliest()) {
      offered.push_back(entry);
      found.advance(key);
    }
    return offered;
  }

  std::deque<MatchEntry> entries;
  MatchIndex index{MatchLimits{}};
};

TEST_F(MatchIndexTest, Candidates__merge_the_classes_in_list_order) {
  std::vector<MatchEntry*> expected;
  for (int i = 0; i < 3; ++i) {
    for (const std::uint64_t ignore_bits : {0x0, 0xf0, 0xf00}) expected.push_back(&add(0x1, ignore_bits));
    add(0x2, 0xf0);
  }
  EXPECT_EQ(candidates(0x1), expected);
  EXPECT_EQ(candidates(0x3), std::vector<MatchEntry*>{});
}

TEST_F(MatchIndexTest, Candidates__of_one_class_that_outlasts_the_others) {
  MatchEntry& a = add(1, 0xf0);
  MatchEntry& b = add(1, 0);
  MatchEntry& c = add(1, 0);
  EXPECT_EQ(candidates(1), (std::vector{&a, &b, &c}));
}

TEST_F(MatchIndexTest, Rest__takes_the_masks_that_find_no_class_and_keeps_list_order) {
  std::vector<MatchEntry*> expected;
  for (int round = 0; round < 2; ++round) {
    for (std::uint32_t i = 0; i < kMaxMatchClasses + 8; ++i) expected.push_back(&add(1, std::uint64_t{i} << 8));
  }
  EXPECT_NE(expected[kMaxMatchClasses - 1]->class_index, kRestClass);
  EXPECT_EQ(expected[kMaxMatchClasses]->class_index, kRestClass);
  EXPECT_EQ(candidates(1), expected);
  for (MatchEntry& entry : entries) index.remove(entry);
  EXPECT_EQ(candidates(1), std::vector<MatchEntry*>{});
}

TEST_F(MatchIndexTest, Classes__an_empty_one_serves_the_next_mask) {
  for (std::uint64_t mask = 0; mask < 100; ++mask) {
    MatchEntry& entry = add(1, mask << 8);
    EXPECT_NE(entry.class_index, kRestClass);
    EXPECT_EQ(candidates(1), std::vector{&entry});
    index.remove(entry);
    EXPECT_EQ(candidates(1), std::vector<MatchEntry*>{});
  }
}

TEST_F(MatchIndexTest, Classes__a_mask_may_have_a_class_and_older_entries_in_the_rest) {
  for (std::uint32_t i = 0; i < kMaxMatchClasses; ++i) add(1, std::uint64_t{i} << 8);
  MatchEntry& old = add(2, 0xf000000);
  EXPECT_EQ(old.class_index, kRestClass);
  index.remove(entries[5]);
  MatchEntry& young = add(2, 0xf000000);
  EXPECT_EQ(young.class_index, 5);
  EXPECT_EQ(candidates(2), (std::vector{&old, &young}));
}

TEST_F(MatchIndexTest, Remove__from_the_middle_and_the_ends_of_a_bucket) {
  std::vector<MatchEntry*> same;
  for (int i = 0; i < 5; ++i) same.push_back(&add(1, 0));
  index.remove(*same[2]);
  EXPECT_EQ(candidates(1), (std::vector{same[0], same[1], same[3], same[4]}));
  index.remove(*same[4]);
  EXPECT_EQ(candidates(1), (std::vector{same[0], same[1], same[3]}));
  index.remove(*same[0]);
  EXPECT_EQ(candidates(1), (std::vector{same[1], same[3]}));
  MatchEntry& last = add(1, 0);
  EXPECT_EQ(candidates(1), (std::vector{same[1], same[3], &last}));
}

}  // namespace
}  // namespace portofu
