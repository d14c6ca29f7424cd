#pragma once
// What barrier gates do: take signals and packets, combine them, send them on. A gate whose inputs are there goes
// through the list of fired operations, so a long chain of gates needs no recursion. @spec uTofu guide, 2.3, 3.8

#include "engine/core/core.h"

namespace portofu {

/// Connects a gate anew; what the old circuit has left in it is forgotten. From now on a relay gate waits for inputs.
/// @pre no barrier runs that starts there
void configure_gate(Core& core, BarrierGate& gate, const GateEnds& ends);

/// A gate is freed, or left out of what its set is connected to next: whoever waits for its packets asks for them, and
/// learns that no more come.
void leave_circuit(Core& core, BarrierGate& gate);

/// Starts a barrier at a start/end gate that is kIdle: its signal and its packet go out. Fails it at once, and sends
/// nothing, if its inputs would never come.
void start_barrier(Core& core, BarrierGate& gate, const GateValue& value);

/// The inputs of a gate are there: combines them and sends them on, or ends the barrier at a start/end gate. Or the
/// gate has an end, of which it is to tell.
/// @param number  queue number of the gate
void pass_gate(Core& core, std::uint32_t number);

/// Inputs of the gate come only for rounds before this one, because a process is gone. What it sends has an end, too,
/// of which it tells both of its destinations, once, behind what it has sent; and each of them does the same. So
/// whoever is reached by a process that is gone learns which rounds it still takes part in, and nobody runs ahead.
/// @param round  counted as BarrierGate::rounds_passed; one that is not before what is known already changes nothing
void end_gate(Core& core, BarrierGate& gate, std::uint64_t round);

/// A packet for one of our gates has arrived: a value, or without payload the end of what its sender sends.
void receive_gate_packet(Core& core, const PacketHeader& header, const std::byte* payload);

/// A packet of a gate cannot be sent. With a value: the barrier of its set ends as failed, and all that follow. One
/// that says that the gate waits: nothing will come there.
void fail_gate_packet(Core& core, const Descriptor& descriptor);

/// A process has died: barriers that need packets which it has not sent, or that it would have to be sent, fail.
void fail_barriers_with(Core& core, ProcessId process);

}  // namespace portofu
