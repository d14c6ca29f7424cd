#include "engine/check/fingerprint.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <vector>

namespace portofu {
namespace {

MemorySegment segment_of(std::vector<std::byte>& bytes) {
  MemorySegment segment;
  segment.describe(bytes.data(), bytes.size());
  return segment;
}

TEST(Fingerprint, Short_memory__is_known_to_the_bit) {
  std::vector<std::byte> bytes(100);
  const Fingerprint print(segment_of(bytes), 10, 50);
  EXPECT_FALSE(print.find_change());
  bytes[9] = bytes[60] = std::byte{1};
  EXPECT_FALSE(print.find_change()) << "outside";
  bytes[33] = std::byte{0x48};
  const auto change = print.find_change();
  ASSERT_TRUE(change);
  EXPECT_EQ(change->first, 23u);
  EXPECT_EQ(change->bytes, 1u);
  EXPECT_EQ(change->bit, 3);
}

TEST(Fingerprint, Long_memory__is_known_to_the_piece) {
  constexpr std::size_t kBytes = 999'999;
  std::vector<std::byte> bytes(kBytes);
  const Fingerprint print(segment_of(bytes), 0, kBytes);
  for (const std::size_t at : {std::size_t{0}, std::size_t{4096}, kBytes / 2, kBytes - 1}) {
    EXPECT_FALSE(print.find_change());
    bytes[at] ^= std::byte{0x80};
    const auto change = print.find_change();
    ASSERT_TRUE(change) << at;
    EXPECT_LE(change->first, at);
    EXPECT_GT(change->first + change->bytes, at);
    EXPECT_EQ(change->bit, -1);
    bytes[at] ^= std::byte{0x80};
  }
}

TEST(Fingerprint, Cost__is_bounded_at_the_beginning_of_each_piece) {
  constexpr std::size_t kBytes = 2 * Fingerprint::kPieces * Fingerprint::kPieceBytes;
  std::vector<std::byte> bytes(kBytes);
  const Fingerprint print(segment_of(bytes), 0, kBytes);
  bytes[Fingerprint::kPieceBytes] = std::byte{1};
  EXPECT_FALSE(print.find_change()) << "not looked at";
  bytes[2 * Fingerprint::kPieceBytes] = std::byte{1};
  EXPECT_TRUE(print.find_change());
}

TEST(Fingerprint, Scattered_memory__has_no_one_place) {
  std::vector<std::byte> one(10);
  std::vector<std::byte> two(10);
  const iovec pieces[]{{one.data(), one.size()}, {two.data(), two.size()}};
  MemorySegment segment;
  ASSERT_TRUE(segment.describe(pieces, 2));
  const Fingerprint print(segment, 5, 10);
  EXPECT_EQ(print.begin(), nullptr);
  two[4] = std::byte{1};
  ASSERT_TRUE(print.find_change());
  EXPECT_EQ(print.find_change()->first, 9u);
  EXPECT_EQ(Fingerprint(segment, 12, 4).begin(), two.data() + 2);
}

TEST(Fingerprint, Overlap__is_of_at_least_one_byte) {
  std::vector<std::byte> bytes(100);
  const Fingerprint print(segment_of(bytes), 40, 20);
  EXPECT_FALSE(print.overlaps(bytes.data(), 40));
  EXPECT_TRUE(print.overlaps(bytes.data(), 41));
  EXPECT_TRUE(print.overlaps(bytes.data() + 59, 1));
  EXPECT_FALSE(print.overlaps(bytes.data() + 60, 1));
}

TEST(Fingerprint, Memory_that_is_not_there__never_differs) {
  install_fault_guard();
  void* const page = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MemorySegment segment;
  segment.describe(page, 8192);
  const Fingerprint whole(segment, 0, 100);
  const Fingerprint pieces(segment, 0, 8192);
  munmap(page, 8192);
  EXPECT_FALSE(whole.find_change());
  EXPECT_FALSE(pieces.find_change());
  EXPECT_FALSE(Fingerprint(segment, 0, 100).find_change());
  EXPECT_FALSE(Fingerprint(segment, 8000, 1000).find_change()) << "beyond the end";
}

}  // namespace
}  // namespace portofu
