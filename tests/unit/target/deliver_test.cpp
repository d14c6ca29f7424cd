// Step 7 of an atomic: data goes through the memory of the entry; no byte beyond what was granted.

#include "engine/target/deliver.h"

#include <gtest/gtest.h>

#include <array>

#include "engine/atomic/atomic_unit.h"
#include "engine/memory/guarded_copy.h"
#include "tests/unit/support/core_fixture.h"
#include "tests/unit/support/faulty_memory.h"

namespace portofu {
namespace {

class DeliverTest : public testing::Test {
 protected:
  void SetUp() override { install_fault_guard(); }

  /// An arrival of `length` bytes into `target`, of which `mlength` are granted from `offset` on.
  void arrive(void* target, std::uint64_t offset, std::uint64_t mlength, std::uint64_t length) {
    entry.segment.describe(target, kBytes);
    arrival.entry = &entry;
    arrival.header.length = length;
    arrival.header.atomic_operation = static_cast<std::uint8_t>(AtomicOperation::kSum);
    arrival.header.atomic_type = static_cast<std::uint8_t>(AtomicType::kInt32);
    arrival.offset = offset;
    arrival.mlength = mlength;
  }

  /// Adds the source items to int32 items; the arrival is of as many bytes.
  void add(const std::vector<std::int32_t>& source, std::byte* fetched = nullptr) {
    deliver_atomic(arrival, reinterpret_cast<const std::byte*>(source.data()), nullptr, fetched);
  }

  static constexpr std::uint64_t kBytes = 256;
  alignas(64) std::array<std::byte, kBytes> memory{};
  std::array<std::int32_t, kBytes / 4>& items = reinterpret_cast<std::array<std::int32_t, kBytes / 4>&>(memory);
  FaultyMemory faulty;
  ListEntry entry;
  Arrival arrival;
};

TEST_F(DeliverTest, Atomic__computes_in_place_and_fetches_what_was_there) {
  items = {10, 20, 30};
  arrive(memory.data(), 4, 8, 8);
  std::array<std::int32_t, 2> fetched{};
  add({1, 2}, reinterpret_cast<std::byte*>(fetched.data()));
  EXPECT_EQ(items[0], 10);
  EXPECT_EQ(items[1], 21);
  EXPECT_EQ(items[2], 32);
  EXPECT_EQ(fetched, (std::array<std::int32_t, 2>{20, 30}));
  EXPECT_EQ(arrival.received, 8u);
  EXPECT_EQ(arrival.fail, NiFail::kOk);
}

TEST_F(DeliverTest, Atomic__of_which_less_was_granted_stops_there) {
  arrive(memory.data(), 0, 4, 12);
  add({1, 2, 3});
  EXPECT_EQ(items[0], 1);
  EXPECT_EQ(items[1], 0);
  EXPECT_EQ(arrival.received, 12u);
}

TEST_F(DeliverTest, Atomic__with_an_operand_compares) {
  items = {5};
  arrive(memory.data(), 0, 4, 4);
  arrival.header.atomic_operation = static_cast<std::uint8_t>(AtomicOperation::kCswap);
  const std::int32_t source = 9;
  for (const std::int32_t operand : {4, 5}) {
    const auto bytes = [](const std::int32_t& value) { return reinterpret_cast<const std::byte*>(&value); };
    deliver_atomic(arrival, bytes(source), bytes(operand), nullptr);
    EXPECT_EQ(items[0], operand == 5 ? 9 : 5);
  }
}

TEST_F(DeliverTest, Atomic__that_faults_is_noted) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer executes atomics itself, under a lock of its own that a fault leaves held";
#endif
  arrive(faulty.edge(), 0, 4, 4);
  add({1});
  EXPECT_EQ(arrival.fail, NiFail::kSegv);
  faulty.forbid_writing();
  arrive(faulty.start(), 0, 4, 4);
  arrival.fail = NiFail::kOk;
  add({1});
  EXPECT_EQ(arrival.fail, NiFail::kSegv);
}

TEST_F(DeliverTest, Atomic__goes_over_pieces_that_hold_whole_items) {
  const iovec pieces[] = {{items.data() + 8, 8}, {items.data(), 8}};
  arrive(nullptr, 0, 16, 16);
  ASSERT_TRUE(entry.segment.describe(pieces, 2));
  std::array<std::int32_t, 4> fetched{9, 9, 9, 9};
  EXPECT_TRUE(holds_items(arrival));
  add({1, 2, 3, 4}, reinterpret_cast<std::byte*>(fetched.data()));
  EXPECT_EQ(items[8], 1);
  EXPECT_EQ(items[9], 2);
  EXPECT_EQ(items[0], 3);
  EXPECT_EQ(items[1], 4);
  EXPECT_EQ(fetched, (std::array<std::int32_t, 4>{}));
}

TEST_F(DeliverTest, Items__are_held_where_they_are_aligned) {
  for (std::uint64_t offset = 0; offset < 16; ++offset) {
    arrive(memory.data(), offset, 8, 8);
    EXPECT_EQ(holds_items(arrival), offset % 4 == 0) << offset;
    arrival.header.atomic_type = static_cast<std::uint8_t>(AtomicType::kFloatComplex);
    EXPECT_EQ(holds_items(arrival), offset % 4 == 0) << offset << ": one component is enough";
    arrival.header.atomic_type = static_cast<std::uint8_t>(AtomicType::kDouble);
    EXPECT_EQ(holds_items(arrival), offset % 8 == 0) << offset;
    arrival.header.atomic_type = static_cast<std::uint8_t>(AtomicType::kUint8);
    EXPECT_TRUE(holds_items(arrival)) << offset;
  }
}

TEST_F(DeliverTest, Items__of_which_there_are_none_are_held_anywhere) {
  arrive(memory.data(), 1, 0, 8);
  EXPECT_TRUE(holds_items(arrival));
}

TEST_F(DeliverTest, Items__are_not_held_if_one_lies_in_two_pieces) {
  const iovec pieces[] = {{items.data(), 8}, {items.data() + 4, 2}, {items.data() + 8, 8}};
  arrive(nullptr, 0, 16, 16);
  ASSERT_TRUE(entry.segment.describe(pieces, 3));
  EXPECT_FALSE(holds_items(arrival));
  arrival.mlength = 8;
  EXPECT_TRUE(holds_items(arrival)) << "what is not touched does not matter";
}

TEST_F(DeliverTest, Items__are_not_held_if_a_later_piece_is_not_aligned) {
  const iovec pieces[] = {{items.data(), 8}, {memory.data() + 34, 8}};
  arrive(nullptr, 0, 16, 16);
  ASSERT_TRUE(entry.segment.describe(pieces, 2));
  EXPECT_FALSE(holds_items(arrival));
}

}  // namespace
}  // namespace portofu
