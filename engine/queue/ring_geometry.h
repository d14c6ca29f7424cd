#pragma once
// Sizes of one CellRing and the arithmetic that both ends share. They stand in the segment's descriptor, so that both
// processes lay the same ring over the same bytes.

#include <bit>
#include <cstdint>

namespace portofu {

/// One cell: the header's line, then the line of an inline payload.
inline constexpr std::uint32_t kCellBytes = 128;

/// A payload up to this size travels in its cell.
inline constexpr std::uint32_t kInlineBytes = 64;

/// A payload up to this size that is its whole message travels in the header's line.
inline constexpr std::uint32_t kShortBytes = 8;

/// Most bytes of a payload that stays in the sender's memory. A receiver copies it in one go (0.1 ms), by one call
/// of the kernel, which costs as much as copying 10 KiB whatever it copies.
inline constexpr std::uint32_t kMostLentBytes = 1 << 20;

/// The same while it is not known that lending is the better way: that is found out with little.
inline constexpr std::uint32_t kMostTriedBytes = 1 << 17;

/// As how many packets one with so many bytes of payload counts, for who sends and who receives so many in one go.
constexpr int packets_worth(std::uint64_t payload_bytes) { return 1 + static_cast<int>(payload_bytes / 131'072); }

/// Unit of the data area that carries longer payloads.
inline constexpr std::uint32_t kGranuleBytes = 64;

/// Acknowledgements that the sender has yet to take, at most.
inline constexpr std::uint32_t kAckSlots = 64;

/// Bytes in front of the cells: one line for each of the two writers, far enough apart for the adjacent-line
/// prefetcher, and acknowledgements.
inline constexpr std::uint32_t kRingControlBytes = 256 + 8 * kAckSlots;

/// @return `bytes` rounded up to whole granules
constexpr std::uint32_t round_up_to_granule(std::uint32_t bytes) {
  return (bytes + kGranuleBytes - 1) & ~(kGranuleBytes - 1);
}

/// Sizes of one ring, in cells and bytes.
struct RingGeometry {
  std::uint32_t cell_count = 128;          ///< Packets under way at most; a power of two.
  std::uint32_t data_bytes = 32 * 1024;    ///< Room for payloads that are not inline; a power of two.
  std::uint32_t max_payload_bytes = 8192;  ///< Longest payload of one packet; a multiple of 64.

  friend bool operator==(const RingGeometry&, const RingGeometry&) = default;

  /// @return true if a ring of these sizes works: the sequence word has 16 bits for the lap and 15 for the granule,
  ///         and an empty data area holds the longest payload wherever its head stands (hence the factor two)
  constexpr bool valid() const {
    return std::has_single_bit(cell_count) && cell_count >= 4 && cell_count <= 32768 &&
           std::has_single_bit(data_bytes) && data_bytes <= 1024u * 1024 && max_payload_bytes >= kInlineBytes &&
           max_payload_bytes % kGranuleBytes == 0 && max_payload_bytes <= data_bytes / 2;
  }

  /// @return bytes of the whole ring
  constexpr std::uint64_t bytes() const {
    return std::uint64_t{kRingControlBytes} + std::uint64_t{cell_count} * kCellBytes + data_bytes;
  }

  /// @return the smallest ring that carries the same packets, for where memory is short
  constexpr RingGeometry smallest() const {
    return {cell_count < 16 ? cell_count : 16, std::bit_ceil(2 * max_payload_bytes), max_payload_bytes};
  }
};

}  // namespace portofu
