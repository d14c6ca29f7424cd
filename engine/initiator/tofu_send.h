#pragma once
// Steps 2 to 4 of uTofu: a descriptor of a VCQ, or a packet of a barrier gate, goes out by the steps of mailbox/outbox.
// What waits at the peer is the TOQ. @spec uTofu guide, 2.2.1.1, 2.2.3-2.2.6

#include "engine/core/core.h"
#include "engine/event/barrier_gate.h"

namespace portofu {

/// Starts a descriptor whose interface_index is kTofuInterface; any other does nothing.
void start_tofu_descriptor(Core& core, Descriptor& descriptor);

/// Goes on with a request whose owner has become known.
/// @param peer  nullptr: nobody has its target, and it ends as PTL_NI_UNDELIVERABLE does
void start_towards(Core& core, Peer* peer, OwnerlessRequest request);

/// Sends one packet of a barrier. @return false if nobody owns the gate `remote_target`
bool send_gate_packet(Core& core, const BarrierGate& gate, const GateValue& value);

/// Tells another gate something without a value, see kAllRounds. @return false if nobody owns the other one
bool send_gate_notice(Core& core, const BarrierGate& gate, std::uint64_t other, std::uint64_t rounds_left);

/// The same in the name of a gate that is none of the other one's circuit, or that nobody has. It leaves in a later
/// cycle, and is not sent again.
void answer_for_nobody(Core& core, std::uint64_t gate, std::uint64_t other, std::uint64_t rounds_left);

/// A VCQ is freed: what has not left of its requests ends, and nobody is told. Before its handle is given back.
void leave_queue(Core& core, const VirtualControlQueue& vcq);

}  // namespace portofu
