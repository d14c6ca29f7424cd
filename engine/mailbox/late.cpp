#include "engine/mailbox/late.h"

namespace portofu {

bool put_off(Core& core, Peer& peer, const LateMessage& message, const Destination& place) {
  if (!message.payload.is_in_memory() || place.bytes == 0) return false;
  const MemorySegment::Run run = place.segment.run_at(place.offset, place.bytes);
  core.late_messages.reserve(Wire::kMostReadLater);
  if (run.bytes != place.bytes || !peer.wire->read_later(run.start, run.bytes)) return false;
  core.late_peer = &peer;
  core.late_messages.push_back(message);
  return true;
}

bool may_join_late_messages(const Core& core, const Packet& packet) {
  const PacketHeader& header = packet.header;
  return *packet.source_context == core.late_peer && packet.payload.is_in_memory() &&
         header.payload_bytes == header.length &&
         (header.type == PacketType::kPut || header.type == PacketType::kAnswer);
}

void read_late_messages(Core& core) {
  Peer& peer = *core.late_peer;
  const std::uint32_t read = peer.wire->read_now();
  // Events and counts come first: a sender that has its memory back may touch published entries here by itself.
  for (std::size_t i = 0; i < core.late_messages.size(); ++i) {
    auto& [arrival, payload, finish] = core.late_messages[i];
    if ((read >> i & 1) == 0) arrival.fail = fail_of_storing(payload);
    finish(core, peer, arrival);
  }
  core.late_messages.clear();
  peer.wire->give_back_read();
}

}  // namespace portofu
