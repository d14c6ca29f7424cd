#pragma once
// Portals in memory that both sides map: the initiator's CPU does steps 3 to 9 itself, in an entry that its owner has
// published (target/published_entry.h). It goes behind all that was sent to the peer before, unless the memory
// descriptor says PTL_MD_UNORDERED (2.7); SEND and ACK, or REPLY, are there when the call returns. Everything that
// cannot be done so, and every error, goes by packets.

#include "engine/core/core.h"

namespace portofu {

/// An answer has said that the peer has published the entry of a portal table entry that takes these bits.
void remember_published(Peer& peer, std::uint32_t interface_index, std::uint32_t pt_index, std::uint64_t match_bits);

/// The memory of a transfer on our side.
struct OwnMemory {
  MemoryDescriptor& md;       ///< Of Descriptor::portals.md_handle.
  MemoryDescriptor* replied;  ///< Where data comes back to; nullptr: none does.
};

/// Carries out a transfer.
/// @return false if nothing was done that counts, and a packet has to do it
/// @pre the peer is connected, and peer.published is there
bool use_published(Core& core, Interface& ni, Peer& peer, OwnMemory memory, const Descriptor& d);

}  // namespace portofu
