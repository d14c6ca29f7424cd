// Which wires an engine gets on a real node.

#include "engine/engine_node.h"

#include <gtest/gtest.h>

namespace portofu {
namespace {

std::unique_ptr<EngineNode> open_with(const Settings& settings) {
  OpenError error = OpenError::kNone;
  std::string why;
  auto node = open_node(settings, 0, &error, &why);
  EXPECT_NE(node, nullptr) << why;
  return node;
}

TEST(EngineNode, Wires__are_loopback_and_shared_memory) {
  const auto node = open_with({});
  ASSERT_NE(node, nullptr);
  EXPECT_EQ(node->wires(), (std::vector<Wire*>{node->loopback.get(), node->shm.get()}));
}

TEST(EngineNode, Shuffle_seed__puts_the_disorder_over_both) {
  Settings settings;
  settings.shuffle_seed = 7;
  const auto node = open_with(settings);
  ASSERT_NE(node, nullptr);
  ASSERT_NE(node->shuffled_loopback, nullptr);
  ASSERT_NE(node->shuffled_shm, nullptr);
  EXPECT_EQ(node->wires(), (std::vector<Wire*>{node->shuffled_loopback.get(), node->shuffled_shm.get()}));
}

TEST(EngineNode, Directory__claims_finds_and_releases_for_its_process) {
  const auto mine = open_with({}), other = open_with({});
  ASSERT_NE(mine, nullptr);
  ASSERT_NE(other, nullptr);
  const std::uint64_t key = 0x5aa'0000'0000 + mine->segment->id().pid;
  ProcessId owner;
  EXPECT_EQ(other->directory->find(key, &owner), FindResult::kNobody);
  EXPECT_EQ(mine->directory->claim(key), ClaimResult::kClaimed);
  EXPECT_EQ(other->directory->claim(key), ClaimResult::kTaken);
  ASSERT_EQ(other->directory->find(key, &owner), FindResult::kFound);
  EXPECT_EQ(owner, mine->segment->id());
  other->directory->release(key);
  EXPECT_EQ(other->directory->find(key, &owner), FindResult::kFound) << "It is not the other's to release.";
  mine->directory->release(key);
  EXPECT_EQ(other->directory->find(key, &owner), FindResult::kNobody);
}

}  // namespace
}  // namespace portofu
