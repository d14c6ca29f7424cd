// Rank to process and back, also where the maps of two processes differ.

#include "engine/core/rank_map.h"

#include <gtest/gtest.h>

#include <array>

namespace portofu {
namespace {

constexpr ProcessId kA{1, 10};
constexpr ProcessId kB{1, 11};
constexpr ProcessId kC{2, 10};
constexpr ProcessId kStranger{9, 9};

TEST(RankMapTest, No_map__knows_nobody) {
  const RankMap map;
  EXPECT_FALSE(map.is_set());
  EXPECT_EQ(map.own_rank(), RankMap::kNoRank);
  EXPECT_EQ(map.process_of(0), nullptr);
  EXPECT_EQ(map.process_of(RankMap::kNoRank), nullptr);
  EXPECT_EQ(map.rank_of(kA, 5), 5u) << "what it claims";
}

TEST(RankMapTest, Map__gives_processes_by_rank) {
  RankMap map;
  const std::array<ProcessId, 3> processes{kA, kB, kC};
  ASSERT_TRUE(map.set(processes.data(), processes.size(), kC));
  EXPECT_TRUE(map.is_set());
  EXPECT_EQ(map.own_rank(), 2u);
  EXPECT_EQ(*map.process_of(1), kB);
  EXPECT_EQ(map.process_of(3), nullptr);
  EXPECT_EQ(map.processes().size(), 3u);
}

TEST(RankMapTest, Source__is_believed_where_our_map_agrees_and_corrected_where_not) {
  RankMap map;
  const std::array<ProcessId, 4> processes{kA, kB, kC, kB};
  ASSERT_TRUE(map.set(processes.data(), processes.size(), kA));
  EXPECT_EQ(map.rank_of(kB, 1), 1u);
  EXPECT_EQ(map.rank_of(kB, 3), 3u) << "one process with two ranks says which one it means";
  EXPECT_EQ(map.rank_of(kB, 0), 1u) << "the smallest rank that it has";
  EXPECT_EQ(map.rank_of(kB, RankMap::kNoRank), 1u);
  EXPECT_EQ(map.rank_of(kStranger, 0), 0u) << "not in our map: keeps what it claims";
  EXPECT_EQ(map.rank_of(kStranger, 12345), 12345u);
}

TEST(RankMapTest, Own_rank__is_none_if_we_are_not_in_the_map) {
  RankMap map;
  ASSERT_TRUE(map.set(&kA, 1, kB));
  EXPECT_EQ(map.own_rank(), RankMap::kNoRank);
}

TEST(RankMapTest, New_map__replaces_the_old_one) {
  RankMap map;
  const std::array<ProcessId, 2> first{kA, kB};
  ASSERT_TRUE(map.set(first.data(), first.size(), kA));
  ASSERT_TRUE(map.set(&kC, 1, kA));
  EXPECT_EQ(map.process_of(1), nullptr);
  EXPECT_EQ(*map.process_of(0), kC);
  EXPECT_EQ(map.own_rank(), RankMap::kNoRank);
  EXPECT_EQ(map.rank_of(kB, 7), 7u);
}

TEST(RankMapTest, Map_without_memory__leaves_the_old_one) {
  RankMap map;
  ASSERT_TRUE(map.set(&kA, 1, kA));
  EXPECT_FALSE(map.set(&kB, UINT64_MAX / sizeof(ProcessId), kA));
  EXPECT_EQ(*map.process_of(0), kA);
  EXPECT_EQ(map.own_rank(), 0u);
}

}  // namespace
}  // namespace portofu
