#pragma once
// Step 7: data of a matched message goes to, or through, the memory of its entry.

#include "engine/core/core.h"

namespace portofu {

/// Stores `bytes` of payload that lie at `arrival.received` of the message; what is beyond mlength is dropped. A fault
/// is noted in `arrival.fail`, and the rest of the message is dropped.
void deliver_payload(Arrival& arrival, Payload payload, std::uint64_t bytes);

/// The first packet of a message whose data is at its sender: the sender may help to bring the first `bytes` of it to
/// the segment, if they are to lie there in one piece and there are packets to share.
inline void offer_place(const Peer& peer, const PacketHeader& header, Payload payload, const MemorySegment& segment,
                        std::uint64_t offset, std::uint64_t bytes) {
  if (payload.is_here() || header.payload_bytes == header.length) return;
  const MemorySegment::Run run = segment.run_at(offset, bytes);
  if (run.bytes == bytes) peer.wire->offer(run.start, bytes);
}

/// What it means that a payload could not be stored.
inline NiFail fail_of_storing(Payload payload) { return payload.is_lost() ? NiFail::kUndeliverable : NiFail::kSegv; }

/// Executes a whole atomic. `operand` is nullptr if the operation has none.
/// @param fetched  takes arrival.mlength bytes of old values; nullptr if they are not wanted
/// @return false if the target is not aligned: nothing was done
bool deliver_atomic(Arrival& arrival, const std::byte* source, const std::byte* operand, std::byte* fetched);

}  // namespace portofu
