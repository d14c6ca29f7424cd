#pragma once
// What a sleeper can hand to poll(2) beside other descriptors, and what a peer rings: a datagram socket under a name
// that the kernel chooses (abstract namespace), so that nothing is left behind by the dead. The datagrams mean nothing;
// whoever sends one without cause wakes us without cause.

#include <cstdint>

#include "engine/segment/own_descriptor.h"

namespace portofu {

/// The sleeper's end. Used by one thread at a time.
class BellSocket {
 public:
  /// Opens it, if it is not open, or if the program has closed it. @return false if the system gives none
  bool open();

  int fd() const { return descriptor_.number(); }

  /// For ring_socket; never 0 once it is open.
  std::uint32_t name() const { return name_; }

  /// Takes what was sent.
  void drain();

 private:
  OwnDescriptor descriptor_;
  std::uint32_t name_ = 0;
};

/// Wakes whoever polls the socket of that name; nothing happens if there is none.
void ring_socket(std::uint32_t name);

}  // namespace portofu
