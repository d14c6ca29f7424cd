// The index of an unexpected list: when classes are born, how they end, and what makes one way for another.

#include "engine/match/unexpected_index.h"

#include <gtest/gtest.h>

#include <deque>

namespace portofu {
namespace {

constexpr ProcessId kUnexpectedSource{3, 0};
constexpr std::uint32_t kNoClass = UnexpectedIndex::kNoClass;

MatchCriteria criteria_of(std::uint64_t bits, std::uint64_t ignore_bits) {
  return {bits, ignore_bits, kUnexpectedSource, false, false};
}
MatchMask mask_of(std::uint64_t ignore_bits) { return MatchMask::of(criteria_of(0, ignore_bits)); }

struct UnexpectedIndexTest : testing::Test {
  void SetUp() override {
    for (std::uint64_t bits = 0; bits < kCount; ++bits) arrive(bits);
  }
  void arrive(std::uint64_t bits) {
    UnexpectedEntry& entry = entries.emplace_back();
    entry.key = {bits, kUnexpectedSource};
    entry.order = entries.size();
    fifo_append(head, entry, &UnexpectedEntry::arrival_links);
  }
  void remove(UnexpectedEntry& entry) {
    index.remove(entry, head);
    fifo_remove(head, entry, &UnexpectedEntry::arrival_links);
  }
  std::uint32_t make_class(std::uint64_t ignore_bits) {
    const std::uint32_t class_index = index.start_class(mask_of(ignore_bits), kCount);
    if (class_index != kNoClass) {
      EXPECT_TRUE(index.catch_up(class_index, head));
    }
    return class_index;
  }
  void make_all_classes() {
    for (std::uint64_t i = 0; i < kMaxUnexpectedClasses; ++i) ASSERT_NE(make_class(i << 8), kNoClass);
  }

  static constexpr std::size_t kCount = 20;
  std::deque<UnexpectedEntry> entries;
  UnexpectedEntry* head = nullptr;
  UnexpectedIndex index{MatchLimits{}};
};

TEST_F(UnexpectedIndexTest, Class__lives_once_it_has_caught_up) {
  EXPECT_EQ(index.find_class(mask_of(0)), kNoClass);
  const std::uint32_t class_index = make_class(0);
  EXPECT_EQ(index.find_class(mask_of(0)), class_index);
  EXPECT_EQ(index.find_class(mask_of(1)), kNoClass);
  EXPECT_EQ(index.find_first(class_index, criteria_of(5, 0)), &entries[5]);
}

TEST_F(UnexpectedIndexTest, Class__catches_up_with_what_has_arrived_since) {
  const std::uint32_t class_index = make_class(0);
  arrive(77);
  EXPECT_EQ(index.find_first(class_index, criteria_of(77, 0)), nullptr);
  EXPECT_TRUE(index.catch_up(class_index, head));
  EXPECT_EQ(index.find_first(class_index, criteria_of(77, 0)), &entries[kCount]);
}

TEST_F(UnexpectedIndexTest, Class__ends_when_the_headers_that_it_holds_have_gone) {
  make_class(0);
  arrive(77);
  for (std::size_t i = kCount; i-- > 0;) remove(entries[i]);
  EXPECT_EQ(index.find_class(mask_of(0)), kNoClass);
  EXPECT_NE(head, nullptr);
  EXPECT_NE(make_class(0), kNoClass);
  EXPECT_NE(index.find_class(mask_of(0)), kNoClass);
}

TEST_F(UnexpectedIndexTest, Replacement__waits_until_walks_have_paid_for_it) {
  make_all_classes();
  int walks = 0;
  while (make_class(0xf0000) == kNoClass) ++walks;
  EXPECT_GE(walks, 4);
  EXPECT_LE(walks, 16);
  EXPECT_EQ(make_class(0xf1000), kNoClass) << "the next one is to be paid for again";
}

TEST_F(UnexpectedIndexTest, Replacement__takes_the_least_recently_used) {
  make_all_classes();
  for (std::uint64_t i = 0; i < kMaxUnexpectedClasses; ++i) {
    if (i != 3) {
      EXPECT_NE(index.find_class(mask_of(i << 8)), kNoClass);
    }
  }
  while (make_class(0xf0000) == kNoClass) continue;
  EXPECT_NE(index.find_class(mask_of(0xf0000)), kNoClass);
  for (std::uint64_t i = 0; i < kMaxUnexpectedClasses; ++i) {
    EXPECT_EQ(index.find_class(mask_of(i << 8)) == kNoClass, i == 3) << i;
  }
}

TEST_F(UnexpectedIndexTest, No_memory__ends_the_class_and_no_other) {
  UnexpectedIndex small{MatchLimits{.slots_per_class = 60}};
  const std::uint32_t wide = small.start_class(mask_of(~0ull), kCount);
  ASSERT_TRUE(small.catch_up(wide, head));
  for (std::uint64_t bits = kCount; bits < 100; ++bits) arrive(bits);
  const std::uint32_t narrow = small.start_class(mask_of(0), 100);
  EXPECT_FALSE(small.catch_up(narrow, head)) << "more buckets than slots";
  EXPECT_EQ(small.find_class(mask_of(0)), kNoClass);
  EXPECT_EQ(small.find_class(mask_of(~0ull)), wide);
  EXPECT_TRUE(small.catch_up(wide, head));
  EXPECT_EQ(small.find_first(wide, criteria_of(0, ~0ull)), &entries[0]);
}

}  // namespace
}  // namespace portofu
