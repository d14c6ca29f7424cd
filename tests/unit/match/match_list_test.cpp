// The match list: list order above all, passing over entries, removal, and a list that gets no memory for its index.

#include "engine/match/match_list.h"

#include <gtest/gtest.h>

#include <deque>
#include <new>
#include <vector>

#include "tests/unit/match/match_model.h"

/// While true, allocations that may fail do. The index allocates by no other way.
static bool memory_is_out = false;

void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return memory_is_out ? nullptr : ::operator new(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return memory_is_out ? nullptr : ::operator new[](bytes);
}

namespace portofu {
namespace {

constexpr ProcessId kSender{3, 0};
constexpr auto kAccept = [](MatchEntry&) { return true; };

MatchKey message(std::uint64_t bits, ProcessId source = kSender) { return {bits, source}; }

struct MatchListTest : testing::Test {
  MatchEntry& append(const MatchCriteria& criteria) {
    MatchEntry& entry = entries.emplace_back();
    entry.criteria = criteria;
    list.append(entry);
    return entry;
  }
  MatchEntry& append_exact(std::uint64_t bits) { return append({bits, 0, kSender, false, true}); }
  MatchEntry& append_any() { return append(kAnyMessage); }

  /// More entries than are walked, which match no message of the tests.
  void append_strangers(std::uint32_t count = 40) {
    for (std::uint32_t i = 0; i < count; ++i) append_exact(0xfff000 + i);
  }

  std::deque<MatchEntry> entries;  ///< Outlives `list`.
  MatchList list;
};

TEST_F(MatchListTest, Find__in_an_empty_list) {
  EXPECT_EQ(list.find(message(1), kAccept), nullptr);
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.size(), 0u);
}

TEST_F(MatchListTest, Find__the_earliest_of_equals_in_a_short_list) {
  append_exact(1);
  MatchEntry& wanted = append_exact(2);
  append_exact(2);
  EXPECT_EQ(list.find(message(2), kAccept), &wanted);
  EXPECT_EQ(list.find(message(3), kAccept), nullptr);
}

TEST_F(MatchListTest, Find__the_earliest_of_equals_in_a_long_list) {
  append_strangers();
  MatchEntry& wanted = append_exact(2);
  append_exact(2);
  append_strangers();
  EXPECT_EQ(list.find(message(2), kAccept), &wanted);
  EXPECT_EQ(list.find(message(3), kAccept), nullptr);
}

TEST_F(MatchListTest, Find__a_wildcard_before_an_exact_entry_wins_and_behind_it_loses) {
  append_strangers();
  MatchEntry& before = append({0, 0xff, kSender, false, true});
  MatchEntry& exact = append_exact(2);
  append_any();
  EXPECT_EQ(list.find(message(2), kAccept), &before);
  list.remove(before);
  EXPECT_EQ(list.find(message(2), kAccept), &exact);
}

TEST_F(MatchListTest, Find__source_counts_unless_wild) {
  append_strangers();
  append({2, 0, {4, 0}, false, true});
  MatchEntry& any_source = append({2, 0, {}, true, true});
  append({2, 0, kSender, false, true});
  EXPECT_EQ(list.find(message(2), kAccept), &any_source);
}

TEST_F(MatchListTest, Find__sees_entries_that_came_after_the_index_was_built) {
  append_strangers();
  EXPECT_EQ(list.find(message(2), kAccept), nullptr);
  MatchEntry& wanted = append_exact(2);
  append_any();
  EXPECT_EQ(list.find(message(2), kAccept), &wanted);
}

TEST_F(MatchListTest, Find__passes_over_what_is_not_accepted_in_list_order) {
  append_strangers();
  std::vector<MatchEntry*> expected;
  for (int i = 0; i < 5; ++i) {
    expected.push_back(&append_exact(2));
    expected.push_back(&append({2, 0xf, kSender, false, true}));
    expected.push_back(&append_any());
  }
  std::vector<MatchEntry*> seen;
  const auto refuse = [&](MatchEntry& entry) {
    seen.push_back(&entry);
    return false;
  };
  EXPECT_EQ(list.find(message(2), refuse), nullptr);
  EXPECT_EQ(seen, expected);
  MatchEntry* seventh = expected[7];
  EXPECT_EQ(list.find(message(2), [&](MatchEntry& entry) { return &entry == seventh; }), seventh);
}

TEST_F(MatchListTest, Find__leaves_the_entry_in_the_list) {
  MatchEntry& wanted = append_exact(2);
  EXPECT_EQ(list.find(message(2), kAccept), &wanted);
  EXPECT_EQ(list.find(message(2), kAccept), &wanted);
  EXPECT_TRUE(wanted.is_linked());
}

TEST_F(MatchListTest, Remove__the_youngest_indexed_entry) {
  append_strangers();
  MatchEntry& youngest = append_exact(2);
  EXPECT_EQ(list.find(message(2), kAccept), &youngest);
  list.remove(youngest);
  EXPECT_EQ(list.find(message(2), kAccept), nullptr);
  MatchEntry& next = append_exact(2);
  EXPECT_EQ(list.find(message(2), kAccept), &next);
}

TEST_F(MatchListTest, Remove__all_and_append_again) {
  for (int round = 0; round < 3; ++round) {
    append_strangers();
    EXPECT_EQ(list.find(message(2), kAccept), nullptr);
    while (!list.empty()) list.remove(*list.first());
    EXPECT_EQ(list.find(message(0xfff000), kAccept), nullptr);
  }
  EXPECT_EQ(list.size(), 0u);
}

TEST_F(MatchListTest, Remove__an_entry_can_be_appended_again_at_the_end) {
  append_strangers();
  MatchEntry& first = append_exact(2);
  MatchEntry& second = append_exact(2);
  EXPECT_EQ(list.find(message(2), kAccept), &first);
  list.remove(first);
  list.append(first);
  EXPECT_EQ(list.find(message(2), kAccept), &second);
  EXPECT_GT(first.order, second.order);
}

TEST_F(MatchListTest, Iteration__is_in_list_order) {
  append_strangers(5);
  std::vector<MatchEntry*> expected;
  for (MatchEntry& entry : entries) expected.push_back(&entry);
  EXPECT_EQ(match_model::walked(list), expected);
  EXPECT_EQ(list.size(), 5u);
}

TEST_F(MatchListTest, Clear__unlinks_all) {
  append_strangers();
  EXPECT_EQ(list.find(message(2), kAccept), nullptr);
  list.clear();
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.size(), 0u);
  for (MatchEntry& entry : entries) EXPECT_FALSE(entry.is_linked());
}

