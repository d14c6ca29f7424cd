// The choice is tested on invented interfaces; the kernel's own list only for what every machine has.

#include "engine/topology/node_id.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace portofu {
namespace {

const InterfaceAddress kLoopback{.name = "lo", .index = 1, .address = kLoopbackNodeId, .up = true, .loopback = true};
const InterfaceAddress kDown{.name = "eth0", .index = 2, .address = 0x0a000002, .up = false, .loopback = false};
const InterfaceAddress kThird{.name = "eth1", .index = 3, .address = 0x0a000003, .up = true, .loopback = false};
const InterfaceAddress kFourth{.name = "eth2", .index = 4, .address = 0x0a000004, .up = true, .loopback = false};

TEST(ChooseNodeId, Several__takes_the_lowest_index_that_is_up) {
  const std::vector<InterfaceAddress> addresses{kFourth, kLoopback, kDown, kThird};
  EXPECT_EQ(choose_node_id(addresses, ""), kThird.address);
}

TEST(ChooseNodeId, Several_addresses_of_one_interface__takes_the_first) {
  InterfaceAddress second = kThird;
  second.address = 0x0a0000ff;
  EXPECT_EQ(choose_node_id(std::vector{kThird, second}, ""), kThird.address);
  EXPECT_EQ(choose_node_id(std::vector{kThird, second}, "eth1"), kThird.address);
}

TEST(ChooseNodeId, Named__is_taken_even_if_loopback_or_down) {
  const std::vector<InterfaceAddress> addresses{kLoopback, kDown, kThird};
  EXPECT_EQ(choose_node_id(addresses, "lo"), kLoopbackNodeId);
  EXPECT_EQ(choose_node_id(addresses, "eth0"), kDown.address);
}

TEST(ChooseNodeId, Nothing_fits__is_zero) {
  EXPECT_EQ(choose_node_id(std::vector{kLoopback, kDown}, ""), 0u);
  EXPECT_EQ(choose_node_id(std::vector{kThird}, "eth9"), 0u);
  EXPECT_EQ(choose_node_id({}, ""), 0u);
}

TEST(FindNodeId, Configured__wins) { EXPECT_EQ(find_node_id(0x0a0b0c0d, "lo"), 0x0a0b0c0du); }

TEST(FindNodeId, This_machine__has_one_and_keeps_it) {
  const std::uint32_t nid = find_node_id(0, "");
  EXPECT_NE(nid, 0u);
  EXPECT_EQ(find_node_id(0, ""), nid);
}

TEST(FindNodeId, Unknown_interface__is_said_and_another_is_taken) {
  ::testing::internal::CaptureStderr();
  const std::uint32_t nid = find_node_id(0, "no-such-if");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), ::testing::HasSubstr("PORTOFU_INTERFACE=no-such-if"));
  EXPECT_EQ(nid, find_node_id(0, ""));
}

TEST(NodeIdText, Address__is_written_with_dots) { EXPECT_EQ(node_id_text(0x0a000102), "10.0.1.2"); }

}  // namespace
}  // namespace portofu
