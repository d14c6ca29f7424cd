#include "engine/wire/reliable/send_window.h"

#include <algorithm>
#include <utility>

#include "engine/queue/assert.h"

namespace portofu {

void SendWindow::add(PacketBuffer buffer, std::uint32_t packet_bytes, Delivery delivery) {
  PORTOFU_ASSERT(packet_bytes > 0 && has_room(packet_bytes));
  const auto shared = std::make_shared<PacketBuffer>(std::move(buffer));
  const std::uint32_t count = frames_of(packet_bytes);
  for (std::uint32_t index = 0; index < count; ++index) {
    Frame frame;
    frame.buffer = shared;
    frame.packet_bytes = packet_bytes;
    frame.offset = index * frame_bytes_;
    frame.bytes = std::min(frame_bytes_, packet_bytes - frame.offset);
    frame.index = static_cast<std::uint16_t>(index);
    frame.count = static_cast<std::uint16_t>(count);
    frame.delivery = delivery;
    held_.add(frame.bytes);
    frames_.push_back(std::move(frame));
  }
}

std::uint64_t SendWindow::next_due_ns(bool first_only) const {
  std::uint64_t due_ns = UINT64_MAX;
  for (const Frame& frame : frames_) {
    if (frame.arrived || (first_only && due_ns != UINT64_MAX && frame.transmissions > 0)) continue;
    due_ns = std::min(due_ns, frame.due_ns);
  }
  return due_ns;
}

bool SendWindow::find_due(std::uint64_t now_ns, bool first_only, FrameHeader* header,
                          std::span<const std::byte>* body) const {
  bool passed_one = false;
  for (std::size_t i = 0; i < frames_.size(); ++i) {
    const Frame& frame = frames_[i];
    if (frame.arrived) continue;
    const bool may_go = !first_only || !passed_one || frame.transmissions == 0;
    passed_one = true;
    if (!may_go || frame.due_ns > now_ns) continue;
    header->kind = FrameKind::kData;
    header->flags = frame.buffer == nullptr ? kFrameGap : 0;
    header->sequence = first_ + static_cast<std::uint32_t>(i);
    header->packet_bytes = frame.packet_bytes;
    header->packet_offset = frame.offset;
    header->fragment_index = frame.index;
    header->fragment_count = frame.count;
    *body = {};
    if (frame.buffer != nullptr) *body = {frame.buffer->data() + frame.offset, frame.bytes};
    return true;
  }
  return false;
}

std::uint32_t SendWindow::sent(std::uint32_t sequence, std::uint64_t now_ns, const RoundTrip& round_trip) {
  Frame& frame = frames_[sequence - first_];
  ++frame.transmissions;
  frame.sent_ns = now_ns;
  frame.due_ns = now_ns + round_trip.timeout_ns(frame.transmissions);
  if (frame.delivery == Delivery::kOnce) free(frame);
  return frame.transmissions;
}

void SendWindow::free(Frame& frame) {
  if (frame.buffer == nullptr) return;
  held_.remove(frame.bytes);
  frame.buffer.reset();
}

void SendWindow::clear() {
  for (Frame& frame : frames_) free(frame);
  frames_.clear();
}

bool SendWindow::acknowledge(std::uint32_t next, std::uint64_t selected, std::uint64_t lost_before_ns) {
  const std::uint32_t end = first_ + static_cast<std::uint32_t>(frames_.size());
  if (sequence_before(end, next)) return false;
  while (sequence_before(first_, next)) {
    free(frames_.front());
    frames_.pop_front();
    ++first_;
  }
  for (std::uint32_t i = 0; i < kWindowFrames; ++i) {
    const std::uint32_t sequence = next + i;
    if ((selected >> i & 1) == 0 || sequence_before(sequence, first_)) continue;
    if (!sequence_before(sequence, end)) return false;
    Frame& frame = frames_[sequence - first_];
    frame.arrived = true;
    free(frame);
  }
  for (Frame& frame : frames_) {
    if (!frame.arrived && frame.transmissions > 0 && frame.sent_ns < lost_before_ns) frame.due_ns = 0;
  }
  return true;
}

}  // namespace portofu
