#include "engine/initiator/gate_inputs.h"

#include "engine/initiator/reduction.h"

namespace portofu {

void arm_inputs(Core& core, BarrierGate& gate, std::uint64_t threshold) {
  Descriptor passes;
  passes.type = PacketType::kTofuGate;
  passes.interface_index = kTofuInterface;
  passes.gate_number = queue_number(gate.id);
  arm_operation(core, gate.rounds.inputs, passes, {0, threshold});
}

void count_inputs(Core& core, BarrierGate& gate) {
  if (!gate.configured) return;
  GateRounds& rounds = gate.rounds;
  if (!rounds.signal_counted && !rounds.signals.empty()) {
    rounds.signal_counted = true;
    rounds.inputs.add_success_on_duty(1, core.fired);
  }
  if (!rounds.packet_counted && !rounds.packets.empty() && gate.source.is_trusted()) {
    rounds.packet_counted = true;
    rounds.inputs.add_success_on_duty(1, core.fired);
  }
}

void arm_gate(Core& core, BarrierGate& gate) {
  GateRounds& rounds = gate.rounds;
  if (rounds.armed || gate.input_count() == 0) return;
  arm_inputs(core, gate, rounds.awaited_inputs + gate.input_count());  // First: there may be no memory for it.
  rounds.armed = true;
  rounds.awaited_inputs += gate.input_count();
  count_inputs(core, gate);
}

GateValue take_inputs(GateRounds& rounds) {
  GateValue value;
  if (!rounds.signals.empty() && rounds.signal_counted) {
    value = rounds.signals.front();
    rounds.signals.pop_front();
    if (rounds.packet_counted) combine(value, rounds.packets.front());
  } else {
    value = rounds.packets.front();
  }
  if (rounds.packet_counted) rounds.packets.pop_front();
  rounds.signal_counted = rounds.packet_counted = rounds.armed = false;
  ++rounds.passed;
  return value;
}

}  // namespace portofu
