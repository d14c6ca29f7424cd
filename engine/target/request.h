#pragma once
// Steps 5 to 8 of a request, as the states of an Arrival: matched and judged at its first packet, delivered packet by
// packet, completed at its last byte. A refused message is answered at once and its data is dropped as it comes.

#include "engine/core/core.h"

namespace portofu {

/// First packet of a put. `payload` has header.payload_bytes bytes.
void receive_put(Core& core, Peer& peer, const PacketHeader& header, Payload payload);

/// First packet of a get or an atomic.
void receive_request(Core& core, Peer& peer, const PacketHeader& header, Payload payload);

}  // namespace portofu
