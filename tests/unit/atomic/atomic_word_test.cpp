// Words of every size: loaded, stored, compared and swapped whole.

#include "engine/atomic/atomic_word.h"

#include <gtest/gtest.h>

#include <cstring>

namespace portofu {
namespace {

template <class Word>
void store_and_load(Word word) {
  alignas(16) std::byte memory[32] = {};
  store_word<Word>(memory, word);
  const Word loaded = load_word<Word>(memory);
  EXPECT_EQ(std::memcmp(&loaded, &word, sizeof word), 0) << sizeof word << " bytes";
  EXPECT_EQ(memory[sizeof word], std::byte{0}) << "the byte behind";
}

TEST(AtomicWord, Of_every_size__is_loaded_as_it_was_stored) {
  store_and_load<std::uint8_t>(0xa1);
  store_and_load<std::uint16_t>(0xa1b2);
  store_and_load<std::uint32_t>(0xa1b2c3d4);
  store_and_load<std::uint64_t>(0xa1b2c3d4e5f60718);
  if (cpu_has_word16()) store_and_load<Word16>({1, UINT64_MAX});
}

TEST(AtomicWord, Sixteen_bytes__are_swapped_only_if_all_of_them_are_expected) {
  if (!cpu_has_word16()) GTEST_SKIP() << "this CPU swaps no 16 bytes";
  alignas(16) std::byte memory[16] = {};
  Word16 expected{0, 1};
  EXPECT_FALSE(compare_exchange_word16(memory, expected, {5, 6}));
  EXPECT_EQ(expected.low, 0u);
  EXPECT_EQ(expected.high, 0u);
  EXPECT_TRUE(compare_exchange_word16(memory, expected, {5, 6}));
  const Word16 seen = load_word<Word16>(memory);
  EXPECT_EQ(seen.low, 5u);
  EXPECT_EQ(seen.high, 6u);
}

TEST(AtomicWord, Alignment__is_that_of_the_word) {
  alignas(16) std::byte memory[32] = {};
  EXPECT_TRUE(is_aligned_for<std::uint64_t>(memory + 8));
  EXPECT_FALSE(is_aligned_for<std::uint64_t>(memory + 4));
  EXPECT_TRUE(is_aligned_for<Word16>(memory));
  EXPECT_FALSE(is_aligned_for<Word16>(memory + 8));
}

}  // namespace
}  // namespace portofu
