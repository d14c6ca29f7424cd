#include "engine/check/fingerprint.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

namespace portofu {

Fingerprint::Fingerprint(MemorySegment segment, std::uint64_t offset, std::uint64_t bytes)
    : segment_(std::move(segment)), offset_(offset), bytes_(bytes) {
  if (bytes == 0 || !segment_.fits(offset, bytes)) return;
  const MemorySegment::Run run = segment_.run_at(offset, bytes);
  if (run.bytes == bytes) run_ = run.start;
  if (bytes <= kWholeBytes) {
    whole_.resize(bytes);
    readable_ = segment_.read(offset, whole_.data(), bytes);
    return;
  }
  sums_.resize(kPieces);
  readable_ = true;
  for (std::uint64_t piece = 0; piece < kPieces; ++piece) readable_ = readable_ && sum_piece(piece, &sums_[piece]);
}

/// FNV-1a over words: quick enough, and a change of one bit always shows.
bool Fingerprint::sum_piece(std::uint64_t piece, std::uint64_t* sum) const {
  const std::uint64_t begin = std::min(piece * piece_bytes(), bytes_);
  const std::uint64_t left = std::min({piece_bytes(), kPieceBytes, bytes_ - begin});
  std::array<std::byte, kPieceBytes> copy;
  if (left != 0 && !segment_.read(offset_ + begin, copy.data(), left)) return false;
  std::uint64_t value = 0xcbf29ce484222325;
  for (std::uint64_t at = 0; at < left; at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, copy.data() + at, std::min<std::uint64_t>(sizeof word, left - at));
    value = (value ^ word) * 0x100000001b3;
  }
  *sum = value;
  return true;
}

std::optional<Fingerprint::Change> Fingerprint::find_change() const {
  if (!readable_) return std::nullopt;
  if (bytes_ <= kWholeBytes) {
    std::vector<std::byte> now(bytes_);
    if (!segment_.read(offset_, now.data(), bytes_)) return std::nullopt;
    const auto [old_byte, new_byte] = std::mismatch(whole_.begin(), whole_.end(), now.begin());
    if (old_byte == whole_.end()) return std::nullopt;
    const auto difference = static_cast<unsigned>(*old_byte ^ *new_byte);
    return Change{static_cast<std::uint64_t>(old_byte - whole_.begin()), 1, std::countr_zero(difference)};
  }
  for (std::uint64_t piece = 0; piece < kPieces; ++piece) {
    std::uint64_t sum = 0;
    if (!sum_piece(piece, &sum)) return std::nullopt;
    const std::uint64_t begin = std::min(piece * piece_bytes(), bytes_);
    if (sum != sums_[piece]) return Change{begin, std::min(piece_bytes(), bytes_ - begin), -1};
  }
  return std::nullopt;
}

}  // namespace portofu
