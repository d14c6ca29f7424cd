#pragma once
// What the names of processes need of the kernel besides files: datagrams between nodes, time, and random numbers.
// Process-wide, because the end of any segment tells other nodes. A simulation of several nodes gives each of its
// processes another one.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace portofu {

/// A datagram port of a node.
struct PortAddress {
  std::uint32_t nid = 0;
  std::uint16_t port = 0;

  friend bool operator==(const PortAddress&, const PortAddress&) = default;
};

/// One socket. Functions return at once; what fails says why in errno.
class DatagramSocket {
 public:
  virtual ~DatagramSocket() = default;

  virtual std::uint16_t port() const = 0;

  /// From now on only that port is heard, and that nobody has it is an error of send or receive: ECONNREFUSED.
  virtual bool connect(PortAddress to) = 0;
  virtual bool send(std::span<const std::byte> datagram) = 0;
  virtual bool send_to(PortAddress to, std::span<const std::byte> datagram) = 0;

  /// @param from  nullptr, or who has sent it
  /// @return length of the datagram, which may be more than was taken of it; -1: there is none (EAGAIN), or an error
  virtual ssize_t receive(std::span<std::byte> into, PortAddress* from) = 0;

  /// What somebody can wait at.
  virtual int fd() const = 0;

  /// Whether the program has left it to us. Costs a system call.
  virtual bool is_ours() const = 0;
};

/// Called while others are waited for, so that who waits for us gets its answer. Must not open segments.
using Meanwhile = std::function<void()>;

class Kernel {
 public:
  virtual ~Kernel() = default;

  /// @param at  port 0: any free one, of nobody else; another port may be shared with other processes of the node, and
  ///            each datagram comes to one of them (SO_REUSEPORT)
  /// @return nullptr, with errno
  virtual std::unique_ptr<DatagramSocket> open_socket(PortAddress at) = 0;

  /// As monotonic_ns.
  virtual std::uint64_t now_ns() = 0;

  /// As queue/random_bytes.
  virtual bool draw_random(void* into, std::size_t bytes) = 0;

  /// Waits until one of the sockets (none: nullptr) has something, for so long at most.
  /// @param meanwhile  done once at least, and in time for who waits for us; may be empty
  virtual void wait(std::span<DatagramSocket* const> sockets, const Meanwhile& meanwhile) = 0;

  /// Most sockets of a wait.
  static constexpr std::size_t kMostWaited = 16;
};

Kernel& kernel();

/// For a simulation: from now on, nullptr is that of the system. @return what it was
Kernel* use_kernel(Kernel* other);

}  // namespace portofu
