#pragma once
// Where the data of an incoming message goes, whether it is a request's or an answer's.

#include <cstdint>

#include "engine/core/peer.h"

namespace portofu {

/// Part of a segment.
struct Destination {
  const MemorySegment& segment;
  std::uint64_t offset;  ///< Bytes into the segment.
  std::uint64_t bytes;
};

/// The first packet of a message whose data is at its sender: the sender may help to bring it to `place`, if that is
/// one piece and there are packets to share.
inline void offer_place(const Peer& peer, const PacketHeader& header, Payload payload, const Destination& place) {
  if (payload.is_here() || header.payload_bytes == header.length) return;
  const MemorySegment::Run run = place.segment.run_at(place.offset, place.bytes);
  if (run.bytes == place.bytes) peer.wire->offer(run.start, place.bytes);
}

/// What it means that a payload could not be stored.
inline NiFail fail_of_storing(Payload payload) { return payload.is_lost() ? NiFail::kUndeliverable : NiFail::kSegv; }

}  // namespace portofu
