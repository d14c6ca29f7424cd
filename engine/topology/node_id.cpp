// Finds the node ID when an engine opens, after the settings have been read and before the PID is claimed.

#include "engine/topology/node_id.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "engine/observe/log.h"
#include "engine/observe/system_failure.h"

namespace portofu {
namespace {

/// SO_NETNS_COOKIE, which older headers do not have.
constexpr int kNetworkCookie = 71;

/// Asked of the driver: /sys may be missing, or that of another network namespace, as after `unshare --net`.
bool is_bridge(const std::string& name) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  ethtool_drvinfo driver{};
  driver.cmd = ETHTOOL_GDRVINFO;
  ifreq request{};
  name.copy(request.ifr_name, sizeof request.ifr_name - 1);
  request.ifr_data = reinterpret_cast<char*>(&driver);
  const bool answered = ioctl(fd, SIOCETHTOOL, &request) == 0;
  close(fd);
  return answered && std::strncmp(driver.driver, "bridge", sizeof driver.driver) == 0;
}

std::vector<std::string> read_default_routes() {
  std::ifstream file("/proc/net/route");
  std::ostringstream table;
  table << file.rdbuf();
  return default_routes(table.str());
}

/// Smaller is better; no two interfaces have the same.
std::pair<int, std::uint32_t> rank_of(const InterfaceAddress& candidate) {
  const bool inner = candidate.bridge && !candidate.default_route;
  return {!candidate.running ? 2 : inner ? 1 : 0, candidate.index};
}

}  // namespace

std::string node_id_text(std::uint32_t nid) {
  const in_addr address{htonl(nid)};
  char text[INET_ADDRSTRLEN] = {};
  inet_ntop(AF_INET, &address, text, sizeof text);
  return text;
}

std::vector<InterfaceAddress> list_interface_addresses() {
  std::vector<InterfaceAddress> addresses;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) {
    static constinit ToldOnce told;
    if (told.is_first()) {
      log_error("%s",
                system_failure("getifaddrs", "the addresses of this node", errno,
                               "let the sandbox allow sockets (AF_NETLINK), or give all processes of the node the "
                               "same PORTOFU_NID; without it this one has the NID 127.0.0.1, and those that see "
                               "the addresses do not know it")
                    .c_str());
    }
    return addresses;
  }
  const std::vector<std::string> routes = read_default_routes();
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in socket_address{};
    std::memcpy(&socket_address, entry->ifa_addr, sizeof socket_address);
    addresses.push_back({.name = entry->ifa_name,
                         .index = if_nametoindex(entry->ifa_name),
                         .address = ntohl(socket_address.sin_addr.s_addr),
                         .up = (entry->ifa_flags & IFF_UP) != 0,
                         .loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0,
                         .running = (entry->ifa_flags & IFF_RUNNING) != 0,
                         .bridge = is_bridge(entry->ifa_name),
                         .default_route = std::ranges::find(routes, entry->ifa_name) != routes.end()});
  }
  freeifaddrs(first);
  return addresses;
}

const InterfaceAddress* choose_interface(std::span<const InterfaceAddress> addresses, const std::string& name) {
  const InterfaceAddress* best = nullptr;
  for (const InterfaceAddress& candidate : addresses) {
    if (candidate.address == 0) continue;
    if (!name.empty()) {
      if (candidate.name == name) return &candidate;
      continue;
    }
    if (!candidate.up || candidate.loopback) continue;
    if (best == nullptr || rank_of(candidate) < rank_of(*best)) best = &candidate;
  }
  return best;
}

std::uint32_t choose_node_id(std::span<const InterfaceAddress> addresses, const std::string& name) {
  const InterfaceAddress* chosen = choose_interface(addresses, name);
  return chosen == nullptr ? 0 : chosen->address;
}

std::vector<std::string> default_routes(const std::string& table) {
  std::vector<std::string> names;
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, destination, gateway, flags, references, uses, metric, mask;
    words >> name >> destination >> gateway >> flags >> references >> uses >> metric >> mask;
    constexpr const char* kAny = "00000000";
    if (destination == kAny && mask == kAny) names.push_back(name);
  }
  return names;
}

bool is_inner_address(std::span<const InterfaceAddress> addresses, std::uint32_t nid) {
  return nid == kLoopbackNodeId || std::ranges::any_of(addresses, [nid](const InterfaceAddress& one) {
           return one.address == nid && one.bridge && !one.default_route;
         });
}

std::uint64_t node_identity() {
  std::string text;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> text;
  struct stat memory {};
  if (stat("/dev/shm", &memory) == 0) text += std::to_string(memory.st_dev) + "." + std::to_string(memory.st_ino);
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a.
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash >> 16 != 0 ? hash >> 16 : 1;
}

std::uint64_t network_identity() {
  std::uint64_t cookie = 0;
  socklen_t bytes = sizeof cookie;
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const bool known = fd >= 0 && getsockopt(fd, SOL_SOCKET, kNetworkCookie, &cookie, &bytes) == 0;
  if (fd >= 0) close(fd);
  if (known) return cookie;
  struct stat network {};  // Before Linux 5.14; a later network may get the number of one that is gone.
  return stat("/proc/thread-self/ns/net", &network) == 0 ? network.st_ino : 0;
}

std::uint32_t find_node_id(std::uint32_t configured_nid, const std::string& interface_name) {
  if (configured_nid != 0) return configured_nid;
  const auto addresses = list_interface_addresses();
  if (!interface_name.empty()) {
    if (const std::uint32_t nid = choose_node_id(addresses, interface_name); nid != 0) return nid;
    static constinit ToldOnce told;
    if (told.is_first()) {
      log_error("PORTOFU_INTERFACE=%s has no IPv4 address on this node; the first interface that is up is taken",
                interface_name.c_str());
    }
  }
  const std::uint32_t nid = choose_node_id(addresses, "");
  return nid != 0 ? nid : kLoopbackNodeId;
}

}  // namespace portofu
