#pragma once
// Steps 5 to 8 of a request, as the states of an Arrival: matched and judged at its first packet, delivered packet by
// packet, completed at its last byte. A refused message is answered at once and its data is dropped as it comes.

#include "engine/core/core.h"

namespace portofu {

/// A put that lies whole in its packet and matches in the priority list is over before the next packet: it goes through
/// the same steps as any other, and needs no state. Most puts are such ones.
/// @param header  of a kPut
/// @return false: it is no such one, or something has to be refused. Nothing was done, and it is receive_request's
bool receive_whole_put(Core& core, Peer& peer, const PacketHeader& header, Payload payload);

/// First packet of a put, get or atomic. `payload` has header.payload_bytes bytes.
void receive_request(Core& core, Peer& peer, const PacketHeader& header, Payload payload);

}  // namespace portofu
