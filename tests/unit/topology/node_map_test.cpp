#include "engine/topology/node_map.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <set>

namespace portofu {
namespace {

constexpr std::uint32_t kOwn = 0x0a000102;  // 10.0.1.2

/// A hosts file that is gone with the test.
class NodeMapTest : public ::testing::Test {
 protected:
  ~NodeMapTest() override { unlink(path_); }
  void write_hosts(const std::string& text) {
    close(mkstemp(path_));
    std::ofstream(path_) << text;
    settings.hosts = path_;
  }
  NodeMap find(bool launcher_spans_nodes = false) {
    auto map = NodeMap::find(settings, kOwn, launcher_spans_nodes, place, &why);
    EXPECT_TRUE(map) << why;
    return map ? *map : NodeMap();
  }

  Settings settings;
  LocalPlace place;
  std::string why;

 private:
  char path_[32] = "/tmp/portofu-hosts-XXXXXX";
};

TEST_F(NodeMapTest, Lone_node__is_at_the_origin_and_knows_nobody) {
  const NodeMap map = find();
  EXPECT_FALSE(map.spans_nodes());
  EXPECT_EQ(map.own_coordinates(), Coordinates{});
  EXPECT_EQ(map.nid_at({}), kOwn);
  EXPECT_EQ(map.nid_at({1, 0, 0, 0, 0, 0}), 0u);
  EXPECT_TRUE(map.nids().empty());
}

TEST_F(NodeMapTest, Node_that_is_placed__is_there_and_knows_no_other) {
  settings.coords = "7,8,9,1,2,1";
  for (const bool launcher_spans_nodes : {false, true}) {
    const NodeMap map = find(launcher_spans_nodes);
    EXPECT_EQ(map.own_coordinates(), (Coordinates{7, 8, 9, 1, 2, 1}));
    EXPECT_EQ(map.nid_at({7, 8, 9, 1, 2, 1}), kOwn);
    EXPECT_EQ(map.nid_at({}), 0u);
  }
  settings.coords = "7,8,9,1,3,1";
  EXPECT_EQ(find(true).own_coordinates(), Coordinates{}) << "no such place";
  write_hosts("10.0.1.2 5,0,0,0,1,0\n");
  settings.coords = "7,8,9,1,2,1";
  EXPECT_EQ(find().own_coordinates(), (Coordinates{5, 0, 0, 0, 1, 0})) << "the file says it";
}

TEST_F(NodeMapTest, Launcher_that_tells_of_nodes__makes_coordinates_of_addresses) {
  const NodeMap map = find(true);
  EXPECT_TRUE(map.spans_nodes());
  EXPECT_EQ(map.own_coordinates(), (Coordinates{2, 1, 0, 0, 0, 0}));
  EXPECT_EQ(map.nid_at({7, 1, 0, 0, 0, 0}), 0x0a000107u);
}

TEST_F(NodeMapTest, Fabric_that_is_switched__decides) {
  settings.fabric = static_cast<std::uint32_t>(FabricUse::kOn);
  EXPECT_TRUE(find(false).spans_nodes());
  settings.fabric = static_cast<std::uint32_t>(FabricUse::kOff);
  EXPECT_FALSE(find(true).spans_nodes());
}

TEST_F(NodeMapTest, Hosts_file__says_who_is_where) {
  write_hosts("10.0.1.1 5,0,0,0,0,0\n10.0.1.2 5,0,0,0,1,0\n");
  const NodeMap map = find();
  EXPECT_TRUE(map.spans_nodes());
  EXPECT_EQ(map.own_coordinates(), (Coordinates{5, 0, 0, 0, 1, 0}));
  EXPECT_EQ(map.nid_at({5, 0, 0, 0, 0, 0}), 0x0a000101u);
  EXPECT_EQ(map.nid_at({2, 1, 0, 0, 0, 0}), 0u);
  EXPECT_EQ(map.nids(), (std::vector<std::uint32_t>{0x0a000101, 0x0a000102}));
}

TEST_F(NodeMapTest, Hosts_file_without_this_node__is_refused) {
  write_hosts("10.0.1.1\n");
  EXPECT_FALSE(NodeMap::find(settings, kOwn, false, place, &why));
  EXPECT_NE(why.find("does not name this node"), std::string::npos) << why;
}

TEST_F(NodeMapTest, Hosts_file_with_this_node_alone__is_a_lone_node) {
  write_hosts("10.0.1.2\n");
  EXPECT_FALSE(find().spans_nodes());
}

TEST_F(NodeMapTest, Lone_machine_that_stands_for_several_nodes__gives_each_its_coordinates) {
  settings.per_node = 4;
  place = {9, 10};
  const NodeMap map = find();
  EXPECT_EQ(map.own_coordinates(), (Coordinates{0, 0, 0, 0, 1, 0}));
  EXPECT_EQ(map.own_place(), (LocalPlace{1, 2}));
  EXPECT_EQ(map.nid_at({}), 0u) << "whose processes are looked for on this machine";
  settings.per_node = 0;
  EXPECT_EQ(find().own_coordinates(), Coordinates{});
  EXPECT_EQ(find().own_place(), place);
}

TEST_F(NodeMapTest, Virtual_nodes__are_left_aside_where_something_else_says_where_nodes_are) {
  settings.per_node = 4;
  EXPECT_EQ(find().own_coordinates(), Coordinates{}) << "nobody tells the rank";
  place = {9, 10};
  EXPECT_EQ(find(true).own_coordinates(), (Coordinates{2, 1, 0, 0, 0, 0})) << "by the address";
  EXPECT_EQ(find(true).own_place(), place);
  settings.coords = "1,2,3,0,0,0";
  EXPECT_EQ(find().own_place(), place);
  settings.coords.clear();
  write_hosts("10.0.1.2 5,0,0,0,1,0\n");
  EXPECT_EQ(find().own_coordinates(), (Coordinates{5, 0, 0, 0, 1, 0}));
  EXPECT_EQ(find().own_place(), place);
}

TEST_F(NodeMapTest, Nodes_of_a_shape__are_where_it_says) {
  settings.shape = "4x3";
  place = {5, 12};
  EXPECT_EQ(find().own_coordinates(), (Coordinates{0, 0, 0, 1, 1, 0})) << "a process is on each";
  EXPECT_EQ(find().own_place(), (LocalPlace{0, 1}));
  settings.per_node = 2;
  EXPECT_EQ(find().own_coordinates(), (Coordinates{1, 0, 0, 1, 0, 0}));
  EXPECT_EQ(find().own_place(), (LocalPlace{1, 2}));
}

TEST_F(NodeMapTest, Nodes_of_six_lengths__are_on_the_torus) {
  settings.shape = "2x3x2x2x3x2";
  place = {17, 144};
  EXPECT_EQ(find().own_coordinates(), (Coordinates{1, 2, 0, 1, 0, 0}));
}

TEST_F(NodeMapTest, Shape_that_is_none_or_too_small__is_left_aside) {
  settings.per_node = 1;
  place = {5, 12};
  for (const char* text : {"4*3", "4x"}) {
    settings.shape = text;
    EXPECT_EQ(find().own_coordinates(), NodeMap::virtual_coordinates(5)) << text;
  }
  settings.shape = "5";
  EXPECT_EQ(find().own_coordinates(), NodeMap::virtual_coordinates(5)) << "it has nodes 0 to 4";
  settings.coords = "1,2,3,0,0,0";
  settings.shape = "12";
  EXPECT_EQ(find().own_place(), place);
}

TEST(VirtualCoordinates, Numbers__are_places_that_nobody_shares) {
  std::set<Coordinates> seen;
  for (std::uint32_t number = 0; number < 65536; ++number) {
    const Coordinates at = NodeMap::virtual_coordinates(number);
    ASSERT_TRUE(is_coordinates(at)) << number;
    ASSERT_TRUE(seen.insert(at).second) << number;
  }
}

}  // namespace
}  // namespace portofu
