#pragma once
// Where a port of a node is, as sockets and the fabric want to be told.

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstdint>

namespace portofu {

inline sockaddr_in socket_address(std::uint32_t nid, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(nid);
  address.sin_port = htons(port);
  return address;
}

}  // namespace portofu
