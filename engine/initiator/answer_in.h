#pragma once
// Step 9: an answer arrives. It is matched with the outstanding operation by id alone; an answer that nobody waits for,
// or from somebody else than the one who owes it, is refused and counted.

#include "engine/core/core.h"

namespace portofu {

/// First packet of an answer. `header` is the engine's own copy; `payload` has header.payload_bytes bytes.
void receive_answer(Core& core, Peer& peer, const PacketHeader& header, Payload payload);

/// The answer of an open operation is complete: closes it and tells the application, if all data has left.
void finish_answer(Core& core, std::uint32_t operation_id, const OutstandingOperation& operation);

/// An acknowledgement came without a packet (Completions::acknowledge): a put or an atomic is complete as it was asked
/// for, or so its target says.
void receive_acknowledgement(Core& core, const Peer& peer, std::uint32_t operation_id);

/// Nobody will answer any more: ends every operation that the peer owes an answer for.
void fail_outstanding(Core& core, Peer& peer, NiFail fail);

}  // namespace portofu
