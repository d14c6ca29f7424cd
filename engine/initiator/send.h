#pragma once
// Steps 2 to 4: a descriptor becomes packets. What cannot go out now waits, in order, at its peer (this is the TOQ),
// and goes on when there is room; nothing is lost and the caller is not held up.

#include "engine/core/core.h"

namespace portofu {

/// Starts one descriptor: a transfer, or a change of a counter. Its memory descriptors are looked up now, so a
/// triggered operation whose MD is gone does nothing.
void start_descriptor(Core& core, const Descriptor& descriptor);

/// Does in one go what needs no state: a request that fits one cell and has nothing before it on its way to its peer,
/// or one of which the peer need not know. Its memory descriptors are known to be good.
/// @return false: it is none, or cannot leave now; nothing has happened, and start_descriptor is due
bool send_at_once(Core& core, Interface& ni, MemoryDescriptor& md, const Descriptor& descriptor);

/// Goes on with the requests that wait at a peer that is connected.
/// @return number of packets published
int advance_requests(Core& core, Peer& peer, int budget);

/// SEND of requests that were lent to a peer and are not read any more.
/// @pre the peer is connected
/// @return number of requests
int finish_taken_requests(Core& core, Peer& peer);

/// Ends all requests that wait at a peer, partly sent and lent ones too: every one raises the failure, and lets its
/// memory descriptors go.
void abandon_requests(Core& core, Peer& peer, NiFail fail);

}  // namespace portofu
