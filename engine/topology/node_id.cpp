// Finds the node ID when an engine opens, after the settings have been read and before the PID is claimed.

#include "engine/topology/node_id.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <cstring>

#include "engine/observe/log.h"

namespace portofu {

std::string node_id_text(std::uint32_t nid) {
  const in_addr address{htonl(nid)};
  char text[INET_ADDRSTRLEN] = {};
  inet_ntop(AF_INET, &address, text, sizeof text);
  return text;
}

std::vector<InterfaceAddress> list_interface_addresses() {
  std::vector<InterfaceAddress> addresses;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return addresses;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in socket_address{};
    std::memcpy(&socket_address, entry->ifa_addr, sizeof socket_address);
    addresses.push_back({.name = entry->ifa_name,
                         .index = if_nametoindex(entry->ifa_name),
                         .address = ntohl(socket_address.sin_addr.s_addr),
                         .up = (entry->ifa_flags & IFF_UP) != 0,
                         .loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0});
  }
  freeifaddrs(first);
  return addresses;
}

std::uint32_t choose_node_id(std::span<const InterfaceAddress> addresses, const std::string& name) {
  const InterfaceAddress* best = nullptr;
  for (const InterfaceAddress& candidate : addresses) {
    if (candidate.address == 0) continue;
    if (!name.empty()) {
      if (candidate.name == name) return candidate.address;
      continue;
    }
    if (!candidate.up || candidate.loopback) continue;
    if (best == nullptr || candidate.index < best->index) best = &candidate;
  }
  return best == nullptr ? 0 : best->address;
}

std::uint32_t find_node_id(std::uint32_t configured_nid, const std::string& interface_name) {
  if (configured_nid != 0) return configured_nid;
  const auto addresses = list_interface_addresses();
  if (!interface_name.empty()) {
    if (const std::uint32_t nid = choose_node_id(addresses, interface_name); nid != 0) return nid;
    log_error("PORTOFU_INTERFACE=%s has no IPv4 address on this node; the first interface that is up is taken",
              interface_name.c_str());
  }
  const std::uint32_t nid = choose_node_id(addresses, "");
  return nid != 0 ? nid : kLoopbackNodeId;
}

}  // namespace portofu
