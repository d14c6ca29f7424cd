#pragma once
// Step 7 of an atomic: its data goes through the memory of its entry. That of other messages is stored by
// mailbox/inbox.

#include "engine/core/core.h"

namespace portofu {

inline bool is_atomic(PacketType type) {
  return type == PacketType::kAtomic || type == PacketType::kFetchAtomic || type == PacketType::kSwap;
}

/// Whether the message computes with what is in the memory of its entry: an atomic on the priority list (3.15.4).
inline bool executes(const Arrival& arrival) {
  return is_atomic(arrival.header.type) && arrival.list == ListKind::kPriority;
}

/// Whether every item of an atomic lies in one piece of the entry (3.15.4 demands no more), aligned as the atomic unit
/// needs it (lib/portals4/README.md, alignment).
bool holds_items(const Arrival& arrival);

/// Executes a whole atomic. `operand` is that of the first item; nullptr if the operation has none.
/// @param fetched  takes arrival.mlength bytes of old values; nullptr if they are not wanted
/// @pre holds_items
void deliver_atomic(Arrival& arrival, const std::byte* source, const std::byte* operand, std::byte* fetched);

}  // namespace portofu
