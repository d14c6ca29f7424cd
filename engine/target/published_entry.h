#pragma once
// Entries that peers on the node use themselves. What a peer does to an entry that takes every message with the same
// bits, needs this process only to be told of it. If nobody wants to be told, and the memory lies in our heap, which
// peers map, the entry is published once a message to it was answered; the answer says so, and the peer does what comes
// after by its own loads and stores (initiator/portals_direct.h).
//
// An entry is taken back when it is unlinked, or its portal table entry or interface is closed. A peer says in our
// segment which entry it is using before it looks whether that is still published (V1), so that from then on nobody
// begins, and who has begun is seen.

#include "engine/core/core.h"

namespace portofu {

/// Whether an entry that is about to be linked may be published: it is persistent, acknowledges, neither counts nor
/// raises events when something succeeds, and lies in the heap; on a matching interface it ignores no bits, and takes
/// messages of all.
bool may_be_published(const Interface& ni, const ListEntry& entry);

/// Publishes the entry, if it is not yet and no other one comes before it. @pre it may be
/// @return whether it is published
bool publish_entry(Core& core, const Interface& ni, ListEntry& entry);

/// Nobody begins to use an entry of the portal table entry any more.
void withdraw_entries(Core& core, const Interface& ni, PortalTableEntry& portal);

/// Nobody uses any more what was published and is withdrawn. Waits for who has begun, a second at most: who has been
/// stopped in the middle may go on later.
void end_visits(Core& core, const Interface& ni, PortalTableEntry& portal);

/// The entry is about to be unlinked: withdraws it, if it is published.
/// @return false if a peer is still using it
bool take_back(Core& core, const Interface& ni, PortalTableEntry& portal, ListEntry& entry);

}  // namespace portofu
