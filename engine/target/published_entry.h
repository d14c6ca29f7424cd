#pragma once
// Entries that peers on the node use themselves. What a peer does to the first entry of a non-matching portal table
// entry, which takes every message (2.5.1), needs this process only to be told of it. If nobody wants to be told, and
// the memory lies in our heap, which peers map, the entry is published once a message to it was answered; the answer
// says so, and the peer does what comes after by its own loads and stores (initiator/portals_direct.h).
//
// An entry is taken back when it is unlinked, or its portal table entry or interface is closed. A peer says in our
// segment whose memory it is using before it looks whether that is still published (V1), so that from then on nobody
// begins, and who has begun is seen.

#include "engine/address/core.h"
#include "engine/target/list_entries.h"

namespace portofu {

/// Whether an entry that is appended may be published as long as it is the first one: it is persistent, acknowledges,
/// neither counts nor raises events when something succeeds, and lies in the heap.
bool may_be_published(const Interface& ni, const EntryRequest& request);

/// Publishes the entry if it is not yet and can be. @pre it may be
/// @return whether it is published
bool publish_entry(Core& core, const Interface& ni, ListEntry& entry);

/// Nobody begins to use the published entry any more, if there is one.
void withdraw_entry(Core& core, const Interface& ni, PortalTableEntry& portal, std::uint32_t pt_index);

/// Withdraws the entry, if it is published. @return whether a peer is still using it
bool is_in_use(Core& core, const Interface& ni, PortalTableEntry& portal, const ListEntry& entry);

/// Nobody uses an entry that was published and is withdrawn. Waits for who has begun, a second at most: who has been
/// stopped in the middle may go on later.
void end_visits(Core& core, const PortalTableEntry& portal, std::uint64_t key);

/// The same for all of an interface, which withdraws them.
void end_visits(Core& core, Interface& ni);

}  // namespace portofu
