// Regions of the application's memory: bounds, pieces, addresses, and faults.

#include "engine/memory/memory_segment.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "engine/memory/guarded_copy.h"
#include "tests/unit/support/core_fixture.h"
#include "tests/unit/support/faulty_memory.h"

namespace portofu {
namespace {

class MemorySegmentTest : public testing::Test {
 protected:
  void SetUp() override { install_fault_guard(); }

  /// Pieces of 10, 0, 20 and 30 bytes, in another order than they lie in memory.
  void describe_pieces() {
    const iovec pieces[] = {{memory.data() + 40, 10}, {nullptr, 0}, {memory.data(), 20}, {memory.data() + 60, 30}};
    ASSERT_TRUE(segment.describe(pieces, 4));
  }

  std::vector<std::byte> memory = std::vector<std::byte>(100);
  MemorySegment segment;
};

TEST_F(MemorySegmentTest, Empty__holds_nothing) {
  EXPECT_EQ(segment.length(), 0u);
  EXPECT_TRUE(segment.fits(0, 0));
  EXPECT_FALSE(segment.fits(0, 1));
  EXPECT_FALSE(segment.fits(1, 0));
}

TEST_F(MemorySegmentTest, Contiguous__fits_up_to_its_last_byte) {
  segment.describe(memory.data(), 100);
  EXPECT_TRUE(segment.fits(0, 100));
  EXPECT_TRUE(segment.fits(100, 0));
  EXPECT_TRUE(segment.fits(99, 1));
  EXPECT_FALSE(segment.fits(99, 2));
  EXPECT_FALSE(segment.fits(101, 0));
  EXPECT_FALSE(segment.fits(1, UINT64_MAX));
  EXPECT_FALSE(segment.fits(UINT64_MAX, 1));
  EXPECT_FALSE(segment.fits(UINT64_MAX, UINT64_MAX));
}

TEST_F(MemorySegmentTest, Whole_address_space__reaches_every_address) {
  segment.describe(static_cast<void*>(nullptr), UINT64_MAX);
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  EXPECT_TRUE(segment.fits(address, 100));
  EXPECT_EQ(segment.address(address), memory.data());
  const std::vector<std::byte> data = pattern_bytes(0, 8);
  EXPECT_TRUE(segment.write(address + 4, data.data(), 8));
  EXPECT_TRUE(holds_pattern(memory.data() + 4, 8));
  std::vector<std::byte> back(8);
  EXPECT_TRUE(segment.read(address + 4, back.data(), 8));
  EXPECT_EQ(back, data);
  EXPECT_FALSE(segment.read(8, back.data(), 8));  // Nothing is mapped there.
}

TEST_F(MemorySegmentTest, Address__is_the_sum_also_beyond_the_end) {
  segment.describe(memory.data(), 10);
  EXPECT_EQ(segment.address(3), memory.data() + 3);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(segment.address(1000)),
            reinterpret_cast<std::uintptr_t>(memory.data()) + 1000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(segment.address(UINT64_MAX)),
            reinterpret_cast<std::uintptr_t>(memory.data()) - 1);
}

TEST_F(MemorySegmentTest, Pieces__count_as_one_region) {
  describe_pieces();
  EXPECT_EQ(segment.length(), 60u);
  EXPECT_EQ(segment.address(0), memory.data() + 40);
  EXPECT_EQ(segment.address(9), memory.data() + 49);
  EXPECT_EQ(segment.address(10), memory.data());
  EXPECT_EQ(segment.address(30), memory.data() + 60);
  EXPECT_EQ(segment.address(60), memory.data() + 90);
  EXPECT_EQ(segment.address(1000), memory.data() + 90) << "the end of the last piece";
}

TEST_F(MemorySegmentTest, Pieces__are_written_and_read_across_their_borders) {
  describe_pieces();
  const std::vector<std::byte> data = pattern_bytes(0, 60);
  ASSERT_TRUE(segment.write(0, data.data(), 60));
  EXPECT_TRUE(holds_pattern(memory.data() + 40, 10, 0));
  EXPECT_TRUE(holds_pattern(memory.data(), 20, 10));
  EXPECT_TRUE(holds_pattern(memory.data() + 60, 30, 30));
  EXPECT_TRUE(is_untouched(memory.data() + 20, 20));
  EXPECT_TRUE(is_untouched(memory.data() + 50, 10));
  EXPECT_TRUE(is_untouched(memory.data() + 90, 10));
  for (std::uint64_t offset = 0; offset < 60; ++offset) {
    for (std::uint64_t bytes = 0; bytes <= 60 - offset; ++bytes) {
      std::vector<std::byte> back(bytes);
      ASSERT_TRUE(segment.read(offset, back.data(), bytes));
      ASSERT_TRUE(holds_pattern(back.data(), bytes, offset));
    }
  }
}

TEST_F(MemorySegmentTest, Run__ends_with_its_piece) {
  describe_pieces();
  EXPECT_EQ(segment.run_at(5, 60).start, memory.data() + 45);
  EXPECT_EQ(segment.run_at(5, 60).bytes, 5u);
  EXPECT_EQ(segment.run_at(5, 3).bytes, 3u);
  EXPECT_EQ(segment.run_at(10, 60).bytes, 20u);
}

TEST_F(MemorySegmentTest, Pieces__none_or_only_empty_ones_are_an_empty_region) {
  EXPECT_TRUE(segment.describe(static_cast<const iovec*>(nullptr), 0));
  EXPECT_EQ(segment.length(), 0u);
  const iovec empty[] = {{memory.data(), 0}, {nullptr, 0}};
  EXPECT_TRUE(segment.describe(empty, 2));
  EXPECT_EQ(segment.length(), 0u);
  EXPECT_TRUE(segment.write(0, nullptr, 0));
  EXPECT_EQ(segment.address(7), reinterpret_cast<std::byte*>(7));
}

TEST_F(MemorySegmentTest, Pieces__a_single_one_is_a_contiguous_region) {
  const iovec pieces[] = {{nullptr, 0}, {memory.data(), 10}};
  ASSERT_TRUE(segment.describe(pieces, 2));
  EXPECT_EQ(segment.length(), 10u);
  EXPECT_EQ(segment.address(20), memory.data() + 20);
}

TEST_F(MemorySegmentTest, Pieces__that_add_up_to_more_than_all_bytes_are_refused) {
  const iovec pieces[] = {{memory.data(), SIZE_MAX}, {memory.data(), 1}};
  EXPECT_FALSE(segment.describe(pieces, 2));
  EXPECT_EQ(segment.length(), 0u);
  EXPECT_TRUE(segment.describe(pieces, 1));
  EXPECT_EQ(segment.length(), UINT64_MAX);
}

TEST_F(MemorySegmentTest, Pieces__more_than_memory_can_hold_are_refused) {
  const iovec piece{memory.data(), 1};
  EXPECT_THROW(segment.describe(&piece, UINT64_MAX), std::length_error);
  EXPECT_EQ(segment.length(), 0u);
}

TEST_F(MemorySegmentTest, List_of_pieces__may_be_given_up_after_the_call) {
  std::vector<iovec> pieces{{memory.data(), 4}, {memory.data() + 8, 4}};
  ASSERT_TRUE(segment.describe(pieces.data(), 2));
  pieces = {};
  EXPECT_EQ(segment.address(5), memory.data() + 9);
}

TEST_F(MemorySegmentTest, Describing_again__forgets_the_region_before) {
  describe_pieces();
  segment.describe(memory.data(), 5);
  EXPECT_EQ(segment.length(), 5u);
  EXPECT_EQ(segment.address(4), memory.data() + 4);
  describe_pieces();
  segment.clear();
  EXPECT_EQ(segment.length(), 0u);
}

TEST_F(MemorySegmentTest, Fault__in_any_piece_is_told) {
  FaultyMemory faulty;
  const iovec pieces[] = {{memory.data(), 10}, {faulty.edge() - 5, 10}, {memory.data() + 20, 10}};
  ASSERT_TRUE(segment.describe(pieces, 3));
  std::vector<std::byte> data(30);
  EXPECT_TRUE(segment.read(0, data.data(), 15));
  EXPECT_FALSE(segment.read(0, data.data(), 16));
  EXPECT_FALSE(segment.read(0, data.data(), 30));
  EXPECT_TRUE(segment.read(20, data.data(), 10));
  EXPECT_TRUE(segment.write(0, data.data(), 15));
  EXPECT_FALSE(segment.write(14, data.data(), 2));
  EXPECT_TRUE(segment.write(20, data.data(), 10));
}

}  // namespace
}  // namespace portofu
