#pragma once
// What follows when a peer is gone: both sides let go of it. Whether it is gone is judged in mailbox/connect.

#include "engine/core/core.h"

namespace portofu {

/// Somebody is heard for the first time who is the life to which the lost link leads: it may have left, and have
/// answered before, so it is not lost yet; or it lives, and what it asks for now is answered by the next link.
void expect_last_words(Core& core, Peer& peer);

/// The peer can no longer be reached: gives the link back, ends with PTL_NI_UNDELIVERABLE what it should have answered
/// and what should still have gone there, and drops our answers to it, but for those of expect_last_words. A later
/// operation connects anew, and so does one that was posted when the loss had been put off.
void lose_peer(Core& core, Peer& peer);

}  // namespace portofu
