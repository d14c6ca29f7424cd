// Which wires an engine gets on a real node.

#include "engine/run/engine_node.h"

#include <gtest/gtest.h>

#include "tests/process/test_network.h"
#include "tests/unit/wire/capture/captured_blocks.h"

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

Settings datagram_settings() {
  Settings settings;
  settings.nid = test_network() + 1;
  settings.fabric = static_cast<std::uint32_t>(FabricUse::kOn);
  settings.fabric_endpoint = static_cast<std::uint32_t>(EndpointKind::kDatagram);
  return settings;
}

TEST(EngineNode, Endpoint_datagram__reaches_other_nodes_by_the_reliable_wire) {
  const auto node = open_with(datagram_settings());
  ASSERT_NE(node, nullptr);
  ASSERT_NE(node->datagrams, nullptr);
  EXPECT_EQ(node->fabric, nullptr);
  EXPECT_EQ(node->to_other_nodes(), node->datagrams.get());
  ASSERT_NE(node->keeper(), nullptr);
  EXPECT_TRUE(node->keeper()->is_open());
  EXPECT_GE(node->datagrams->wait_fd(), 0);
}

TEST(EngineNode, Pcapng__captures_what_all_wires_carry_and_publishes_nothing) {
  const capture_test::TemporaryDirectory directory;
  Settings settings = datagram_settings();
  settings.shuffle_seed = 7;
  settings.pcapng = directory.file("");
  const auto node = open_with(settings);
  ASSERT_NE(node, nullptr);
  ASSERT_NE(node->captured_shm, nullptr);
  EXPECT_EQ(node->wires(), (std::vector<Wire*>{node->captured_loopback.get(), node->captured_shm.get()}));
  EXPECT_EQ(node->to_other_nodes(), node->captured_other_nodes.get());
  EXPECT_NE(node->captured_other_nodes->other_nodes(), nullptr);
  PublishedRegion region;
  region.key = region_key(1, 2);
  region.bytes = 4096;
  EXPECT_FALSE(node->directory->publish(region)) << "peers would use it without packets";
}

TEST(EngineNode, Pcapng_in_no_directory__opens_without_a_capture) {
  Settings settings;
  settings.pcapng = "/nowhere/at/all";
  testing::internal::CaptureStderr();
  const auto node = open_with(settings);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("packets are not captured"), std::string::npos);
  ASSERT_NE(node, nullptr);
  EXPECT_EQ(node->wires(), (std::vector<Wire*>{node->loopback.get(), node->shm.get()}));
}

TEST(EngineNode, Endpoint_datagram__with_the_fabric_off_reaches_nobody) {
  Settings settings = datagram_settings();
  settings.fabric = static_cast<std::uint32_t>(FabricUse::kOff);
  const auto node = open_with(settings);
  ASSERT_NE(node, nullptr);
  EXPECT_EQ(node->to_other_nodes(), nullptr);
  EXPECT_EQ(node->keeper(), nullptr);
}

TEST(EngineNode, Datagram_faults_that_are_none__are_a_clear_error) {
  Settings settings = datagram_settings();
  settings.datagram_faults = "loss=10,fun=5";
  OpenError error = OpenError::kNone;
  std::string why;
  EXPECT_EQ(open_node(settings, 0, &error, &why), nullptr);
  EXPECT_EQ(error, OpenError::kSystem);
  EXPECT_NE(why.find("PORTOFU_DATAGRAM_FAULTS=loss=10,fun=5: \"fun=5\""), std::string::npos) << why;
}

TEST(EngineNode, Directory__claims_finds_and_releases_for_its_process) {
  const auto mine = open_with({}), other = open_with({});
  ASSERT_NE(mine, nullptr);
  ASSERT_NE(other, nullptr);
  const std::uint64_t key = 0x5aa'0000'0000 + mine->segment->id().pid;
  NameOwner owner;
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
