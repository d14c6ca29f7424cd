#include "engine/wire/reliable/receive_window.h"

#include <cstring>

#include "engine/queue/assert.h"
#include "engine/wire/reliable/send_window.h"

namespace portofu {

Admission ReceiveWindow::admit(const FrameHeader& header, std::span<const std::byte> body) {
  if (sequence_before(header.sequence, next_)) return Admission::kDuplicate;
  const std::uint32_t distance = header.sequence - next_;
  if (distance >= kWindowFrames) return Admission::kRefused;
  if ((selected_ >> distance & 1) != 0) return Admission::kDuplicate;
  const bool gap = (header.flags & kFrameGap) != 0;
  if (header.fragment_index >= header.fragment_count || header.fragment_count > kWindowFrames)
    return Admission::kRefused;
  if (gap != body.empty() || header.packet_bytes > max_packet_bytes_) return Admission::kRefused;
  if (header.packet_offset > header.packet_bytes || body.size() > header.packet_bytes - header.packet_offset)
    return Admission::kRefused;
  auto filled = std::make_unique<Slot>();
  filled->bytes = static_cast<std::uint32_t>(body.size());
  filled->packet_bytes = header.packet_bytes;
  filled->offset = header.packet_offset;
  filled->index = header.fragment_index;
  filled->count = header.fragment_count;
  filled->gap = gap;
  if (!gap) {
    filled->data = PacketBuffer(body.size());
    std::memcpy(filled->data.data(), body.data(), body.size());
  }
  held_.add(body.size());
  slots_[header.sequence % kWindowFrames] = std::move(filled);
  selected_ |= std::uint64_t{1} << distance;
  return Admission::kNew;
}

/// Frames of the next packet if all of them are here, else 0.
std::uint32_t ReceiveWindow::complete_frames() const {
  if ((selected_ & 1) == 0) return 0;
  const std::uint32_t count = slots_[next_ % kWindowFrames]->count;
  const std::uint64_t wanted = count == kWindowFrames ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
  return (selected_ & wanted) == wanted ? count : 0;
}

/// Whether the frames make one packet: each is the next piece of it, and there is no gap.
bool ReceiveWindow::is_consistent(std::uint32_t frame_count) {
  const Slot& first = slot(next_);
  std::uint32_t offset = 0;
  for (std::uint32_t i = 0; i < frame_count; ++i) {
    const Slot& piece = slot(next_ + i);
    if (piece.gap || piece.index != i || piece.count != frame_count) return false;
    if (piece.packet_bytes != first.packet_bytes || piece.offset != offset) return false;
    offset += piece.bytes;
  }
  return offset == first.packet_bytes && offset >= sizeof(PacketHeader);
}

void ReceiveWindow::pass(std::uint32_t frame_count) {
  for (std::uint32_t i = 0; i < frame_count; ++i, ++next_) {
    held_.remove(slot(next_).bytes);
    slots_[next_ % kWindowFrames].reset();
  }
  selected_ = frame_count == kWindowFrames ? 0 : selected_ >> frame_count;
}

void ReceiveWindow::clear() {
  for (auto& filled : slots_) {
    if (filled != nullptr) held_.remove(filled->bytes);
    filled.reset();
  }
  selected_ = 0;
}

bool ReceiveWindow::has_packet() {
  for (std::uint32_t passed = 0; passed < kWindowFrames; ++passed) {
    const std::uint32_t frame_count = complete_frames();
    if (frame_count == 0) return false;
    if (is_consistent(frame_count)) return true;
    pass(frame_count);
  }
  return false;
}

std::span<const std::byte> ReceiveWindow::front() {
  const std::uint32_t frame_count = complete_frames();
  PORTOFU_ASSERT(frame_count > 0);
  const Slot& first = slot(next_);
  if (frame_count == 1) return {first.data.data(), first.bytes};
  whole_ = PacketBuffer(first.packet_bytes);
  for (std::uint32_t i = 0; i < frame_count; ++i) {
    const Slot& piece = slot(next_ + i);
    std::memcpy(whole_.data() + piece.offset, piece.data.data(), piece.bytes);
  }
  return {whole_.data(), first.packet_bytes};
}

void ReceiveWindow::release() {
  const std::uint32_t frame_count = complete_frames();
  PORTOFU_ASSERT(frame_count > 0);
  whole_ = {};
  pass(frame_count);
}

}  // namespace portofu
