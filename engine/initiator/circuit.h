#pragma once
// Who is in a circuit, and until which round: gates are connected and leave, processes die, survivors are connected
// anew. What gates tell each other of that goes as packets without a value; those with one, and the rounds, are in
// barrier.h. The rules in words: engine/doc/death_and_names.md. All on duty. @spec uTofu guide, 2.3.2, 3.4.2.1

#include <cstdint>

#include "engine/core/core.h"

namespace portofu {

// ---- What the process does with its gates

/// Connects a gate anew; what the old circuit has left in it is forgotten. From now on a relay gate waits for inputs.
/// @pre no barrier runs that starts there
void configure_gate(Core& core, BarrierGate& gate, const GateEnds& ends);

/// A gate is freed, or left out of what its set is connected to next: whoever waits for its packets asks for them, and
/// learns that no more come.
void leave_circuit(Core& core, BarrierGate& gate);

/// That process has the gate: the circuits of those whose other end that is are with it, whoever has the number later.
void meet_owner(Core& core, std::uint64_t id, ProcessId process);

// ---- Ends

/// Inputs of the gate come only for rounds before this one, because a process is gone. What it sends has an end, too,
/// of which it tells both of its destinations, once, behind what it has sent; and each of them does the same. So
/// whoever is reached by a process that is gone learns which rounds it still takes part in, and nobody runs ahead.
/// @param round  counted as GateRounds::passed; one that is not before what is known already changes nothing
void end_gate(Core& core, BarrierGate& gate, std::uint64_t round);

/// Nothing comes from the source any more. It may have ended before it has answered, because its own barrier was over:
/// then its last setting is that of this circuit. Or it was killed, and what it has said of that is lost.
void lose_source(Core& core, BarrierGate& gate);

/// The barrier of a start/end gate is over.
void end_barrier(Core& core, BarrierGate& start, BarrierState how);

// ---- What is told and asked

/// Sends what the gate owes. What fails for lack of memory is owed still.
void tell_what_is_owed(Core& core, BarrierGate& gate);

/// A packet of a gate without a value has arrived. @pre uTofu is open
void receive_gate_notice(Core& core, const PacketHeader& header);

/// A value has arrived from the source of the gate. In a set where no barrier starts it tells that one waits.
void note_value(Core& core, BarrierGate& gate);

/// A barrier waits for the gates of a set: those in doubt ask, and those of other sets that signal to them.
void ask_sources(Core& core, std::uint64_t set_id);

/// With the timers: sources to whom a link was lost once are asked again and again while a barrier waits. One that has
/// noticed that only after it was connected anew has an end, and tells nobody whom it takes for dead.
void ask_sources_again(Core& core);

// ---- Neighbours in the process

/// The gate that its signals go to; nullptr if there is none.
BarrierGate* local_target_of(Core& core, const BarrierGate& gate);

/// The start/end gate of its set; nullptr if that is freed already.
BarrierGate* start_of(const Core& core, const BarrierGate& gate);

}  // namespace portofu
