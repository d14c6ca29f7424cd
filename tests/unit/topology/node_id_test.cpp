// The choice is tested on invented interfaces; the kernel's own list for what every machine has, and for a bridge of a
// network namespace.

#include "engine/topology/node_id.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

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

const InterfaceAddress kDocker{.name = "docker0", .index = 2, .address = 0xac110001, .up = true, .bridge = true};

TEST(ChooseNodeId, Bridge__gives_way_to_an_interface) {
  EXPECT_EQ(choose_node_id(std::vector{kLoopback, kDocker, kThird}, ""), kThird.address);
  EXPECT_EQ(choose_node_id(std::vector{kLoopback, kDocker}, ""), kDocker.address) << "there is no better one";
  EXPECT_EQ(choose_node_id(std::vector{kDocker, kThird}, "docker0"), kDocker.address) << "it is asked for";
}

TEST(ChooseNodeId, Bridge_with_the_default_route__is_an_interface_like_others) {
  InterfaceAddress own = kDocker;
  own.name = "br0";
  own.default_route = true;
  EXPECT_EQ(choose_node_id(std::vector{kThird, own}, ""), own.address);
  own.index = 9;
  EXPECT_EQ(choose_node_id(std::vector{own, kThird}, ""), kThird.address);
}

TEST(ChooseNodeId, Interface_without_a_carrier__comes_last) {
  InterfaceAddress unplugged = kThird;
  unplugged.running = false;
  EXPECT_EQ(choose_node_id(std::vector{unplugged, kFourth}, ""), kFourth.address);
  EXPECT_EQ(choose_node_id(std::vector{unplugged, kDocker}, ""), kDocker.address);
  EXPECT_EQ(choose_node_id(std::vector{kLoopback, unplugged}, ""), unplugged.address);
  InterfaceAddress second = kFourth;
  second.running = false;
  EXPECT_EQ(choose_node_id(std::vector{second, unplugged}, ""), unplugged.address) << "of equals the lowest index";
}

/// Makes a bridge with an address, in the network namespace of the caller.
bool make_bridge(const char* name, const char* address) {
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  ifreq request{};
  std::strcpy(request.ifr_name, name);
  sockaddr_in own{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {inet_addr(address)}, .sin_zero = {}};
  std::memcpy(&request.ifr_addr, &own, sizeof own);
  const bool made = ioctl(fd, SIOCBRADDBR, name) == 0 && ioctl(fd, SIOCSIFADDR, &request) == 0;
  close(fd);
  return made;
}

// As in `unshare --net`: /sys is still that of the network namespace before.
TEST(InterfaceAddresses, Bridge_in_a_network_namespace__is_known_as_one) {
  constexpr int kNoRights = 77;
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWNET | (geteuid() == 0 ? 0 : CLONE_NEWUSER)) != 0) _exit(kNoRights);
    if (!make_bridge("docker0", "172.17.0.1")) _exit(kNoRights);
    const std::vector<InterfaceAddress> addresses = list_interface_addresses();
    const InterfaceAddress* bridge = choose_interface(addresses, "docker0");
    _exit(bridge != nullptr && bridge->bridge && bridge->address == 0xac110001 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoRights) GTEST_SKIP() << "may not make a bridge";
  EXPECT_EQ(status, 0);
}

TEST(InnerAddress, Bridge_and_loopback__may_be_on_other_nodes_too) {
  const std::vector addresses{kLoopback, kDocker, kThird};
  EXPECT_TRUE(is_inner_address(addresses, kDocker.address));
  EXPECT_TRUE(is_inner_address(addresses, kLoopbackNodeId));
  EXPECT_FALSE(is_inner_address(addresses, kThird.address));
  EXPECT_FALSE(is_inner_address(addresses, 0x01020304));
}

TEST(DefaultRoutes, Table_of_the_kernel__names_their_interfaces) {
  const std::string table =
      "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
      "eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
      "eth0\t0000000A\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n"
      "docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n"
      "tun0\t00000000\t00000000\t0001\t0\t0\t0\t00000080\t0\t0\t0\n";
  EXPECT_EQ(default_routes(table), std::vector<std::string>{"eth0"});
  EXPECT_TRUE(default_routes("").empty());
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

TEST(NodeIdentity, This_machine__keeps_it) {
  EXPECT_NE(node_identity(), 0u);
  EXPECT_EQ(node_identity() >> 48, 0u) << "a hello has room for so much";
  EXPECT_EQ(node_identity(), node_identity());
}

TEST(NetworkIdentity, Another_network_of_this_machine__has_another_one) {
  const std::uint64_t here = network_identity();
  EXPECT_NE(here, 0u);
  EXPECT_EQ(network_identity(), here);
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) _exit(77);
    _exit(network_identity() != here && network_identity() != 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no network of one's own here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(NodeIdText, Address__is_written_with_dots) { EXPECT_EQ(node_id_text(0x0a000102), "10.0.1.2"); }

}  // namespace
}  // namespace portofu
