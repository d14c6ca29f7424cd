#include "engine/segment/bell_socket.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "engine/queue/cancellation.h"

namespace portofu {
namespace {

/// The kernel's names are a zero byte and five hexadecimal digits (unix(7), autobind); ours is that number plus one.
constexpr int kNameDigits = 5;
constexpr socklen_t kNameLength = offsetof(sockaddr_un, sun_path) + 1 + kNameDigits;
constexpr std::uint32_t kNameCount = 1u << (4 * kNameDigits);

OwnDescriptor make_socket() { return OwnDescriptor(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)); }

}  // namespace

bool BellSocket::open() {
  if (descriptor_.is_ours()) return true;
  OwnDescriptor made = make_socket();
  const int fd = made.number();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socklen_t length = sizeof address;
  if (fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address.sun_family) == 0 &&
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0 && length == kNameLength) {
    descriptor_ = std::move(made);
    name_ = static_cast<std::uint32_t>(std::strtoul(address.sun_path + 1, nullptr, 16)) + 1;
    return true;
  }
  return false;
}

void BellSocket::drain() {
  char byte = 0;
  while (recv(descriptor_.number(), &byte, sizeof byte, 0) >= 0) {
  }
}

void ring_socket(std::uint32_t name) {
  if (name == 0 || name > kNameCount) return;
  const NoCancellation whole;
  const OwnDescriptor from = make_socket();
  if (!from) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path + 1, kNameDigits + 1, "%05x", name - 1);
  const char byte = 0;
  sendto(from.number(), &byte, sizeof byte, MSG_NOSIGNAL, reinterpret_cast<sockaddr*>(&address), kNameLength);
}

}  // namespace portofu