TEST_F(MatchListTest, Destructor__unlinks_all) {
  MatchEntry entry;
  {
    MatchList other;
    other.append(entry);
    EXPECT_TRUE(entry.is_linked());
  }
  EXPECT_FALSE(entry.is_linked());
}

TEST_F(MatchListTest, No_memory__for_an_index_the_list_is_walked) {
  append_strangers();
  MatchEntry& wanted = append_exact(2);
  MatchEntry& later = append_any();
  memory_is_out = true;
  EXPECT_EQ(list.find(message(2), kAccept), &wanted);
  EXPECT_EQ(list.find(message(3), kAccept), &later);
  list.remove(wanted);
  EXPECT_EQ(list.find(message(2), kAccept), &later);
  memory_is_out = false;
  EXPECT_EQ(list.find(message(2), kAccept), &later);
}

TEST_F(MatchListTest, No_memory__for_a_class_its_entries_are_walked) {
  append_strangers();
  EXPECT_EQ(list.find(message(2), kAccept), nullptr);
  memory_is_out = true;
  append({0, 0xff00, {}, true, false});  // The first one of its class.
  MatchEntry& wanted = append({2, 0xff00, {}, true, true});
  EXPECT_EQ(list.find(message(0x1202, {1, 1}), kAccept), &wanted);
  memory_is_out = false;
  list.remove(wanted);
  EXPECT_EQ(list.find(message(0x1202, {1, 1}), kAccept), nullptr);
}

// An entry of a list with a length: the message must fit, as with NO_TRUNCATE.
struct SizedEntry : MatchEntry {
  std::uint32_t length = 0;
};

void compare_with_naive_list(const match_model::Universe& universe, std::uint64_t seed) {
  match_model::Dice dice(seed, universe);
  std::deque<SizedEntry> entries(300);
  std::vector<SizedEntry*> spare;
  for (SizedEntry& entry : entries) spare.push_back(&entry);
  match_model::NaiveList<MatchEntry> naive;
  MatchList list(universe.limits);
  for (int step = 0; step < 20000; ++step) {
    const bool grows = step / 1500 % 2 == 0;
    if (!spare.empty() && dice.percent(grows ? 60 : 25)) {
      SizedEntry& entry = *spare.back();
      spare.pop_back();
      entry.criteria = dice.criteria();
      entry.length = dice.below(4);
      list.append(entry);
      naive.append(entry);
    } else if (!list.empty() && dice.percent(20)) {
      MatchEntry& entry = *naive.entries()[dice.below(naive.entries().size())];
      list.remove(entry);
      naive.remove(entry);
      spare.push_back(static_cast<SizedEntry*>(&entry));
    } else {
      const MatchKey key = dice.key();
      const std::uint32_t length = dice.below(4);
      const auto fits = [&](MatchEntry& entry) { return length <= static_cast<SizedEntry&>(entry).length; };
      MatchEntry* found = list.find(key, fits);
      ASSERT_EQ(found, naive.find([&](MatchEntry& entry) { return matches(entry.criteria, key) && fits(entry); }))
          << universe.name << ", step " << step;
      if (found != nullptr && dice.percent(grows ? 50 : 90)) {
        list.remove(*found);
        naive.remove(*found);
        spare.push_back(static_cast<SizedEntry*>(found));
      }
    }
    ASSERT_EQ(list.size(), naive.entries().size());
    if (step % 500 == 0) {
      ASSERT_EQ(match_model::walked(list), naive.entries());
    }
  }
}

TEST(MatchListRandom, Random__finds_what_a_naive_list_finds) {
  const std::uint64_t seed = match_model::test_seed();
  for (const auto& universe : match_model::universes()) compare_with_naive_list(universe, seed);
}

}  // namespace
}  // namespace portofu
