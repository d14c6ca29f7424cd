#include "engine/core/swapped_words.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

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

// As a list that is searched from end to end; 256 words and more, so that some look alike at first.
TEST_F(SwappedWordsTest, Words__are_told_apart_whatever_their_names) {
  std::array<WordUse, SwappedWords::kPlaces> model{};
  std::size_t next = 0;
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t base = static_cast<std::uint64_t>(i) / 1000 * 64;
    const SwappedWord word{8 * (base + random() % 10), base, static_cast<std::uint16_t>(random() % 2), 1};
    const ProcessId initiator{1, random() % 2 == 0 ? 1u : 2u};
    const auto is_it = [&](const WordUse& use) { return use.word == word && use.initiator == initiator; };
    auto found = std::ranges::find_if(model, is_it);
    if (random() % 2 == 0) {
      swap(word, initiator, false);
      if (found == model.end()) {
        found = model.begin() + static_cast<std::ptrdiff_t>(next++ % model.size());
        *found = {word, initiator};
      }
      ++found->vain;
    } else {
      words.changes(word, initiator);
      if (found != model.end()) found->vain = 0;
    }
    if (found == model.end()) continue;
    ASSERT_EQ(use_of(initiator, word).vain, found->vain) << "step " << i;
  }
}

}  // namespace
}  // namespace portofu
