// What --hosts of ptl_run understands, what it says of the rest, and who gets how many ranks.

#include "lib/tools/ptl_run/host_list.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace portofu::tools {
namespace {

using Hosts = std::vector<JobHost>;

/// @return what is said of a list that is not understood
std::string complaint_about_list(const std::string& text) {
  std::string why;
  EXPECT_FALSE(parse_host_list(text, &why)) << text;
  return why;
}

std::string complaint_about_lines(const std::string& text) {
  std::string why;
  EXPECT_FALSE(parse_host_lines(text, &why)) << text;
  return why;
}

TEST(HostList, List__has_names_addresses_and_counts) {
  std::string why;
  EXPECT_EQ(parse_host_list("a,b:4,user@node-7.site,10.0.0.7:1", &why),
            (Hosts{{"a", 0, {}}, {"b", 4, {}}, {"user@node-7.site", 0, {}}, {"10.0.0.7", 1, {}}}));
}

TEST(HostList, List__with_a_mistake_names_the_part) {
  for (const char* part : {"b:", "b:0", "b:-1", "b:4x", "b:4:4", "b:5000", "-oProxyCommand=x", "b c", "b;c", ":3"})
    EXPECT_NE(complaint_about_list(std::string("a,") + part + ",c").find(part), std::string::npos) << part;
  for (const char* list : {"", ",", "a,,b", "a,"}) EXPECT_NE(complaint_about_list(list).find("''"), std::string::npos);
  EXPECT_NE(complaint_about_list("a,b,a:3").find("a is named for the second time"), std::string::npos);
}

TEST(HostList, File__has_a_host_a_line_coordinates_and_comments) {
  std::string why;
  EXPECT_EQ(parse_host_lines("# two\n\n a:2   # first\n10.0.0.2\t1,2,3,1,2,1\n", &why),
            (Hosts{{"a", 2, {}}, {"10.0.0.2", 0, Coordinates{1, 2, 3, 1, 2, 1}}}));
}

TEST(HostList, File__with_a_mistake_names_the_line) {
  EXPECT_NE(complaint_about_lines("a\n\nb:x\n").find("line 3: 'b:x'"), std::string::npos);
  EXPECT_NE(complaint_about_lines("a\nb 1,2,3\n").find("line 2: '1,2,3'"), std::string::npos);
  EXPECT_NE(complaint_about_lines("a 0,0,0,0,0,0 4\n").find("line 1: '4'"), std::string::npos);
  EXPECT_NE(complaint_about_lines("a\nb\na\n").find("line 3: the host a"), std::string::npos);
  EXPECT_NE(complaint_about_lines("# nothing\n").find("no host"), std::string::npos);
}

TEST(HostList, Argument_with_a_slash__is_a_file) {
  const std::string path = "/tmp/host-list-test-" + std::to_string(getpid());
  std::ofstream(path) << "a:3\nb?\n";
  std::string why;
  EXPECT_FALSE(read_hosts(path, &why));
  EXPECT_NE(why.find(path + ": line 2"), std::string::npos) << why;
  std::ofstream(path) << "a:3\n";
  EXPECT_EQ(read_hosts(path, &why), (Hosts{{"a", 3, {}}}));
  unlink(path.c_str());
  EXPECT_FALSE(read_hosts(path, &why));
  EXPECT_NE(why.find(path), std::string::npos) << why;
  EXPECT_EQ(read_hosts("a", &why), (Hosts{{"a", 0, {}}}));
}

/// @return ranks of each host that has any, or nothing if there are not as many places
std::vector<int> placed(const std::string& list, int wanted) {
  std::string why;
  auto hosts = parse_host_list(list, &why);
  std::vector<int> counts;
  if (!place_ranks(&*hosts, wanted, &why)) return counts;
  for (const JobHost& host : *hosts) counts.push_back(host.count);
  return counts;
}

TEST(HostList, Ranks__fill_the_hosts_in_order) {
  EXPECT_EQ(placed("a,b:4,c", 0), (std::vector<int>{1, 4, 1}));
  EXPECT_EQ(placed("a,b:4,c", 6), (std::vector<int>{1, 4, 1}));
  EXPECT_EQ(placed("a,b:4,c", 3), (std::vector<int>{1, 2}));
  EXPECT_EQ(placed("a,b:4,c", 7), (std::vector<int>{}));
  EXPECT_EQ(placed("a:4096,b", 0), (std::vector<int>{})) << "more than a job may have";
}

TEST(HostList, Ranks__are_spread_evenly_where_no_host_has_a_count) {
  EXPECT_EQ(placed("a,b,c", 0), (std::vector<int>{1, 1, 1}));
  EXPECT_EQ(placed("a,b,c", 2), (std::vector<int>{1, 1}));
  EXPECT_EQ(placed("a,b,c", 8), (std::vector<int>{3, 3, 2}));
}

}  // namespace
}  // namespace portofu::tools
