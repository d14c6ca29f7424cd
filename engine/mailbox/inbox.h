#pragma once
// Steps 5 to 7 of a message that comes in, whichever API it is of and whether it asks or answers: its data goes to its
// place, packet by packet, and then its hook is called. Before it: the first packet was matched (target/request,
// target/tofu_request) or found its operation (initiator/answer_in). After it: completion.
//
// A message that is complete but for its bytes, which are still in the memory of their sender, may be put off: those of
// several are read by one call of the kernel, and completed in order, before anything else of any sender is received
// and before the loop's burst ends.

#include <cstdint>

#include "engine/core/core.h"
#include "engine/queue/fresh_line.h"

namespace portofu {

/// Fresh for a new message. Every field is written; what is known later starts as nothing.
inline void begin_arrival(Arrival& arrival, const IncomingHooks& hooks, const PacketHeader& header,
                          ProcessId initiator) {
  copy_fresh_words(arrival.header, header);
  arrival.entry = nullptr;
  arrival.offset = 0;
  arrival.mlength = 0;
  arrival.initiator = initiator;
  arrival.fail = NiFail::kOk;
  arrival.list = ListKind::kPriority;
  arrival.mode = ArrivalMode::kIdle;
  arrival.is_cut = false;
  arrival.promised_events = 0;
  arrival.unexpected = nullptr;
  arrival.received = 0;
  arrival.hooks = &hooks;
}

/// IncomingHooks::memory of a message that matched an entry, which stays while the message is pending.
inline const MemorySegment* entry_memory(Core&, Arrival& arrival) { return &arrival.entry->segment; }

/// Takes the payload of the first packet to its place, now or later, and finishes the message if that is all of it.
/// @param arrival  with its place and `mlength` set
void take_first(Core& core, Peer& peer, Arrival& arrival, Payload payload);

/// More data (kData) of the request or the answer that is arriving from the peer.
void receive_data(Core& core, Peer& peer, const PacketHeader& header, Payload payload);

/// The rest of a message will never come.
/// @param stream  of the peer; nothing may be arriving on it
void cut_message(Core& core, Peer& peer, Arrival& stream, NiFail fail);

/// Stores `bytes` of payload that lie at `arrival.received` of the message; what is beyond mlength is dropped. A fault
/// is noted in `arrival.fail`, and the rest of the message is dropped.
/// @param memory  nullptr: it is not there
void store_payload(Arrival& arrival, const MemorySegment* memory, Payload payload, std::uint64_t bytes);

/// Writes the last piece of a put of uTofu: its last cache line in the end (6.1.3.1).
bool write_last_line_last(const MemorySegment& memory, std::uint64_t offset, Payload payload, std::uint64_t bytes);

/// What it means that a payload could not be stored.
inline NiFail fail_of_storing(Payload payload) { return payload.is_lost() ? NiFail::kUndeliverable : NiFail::kSegv; }

/// Nobody writes any more to what was offered to the peer.
void take_offers_back(const Peer& peer);

/// Whether the packet may come behind what was put off, before that is complete.
bool may_join_late_messages(const Core& core, const Packet& packet);

/// Reads the bytes of what was put off, and completes it.
void read_late_messages(Core& core);
inline void finish_late_messages(Core& core) {
  if (!core.late_messages.empty()) [[unlikely]]
    read_late_messages(core);
}

}  // namespace portofu
