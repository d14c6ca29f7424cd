#pragma once
// Steps 5 to 8 of a put, get or ARMW of uTofu: no matching, the STADD says where. Delivery, atomics and answers are
// those of Portals.

#include "engine/core/core.h"

namespace portofu {

/// First packet of a request. `payload` has header.payload_bytes bytes.
void receive_tofu_request(Core& core, Peer& peer, const PacketHeader& header, Payload payload);

/// The request is complete at the target: notice, session steps, region. Notices of a peer are in the order of its
/// requests (2.2.10): one that comes behind a get waits until the data of the get has left.
void complete_tofu_arrival(Core& core, Peer& peer, Arrival& arrival, NiFail fail);

/// A region was deregistered: what uses it ends. Refused puts are dropped, gets end with an error.
void leave_region(Core& core, const RegisteredRegion& region);

}  // namespace portofu
