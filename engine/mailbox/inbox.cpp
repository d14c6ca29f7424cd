#include "engine/mailbox/inbox.h"

#include <algorithm>

#include "engine/mailbox/connect.h"
#include "engine/observe/system_failure.h"
#include "engine/topology/tofu_id.h"
#include "engine/wire/copies.h"

namespace portofu {
namespace {

/// Bytes of the last cache line of `bytes` at `offset` of a segment.
std::uint64_t tail_bytes(const MemorySegment& memory, std::uint64_t offset, std::uint64_t bytes) {
  return tofu_tail_bytes(reinterpret_cast<std::uintptr_t>(memory.address(offset + bytes)), bytes);
}

/// A whole message whose payload is at its sender may be read with others, into a place that is one piece.
/// @return false if it has to be read now, also because its wire cannot put it off
bool put_off(Core& core, Peer& peer, const Arrival& arrival, const MemorySegment& memory, Payload payload) {
  const bool whole = arrival.header.payload_bytes == arrival.header.length;
  if (!arrival.hooks->may_be_late || !whole || !payload.is_in_memory()) return false;
  if (arrival.mlength == 0 || arrival.fail != NiFail::kOk) return false;
  const MemorySegment::Run run = memory.run_at(arrival.offset, arrival.mlength);
  core.late_messages.reserve(Copies::kMostReadLater);
  if (run.bytes != arrival.mlength || !peer.wire->copies()->read_later(run.start, run.bytes)) return false;
  core.late_peer = &peer;
  core.late_messages.push_back({arrival, payload});
  return true;
}

/// The sender of a message of several packets may help to bring it to its place, if that is one piece.
void offer_place(const Peer& peer, const Arrival& arrival, const MemorySegment& memory) {
  const std::uint64_t length = arrival.header.length;
  if (!arrival.hooks->may_be_offered || arrival.header.payload_bytes == length || arrival.mlength != length) return;
  const std::uint64_t tail = arrival.hooks->ends_with_last_line ? tail_bytes(memory, arrival.offset, length) : 0;
  const MemorySegment::Run run = memory.run_at(arrival.offset, length - tail);
  Copies* const copies = peer.wire->copies();
  if (copies != nullptr && run.bytes == length - tail) copies->offer(run.start, run.bytes);
}

void finish_if_whole(Core& core, Peer& peer, Arrival& arrival) {
  if (arrival.received < arrival.header.length) return;
  arrival.mode = ArrivalMode::kIdle;
  arrival.hooks->finish(core, peer, arrival);
}

}  // namespace

void take_first(Core& core, Peer& peer, Arrival& arrival, Payload payload) {
  const MemorySegment* memory = arrival.hooks->memory(core, arrival);
  if (!payload.is_here()) [[unlikely]] {
    if (memory != nullptr && put_off(core, peer, arrival, *memory, payload)) return;
    finish_late_messages(core);
    if (memory != nullptr) offer_place(peer, arrival, *memory);
  }
  arrival.mode = ArrivalMode::kDeliver;
  store_payload(arrival, memory, payload, arrival.header.payload_bytes);
  finish_if_whole(core, peer, arrival);
}

void receive_data(Core& core, Peer& peer, const PacketHeader& header, Payload payload) {
  const bool of_answer = (header.flags & kFlagAnswerStream) != 0;
  const bool cut = (header.flags & kFlagCut) != 0;
  Arrival& arrival = of_answer ? peer.answer_stream : peer.request_stream;
  const std::uint64_t left = arrival.header.length - arrival.received;
  if (arrival.mode == ArrivalMode::kIdle || header.payload_bytes > left || (header.payload_bytes == 0 && !cut)) {
    return core.counters.add(Counter::kPacketsRefusedMalformed);
  }
  if (cut) {
    const NiFail unsaid = of_answer ? NiFail::kSegv : NiFail::kUndeliverable;
    return cut_message(core, peer, arrival,
                       header.ni_fail_type == 0 ? unsaid : static_cast<NiFail>(header.ni_fail_type));
  }
  if (arrival.mode == ArrivalMode::kDiscard) {
    arrival.received += header.payload_bytes;
    if (arrival.received == arrival.header.length) arrival.mode = ArrivalMode::kIdle;
    return;
  }
  core.counters.add(Counter::kBytesReceived, header.payload_bytes);
  store_payload(arrival, arrival.hooks->memory(core, arrival), payload, header.payload_bytes);
  finish_if_whole(core, peer, arrival);
}

void cut_message(Core& core, Peer& peer, Arrival& stream, NiFail fail) {
  const bool delivers = stream.mode == ArrivalMode::kDeliver;
  stream.mode = ArrivalMode::kIdle;
  if (!delivers) return;
  stream.fail = fail;
  stream.is_cut = true;
  stream.mlength = std::min(stream.mlength, stream.received);
  stream.hooks->finish(core, peer, stream);
}

void store_payload(Arrival& arrival, const MemorySegment* memory, Payload payload, std::uint64_t bytes) {
  const std::uint64_t at = arrival.received;
  arrival.received += bytes;
  if (at >= arrival.mlength || arrival.fail != NiFail::kOk) return;
  const std::uint64_t wanted = std::min(bytes, arrival.mlength - at);
  if (wanted == 0) return;
  const bool ends = arrival.hooks->ends_with_last_line && arrival.received == arrival.header.length;
  const bool stored = memory != nullptr && (ends ? write_last_line_last(*memory, arrival.offset + at, payload, wanted)
                                                 : memory->write(arrival.offset + at, payload, wanted));
  if (!stored) arrival.fail = fail_of_storing(payload);
}

bool write_last_line_last(const MemorySegment& memory, std::uint64_t offset, Payload payload, std::uint64_t bytes) {
  if (bytes == 0) return true;
  const std::uint64_t body = bytes - tail_bytes(memory, offset, bytes);
  if (body != 0 && !memory.write(offset, payload, body)) return false;
  return memory.write(offset + body, payload.behind(body), bytes - body);
}

void take_offers_back(const Peer& peer) {
  if (Copies* const copies = peer.wire->copies()) copies->take_offers_back(peer.id);
}

bool may_join_late_messages(const Core& core, const Packet& packet) {
  const PacketHeader& header = packet.header;
  return packet.source_context->engines == core.late_peer && packet.payload.is_in_memory() &&
         header.payload_bytes == header.length &&
         (header.type == PacketType::kPut || header.type == PacketType::kAnswer);
}

void read_late_messages(Core& core) {
  Peer& peer = *core.late_peer;
  const std::uint32_t read = peer.wire->copies()->read_now();
  // Events and counts come first: a sender that has its memory back may touch published entries here by itself.
  for (std::size_t i = 0; i < core.late_messages.size(); ++i) {
    LateMessage& late = core.late_messages[i];
    Arrival& arrival = late.arrival;
    if ((read >> i & 1) == 0) arrival.fail = fail_of_storing(late.payload);
    arrival.received = arrival.header.length;
    // One that cannot end for want of memory does not keep the others from it.
    if (!endure([&] { arrival.hooks->finish(core, peer, arrival); })) part_with(core, *peer.wire, peer.id);
  }
  core.late_messages.clear();
  peer.wire->copies()->give_back_read();
}

}  // namespace portofu
