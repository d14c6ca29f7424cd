#include "engine/inspect/far_memory.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/unit/support/made_up_job.h"

namespace portofu {
namespace {

TEST(FarMemory, Copy__is_there_or_is_nothing) {
  OwnMemory memory;
  const std::vector<std::uint64_t> numbers{3, 4, 5};
  const Copy<std::uint64_t> copy = (*memory).copy(numbers.data(), numbers.size());
  ASSERT_EQ(copy.size(), 3u);
  EXPECT_EQ(*copy, 3u);
  EXPECT_EQ(copy[2], 5u);
  EXPECT_FALSE((*memory).copy(static_cast<const std::uint64_t*>(nullptr)));
  EXPECT_FALSE((*memory).copy(numbers.data(), 0));
  EXPECT_FALSE((*memory).copy(numbers.data(), SIZE_MAX / 2)) << "more than anybody copies";
  EXPECT_FALSE((*memory).copy(std::bit_cast<const std::uint64_t*>(std::uint64_t{8}))) << "nothing is mapped there";
  EXPECT_FALSE((*memory).is_forbidden());
}

TEST(FarMemory, Stranger__is_not_read) {
  const std::uint64_t mark = 5, number = 7;
  FarMemory memory(getpid(), std::bit_cast<std::uint64_t>(&mark), 6);
  EXPECT_FALSE(memory.copy(&number));
}

TEST(FarMemory, Map__is_walked_whole) {
  OwnMemory memory;
  std::unordered_map<std::uint64_t, std::unique_ptr<int>> map;
  for (std::uint64_t key = 0; key < 1000; ++key) map[key * 977] = std::make_unique<int>(static_cast<int>(key));
  const auto copy = (*memory).copy(&map);
  std::map<std::uint64_t, int> seen;
  ASSERT_TRUE(each_in_map(*memory, *copy, [&](const auto& pair) { seen[pair.first] = *pair.second; }));
  EXPECT_EQ(seen.size(), 1000u);
  EXPECT_EQ(seen[977 * 12], 12);
}

}  // namespace
}  // namespace portofu
