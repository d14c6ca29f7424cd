// The unexpected list: order of arrival, visits that remove what they see, and searches with ever new masks.

#include "engine/match/unexpected_list.h"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "tests/unit/match/match_model.h"

namespace portofu {
namespace {

constexpr ProcessId kUnexpectedSender{3, 0};

MatchCriteria exact(std::uint64_t bits) { return {bits, 0, kUnexpectedSender, false, false}; }

struct UnexpectedListTest : testing::Test {
  UnexpectedEntry& append(std::uint64_t bits, ProcessId source = kUnexpectedSender) {
    UnexpectedEntry& entry = entries.emplace_back();
    entry.key = {bits, source};
    list.append(entry);
    return entry;
  }

  /// More headers than are walked, which no search of the tests wants.
  void append_strangers() {
    for (std::uint32_t i = 0; i < 40; ++i) append(0xfff000 + i);
  }

  /// Visits all matches by find_first and find_next.
  std::vector<UnexpectedEntry*> visit(const MatchCriteria& criteria, bool removes) {
    std::vector<UnexpectedEntry*> seen;
    UnexpectedEntry* following = nullptr;
    for (UnexpectedEntry* entry = list.find_first(criteria); entry != nullptr; entry = following) {
      following = list.find_next(criteria, *entry);
      seen.push_back(entry);
      if (removes) list.remove(*entry);
    }
    return seen;
  }

