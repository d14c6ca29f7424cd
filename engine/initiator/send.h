#pragma once
// Steps 2 to 4: a descriptor becomes packets. What cannot go out now waits, in order, at its peer (this is the TOQ),
// and goes on when there is room; nothing is lost and the caller is not held up.

#include "engine/address/core.h"

namespace portofu {

/// Starts one descriptor: a transfer, or a change of a counter. Its memory descriptors are looked up now, so a
/// triggered operation whose MD is gone does nothing.
void start_descriptor(Core& core, const Descriptor& descriptor);

/// Goes on with what waits at a peer: its answers first, then its requests.
/// @return number of packets published
int advance_peer(Core& core, Peer& peer);

/// Ends all requests that wait at a peer, partly sent ones too: every one raises the failure, and lets its memory
/// descriptors go.
void abandon_requests(Core& core, Peer& peer, NiFail fail);

/// Fills the part of a header that every packet carries.
PacketHeader stamped_header(const Core& core, PacketType type);

}  // namespace portofu
