#pragma once
// What memory of the application held at one moment, to see later whether it has changed. Its cost is bounded.

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/memory/memory_segment.h"

namespace portofu {

/// Up to kWholeBytes all bytes are kept, so a change is known by its bit. Longer memory is cut into kPieces, and each
/// has a checksum of its first kPieceBytes: up to 1 MiB that is every byte, of more it is 1 MiB.
class Fingerprint {
 public:
  static constexpr std::uint64_t kWholeBytes = 4096;
  static constexpr std::uint64_t kPieces = 64;
  static constexpr std::uint64_t kPieceBytes = 16384;

  struct Change {
    std::uint64_t first;  ///< Offset into the memory: the first byte, or where the first piece begins.
    std::uint64_t bytes;  ///< 1, or the length of that piece.
    int bit;              ///< The lowest bit that differs; -1: only the piece is known.
  };

  Fingerprint() = default;
  /// Memory that cannot be read gives a fingerprint that never differs.
  Fingerprint(MemorySegment segment, std::uint64_t offset, std::uint64_t bytes);

  std::uint64_t bytes() const { return bytes_; }

  /// @return nothing if the memory holds what it held, or cannot be read any more
  std::optional<Change> find_change() const;

  /// First byte of the memory; nullptr: it is scattered, or there is none.
  const std::byte* begin() const { return run_; }
  bool overlaps(const std::byte* other, std::uint64_t other_bytes) const {
    return run_ != nullptr && other != nullptr && other < run_ + bytes_ && run_ < other + other_bytes;
  }

 private:
  std::uint64_t piece_bytes() const { return (bytes_ + kPieces - 1) / kPieces; }
  bool sum_piece(std::uint64_t piece, std::uint64_t* sum) const;

  MemorySegment segment_;
  std::uint64_t offset_ = 0;
  std::uint64_t bytes_ = 0;
  const std::byte* run_ = nullptr;
  bool readable_ = false;
  std::vector<std::byte> whole_;
  std::vector<std::uint64_t> sums_;
};

}  // namespace portofu
