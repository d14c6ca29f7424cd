// A queue that keeps its memory.

#include "engine/event/growing_ring.h"

#include <gtest/gtest.h>

#include <memory>

namespace portofu {
namespace {

TEST(GrowingRing, Elements__come_out_in_order_while_it_grows_with_its_beginning_anywhere) {
  for (std::uint64_t ahead = 0; ahead < 9; ++ahead) {
    GrowingRing<std::uint64_t> ring;
    std::uint64_t added = 0, taken = 0;
    for (; added < ahead; ++added) ring.push_back(added);
    for (; taken < ahead; ++taken) ring.pop_front();
    EXPECT_TRUE(ring.empty());
    for (const std::size_t wanted : {1u, 2u, 3u, 8u, 9u, 5u, 40u}) {
      for (; ring.size() < wanted; ++added) ring.push_back(added);
      for (; ring.size() > wanted; ++taken) ring.pop_front();
      EXPECT_EQ(ring.front(), taken) << ahead << ' ' << wanted;
    }
    for (; !ring.empty(); ++taken) {
      ASSERT_EQ(ring.front(), taken) << ahead;
      ring.pop_front();
    }
    EXPECT_EQ(taken, added);
  }
}

TEST(GrowingRing, Places__are_used_again_without_new_memory) {
  GrowingRing<std::unique_ptr<int>> ring;
  ring.add() = std::make_unique<int>(1);
  ring.add() = std::make_unique<int>(2);
  const auto* const place = &ring.front();
  ring.pop_front();
  ring.add() = std::make_unique<int>(3);
  EXPECT_EQ(*ring.front(), 2);
  ring.pop_front();
  EXPECT_EQ(&ring.add(), place + 1) << "two places are enough for two";
}

TEST(GrowingRing, Clear__leaves_nothing) {
  GrowingRing<int> ring;
  for (int i = 0; i < 5; ++i) ring.push_back(i);
  ring.clear();
  EXPECT_TRUE(ring.empty());
  EXPECT_EQ(ring.size(), 0u);
  ring.push_back(7);
  EXPECT_EQ(ring.front(), 7);
}

}  // namespace
}  // namespace portofu
