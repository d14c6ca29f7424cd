// Handles and the table behind them: what resolves, what is recognised as stale, and limits.

#include "engine/core/handle_table.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace portofu {
namespace {

struct Thing {
  int value = 0;
};

class HandleTableTest : public testing::Test {
 protected:
  Handle allocate(int value) {
    Handle handle = 0;
    Thing* thing = table.allocate(&handle);
    if (thing == nullptr) return 0;
    thing->value = value;
    return handle;
  }

  HandleTable<Thing> table{HandleKind::kListEntry, 2};
};

TEST(HandleTest, Parts__come_out_as_they_went_in) {
  const Handle handle = make_handle(HandleKind::kCountingEvent, 7, 63, kHandleMaxObjects - 1);
  EXPECT_EQ(handle_kind(handle), static_cast<std::uint32_t>(HandleKind::kCountingEvent));
  EXPECT_EQ(handle_interface(handle), 7u);
  EXPECT_EQ(handle_generation(handle), 63u);
  EXPECT_EQ(handle_index(handle), kHandleMaxObjects - 1);
}

TEST(HandleTest, Any__is_neither_0_nor_a_constant_of_the_api) {
  for (const HandleKind kind : {HandleKind::kInterface, HandleKind::kCountingEvent}) {
    EXPECT_GT(make_handle(kind, 0, 0, 0), 0u);
    EXPECT_LT(make_handle(kind, 3, 127, kHandleMaxObjects - 1), 0xe0000000u);
  }
}

TEST(HandleTest, Generation__is_cut_to_its_bits) {
  EXPECT_EQ(make_handle(HandleKind::kListEntry, 0, 128, 5), make_handle(HandleKind::kListEntry, 0, 0, 5));
}

TEST_F(HandleTableTest, Allocate__gives_handles_that_resolve) {
  std::map<Handle, int> expected;
  for (int i = 0; i < 3000; ++i) expected[allocate(i)] = i;  // More than two chunks.
  EXPECT_EQ(expected.size(), 3000u);
  EXPECT_EQ(table.live_count(), 3000u);
  for (const auto& [handle, value] : expected) {
    ASSERT_NE(table.find(handle), nullptr);
    EXPECT_EQ(table.find(handle)->value, value);
    EXPECT_EQ(table.find_stale(handle), nullptr);
  }
}

TEST_F(HandleTableTest, Find__refuses_what_is_not_of_this_table) {
  const Handle handle = allocate(1);
  const std::uint32_t generation = handle_generation(handle);
  const std::uint32_t index = handle_index(handle);
  EXPECT_EQ(table.find(0), nullptr);
  EXPECT_EQ(table.find(UINT32_MAX), nullptr);
  EXPECT_EQ(table.find(make_handle(HandleKind::kEventQueue, 2, generation, index)), nullptr);
  EXPECT_EQ(table.find(make_handle(HandleKind::kListEntry, 1, generation, index)), nullptr);
  EXPECT_EQ(table.find(make_handle(HandleKind::kListEntry, 2, generation + 1, index)), nullptr);
  EXPECT_EQ(table.find(make_handle(HandleKind::kListEntry, 2, generation, index + 1)), nullptr);
  EXPECT_EQ(table.find(make_handle(HandleKind::kListEntry, 2, generation, kHandleMaxObjects - 1)), nullptr);
}

TEST_F(HandleTableTest, Use__tells_apart_what_had_the_same_handle) {
  const Handle handle = allocate(1);
  const std::uint32_t use = table.use_of(handle);
  EXPECT_NE(use, 0u);
  table.free(handle);
  EXPECT_EQ(table.use_of(handle), 0u);
  constexpr int kMost = 1 << 16;  // Handles have 32 bits: one comes again.
  Handle again = 0;
  for (int left = kMost; again != handle && left > 0; --left) {
    if (again != 0) table.free(again);
    again = allocate(2);
  }
  ASSERT_EQ(again, handle);
  EXPECT_NE(table.use_of(again), use);
  EXPECT_EQ(table.use_of(make_handle(HandleKind::kListEntry, 2, 1, 9)), 0u) << "never used";
  EXPECT_EQ(table.use_of(0), 0u);
}

TEST_F(HandleTableTest, Slot_that_was_never_used__is_neither_live_nor_stale) {
  allocate(1);
  const Handle never = make_handle(HandleKind::kListEntry, 2, 0, 7);  // In the chunk of the first.
  EXPECT_EQ(table.find(never), nullptr);
  EXPECT_EQ(table.find_stale(never), nullptr);
}

TEST_F(HandleTableTest, Free__ends_the_handle_but_it_stays_recognised) {
  const Handle handle = allocate(42);
  table.free(handle);
  EXPECT_EQ(table.live_count(), 0u);
  EXPECT_EQ(table.find(handle), nullptr);
  ASSERT_NE(table.find_stale(handle), nullptr);
  EXPECT_EQ(table.find_stale(handle)->value, 42);
}

TEST_F(HandleTableTest, Stale_handle__is_recognised_through_many_uses_of_the_table) {
  const Handle handle = allocate(42);
  table.free(handle);
  for (int i = 0; i < 60; ++i) table.free(allocate(i));
  EXPECT_NE(table.find_stale(handle), nullptr);
  EXPECT_EQ(table.find(handle), nullptr);
}

TEST_F(HandleTableTest, Slots_that_are_reused_at_once__are_no_more_than_were_in_use_together) {
  table.reuse_at_once();
  const Handle first = allocate(1);
  const Handle second = allocate(2);
  table.free(first);
  table.free(second);
  for (int i = 0; i < 200; ++i) {
    const Handle again = allocate(3);
    EXPECT_EQ(handle_index(again), handle_index(i % 2 == 0 ? first : second)) << "in the order of their ends";
    const Handle beside = allocate(4);
    table.free(again);
    table.free(beside);
    EXPECT_EQ(table.find(again), nullptr);
    table.free(allocate(5));
  }
  EXPECT_EQ(table.live_count(), 0u);
}

TEST_F(HandleTableTest, Slot_used_again__has_another_handle) {
  const Handle handle = allocate(42);
  table.free(handle);
  Handle same_slot = 0;
  for (int i = 0; i < 200 && same_slot == 0; ++i) {
    const Handle next = allocate(i);
    if (handle_index(next) == handle_index(handle)) same_slot = next;
    table.free(next);
  }
  ASSERT_NE(same_slot, 0u);
  EXPECT_NE(same_slot, handle);
  EXPECT_EQ(table.find(handle), nullptr);
  EXPECT_EQ(table.find_stale(handle), nullptr);
}

TEST_F(HandleTableTest, Limit__is_kept_and_slots_are_used_again_behind_it) {
  table.set_limit(3);
  EXPECT_EQ(table.limit(), 3u);
  std::vector<Handle> handles;
  for (int i = 0; i < 3; ++i) handles.push_back(allocate(i));
  EXPECT_EQ(allocate(9), 0u);
  table.free(handles[1]);
  const Handle again = allocate(9);
  EXPECT_NE(again, 0u);
  EXPECT_EQ(handle_index(again), handle_index(handles[1]));
  EXPECT_EQ(allocate(9), 0u);
}

TEST_F(HandleTableTest, Freed_slots__are_used_again_in_the_order_in_which_they_were_freed) {
  constexpr int kCount = 3000;  // More than two chunks.
  table.set_limit(kCount);
  std::vector<Handle> handles;
  for (int i = 0; i < kCount; ++i) handles.push_back(allocate(i));
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kCount; i += 7) table.free(handles[i]);
    for (int i = 0; i < kCount; i += 7) {
      const Handle again = allocate(i);
      ASSERT_EQ(handle_index(again), handle_index(handles[i])) << "round " << round;
      handles[i] = again;
    }
    EXPECT_EQ(allocate(0), 0u);
  }
}

