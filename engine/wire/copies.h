#pragma once
// Facet of a wire: who copies what was lent (loans.h), and when. The receiver reads several messages at once, later; or
// it offers the place of a message, and the sender, too, copies packets of it.

#include <cstddef>
#include <cstdint>

#include "engine/topology/process_id.h"

namespace portofu {

struct Link;

/// Called on duty; returns at once, but for take_offers_back.
class Copies {
 public:
  // ---- The sender ----

  /// Messages from this length on are best lent in two packets at least: either side may copy some.
  /// @param message  Loan::message of the one that is asked for
  virtual std::uint64_t shares_from_bytes(Link& link, std::uint64_t message) = 0;

  /// Copies for the peer some of what was lent to it, if it has offered a place. For who has nothing better to do.
  /// @return false if there was nothing that could be done
  virtual bool help(Link& link) = 0;

  // ---- The receiver ----

  /// The sender of the packet that peek returned may write the message that begins with it to `target`: those packets
  /// of it that lie within the first `bytes`.
  virtual void offer(std::byte* target, std::uint64_t bytes) = 0;

  /// Nobody writes any more to what was offered to this source. Waits for a copy that is under way.
  virtual void take_offers_back(ProcessId source) = 0;

  /// The payload of the packet that peek returned is in the memory of its sender (Payload::is_in_memory). Its first
  /// `bytes` are read to `target` by read_now, at once with those of the packets behind it. The packet is released as
  /// any other, but its sender hears of that by give_back_read only.
  /// @return false if it has to be read now: there are kMostReadLater already, or one of another source
  virtual bool read_later(std::byte* target, std::uint64_t bytes) = 0;
  static constexpr std::uint32_t kMostReadLater = 8;

  /// Reads what was to be read later. @return bit k: the k-th payload has been read
  virtual std::uint32_t read_now() = 0;

  /// To be called after read_now, when all is done that the sender may rely on once it has its memory back.
  virtual void give_back_read() = 0;

 protected:
  ~Copies() = default;
};

}  // namespace portofu
