#pragma once
// An operation that goes as several. Each part counts its end at a gate and leaves its failure there; behind the last
// one the whole is told of, and counted, once.

#include "lib/libfabric/transmit.h"

namespace portofu::fabric {

/// Used again when its operation is over. On duty.
struct Gate {
  Handle ct_handle = 0;     ///< Counts the ends of parts.
  Handle eq_handle = 0;     ///< Has the failures among them.
  std::uint64_t parts = 0;  ///< That it counts.

  CountingEvent& counter(const Core& core) const { return *interface_of(core).cts.find(ct_handle); }
};

class Parts {
 public:
  /// @param type  of all parts
  /// @return 0 | -FI_EAGAIN: there is no gate | -FI_EOPBADSTATE | -FI_ENOMEM
  ssize_t open(Endpoint& ep, const TransmitCall& whole, PacketType type, std::size_t count);

  /// What the whole says of one part; its memory is to be set.
  TransmitCall cut(const TransmitCall& whole, std::size_t index) const;

  /// The data of the whole is told with the last part, which leaves when all others have been done.
  void tell_at_end(Descriptor& part, std::size_t index) const {
    if ((part.flags & kFlagTellsData) == 0) return;
    if (index + 1 == count_) {
      part.portals.parts_before = static_cast<std::uint16_t>(index);
    } else {
      part.flags &= static_cast<std::uint8_t>(~kFlagTellsData);
    }
  }

  /// A part could not be posted, so nobody is told of those before it, and none of them waits any more.
  /// @param index  of the part
  /// @return `result`
  ssize_t give_up(ssize_t result, std::size_t index);

 private:
  /// Of several parts. Throws bad_alloc without memory.
  ssize_t open_whole(const TransmitCall& whole, PacketType type);

  Endpoint* ep_ = nullptr;
  std::size_t count_ = 0;
  Gate* gate_ = nullptr;  ///< nullptr: there is one part.
};

/// On duty: takes parts of an operation out that wait for a counter. @param ep  whose it is
void take_parts_out(Core& core, const Endpoint& ep, const Gate& gate);

/// On duty: the domain closes.
void close_gates(Core& core, Domain& domain);

}  // namespace portofu::fabric
