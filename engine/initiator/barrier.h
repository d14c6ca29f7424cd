#pragma once
// What barrier gates do: take signals and packets, combine them, send them on. A gate whose inputs are there goes
// through the list of fired operations, so a long chain of gates needs no recursion. How gates are connected, and what
// they tell each other besides values, is in circuit.h. @spec uTofu guide, 2.3, 3.8

#include "engine/core/core.h"

namespace portofu {

/// Starts a barrier at a start/end gate that is kIdle: its signal and its packet go out. Fails it at once, and sends
/// nothing, if its inputs would never come.
void start_barrier(Core& core, BarrierGate& gate, const GateValue& value);

/// The inputs of a gate are there: combines them and sends them on, or ends the barrier at a start/end gate. Or the
/// gate has an end, of which it is to tell.
/// @param number  queue number of the gate
void pass_gate(Core& core, std::uint32_t number);

/// A packet for one of our gates has arrived: a value, or without payload what its sender tells or asks.
void receive_gate_packet(Core& core, const PacketHeader& header, const std::byte* payload);

/// A packet of a gate cannot be sent. With a value: the barrier of its set ends as failed, and all that follow. One
/// that says that the gate waits: nothing will come there.
void fail_gate_packet(Core& core, const Descriptor& descriptor);

/// A process has died: barriers that need packets which it has not sent, or that it would have to be sent, fail.
void fail_barriers_with(Core& core, ProcessId process);

}  // namespace portofu
