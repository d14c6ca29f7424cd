// The hash table of a class: growth, removal, and groups that overflow.

#include "engine/match/bucket_table.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <unordered_map>
#include <vector>

#include "tests/unit/match/match_model.h"

namespace portofu {
namespace {

constexpr std::uint64_t kNoLimit = 1 << 30;

/// An entry whose key is its hash: several keys may share a hash in its home group and tag, but not in all bits.
struct Item {
  std::uint64_t hash;
};

struct Table {
  Item** find(std::uint64_t hash) {
    return buckets.find(hash, [&](const Item& item) { return item.hash == hash; });
  }
  bool insert(Item& item, std::uint64_t most_slots = kNoLimit) {
    if (!buckets.make_room(most_slots, [](const Item& one) { return one.hash; })) return false;
    buckets.insert(item.hash) = &item;
    return true;
  }
  void erase(Item& item) { buckets.erase(item.hash, find(item.hash)); }

  BucketTable<Item> buckets;
};

TEST(BucketTable, Empty__finds_nothing_and_has_no_memory) {
  Table table;
  EXPECT_EQ(table.find(5), nullptr);
  EXPECT_EQ(table.buckets.slot_count(), 0u);
}

TEST(BucketTable, Insert__then_find_then_erase) {
  Table table;
  Item item{5};
  ASSERT_TRUE(table.insert(item));
  ASSERT_NE(table.find(5), nullptr);
  EXPECT_EQ(*table.find(5), &item);
  EXPECT_EQ(table.find(5 + (1 << 20)), nullptr) << "same group and tag, another key";
  EXPECT_EQ(table.buckets.bucket_count(), 1u);
  table.erase(item);
  EXPECT_EQ(table.find(5), nullptr);
  EXPECT_EQ(table.buckets.bucket_count(), 0u);
}

TEST(BucketTable, Growth__keeps_all_buckets) {
  Table table;
  std::vector<Item> items;
  std::mt19937_64 random(1);
  for (int i = 0; i < 10000; ++i) items.push_back({random()});
  for (Item& item : items) ASSERT_TRUE(table.insert(item));
  for (Item& item : items) ASSERT_EQ(*table.find(item.hash), &item);
  EXPECT_LE(table.buckets.slot_count(), 16384u);
}

TEST(BucketTable, Overflow__is_found_behind_the_home_group_and_leaves_no_trace) {
  Table table;
  std::vector<Item> items;
  for (std::uint64_t i = 0; i < 35; ++i) items.push_back({(i << 30) + 3});  // All at home in the last of 4 groups.
  for (Item& item : items) ASSERT_TRUE(table.insert(item));
  ASSERT_EQ(table.buckets.slot_count(), 60u);
  for (Item& item : items) ASSERT_EQ(*table.find(item.hash), &item);
  EXPECT_EQ(table.find((99ull << 30) + 3), nullptr);
  for (Item& item : items) {
    table.erase(item);
    EXPECT_EQ(table.find(item.hash), nullptr);
  }
  EXPECT_EQ(table.buckets.bucket_count(), 0u);
}

TEST(BucketTable, Overflow__that_has_gone_costs_later_searches_nothing) {
  Table table;
  std::vector<Item> items;
  for (std::uint64_t i = 0; i < 16; ++i) items.push_back({(i << 30) + 3});
  for (Item& item : items) ASSERT_TRUE(table.insert(item));
  const auto compared = [&] {
    int count = 0;
    table.buckets.find((99ull << 30) + 3, [&](const Item&) { return ++count < 0; });
    return count;
  };
  EXPECT_EQ(compared(), 16) << "15 at home and one behind";
  for (std::size_t i = 0; i < 15; ++i) table.erase(items[i]);
  EXPECT_EQ(compared(), 1) << "the home group still leads to it";
  table.erase(items[15]);
  Item neighbour{4};  // At home in group 0, which is behind group 3.
  ASSERT_TRUE(table.insert(neighbour));
  EXPECT_EQ(compared(), 0);
}

TEST(BucketTable, Limit__is_kept_and_nothing_changes_at_it) {
  Table table;
  std::vector<Item> items;
  for (std::uint64_t i = 0; i < 41; ++i) items.push_back({i * 0x9e3779b97f4a7c15u});
  for (std::uint64_t i = 0; i < 40; ++i) ASSERT_TRUE(table.insert(items[i], 60));
  EXPECT_FALSE(table.insert(items[40], 60));
  EXPECT_EQ(table.buckets.bucket_count(), 40u);
  for (std::uint64_t i = 0; i < 40; ++i) EXPECT_EQ(*table.find(items[i].hash), &items[i]);
  EXPECT_TRUE(table.insert(items[40], 120));
}

TEST(BucketTable, Clear__gives_the_memory_back) {
  Table table;
  Item item{5};
  ASSERT_TRUE(table.insert(item));
  table.buckets.clear();
  EXPECT_EQ(table.find(5), nullptr);
  EXPECT_EQ(table.buckets.slot_count(), 0u);
}

/// Hashes with few different home groups and tags, so that all groups overflow into each other.
TEST(BucketTable, Random__does_what_a_map_does) {
  std::mt19937_64 random(match_model::test_seed());
  Table table;
  std::unordered_map<std::uint64_t, std::unique_ptr<Item>> model;
  for (int step = 0; step < 100000; ++step) {
    const std::uint64_t hash = (random() % 3) << 57 | (random() % 16) << 30 | (random() % 8 == 0 ? random() % 64 : 1);
    const auto known = model.find(hash);
    Item** head = table.find(hash);
    ASSERT_EQ(head != nullptr, known != model.end());
    if (head != nullptr) {
      ASSERT_EQ(*head, known->second.get());
    }
    const bool shall_grow = step / 5000 % 2 == 0;
    if (head == nullptr && shall_grow) {
      auto& item = model[hash] = std::make_unique<Item>(Item{hash});
      ASSERT_TRUE(table.insert(*item));
    } else if (head != nullptr && !shall_grow) {
      table.erase(*known->second);
      model.erase(known);
    }
    ASSERT_EQ(table.buckets.bucket_count(), model.size());
  }
}

}  // namespace
}  // namespace portofu
