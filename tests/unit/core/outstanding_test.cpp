// Ids of operations that wait for an answer: never 0, never those of an operation that is over.

#include "engine/core/outstanding.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "engine/core/peer.h"

namespace portofu {
namespace {

class OutstandingTest : public testing::Test {
 protected:
  std::uint32_t open() {
    std::uint32_t id = 0;
    OutstandingOperation* operation = table.open(&id);
    operation->peer = &peer;
    return id;
  }

  Peer peer;
  OutstandingTable table;
};

TEST_F(OutstandingTest, Empty__knows_no_id) {
  EXPECT_EQ(table.open_count(), 0u);
  EXPECT_EQ(table.find(0), nullptr);
  EXPECT_EQ(table.find(OutstandingTable::kMaxOperations), nullptr);
  EXPECT_EQ(table.find(UINT32_MAX), nullptr);
}

TEST_F(OutstandingTest, Open__gives_ids_that_differ_and_are_found) {
  std::set<std::uint32_t> ids;
  for (int i = 0; i < 1000; ++i) ids.insert(open());
  EXPECT_EQ(ids.size(), 1000u);
  EXPECT_EQ(ids.count(0), 0u);
  EXPECT_EQ(table.open_count(), 1000u);
  for (const std::uint32_t id : ids) EXPECT_NE(table.find(id), nullptr);
}

TEST_F(OutstandingTest, Open__gives_a_fresh_operation) {
  const std::uint32_t id = open();
  table.find(id)->answered = true;
  table.find(id)->mlength = 7;
  table.close(id);
  const std::uint32_t next = open();
  EXPECT_FALSE(table.find(next)->answered);
  EXPECT_EQ(table.find(next)->mlength, 0u);
}

TEST_F(OutstandingTest, Close__makes_the_id_unknown_for_ever) {
  const std::uint32_t old = open();
  table.close(old);
  EXPECT_EQ(table.open_count(), 0u);
  EXPECT_EQ(table.find(old), nullptr);
  const std::uint32_t next = open();
  EXPECT_NE(next, old);
  EXPECT_EQ(table.find(old), nullptr);
}

TEST_F(OutstandingTest, Ids__do_not_become_0_or_repeat_soon_while_one_slot_is_used_again_and_again) {
  std::uint32_t before = 0;
  std::set<std::uint32_t> recent;
  for (int i = 0; i < 4095; ++i) {
    const std::uint32_t id = open();
    EXPECT_GE(id, OutstandingTable::kMaxOperations);
    EXPECT_NE(id, before);
    recent.insert(id);
    before = id;
    table.close(id);
  }
  EXPECT_EQ(recent.size(), 4095u);
  EXPECT_GE(open(), OutstandingTable::kMaxOperations) << "the upper bits have wrapped";
}

TEST_F(OutstandingTest, Forged_id__with_a_wrong_upper_half_or_an_unused_slot_is_unknown) {
  const std::uint32_t id = open();
  EXPECT_EQ(table.find(id + OutstandingTable::kMaxOperations), nullptr);
  EXPECT_EQ(table.find(id - OutstandingTable::kMaxOperations), nullptr);
  EXPECT_EQ(table.find(id + 1), nullptr);
}

TEST_F(OutstandingTest, Operation__keeps_its_address_while_others_come_and_go) {
  const std::uint32_t id = open();
  const OutstandingOperation* operation = table.find(id);
  std::vector<std::uint32_t> others;
  for (int i = 0; i < 5000; ++i) others.push_back(open());
  for (const std::uint32_t other : others) table.close(other);
  EXPECT_EQ(table.find(id), operation);
}

// An answer to an earlier life of the process may still come in.
TEST(OutstandingLife, Ids__of_another_life_are_others) {
  OutstandingTable table;
  OutstandingTable later;
  table.tell_apart(0x1234567890abcdef);
  later.tell_apart(0x1234567890abcdf1);
  Peer peer;
  for (int i = 0; i < 100; ++i) {
    std::uint32_t id = 0;
    std::uint32_t later_id = 0;
    table.open(&id)->peer = &peer;
    later.open(&later_id)->peer = &peer;
    EXPECT_EQ(later.find(id), nullptr);
    EXPECT_NE(table.find(id), nullptr);
    EXPECT_NE(id, 0u);
  }
}

TEST_F(OutstandingTest, For_each__visits_exactly_the_open_ones) {
  const std::uint32_t first = open();
  const std::uint32_t second = open();
  const std::uint32_t third = open();
  table.close(second);
  std::set<std::uint32_t> visited;
  table.for_each([&](std::uint32_t id, OutstandingOperation&) { visited.insert(id); });
  EXPECT_EQ(visited, (std::set<std::uint32_t>{first, third}));
}

TEST_F(OutstandingTest, Table__is_full_at_its_limit_and_usable_again_after_a_close) {
  std::uint32_t last = 0;
  for (std::uint32_t i = 0; i < OutstandingTable::kMaxOperations; ++i) last = open();
  std::uint32_t id = 0;
  EXPECT_EQ(table.open(&id), nullptr);
  table.close(last);
  EXPECT_NE(open(), last);
  EXPECT_EQ(table.open_count(), OutstandingTable::kMaxOperations);
}

}  // namespace
}  // namespace portofu
