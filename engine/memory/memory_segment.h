#pragma once
// A region of the application's memory: contiguous, or a list of pieces that count as one. MDs, LEs and MEs each have
// one. Offsets are bytes from the start of the region; bounds are the caller's business (`fits`), access faults are
// reported.

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/memory/guarded_copy.h"
#include "engine/wire/payload.h"

namespace portofu {

/// @spec Portals 4.3, 3.10.1, 3.10.2, 3.11.1
class MemorySegment {
 public:
  MemorySegment() = default;
  MemorySegment(const MemorySegment& other);
  MemorySegment(MemorySegment&&) = default;
  MemorySegment& operator=(MemorySegment&&) = default;
  /// A contiguous region; need not be mapped; may be the whole address space (nullptr, 2^64 - 1).
  void describe(void* start, std::uint64_t length) {
    start_ = static_cast<std::byte*>(start);
    length_ = length;
    pieces_.reset();
  }

  /// A scattered region. The list is copied, so the caller may give it up while operations are under way.
  /// @return false if the pieces add up to more than 2^64 - 1 bytes; throws bad_alloc or length_error without memory
  bool describe(const iovec* pieces, std::uint64_t piece_count);

  /// Forgets the region.
  void clear() { describe(static_cast<void*>(nullptr), 0); }

  std::uint64_t length() const { return length_; }

  /// Whether [offset, offset + bytes) lies inside.
  bool fits(std::uint64_t offset, std::uint64_t bytes) const { return offset <= length_ && bytes <= length_ - offset; }

  /// Address of the byte at `offset`. Beyond the end: the sum of start and offset, or the end of the last piece.
  std::byte* address(std::uint64_t offset) const {
    return pieces_ == nullptr ? sum(offset) : address_in_pieces(offset);
  }

  /// Copies out of or into the region. The range must fit.
  /// @return false if memory was not accessible
  /// @param streaming  past the caches (guarded_copy_streaming)
  bool read(std::uint64_t offset, std::byte* target, std::uint64_t bytes, bool streaming = false) const {
    if (pieces_ != nullptr || streaming) [[unlikely]]
      return read_pieces(offset, target, bytes, streaming);
    return guarded_copy(target, sum(offset), bytes);
  }
  bool write(std::uint64_t offset, const std::byte* source, std::uint64_t bytes) const {
    if (pieces_ != nullptr) [[unlikely]]
      return write_pieces(offset, source, bytes);
    return guarded_copy(sum(offset), source, bytes);
  }
  bool write(std::uint64_t offset, Payload source, std::uint64_t bytes) const {
    if (!source.is_here()) [[unlikely]]
      return write_from_sender(offset, source, bytes);
    return write(offset, source.here(), bytes);
  }

  /// The contiguous memory at `offset`, at most `bytes` of it.
  struct Run {
    std::byte* start;
    std::uint64_t bytes;
  };
  Run run_at(std::uint64_t offset, std::uint64_t bytes) const;

 private:
  friend struct InspectedFields;  // What onlookers read (engine/inspect).

  struct Piece {
    std::byte* start;
    std::uint64_t offset;  ///< Of its first byte in the region.
    std::uint64_t bytes;
  };
  /// Not start_ + offset: start_ may be nullptr, and the sum beyond the end is an address, too (3.13.4).
  std::byte* sum(std::uint64_t offset) const {
    return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(start_) + offset);
  }
  bool read_pieces(std::uint64_t offset, std::byte* target, std::uint64_t bytes, bool streaming) const;
  bool write_pieces(std::uint64_t offset, const std::byte* source, std::uint64_t bytes) const;
  bool write_from_sender(std::uint64_t offset, Payload source, std::uint64_t bytes) const;
  std::byte* address_in_pieces(std::uint64_t offset) const;
  const Piece& piece_at(std::uint64_t offset) const;

  std::byte* start_ = nullptr;  ///< Of a contiguous region.
  std::uint64_t length_ = 0;    ///< Bytes in all.
  /// Of a scattered region, two at least, empty ones left out. Most regions are contiguous, and of those every message
  /// makes and moves one: a vector in its place would be three words instead of one.
  std::unique_ptr<const std::vector<Piece>> pieces_;
};

}  // namespace portofu
