#include "engine/topology/host_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace portofu {
namespace {

constexpr std::uint32_t kAddress = 0x0a000001;  // 10.0.0.1

TEST(HostFile, Line__is_an_address_with_or_without_coordinates) {
  std::string why;
  const auto hosts = parse_hosts("# a job\n10.0.0.1\n\n10.0.0.2 3,4,5,1,2,1 # the other\n10.0.0.3\n", &why);
  ASSERT_TRUE(hosts) << why;
  const std::vector<Host> expected{
      {kAddress, {0, 0, 0, 0, 0, 0}}, {kAddress + 1, {3, 4, 5, 1, 2, 1}}, {kAddress + 2, {2, 0, 0, 0, 0, 0}}};
  EXPECT_EQ(*hosts, expected);
}

TEST(HostFile, Line_that_is_something_else__is_named) {
  for (const char* line : {"node7", "10.0.0", "0.0.0.0", "10.0.0.1 1,2,3", "10.0.0.1 1,2,3,2,0,0",
                           "10.0.0.1 256,0,0,0,0,0", "10.0.0.1 0,0,0,0,0,0 more"}) {
    std::string why;
    EXPECT_FALSE(parse_hosts("10.0.0.9 9,9,9,0,0,0\n" + std::string(line) + "\n", &why)) << line;
    EXPECT_NE(why.find("line 2"), std::string::npos) << why;
  }
}

TEST(HostFile, Address_or_coordinates_named_twice__are_refused) {
  std::string why;
  EXPECT_FALSE(parse_hosts("10.0.0.1\n10.0.0.1\n", &why));
  EXPECT_FALSE(parse_hosts("10.0.0.1\n10.0.0.2 0,0,0,0,0,0\n", &why));
}

TEST(HostFile, Nodes_beyond_the_most_there_may_be__are_refused_for_that) {
  std::string text;
  for (std::size_t i = 0; i < kMaxHosts; ++i) {
    text += "10.1." + std::to_string(i / 256) + "." + std::to_string(i % 256) + "\n";
  }
  std::string why;
  EXPECT_TRUE(parse_hosts(text, &why)) << why;
  EXPECT_FALSE(parse_hosts(text + "10.2.0.0 0,0,1,0,0,0\n", &why));
  EXPECT_EQ(why, "line 65537 is one node more than the 65536 there may be");
}

TEST(HostFile, Places__go_along_x_and_then_y) {
  EXPECT_EQ(coordinates_of_place(0), (Coordinates{0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(coordinates_of_place(255), (Coordinates{255, 0, 0, 0, 0, 0}));
  EXPECT_EQ(coordinates_of_place(258), (Coordinates{2, 1, 0, 0, 0, 0}));
}

TEST(HostFile, File_that_is_missing__is_an_error) {
  std::string why;
  EXPECT_FALSE(read_host_file("/nonexistent/hosts", &why));
  EXPECT_FALSE(why.empty());
}

TEST(HostFile, File__is_read) {
  char name[] = "/tmp/portofu-hosts-XXXXXX";
  close(mkstemp(name));
  std::ofstream(name) << "10.0.0.1\n10.0.0.2\n";
  std::string why;
  const auto hosts = read_host_file(name, &why);
  unlink(name);
  ASSERT_TRUE(hosts) << why;
  EXPECT_EQ(hosts->size(), 2u);
}

TEST(HostFile, Coordinates_of_an_address__lead_back_to_it) {
  for (const std::uint32_t nid : {0x0a010203u, 0x0affffffu, 0x0a000001u}) {
    EXPECT_EQ(address_of_coordinates(coordinates_of_address(nid), kAddress), nid);
  }
  EXPECT_EQ(coordinates_of_address(0x0a010203), (Coordinates{3, 2, 1, 0, 0, 0}));
  EXPECT_EQ(address_of_coordinates({3, 2, 1, 0, 1, 0}, kAddress), 0u);
}

}  // namespace
}  // namespace portofu
