#pragma once
// The inputs of a gate, round by round: they are counted, and once those of a round are there, pass_gate (barrier.h)
// runs from the list of fired operations and takes them. All on duty. @spec uTofu guide, 2.3.2

#include <cstddef>
#include <cstdint>

#include "engine/core/core.h"

namespace portofu {

/// Of each kind, at a gate. A circuit that synchronizes has at most two rounds on the way. A start/end gate without
/// inputs may begin more: if they are too many, the gate that gets them has an end, because those that are lost would
/// be taken for later ones.
inline constexpr std::size_t kMostWaitingInputs = 64;

/// Lets pass_gate run once `threshold` inputs are there; 0: in the next cycle.
void arm_inputs(Core& core, BarrierGate& gate, std::uint64_t threshold);

/// Counts what has arrived for the round that is awaited.
void count_inputs(Core& core, BarrierGate& gate);

/// Lets the gate wait for the inputs of its next round: a relay gate always, a start/end gate from the start of each
/// barrier.
void arm_gate(Core& core, BarrierGate& gate);

/// Takes the inputs of the round out of their queues.
/// @pre all that the gate has are there
/// @return what they come to
GateValue take_inputs(GateRounds& rounds);

}  // namespace portofu
