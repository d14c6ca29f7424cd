// Registered memory: STADDs, registrations that are counted, chosen STags.

#include "engine/memory/stadd_table.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <map>
#include <vector>

namespace portofu {
namespace {

class StaddTableTest : public testing::Test {
 protected:
  std::uint64_t add(std::uint64_t at, std::uint64_t bytes, std::uint32_t component = 0, bool read_only = false) {
    std::uint64_t stadd = 0;
    EXPECT_EQ(table.add({component, memory.data() + at, bytes, read_only}, &stadd), Status::kOk);
    return stadd;
  }

  /// @return whether the VCQ had given out the STADD
  bool remove(std::uint64_t stadd, std::uint32_t component = 0) { return table.remove(component, stadd, &gone); }

  std::array<std::byte, 4096> memory{};
  StaddTable table;
  std::unique_ptr<RegisteredRegion> gone;
};

TEST_F(StaddTableTest, Region__is_found_by_every_stadd_in_it) {
  const std::uint64_t stadd = add(100, 200);
  EXPECT_EQ(stag_of(stadd), kFirstDynamicStag);
  EXPECT_EQ(stadd_offset(stadd), 0u);
  RegisteredRegion* region = table.find(stadd);
  ASSERT_NE(region, nullptr);
  EXPECT_EQ(table.find(stadd + 199), region);
  EXPECT_EQ(region->segment.address(5), memory.data() + 105);
  EXPECT_FALSE(region->is_read_only());
  EXPECT_EQ(table.find(stadd + kMaxRegionBytes), nullptr);
}

/// Remembers what it is told.
struct ToldDirectory final : NodeDirectory {
  ClaimResult claim(std::uint64_t) override { return ClaimResult::kClaimed; }
  void release(std::uint64_t) override {}
  FindResult find(std::uint64_t, NameOwner*) override { return FindResult::kNobody; }
  bool publish(const PublishedRegion& region) override {
    regions[region.key] = region;
    return true;
  }
  void withdraw(std::uint64_t key) override { regions.erase(key); }
  std::map<std::uint64_t, PublishedRegion> regions;
};

TEST_F(StaddTableTest, Directory__knows_every_region_as_long_as_it_is_registered) {
  ToldDirectory directory;
  StaddTable told(&directory, 9);
  std::uint64_t stadd = 0, again = 0, chosen = 0;
  ASSERT_EQ(told.add({2, memory.data() + 8, 100, false}, &stadd), Status::kOk);
  ASSERT_EQ(told.add({2, memory.data() + 8, 100, false}, &again), Status::kOk);
  ASSERT_EQ(told.add_reserved({1, memory.data(), 256, true}, 5, &chosen), Status::kOk);
  ASSERT_EQ(directory.regions.size(), 2u);
  const PublishedRegion& one = directory.regions.at(region_key(9, stag_of(stadd)));
  EXPECT_EQ(one.start, reinterpret_cast<std::uintptr_t>(memory.data()) + 8);
  EXPECT_EQ(one.bytes, 100u);
  EXPECT_EQ(one.user, 2u);
  EXPECT_TRUE(one.writable);
  EXPECT_FALSE(directory.regions.at(region_key(9, stag_of(chosen))).writable);
  EXPECT_TRUE(told.remove(2, stadd, &gone));
  EXPECT_EQ(directory.regions.size(), 2u) << "it is registered still";
  EXPECT_TRUE(told.remove(2, again, &gone));
  EXPECT_EQ(directory.regions.size(), 1u);
  gone = told.take_any_of(1);
  EXPECT_TRUE(directory.regions.empty());
}

/// More regions than the table keeps near, some with the same place there.
TEST_F(StaddTableTest, Many_regions__are_found_in_any_order_and_not_when_they_are_gone) {
  std::vector<std::uint64_t> stadds;
  for (std::uint64_t i = 0; i < 40; ++i) stadds.push_back(add(64 * i, 64));
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t i = 0; i < 40; ++i) {
      const std::uint64_t one = i * 23 % 40;
      ASSERT_NE(table.find(stadds[one]), nullptr);
      EXPECT_EQ(table.find(stadds[one])->start, memory.data() + 64 * one);
    }
  }
  for (std::uint64_t i = 0; i < 40; i += 2) {
    ASSERT_NE(table.find(stadds[i]), nullptr) << "it is near";
    ASSERT_TRUE(remove(stadds[i]));
    EXPECT_EQ(table.find(stadds[i]), nullptr);
  }
  for (std::uint64_t i = 0; i < 40; ++i) EXPECT_EQ(table.find(stadds[i]) != nullptr, i % 2 == 1) << i;
}

