#include "engine/segment/bell_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace portofu {
namespace {

/// The kernel's names are a zero byte and five hexadecimal digits (unix(7), autobind); ours is that number plus one.
constexpr int kNameDigits = 5;
constexpr socklen_t kNameLength = offsetof(sockaddr_un, sun_path) + 1 + kNameDigits;
constexpr std::uint32_t kNameCount = 1u << (4 * kNameDigits);

int make_socket() { return socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); }

}  // namespace

BellSocket::~BellSocket() {
  if (fd_ >= 0) close(fd_);
}

bool BellSocket::open() {
  if (fd_ >= 0) return true;
  const int fd = make_socket();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socklen_t length = sizeof address;
  if (fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address.sun_family) == 0 &&
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0 && length == kNameLength) {
    fd_ = fd;
    name_ = static_cast<std::uint32_t>(std::strtoul(address.sun_path + 1, nullptr, 16)) + 1;
    return true;
  }
  if (fd >= 0) close(fd);
  return false;
}

void BellSocket::drain() {
  char byte = 0;
  while (recv(fd_, &byte, sizeof byte, 0) >= 0) {
  }
}

void ring_socket(std::uint32_t name) {
  if (name == 0 || name > kNameCount) return;
  const int fd = make_socket();
  if (fd < 0) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path + 1, kNameDigits + 1, "%05x", name - 1);
  const char byte = 0;
  sendto(fd, &byte, sizeof byte, MSG_NOSIGNAL, reinterpret_cast<sockaddr*>(&address), kNameLength);
  close(fd);
}

}  // namespace portofu
