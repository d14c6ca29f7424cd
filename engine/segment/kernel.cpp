// That of the system.

#include "engine/segment/kernel.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <utility>

#include "engine/queue/assert.h"
#include "engine/queue/clock.h"
#include "engine/queue/random_bytes.h"
#include "engine/segment/own_descriptor.h"
#include "engine/topology/socket_address.h"

namespace portofu {
namespace {

sockaddr_in to_system(PortAddress at) { return socket_address(at.nid, at.port); }

PortAddress from_system(const sockaddr_in& address) {
  return {ntohl(address.sin_addr.s_addr), ntohs(address.sin_port)};
}

class UdpSocket final : public DatagramSocket {
 public:
  explicit UdpSocket(OwnDescriptor made) : descriptor_(std::move(made)) {}

  std::uint16_t port() const override {
    sockaddr_in address{};
    socklen_t length = sizeof address;
    const bool known = getsockname(fd(), reinterpret_cast<sockaddr*>(&address), &length) == 0;
    return known ? ntohs(address.sin_port) : 0;
  }
  bool connect(PortAddress to) override {
    const sockaddr_in address = to_system(to);
    return ::connect(fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  bool send(std::span<const std::byte> datagram) override {
    return ::send(fd(), datagram.data(), datagram.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(datagram.size());
  }
  bool send_to(PortAddress to, std::span<const std::byte> datagram) override {
    const sockaddr_in address = to_system(to);
    return ::sendto(fd(), datagram.data(), datagram.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&address),
                    sizeof address) == static_cast<ssize_t>(datagram.size());
  }
  ssize_t receive(std::span<std::byte> into, PortAddress* from) override {
    sockaddr_in sender{};
    socklen_t length = sizeof sender;
    const ssize_t bytes =
        recvfrom(fd(), into.data(), into.size(), MSG_TRUNC, reinterpret_cast<sockaddr*>(&sender), &length);
    if (bytes >= 0 && from != nullptr) *from = from_system(sender);
    return bytes;
  }
  int fd() const override { return descriptor_.number(); }
  bool is_ours() const override { return descriptor_.is_ours(); }

 private:
  OwnDescriptor descriptor_;
};

class SystemKernel final : public Kernel {
 public:
  std::unique_ptr<DatagramSocket> open_socket(PortAddress at) override {
    OwnDescriptor made(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!made) return nullptr;
    const int on = 1;
    const sockaddr_in address = to_system(at);
    if (at.port != 0 && setsockopt(made.number(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0) return nullptr;
    if (bind(made.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return nullptr;
    return std::make_unique<UdpSocket>(std::move(made));
  }
  std::uint64_t now_ns() override { return monotonic_ns(); }
  bool draw_random(void* into, std::size_t bytes) override { return portofu::draw_random(into, bytes); }
  void wait(std::span<DatagramSocket* const> sockets, const Meanwhile& meanwhile) override {
    PORTOFU_ASSERT(sockets.size() <= kMostWaited);
    std::array<pollfd, kMostWaited> waited{};
    for (std::size_t i = 0; i < sockets.size(); ++i)
      waited[i] = {sockets[i] != nullptr ? sockets[i]->fd() : -1, POLLIN, 0};
    poll(waited.data(), sockets.size(), meanwhile ? 1 : 5);
    if (meanwhile) meanwhile();
  }
};

constinit Kernel* used_kernel = nullptr;  ///< nullptr: that of the system.

}  // namespace

Kernel& kernel() {
  // Never destroyed: engines that the application forgot to close may outlive static objects.
  static SystemKernel* const system = new SystemKernel;
  return used_kernel != nullptr ? *used_kernel : *system;
}

Kernel* use_kernel(Kernel* other) { return std::exchange(used_kernel, other); }

}  // namespace portofu