/// 3.6: "register a memory region to a VCQ more than once. In this case, the same STADD value is returned every time."
TEST_F(StaddTableTest, Same_region__has_the_same_stadd_whatever_else_overlaps) {
  const std::uint64_t small = add(0, 8), whole = add(0, 1000), part = add(100, 50);
  const std::uint64_t around = add(50, 2000);
  EXPECT_EQ(add(0, 8), small);
  EXPECT_EQ(add(0, 1000), whole);
  EXPECT_EQ(add(100, 50), part);
  EXPECT_EQ(add(50, 2000), around);
  EXPECT_NE(stag_of(add(0, 1000, 1)), stag_of(whole)) << "Another VCQ.";
  EXPECT_NE(stag_of(add(0, 1000, 0, true)), stag_of(whole)) << "Other rights.";
}

TEST_F(StaddTableTest, Registrations__are_taken_back_one_by_one) {
  const std::uint64_t whole = add(0, 1000), part = add(500, 10);
  EXPECT_EQ(add(0, 1000), whole);
  EXPECT_TRUE(remove(whole));
  EXPECT_EQ(gone, nullptr);
  EXPECT_TRUE(remove(whole));
  ASSERT_NE(gone, nullptr);
  EXPECT_EQ(gone->start, memory.data());
  EXPECT_EQ(table.find(whole), nullptr) << "though a part of it is registered";
  EXPECT_FALSE(remove(whole));
  EXPECT_NE(table.find(part), nullptr);
  EXPECT_TRUE(remove(part));
  EXPECT_EQ(table.find(part), nullptr);
}

TEST_F(StaddTableTest, Stadd__belongs_to_the_vcq_that_got_it) {
  const std::uint64_t stadd = add(0, 100, 3);
  EXPECT_FALSE(remove(stadd, 2));
  EXPECT_FALSE(remove(stadd + 1, 3));
  EXPECT_TRUE(remove(stadd, 3));
}

TEST_F(StaddTableTest, Stadd_that_was_given_back__is_not_given_out_again_soon) {
  const std::uint64_t stadd = add(0, 100);
  EXPECT_TRUE(remove(stadd));
  EXPECT_NE(add(0, 100), stadd);
}

TEST_F(StaddTableTest, Stags__are_counted_on_from_what_others_have_given_out) {
  std::atomic<std::uint64_t> given{7};
  table.count_in(&given);
  EXPECT_EQ(stag_of(add(0, 100)), kFirstDynamicStag + 7);
  EXPECT_EQ(stag_of(add(1, 100)), kFirstDynamicStag + 8);
  EXPECT_EQ(given, 9u);
  table.count_in(nullptr);
  EXPECT_EQ(stag_of(add(2, 100)), kFirstDynamicStag + 9);
}

/// Whatever the others have written there.
TEST_F(StaddTableTest, Stags__begin_anew_behind_the_last_one_and_leave_out_those_that_are_used) {
  std::atomic<std::uint64_t> given{0};
  table.count_in(&given);
  const std::uint64_t first = add(0, 100);
  given = kDynamicStags - 1;
  EXPECT_EQ(stag_of(add(1, 100)), reserved_stag(8, 0) - (8u << 15) - 1) << "the last below the reserved ones";
  const std::uint64_t second = add(2, 100);
  EXPECT_EQ(stag_of(second), kFirstDynamicStag + 1);
  EXPECT_TRUE(remove(first));
  given = UINT64_MAX - UINT64_MAX % kDynamicStags;
  EXPECT_EQ(add(3, 100), first);
}

TEST_F(StaddTableTest, Chosen_stag__is_computed_and_used_once) {
  std::uint64_t stadd = 0;
  EXPECT_EQ(table.add_reserved({5, memory.data(), 256, true}, 17, &stadd), Status::kOk);
  EXPECT_EQ(stadd, make_stadd(reserved_stag(5, 17)));
  EXPECT_EQ(stadd, std::uint64_t{(8 + 5) << 8 | 17} << 40);
  EXPECT_TRUE(table.find(stadd)->is_read_only());
  EXPECT_EQ(table.add_reserved({5, memory.data() + 256, 256, false}, 17, &stadd), Status::kInUse);
  EXPECT_EQ(table.add_reserved({6, memory.data() + 256, 256, false}, 17, &stadd), Status::kOk);
  EXPECT_NE(stag_of(add(0, 256, 5, true)), reserved_stag(5, 17)) << "Only who asks for the STag gets it.";
  EXPECT_TRUE(remove(make_stadd(reserved_stag(5, 17)), 5));
  EXPECT_EQ(table.add_reserved({5, memory.data(), 256, false}, 17, &stadd), Status::kOk);
}

TEST_F(StaddTableTest, Everything_of_a_vcq__can_be_taken_out) {
  add(0, 100, 1);
  add(0, 100, 1);
  add(10, 20, 1);
  add(200, 100, 1);
  const std::uint64_t other = add(0, 100, 2);
  int count = 0;
  while (table.take_any_of(1) != nullptr) ++count;
  EXPECT_EQ(count, 3);
  EXPECT_NE(table.find(other), nullptr);
}

}  // namespace
}  // namespace portofu
