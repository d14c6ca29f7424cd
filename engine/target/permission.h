#pragma once
// Step 6, second half: whether the initiator may do what it asks with the entry that matched. @spec
// Portals 4.3, 2.5, 3.11.1

#include "engine/address/list_entry.h"
#include "engine/target/match_header.h"
#include "engine/wire/header.h"

namespace portofu {

/// @return kNone, kPermission or kOperation
Refusal judge(const ListEntry& entry, const PacketHeader& header);

}  // namespace portofu
