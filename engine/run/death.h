#pragma once
// What follows when a peer is gone: both sides let go of it. Whether it is gone is judged in mailbox/connect.

#include "engine/core/core.h"

namespace portofu {

/// Somebody is heard for the first time whose answers cannot go by the link, because that is lost. If it is the life to
/// which that leads, it may have left, and have answered before; else it lives, and what it asks for from now on is
/// answered by the next link. Answers that are due to anybody else are dropped.
/// @param life  whose words come
void expect_words(Core& core, Peer& peer, std::uint64_t life);

/// The peer can no longer be reached: gives the link back, ends with PTL_NI_UNDELIVERABLE what it should have answered
/// and what should still have gone there, and drops our answers to it, but for those behind expect_words. A later
/// operation connects anew, and so does one that was posted when the loss had been put off, or a link was being made.
void lose_peer(Core& core, Peer& peer);

/// Nothing goes there any more: what would connect anew ends, too.
void leave_peer(Core& core, Peer& peer);

}  // namespace portofu
