// The matching function of the spec, its form as masked keys, and the hash of these.

#include "engine/match/match_criteria.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/unit/match/match_model.h"

namespace portofu {
namespace {

constexpr ProcessId kSource{7, 9};

TEST(Matches, Bits__exact) {
  EXPECT_TRUE(matches({0x12, 0, kSource, false, false}, {0x12, kSource}));
  EXPECT_FALSE(matches({0x12, 0, kSource, false, false}, {0x13, kSource}));
}

TEST(Matches, Bits__ignored_ones_mean_nothing_on_either_side) {
  EXPECT_TRUE(matches({0x1f, 0x0f, kSource, false, false}, {0x10, kSource}));
  EXPECT_TRUE(matches({0x10, 0x0f, kSource, false, false}, {0x1f, kSource}));
  EXPECT_FALSE(matches({0x10, 0x0f, kSource, false, false}, {0x2f, kSource}));
  EXPECT_TRUE(matches({0x10, ~0ull, kSource, false, false}, {~0ull, kSource}));
}

TEST(Matches, Initiator__nid_and_pid_have_wildcards_of_their_own) {
  const MatchKey key{0, kSource};
  EXPECT_TRUE(matches({0, 0, kSource, false, false}, key));
  EXPECT_FALSE(matches({0, 0, {8, 9}, false, false}, key));
  EXPECT_FALSE(matches({0, 0, {7, 8}, false, false}, key));
  EXPECT_TRUE(matches({0, 0, {8, 9}, true, false}, key));
  EXPECT_FALSE(matches({0, 0, {8, 8}, true, false}, key));
  EXPECT_TRUE(matches({0, 0, {7, 8}, false, true}, key));
  EXPECT_FALSE(matches({0, 0, {8, 8}, false, true}, key));
  EXPECT_TRUE(matches({0, 0, {8, 8}, true, true}, key));
}

TEST(MatchMask, Masked_keys__are_equal_exactly_when_the_criteria_match) {
  const std::uint64_t seed = match_model::test_seed();
  for (const auto& universe : match_model::universes()) {
    match_model::Dice dice(seed, universe);
    for (int i = 0; i < 2000; ++i) {
      const MatchCriteria criteria = dice.criteria();
      const MatchKey key = dice.key();
      const MatchMask mask = MatchMask::of(criteria);
      ASSERT_EQ(mask.apply(criteria) == mask.apply(key), matches(criteria, key));
    }
  }
}

/// Largest number of keys in one of as many groups as there are keys / 8. Random hashes of 4096 keys give about 22.
std::size_t fullest_group(const std::vector<MaskedKey>& keys, int shift) {
  std::vector<std::size_t> groups(keys.size() / 8);
  for (const MaskedKey& key : keys) ++groups[(key.hash() >> shift) % groups.size()];
  return *std::max_element(groups.begin(), groups.end());
}

constexpr std::size_t kKeyCount = 4096;
constexpr std::size_t kTooFull = 40;

TEST(MaskedKey, Hash__spreads_strides_of_the_bits) {
  for (std::uint32_t stride_bits = 0; stride_bits <= 52; ++stride_bits) {
    std::vector<MaskedKey> keys;
    for (std::uint64_t i = 0; i < kKeyCount; ++i) keys.push_back({i << stride_bits, 5});
    EXPECT_LT(fullest_group(keys, 0), kTooFull) << stride_bits;
    EXPECT_LT(fullest_group(keys, 55), kTooFull) << "tags, " << stride_bits;
  }
}

TEST(MaskedKey, Hash__spreads_strides_of_the_initiator) {
  for (std::uint32_t stride_bits = 0; stride_bits <= 52; ++stride_bits) {
    std::vector<MaskedKey> keys;
    for (std::uint64_t i = 0; i < kKeyCount; ++i) keys.push_back({77, i << stride_bits});
    EXPECT_LT(fullest_group(keys, 0), kTooFull) << stride_bits;
  }
}

TEST(MaskedKey, Hash__spreads_mpi_match_bits) {
  std::vector<MaskedKey> keys;
  for (std::uint64_t i = 0; i < kKeyCount; ++i) {
    const std::uint64_t source = i % 64;
    const std::uint64_t tag = i / 64;
    keys.push_back({std::uint64_t{3} << 48 | source << 24 | tag, source});
  }
  EXPECT_LT(fullest_group(keys, 0), kTooFull);
}

TEST(MaskedKey, Hash__tells_bits_that_mirror_the_initiator) {
  std::vector<MaskedKey> keys;
  for (std::uint64_t i = 0; i < kKeyCount; ++i) keys.push_back({i, kKeyCount - i});
  EXPECT_LT(fullest_group(keys, 0), kTooFull);
}

}  // namespace
}  // namespace portofu
