#pragma once
// Beside step 6: a resource of a portal table entry is used up. With flow control the entry is disabled and the
// application told, once; without, the message is dropped. @spec Portals 4.3, 2.8

#include "engine/core/core.h"
#include "engine/target/match_header.h"

namespace portofu {

/// @param entry  the entry that the message matched; nullptr if none did
/// @return kFlowControl or kNoMatch
Refusal exhausted(Core& core, Interface& ni, std::uint32_t pt_index, const ListEntry* entry);

}  // namespace portofu
