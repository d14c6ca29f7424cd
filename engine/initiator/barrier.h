#pragma once
// What barrier gates do: take signals and packets, combine them, send them on. A gate whose inputs are there goes
// through the list of fired operations, so a long chain of gates needs no recursion. @spec uTofu guide, 2.3, 3.8

#include "engine/core/core.h"

namespace portofu {

/// Lets the gate wait for the inputs of its next round. A relay gate does so from its configuration on, a start/end
/// gate from the start of each barrier.
void arm_gate(Core& core, BarrierGate& gate);

/// Starts a barrier at a start/end gate that is kIdle: its signal and its packet go out. If the process has orphans
/// (ProcessBarriers), stand_in_for_dead is to be called in its other engines afterwards.
void start_barrier(Core& core, BarrierGate& gate, const GateValue& value);

/// A barrier has started on another engine of the process: what a dead process would have sent for it counts as failed.
void stand_in_for_dead(Core& core);

/// The inputs of a gate are there: combines them and sends them on, or ends the barrier at a start/end gate.
/// @param number  queue number of the gate
void pass_gate(Core& core, std::uint32_t number);

/// A packet for one of our gates has arrived.
void receive_gate_packet(Core& core, const PacketHeader& header, const std::byte* payload);

/// A packet of this gate cannot be sent: the barrier of its circuit ends as failed in this process.
void fail_barrier(Core& core, std::uint64_t gate_id);

/// A process has died: barriers whose packets come from there, or go there, end as failed, now and from now on.
void fail_barriers_with(Core& core, ProcessId process);

}  // namespace portofu
