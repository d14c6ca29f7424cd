#pragma once
// Numbers of the thesis, and what is read out of a header word. @spec thesis, 3.1, 3.2

#include <funi.h>

#include <array>
#include <cstdint>

namespace portofu::funi {

/// Replies come first: "all FUNi transactions always give precedence to reply packets" (3).
enum Traffic : unsigned { kReply = 0, kRequest = 1 };
inline constexpr std::size_t kClasses = 2;

inline constexpr unsigned kLines = 8;         ///< Of the undelivered packet cache, for each context (5.3).
inline constexpr unsigned kLinesForAll = 6;   ///< The others are for replies (5.2.4).
inline constexpr unsigned kContexts = 32;     ///< Whose lines the cache keeps (5.3).
inline constexpr unsigned kHeldPackets = 10;  ///< "Buffering of up to ten network packets" for each class (5.5).
inline constexpr std::uint32_t kSlotBytes = 4 * FUNI_SLOT_WORDS;
inline constexpr std::uint32_t kTransferHead = 4;  ///< Words before the data of a transfer: a notice (3.2.4).

using Slot = std::array<std::uint32_t, FUNI_SLOT_WORDS>;

inline bool is_transfer(std::uint32_t header) { return (header & FUNI_XFER) != 0; }

/// "If a length longer than 21 is specified, the packet is assumed 21-word long" (3.2.2).
inline std::uint32_t message_words(std::uint32_t header) {
  const std::uint32_t words = FUNI_HEADER_LENGTH(header);
  return words < FUNI_MESSAGE_WORDS ? words : FUNI_MESSAGE_WORDS;
}

/// The same header with another length, of a transfer or not.
inline std::uint32_t with_length(std::uint32_t header, std::uint32_t words, bool transfer) {
  return (header & 0x3fe0ffffu) | words << 16 | (transfer ? FUNI_XFER : 0u);
}

}  // namespace portofu::funi
