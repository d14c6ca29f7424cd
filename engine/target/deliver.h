#pragma once
// Step 7: data of a matched message goes to, or through, the memory of its entry.

#include "engine/core/core.h"

namespace portofu {

/// Stores `bytes` of payload that lie at `arrival.received` of the message; what is beyond mlength is dropped. A fault
/// is noted in `arrival.fail`, and the rest of the message is dropped.
void deliver_payload(Arrival& arrival, Payload payload, std::uint64_t bytes);

/// Executes a whole atomic. `operand` is nullptr if the operation has none.
/// @param fetched  takes arrival.mlength bytes of old values; nullptr if they are not wanted
/// @return false if the target is not aligned: nothing was done
bool deliver_atomic(Arrival& arrival, const std::byte* source, const std::byte* operand, std::byte* fetched);

}  // namespace portofu
