// What ptl_info says of a process that speaks libfabric.

#include <gtest/gtest.h>

#include <string>

#include "tests/conformance/libfabric/fabric_fixture.h"
#include "tests/process/command_output.h"

namespace portofu::test {
namespace {

/// The line on endpoints, or an empty text.
std::string endpoints_line(const Node& node) {
  std::array<std::uint32_t, 4> name{};
  std::size_t bytes = sizeof name;
  EXPECT_EQ(fi_getname(&node.ep->fid, name.data(), &bytes), 0);
  std::array<char, 64> text{};
  bytes = text.size();
  const std::string address = fi_av_straddr(node.av, name.data(), text.data(), &bytes);
  const std::size_t pid = address.find(':') + 1;
  const std::string shown =
      output_of(std::string(PORTOFU_PTL_INFO) + " --pid " + address.substr(pid, address.find('/') - pid));
  const std::size_t line = shown.find("endpoints of libfabric");
  return line == std::string::npos ? "" : shown.substr(line, shown.find('\n', line) - line);
}

class PtlInfoEndpoints : public Fabric {};

TEST_F(PtlInfoEndpoints, Are_shown_while_they_are_open) {
  EXPECT_EQ(endpoints_line(a), "endpoints of libfabric     0 1");
  Node c;
  c.open(domain, info.get());
  EXPECT_EQ(endpoints_line(a), "endpoints of libfabric     0 1 2");
  b.close();
  EXPECT_EQ(endpoints_line(a), "endpoints of libfabric     0 2");
  c.close();
  EXPECT_EQ(endpoints_line(a), "endpoints of libfabric     0");
}

}  // namespace
}  // namespace portofu::test
