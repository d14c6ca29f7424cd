#pragma once
// What has left us and is over: memory that a peer has read is ours again, and operations that it has acknowledged are
// complete. Between step 4 and step 9 of a put; before whatever else a peer says.

#include "engine/core/core.h"

namespace portofu {

/// Ends what was lent to a peer and is not read any more: SEND of requests, completion of replies.
/// @pre the peer is connected
/// @return number of messages ended
int finish_taken(Core& core, Peer& peer);

/// Takes acknowledgements that came without a packet (Wire::acknowledge). @return how many
int take_acknowledgements(Core& core);
int take_acknowledgements(Core& core, Peer& peer);

}  // namespace portofu
