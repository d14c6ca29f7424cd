#pragma once
// Whether a process is there. Fabrics hide it: an RDM endpoint tries again for ever where nobody listens, and a peer
// that is slow, stopped, or dead looks the same. The kernel knows. Every process with an endpoint owns the datagram
// port of the same number; a datagram to a port that nobody owns comes back as an error (ICMP). Nobody reads what is
// sent there, so nothing depends on what the peer does.

#include <cstdint>

namespace portofu {

/// Used by one thread at a time.
class Doorplate {
 public:
  Doorplate() = default;
  ~Doorplate();
  Doorplate(const Doorplate&) = delete;
  Doorplate& operator=(const Doorplate&) = delete;

  /// Takes the port; 0: any, for one who only knocks. @return false if somebody else has it
  bool open(std::uint32_t nid, std::uint16_t port);

  /// Knocks at another one. If nobody is there, take_absent says so, some time after.
  void knock(std::uint32_t nid, std::uint16_t port);

  /// @return false if it is not known of anybody else that he is not there
  bool take_absent(std::uint32_t* nid, std::uint16_t* port);

  /// Has an error (POLLERR) when take_absent would find something; never readable.
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

}  // namespace portofu
