#pragma once
// Steps 5 to 8 of a request, as the states of an Arrival: matched and judged at its first packet, delivered packet by
// packet, completed at its last byte. A refused message is answered at once and its data is dropped as it comes.

#include "engine/core/core.h"
#include "engine/queue/fresh_line.h"

namespace portofu {

/// A put that lies whole in its packet and matches in the priority list is over before the next packet: it goes through
/// the same steps as any other, and needs no state. Most puts are such ones.
/// @param header  of a kPut
/// @return false: it is no such one, or something has to be refused. Nothing was done, and it is receive_request's
bool receive_whole_put(Core& core, Peer& peer, const PacketHeader& header, Payload payload);

/// First packet of a put, get or atomic. `payload` has header.payload_bytes bytes.
void receive_request(Core& core, Peer& peer, const PacketHeader& header, Payload payload);

/// An honest peer never has more operations open than its window allows, whose largest setting this is.
inline constexpr std::uint32_t kMostWaitingAnswers = 65'536;

/// Fresh for a new message. Every field is written; what only `match_header` knows starts as nothing.
inline void begin_arrival(Arrival& arrival, const PacketHeader& header, ProcessId initiator) {
  copy_fresh_words(arrival.header, header);
  arrival.entry = nullptr;
  arrival.unexpected = nullptr;
  arrival.offset = 0;
  arrival.mlength = 0;
  arrival.received = 0;
  arrival.initiator = initiator;
  arrival.promised_events = 0;
  arrival.mode = ArrivalMode::kIdle;
  arrival.fail = NiFail::kOk;
  arrival.list = ListKind::kPriority;
}

/// More data of the request that is arriving from the peer.
void receive_request_data(Core& core, Peer& peer, const PacketHeader& header, Payload payload);

/// The rest of the request that is arriving will never come.
void cut_request(Core& core, Peer& peer, NiFail fail);

}  // namespace portofu
