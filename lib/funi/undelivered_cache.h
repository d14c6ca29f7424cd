#pragma once
// The undelivered packet cache with its registers TICKET and OUT. @spec thesis, 2.9, 5.2.4, 5.3
//
// SPEC: 5.2.4 asserts `hi` and `full` when bits of TICKET are *set*, but a set bit is a free line (3.1.2). Here they
// are asserted when the bits are clear.

#include <array>
#include <cstdint>

#include "lib/funi/packet.h"

namespace portofu::funi {

/// A packet as it travels: a slot, of which so many words are used.
struct Line {
  Slot words;
  std::uint32_t used;  ///< Words.
  std::uint32_t node;
  Traffic traffic;
  std::uint64_t number;  ///< Packets that were kept before.
};

/// Eight lines for each of 32 contexts, of which one is current.
class UndeliveredCache {
 public:
  /// Which lines are meant: the lower five bits of the group (3.1.2).
  void set_context(std::uint32_t group) { context_ = group % kContexts; }

  /// Free lines, one bit each.
  std::uint32_t ticket() const { return ticket_; }
  void set_ticket(std::uint32_t ticket) { ticket_ = ticket & 0xffu; }

  /// "Even a reply finds no line."
  bool is_full() const { return ticket_ == 0; }
  /// "Only the cache lines reserved for reply-priority packets are available."
  bool is_for_replies_only() const { return (ticket_ & ((1u << kLinesForAll) - 1)) == 0; }
  bool has_room_for(Traffic traffic) const { return traffic == kReply ? !is_full() : !is_for_replies_only(); }

  /// The free line with the lowest number, which the retrieval fills; there is one.
  unsigned free_line() const;
  /// What it has filled waits for dispatch from now on.
  void keep(unsigned line);

  /// The line that waits for dispatch and has the oldest packet: what nobody rejects leaves in the order of its queue.
  /// @return kLines if there is none
  unsigned line_to_dispatch() const;
  void mark_sent(unsigned line) { out_ &= ~(1u << line); }

  bool is_outstanding(unsigned line) const { return (out_ >> line & 1u) == 0; }
  bool has_outstanding() const { return out_ != 0xffu; }

  /// An acknowledgement has come. A rejected line waits for dispatch again; any other becomes free.
  void acknowledge(unsigned line, bool accepted);

  Line& line(unsigned number) { return lines_[context_][number]; }

  /// The other way.
  /// @return kLines for a line of another context
  unsigned number_of(const Line& line) const;

  /// For the network, which reads lines where they are.
  std::array<std::array<Line, kLines>, kContexts>& memory() { return lines_; }

 private:
  std::uint32_t context_ = 0;
  std::uint32_t ticket_ = 0xff;  ///< Bit set: the line is free.
  std::uint32_t out_ = 0xff;     ///< Bit clear: the line has left, and its acknowledgement has not come.
  std::uint64_t kept_ = 0;
  std::array<std::array<Line, kLines>, kContexts> lines_{};
};

}  // namespace portofu::funi