  std::deque<UnexpectedEntry> entries;  ///< Outlives `list`.
  UnexpectedList list;
};

TEST_F(UnexpectedListTest, Find__in_an_empty_list) {
  EXPECT_EQ(list.find_first(kAnyMessage), nullptr);
  EXPECT_TRUE(list.empty());
}

TEST_F(UnexpectedListTest, Find__the_earliest_that_matches) {
  UnexpectedEntry& first = append(1);
  UnexpectedEntry& second = append(2);
  append(2);
  EXPECT_EQ(list.find_first(kAnyMessage), &first);
  EXPECT_EQ(list.find_first(exact(2)), &second);
  EXPECT_EQ(list.find_first(exact(3)), nullptr);
}

TEST_F(UnexpectedListTest, Find__the_earliest_that_matches_in_a_long_list) {
  append_strangers();
  UnexpectedEntry& other_source = append(2, {4, 0});
  UnexpectedEntry& wanted = append(2);
  append(2);
  EXPECT_EQ(list.find_first(exact(2)), &wanted);
  EXPECT_EQ(list.find_first({2, 0, {}, true, true}), &other_source);
  EXPECT_EQ(list.find_first({2, 0xf0, kUnexpectedSender, false, false}), &wanted);
  EXPECT_EQ(list.find_first(exact(3)), nullptr);
}

TEST_F(UnexpectedListTest, Find__sees_headers_that_came_after_the_last_search) {
  append_strangers();
  EXPECT_EQ(list.find_first(exact(2)), nullptr);
  UnexpectedEntry& wanted = append(2);
  EXPECT_EQ(list.find_first(exact(2)), &wanted);
  list.remove(wanted);
  EXPECT_EQ(list.find_first(exact(2)), nullptr);
}

TEST_F(UnexpectedListTest, Remove__of_headers_that_a_class_holds_and_that_it_does_not) {
  append_strangers();
  UnexpectedEntry& held = append(2);
  EXPECT_EQ(list.find_first(exact(2)), &held);
  UnexpectedEntry& not_held = append(2);
  UnexpectedEntry& last = append(2);
  list.remove(not_held);
  list.remove(held);
  EXPECT_EQ(list.find_first(exact(2)), &last);
}

TEST_F(UnexpectedListTest, Visit__all_and_leave_them) {
  append_strangers();
  std::vector<UnexpectedEntry*> expected;
  for (int i = 0; i < 5; ++i) {
    expected.push_back(&append(2));
    append(3);
  }
  EXPECT_EQ(visit(exact(2), false), expected);
  EXPECT_EQ(visit(exact(2), false), expected);
  EXPECT_EQ(visit(kAnyMessage, false).size(), list.size());
}

TEST_F(UnexpectedListTest, Visit__all_and_remove_them) {
  append_strangers();
  std::vector<UnexpectedEntry*> expected;
  for (int i = 0; i < 5; ++i) expected.push_back(&append(2));
  EXPECT_EQ(visit(exact(2), true), expected);
  EXPECT_EQ(list.find_first(exact(2)), nullptr);
  EXPECT_EQ(visit(kAnyMessage, true).size(), 40u);
  EXPECT_TRUE(list.empty());
}

TEST_F(UnexpectedListTest, Visit__short_list_and_remove) {
  UnexpectedEntry& first = append(2);
  append(3);
  UnexpectedEntry& second = append(2);
  EXPECT_EQ(visit(exact(2), true), (std::vector{&first, &second}));
  EXPECT_EQ(list.size(), 1u);
}

TEST_F(UnexpectedListTest, Drain__100_000_headers_in_reverse_order_with_four_masks) {
  constexpr std::uint32_t kCount = 100'000;
  for (std::uint32_t i = 0; i < kCount; ++i) append(i, {i % 64, 0});
  for (std::uint32_t i = kCount; i-- > 0;) {
    const bool any_source = i % 2 == 0;
    const std::uint64_t ignore_bits = i % 3 == 0 ? 0xf000000000000000u : 0;
    UnexpectedEntry* found = list.find_first({i, ignore_bits, {i % 64, 0}, any_source, false});
    ASSERT_EQ(found, &entries[i]);
    list.remove(*found);
  }
  EXPECT_TRUE(list.empty());
}

TEST_F(UnexpectedListTest, Drain__100_000_identical_headers_behind_strangers) {
  append_strangers();
  for (std::uint32_t i = 0; i < 100'000; ++i) append(7);
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    UnexpectedEntry* found = list.find_first(exact(7));
    ASSERT_EQ(found, &entries[40 + i]);
    list.remove(*found);
  }
  EXPECT_EQ(list.size(), 40u);
}

TEST_F(UnexpectedListTest, Append__again_after_removal) {
  append_strangers();
  UnexpectedEntry& header = append(2);
  EXPECT_EQ(list.find_first(exact(2)), &header);
  list.remove(header);
  header.key.match_bits = 3;
  list.append(header);
  EXPECT_EQ(list.find_first(exact(2)), nullptr);
  EXPECT_EQ(list.find_first(exact(3)), &header);
}

TEST_F(UnexpectedListTest, Iteration__is_in_order_of_arrival) {
  append_strangers();
  std::vector<UnexpectedEntry*> expected;
  for (UnexpectedEntry& entry : entries) expected.push_back(&entry);
  EXPECT_EQ(match_model::walked(list), expected);
}

TEST_F(UnexpectedListTest, Clear__unlinks_all) {
  append_strangers();
  EXPECT_EQ(list.find_first(exact(2)), nullptr);
  list.clear();
  EXPECT_EQ(list.size(), 0u);
  for (UnexpectedEntry& entry : entries) EXPECT_FALSE(entry.is_linked());
  EXPECT_EQ(list.find_first(kAnyMessage), nullptr);
}

using Naive = match_model::NaiveList<UnexpectedEntry>;

/// Visits all matches in both lists, and removes some.
void compare_visits(UnexpectedList& list, Naive& naive, const MatchCriteria& criteria, std::uint32_t remove_percent,
                    match_model::Dice& dice, std::vector<UnexpectedEntry*>& spare) {
  const auto wanted = [&](UnexpectedEntry& entry) { return matches(criteria, entry.key); };
  UnexpectedEntry* following = nullptr;
  UnexpectedEntry* entry = list.find_first(criteria);
  ASSERT_EQ(entry, naive.find(wanted));
  for (; entry != nullptr; entry = following) {
    following = list.find_next(criteria, *entry);
    ASSERT_EQ(following, naive.find(wanted, naive.position_of(*entry) + 1));
    if (!dice.percent(remove_percent)) continue;
    list.remove(*entry);
    naive.remove(*entry);
    spare.push_back(entry);
  }
}

void compare_with_naive_queue(const match_model::Universe& universe, std::uint64_t seed) {
  match_model::Dice dice(seed, universe);
  std::deque<UnexpectedEntry> entries(300);
  std::vector<UnexpectedEntry*> spare;
  for (UnexpectedEntry& entry : entries) spare.push_back(&entry);
  Naive naive;
  UnexpectedList list(universe.limits);
  const auto remove = [&](UnexpectedEntry& entry) {
    list.remove(entry);
    naive.remove(entry);
    spare.push_back(&entry);
  };
  for (int step = 0; step < 20000; ++step) {
    const bool grows = step / 1500 % 2 == 0;
    const MatchCriteria criteria = dice.criteria();
    if (!spare.empty() && dice.percent(grows ? 60 : 25)) {
      UnexpectedEntry& entry = *spare.back();
      spare.pop_back();
      entry.key = dice.key();
      list.append(entry);
      naive.append(entry);
    } else if (!list.empty() && dice.percent(10)) {
      remove(*naive.entries()[dice.below(naive.entries().size())]);
    } else if (dice.percent(2)) {
      compare_visits(list, naive, criteria, grows ? 10 : 60, dice, spare);
    } else {
      UnexpectedEntry* found = list.find_first(criteria);
      ASSERT_EQ(found, naive.find([&](UnexpectedEntry& entry) { return matches(criteria, entry.key); }))
          << universe.name << ", step " << step;
      if (found != nullptr && dice.percent(grows ? 50 : 90)) remove(*found);
    }
    ASSERT_EQ(list.size(), naive.entries().size());
    if (step % 500 == 0) {
      ASSERT_EQ(match_model::walked(list), naive.entries());
    }
  }
}

TEST(UnexpectedListRandom, Random__finds_what_a_naive_list_finds) {
  const std::uint64_t seed = match_model::test_seed();
  for (const auto& universe : match_model::universes()) compare_with_naive_queue(universe, seed);
}

}  // namespace
}  // namespace portofu
