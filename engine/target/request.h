#pragma once
// Steps 5 to 8 of a request, as the states of an Arrival: matched and judged at its first packet, delivered packet by
// packet, completed at its last byte. A refused message is answered at once and its data is dropped as it comes.

#include "engine/address/core.h"

namespace portofu {

/// First packet of a put, get or atomic. `payload` has header.payload_bytes bytes.
void receive_request(Core& core, Peer& peer, const PacketHeader& header, const std::byte* payload);

/// More data of the request that is arriving from the peer.
void receive_request_data(Core& core, Peer& peer, const PacketHeader& header, const std::byte* payload);

/// The rest of the request that is arriving will never come.
void cut_request(Core& core, Peer& peer, NiFail fail);

}  // namespace portofu
