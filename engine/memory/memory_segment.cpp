// Where steps 3 and 7 touch the application's memory.

#include "engine/memory/memory_segment.h"

#include <algorithm>
#include <array>
#include <utility>

namespace portofu {

MemorySegment::MemorySegment(const MemorySegment& other) : start_(other.start_), length_(other.length_) {
  if (other.pieces_ != nullptr) pieces_ = std::make_unique<const std::vector<Piece>>(*other.pieces_);
}

bool MemorySegment::describe(const iovec* pieces, std::uint64_t piece_count) {
  clear();
  std::vector<Piece> used;
  used.reserve(piece_count);
  std::uint64_t length = 0;
  for (std::uint64_t i = 0; i < piece_count; ++i) {
    const std::uint64_t bytes = pieces[i].iov_len;
    if (bytes == 0) continue;
    if (bytes > UINT64_MAX - length) return false;
    used.push_back({static_cast<std::byte*>(pieces[i].iov_base), length, bytes});
    length += bytes;
  }
  if (used.size() == 1) {  // One piece is a contiguous region.
    start_ = used.front().start;
  } else if (!used.empty()) {
    pieces_ = std::make_unique<const std::vector<Piece>>(std::move(used));
  }
  length_ = length;
  return true;
}

const MemorySegment::Piece& MemorySegment::piece_at(std::uint64_t offset) const {
  auto after = std::upper_bound(pieces_->begin(), pieces_->end(), offset,
                                [](std::uint64_t wanted, const Piece& piece) { return wanted < piece.offset; });
  return *std::prev(after);
}

std::byte* MemorySegment::address_in_pieces(std::uint64_t offset) const {
  const Piece& piece = piece_at(offset);
  return piece.start + std::min(offset - piece.offset, piece.bytes);
}

MemorySegment::Run MemorySegment::run_at(std::uint64_t offset, std::uint64_t bytes) const {
  if (pieces_ == nullptr) return {sum(offset), bytes};
  const Piece& piece = piece_at(offset);
  const std::uint64_t into = offset - piece.offset;
  return {piece.start + into, std::min(bytes, piece.bytes - into)};
}

bool MemorySegment::read_pieces(std::uint64_t offset, std::byte* target, std::uint64_t bytes, bool streaming) const {
  const auto copy = streaming ? guarded_copy_streaming : guarded_copy;
  while (bytes > 0) {
    const Run run = run_at(offset, bytes);
    if (!copy(target, run.start, run.bytes)) return false;
    offset += run.bytes, target += run.bytes, bytes -= run.bytes;
  }
  return true;
}

bool MemorySegment::write_pieces(std::uint64_t offset, const std::byte* source, std::uint64_t bytes) const {
  while (bytes > 0) {
    const Run run = run_at(offset, bytes);
    if (!guarded_copy(run.start, source, run.bytes)) return false;
    offset += run.bytes, source += run.bytes, bytes -= run.bytes;
  }
  return true;
}

bool MemorySegment::write_from_sender(std::uint64_t offset, Payload source, std::uint64_t bytes) const {
  constexpr std::uint64_t kLongRun = 4096;  // Of shorter ones many are worth one call of the kernel.
  std::array<std::byte, 16384> buffer;
  while (bytes > 0 && !source.is_placed()) {
    Run run = run_at(offset, bytes);
    if (run.bytes >= std::min(kLongRun, bytes)) {
      if (!source.read_to(run.start, run.bytes)) return false;
    } else {
      run.bytes = std::min<std::uint64_t>(bytes, buffer.size());
      if (!source.read_to(buffer.data(), run.bytes) || !write_pieces(offset, buffer.data(), run.bytes)) return false;
    }
    offset += run.bytes, source = source.behind(run.bytes), bytes -= run.bytes;
  }
  return true;
}

}  // namespace portofu
