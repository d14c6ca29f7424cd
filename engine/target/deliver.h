#pragma once
// Step 7 of an atomic: its data goes through the memory of its entry. That of other messages is stored by
// mailbox/inbox.

#include "engine/core/core.h"

namespace portofu {

/// Executes a whole atomic. `operand` is that of the first item; nullptr if the operation has none.
/// @param fetched  takes arrival.mlength bytes of old values; nullptr if they are not wanted
/// @return false if the target is not aligned: nothing was done
bool deliver_atomic(Arrival& arrival, const std::byte* source, const std::byte* operand, std::byte* fetched);

}  // namespace portofu
