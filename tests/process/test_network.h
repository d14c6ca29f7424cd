#pragma once
// Loopback networks of their own for the tests that run at the same time: 127.64.0.0 to 127.127.255.255 are addresses
// of every Linux machine. The number comes from the process ID, so tests meet only when theirs are 16384 apart.

#include <arpa/inet.h>
#include <unistd.h>

#include <cstdint>
#include <string>

namespace portofu {

/// The network with 256 addresses of this test program, whose lowest byte is 0. To be called before anything is forked,
/// so that children agree.
inline std::uint32_t test_network() {
  static const std::uint32_t base = 0x7f400000u | (static_cast<std::uint32_t>(getpid()) & 0x3fff) << 8;
  return base;
}

/// @param host  1 to 254
inline std::string test_address(int host) {
  const in_addr address{htonl(test_network() + static_cast<std::uint32_t>(host))};
  return inet_ntoa(address);
}

}  // namespace portofu
