#pragma once
// Facet of a wire: payloads that stay in the memory of their sender until the receiver is done with them.

#include <cstddef>
#include <cstdint>

namespace portofu {

struct Link;

/// Payload that stays where it is.
struct Loan {
  const std::byte* payload = nullptr;
  std::uint32_t bytes = 0;    ///< At most Loans::most_lent_bytes.
  std::uint64_t message = 0;  ///< Number of the first packet of the message (next_packet).
  std::uint64_t offset = 0;   ///< Of the payload in the message.
  bool last = false;          ///< Of the message. has_taken is asked for the last packet of a message that was lent.
};

/// Called on duty; returns at once.
class Loans {
 public:
  /// Longest payload of a packet that lend makes now; 0: it makes none.
  virtual std::uint32_t most_lent_bytes(const Link& link) const = 0;

  /// Claims a packet whose payload stays where it is: memory of this process that the peer reads itself. It must not
  /// change until has_taken says so. Publish or discard follow as for Wire::claim.
  /// @return false if that cannot be done, now or ever: then Wire::claim is the way
  virtual bool lend(Link& link, const Loan& loan) = 0;

  /// Number of the packet that is published next on a link.
  virtual std::uint64_t next_packet(const Link& link) const = 0;

  /// Whether the peer is done with all that was lent with packets before this number. If not, it will wake an engine
  /// that sleeps.
  virtual bool has_taken(Link& link, std::uint64_t packet) = 0;

 protected:
  ~Loans() = default;
};

}  // namespace portofu