/// Whoever closes an object can do nothing about memory that has run out.
TEST_F(HandleTableTest, Free__cannot_fail) {
  static_assert(noexcept(table.free(Handle{0})));
  const Handle handle = allocate(1);
  table.free(handle);
  EXPECT_EQ(table.live_count(), 0u);
}

TEST_F(HandleTableTest, Limit__is_at_most_what_a_handle_can_name) {
  table.set_limit(UINT32_MAX);
  EXPECT_EQ(table.limit(), kHandleMaxObjects);
}

TEST_F(HandleTableTest, For_each__visits_live_objects_with_their_handles) {
  const Handle first = allocate(1);
  const Handle second = allocate(2);
  const Handle third = allocate(3);
  table.free(second);
  std::map<Handle, int> visited;
  table.for_each([&](Handle handle, const Thing& thing) { visited[handle] = thing.value; });
  EXPECT_EQ(visited, (std::map<Handle, int>{{first, 1}, {third, 3}}));
}

TEST_F(HandleTableTest, Object__keeps_its_address) {
  const Handle handle = allocate(1);
  const Thing* thing = table.find(handle);
  for (int i = 0; i < 5000; ++i) allocate(i);
  EXPECT_EQ(table.find(handle), thing);
}

}  // namespace
}  // namespace portofu
