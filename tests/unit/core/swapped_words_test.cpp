#include "engine/core/swapped_words.h"

#include <gtest/gtest.h>

namespace portofu {
namespace {

constexpr ProcessId kFirst{1, 2};
constexpr ProcessId kSecond{1, 3};
constexpr SwappedWord kWord{8, 0x10, 4, 1};

class SwappedWordsTest : public testing::Test {
 protected:
  void swap(const SwappedWord& word, ProcessId initiator, bool took) {
    words.swaps(word, initiator, took, [this] { return now_ns; });
  }
  WordUse use_of(ProcessId initiator, const SwappedWord& word = kWord) const {
    for (const WordUse& use : words.places()) {
      if (use.word == word && use.initiator == initiator) return use;
    }
    return {};
  }

  SwappedWords words;
  std::uint64_t now_ns = 5;
};

TEST_F(SwappedWordsTest, Swap_in_vain__counts_until_the_word_is_changed) {
  swap(kWord, kFirst, true);
  swap(kWord, kSecond, false);
  now_ns = 9;
  swap(kWord, kSecond, false);
  EXPECT_EQ(use_of(kFirst).changed, 1u);
  EXPECT_EQ(use_of(kSecond).vain, 2u);
  EXPECT_EQ(use_of(kSecond).since_ns, 5u) << "the first of them";
  swap(kWord, kSecond, true);
  EXPECT_EQ(use_of(kSecond).vain, 0u);
  EXPECT_EQ(use_of(kSecond).changed, 2u) << "later than that of the first";
}

TEST_F(SwappedWordsTest, Other_operation__is_known_of_who_has_swapped_before) {
  words.changes(kWord, kFirst);
  EXPECT_EQ(use_of(kFirst).initiator, ProcessId{}) << "no lock, for all that is known";
  swap(kWord, kFirst, true);
  swap(kWord, kSecond, true);
  words.changes(kWord, kFirst);
  EXPECT_EQ(use_of(kFirst).changed, 3u);
}

TEST_F(SwappedWordsTest, Words__that_were_used_long_ago_are_forgotten) {
  for (std::uint64_t i = 0; i <= SwappedWords::kPlaces; ++i) swap({8 * i, 0, 4, 1}, kFirst, true);
  EXPECT_EQ(use_of(kFirst, {0, 0, 4, 1}).changed, 0u);
  EXPECT_EQ(use_of(kFirst, {8 * SwappedWords::kPlaces, 0, 4, 1}).changed, SwappedWords::kPlaces + 1);
}

}  // namespace
}  // namespace portofu
