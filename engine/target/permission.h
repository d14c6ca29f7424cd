#pragma once
// Step 6, second half: whether the initiator may do what it asks with the entry that matched. @spec
// Portals 4.3, 2.5, 3.11.1

#include "engine/memory/list_entry.h"
#include "engine/target/match_header.h"
#include "engine/wire/header.h"

namespace portofu {

/// What the entry must allow for the operation.
inline std::uint32_t needed_options(PacketType type) {
  switch (type) {
    case PacketType::kGet: return kEntryOpGet;
    case PacketType::kFetchAtomic:
    case PacketType::kSwap: return kEntryOpPut | kEntryOpGet;
    default: return kEntryOpPut;
  }
}

/// @param type  of the header
/// @return kNone, kPermission or kOperation
inline Refusal judge(const ListEntry& entry, const PacketHeader& header, PacketType type) {
  if (entry.uid != kUidAny && entry.uid != header.uid) return Refusal::kPermission;
  const std::uint32_t wanted = needed_options(type);
  return (entry.options & wanted) == wanted ? Refusal::kNone : Refusal::kOperation;
}

}  // namespace portofu
