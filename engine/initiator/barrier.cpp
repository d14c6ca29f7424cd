#include "engine/initiator/barrier.h"

#include "engine/atomic/atomic_unit.h"
#include "engine/initiator/tofu_send.h"
#include "engine/memory/guarded_copy.h"

namespace portofu {
namespace {

/// An honest circuit has at most two rounds on the way; what is more is a mistake or a lie.
constexpr std::size_t kMostWaitingInputs = 64;

void combine_pairs(GateValue& into, const GateValue& other) {
  for (std::size_t i = 0; i + 1 < into.item_count; i += 2) {
    const bool better = other.items[i] > into.items[i];
    const bool earlier = other.items[i] == into.items[i] && other.items[i + 1] < into.items[i + 1];
    if (!better && !earlier) continue;
    into.items[i] = other.items[i];
    into.items[i + 1] = other.items[i + 1];
  }
}

AtomicOperation atomic_operation_of(ReduceOperation operation) {
  switch (operation) {
    case ReduceOperation::kBand: return AtomicOperation::kBand;
    case ReduceOperation::kBor: return AtomicOperation::kBor;
    case ReduceOperation::kBxor: return AtomicOperation::kBxor;
    case ReduceOperation::kMax: return AtomicOperation::kMax;
    default: return AtomicOperation::kSum;
  }
}

/// into = into (operation) other.
void combine(GateValue& into, const GateValue& other) {
  into.mismatch |= other.mismatch;
  into.failed |= other.failed;
  if (into.failed != 0) return;
  if (into.operation != other.operation || into.item_count != other.item_count) into.mismatch = 1;
  if (into.mismatch != 0) return;
  switch (into.operation) {
    case ReduceOperation::kBarrier: return;
    case ReduceOperation::kMaxloc: return combine_pairs(into, other);
    case ReduceOperation::kBfpsum:
      for (std::size_t i = 0; i < into.item_count; ++i) into.sums[i].add(other.sums[i]);
      return;
    default: break;
  }
  execute_atomic({atomic_operation_of(into.operation), AtomicType::kUint64,
                  reinterpret_cast<std::byte*>(into.items.data()),
                  reinterpret_cast<const std::byte*>(other.items.data()), nullptr, nullptr, into.item_count});
}

/// Counts what has arrived for the round that is awaited.
void count_inputs(Core& core, BarrierGate& gate) {
  if (!gate.configured) return;
  if (!gate.signal_counted && !gate.signals.empty()) {
    gate.signal_counted = true;
    gate.inputs.add_success_on_duty(1, core.fired);
  }
  if (!gate.packet_counted && !gate.packets.empty()) {
    gate.packet_counted = true;
    gate.inputs.add_success_on_duty(1, core.fired);
  }
}

/// Takes the inputs of the round out of their queues. @pre both that the gate has are there
GateValue take_inputs(BarrierGate& gate) {
  GateValue value;
  if (!gate.signals.empty() && gate.signal_counted) {
    value = gate.signals.front();
    gate.signals.pop_front();
    if (gate.packet_counted) combine(value, gate.packets.front());
  } else {
    value = gate.packets.front();
  }
  if (gate.packet_counted) gate.packets.pop_front();
  gate.signal_counted = false;
  gate.packet_counted = false;
  gate.armed = false;
  ++gate.rounds_passed;
  return value;
}

/// Whether barriers of this process wait for more packets of a gate than are there: a barrier that fails at once is
/// over before its gates have passed, and the next one may have started. A gate that has signals, too, knows by them;
/// of others in a set that nobody starts by itself, any running barrier may be the one, on whichever engine it started.
bool is_awaited(const Core& core, const BarrierGate& gate) {
  if (!gate.signals.empty()) return gate.packets.size() < gate.signals.size();
  const BarrierGate* start = core.tofu->gate(queue_number(gate.set_id));
  if (start != nullptr && start->rounds_started != 0) {
    return gate.rounds_passed + gate.packets.size() < start->rounds_started;
  }
  bool running = core.tofu->barriers->running.load(std::memory_order_seq_cst) != 0;  // (B1)
  core.tofu->for_each_gate([&](const BarrierGate& one) { running = running || one.state == BarrierState::kRunning; });
  return running && gate.local_source == BarrierGate::kNoGate && gate.packets.size() < kMostWaitingInputs;
}

/// Puts a failed packet in the place of one that is awaited and will never come, so that the failure goes on through
/// the circuit, to processes that have nothing to do with the dead one themselves.
/// @return whether it did
bool stand_in(Core& core, BarrierGate& gate) {
  if (!gate.source_lost || !gate.configured || !is_awaited(core, gate)) return false;
  GateValue value;
  value.failed = 1;
  gate.packets.push_back(value);
  count_inputs(core, gate);
  return true;
}

void send_on(Core& core, BarrierGate& gate, const GateValue& value) {
  if (gate.local_target != BarrierGate::kNoGate) {
    BarrierGate* next = core.tofu->gate(queue_number(gate.local_target));
    if (next != nullptr && next->local_source == gate.id && next->signals.size() < kMostWaitingInputs) {
      next->signals.push_back(value);
      count_inputs(core, *next);
      stand_in(core, *next);
    }
  }
  if (gate.remote_target == BarrierGate::kNoGate) return;
  if (!send_gate_packet(core, gate, value)) fail_barrier(core, gate.id);
}

void end_at(Core& core, BarrierGate& start) {
  start.state = BarrierState::kCompleted;
  if (start.shown.running) [[unlikely]]
    core.tofu->show(start, {});
}

/// Whether the value is one that its operation may have.
bool is_possible(const GateValue& value) {
  const auto operation = static_cast<std::uint8_t>(value.operation);
  if (operation < static_cast<std::uint8_t>(ReduceOperation::kBarrier) ||
      operation > static_cast<std::uint8_t>(ReduceOperation::kBfpsum)) {
    return false;
  }
  return value.item_count <= (value.operation == ReduceOperation::kBfpsum ? kMaxReduceSums : kMaxReduceItems);
}

}  // namespace

void arm_gate(Core& core, BarrierGate& gate) {
  if (gate.armed || gate.input_count() == 0) return;
  gate.armed = true;
  auto* operation = new TriggeredOperation;
  operation->descriptor.type = PacketType::kTofuGate;
  operation->descriptor.interface_index = kTofuInterface;
  operation->descriptor.gate_number = queue_number(gate.id);
  gate.round_inputs += gate.input_count();
  operation->threshold = gate.round_inputs;
  gate.inputs.add_triggered_on_duty(operation, core.fired);
  count_inputs(core, gate);
}

void fail_barriers_with(Core& core, ProcessId process) {
  if (core.tofu == nullptr) return;
  core.tofu->for_each_gate([&](BarrierGate& gate) {
    for (const std::uint64_t other : {gate.remote_source, gate.remote_target}) {
      NameOwner owner;
      if (!core.tofu->recall_owner(other, &owner) || !(owner == process)) continue;
      // Another process of our node may have the gate by now.
      const bool is_near = is_of_node(other, core.tofu->coordinates);
      if (is_near && core.tofu->ask_owner(other, &owner) == FindResult::kFound && !(owner == process)) continue;
      gate.peer_lost = true;
      if (other != gate.remote_source) continue;
      gate.source_lost = true;
      if (gate.is_lone_relay()) core.tofu->show(gate, {.relay = true, .orphan = true});
      // A process may end as soon as its own barrier is over: what it has sent is enough for ours.
      if (stand_in(core, gate)) fail_barrier(core, gate.id);
    }
  });
}

void start_barrier(Core& core, BarrierGate& gate, const GateValue& value) {
  gate.state = BarrierState::kRunning;
  gate.result = value;
  ++gate.rounds_started;
  if (core.tofu->barriers->relays.load(std::memory_order_relaxed) != 0) [[unlikely]]
    core.tofu->show(gate, {.running = true});
  arm_gate(core, gate);
  send_on(core, gate, value);
  bool lost = false;
  core.tofu->for_each_gate([&](BarrierGate& other) {
    stand_in(core, other);
    lost = lost || (other.peer_lost && other.set_id == gate.id);
  });
  if (lost) fail_barrier(core, gate.id);
  if (gate.input_count() == 0) end_at(core, gate);
}

void stand_in_for_dead(Core& core) {
  if (core.tofu == nullptr) return;
  core.tofu->for_each_gate([&](BarrierGate& gate) { stand_in(core, gate); });
}

void pass_gate(Core& core, std::uint32_t number) {
  BarrierGate* gate = core.tofu->gate(number);
  if (gate == nullptr || !gate->armed) return;
  // It was configured anew meanwhile.
  if (gate->inputs.success() < gate->round_inputs) return;
  const GateValue value = take_inputs(*gate);
  ++core.activity;
  if (!gate->is_start()) {
    arm_gate(core, *gate);
    return send_on(core, *gate, value);
  }
  if (gate->state != BarrierState::kRunning) return;
  const bool other = value.operation != gate->result.operation || value.item_count != gate->result.item_count;
  if (value.failed != 0) {
    gate->result.failed = 1;
  } else if (other || value.mismatch != 0) {
    gate->result.mismatch = 1;
  } else {
    gate->result = value;
  }
  end_at(core, *gate);
}

void receive_gate_packet(Core& core, const PacketHeader& header, const std::byte* payload) {
  BarrierGate* gate = core.tofu != nullptr ? core.tofu->gate(header.tofu_queue) : nullptr;
  GateValue value;
  const std::uint32_t bytes = header.payload_bytes;
  const bool good = gate != nullptr && gate->remote_source == header.sender_id && header.length == bytes &&
                    bytes >= kLeastGateBytes && bytes <= sizeof value && gate->packets.size() < kMostWaitingInputs;
  // A peer that lies may unmake the packet at any time.
  const bool copied = good && guarded_copy(reinterpret_cast<std::byte*>(&value), payload, bytes);
  if (!copied || !is_possible(value) || bytes != gate_value_bytes(value)) {
    return core.counters.add(Counter::kPacketsRefusedMalformed);
  }
  gate->packets.push_back(value);
  count_inputs(core, *gate);
}

void fail_barrier(Core& core, std::uint64_t gate_id) {
  BarrierGate* gate = core.tofu != nullptr ? core.tofu->gate(queue_number(gate_id)) : nullptr;
  BarrierGate* start = gate != nullptr ? core.tofu->gate(queue_number(gate->set_id)) : nullptr;
  if (start == nullptr || start->state != BarrierState::kRunning) return;
  start->result.failed = 1;
  end_at(core, *start);
  ++core.activity;
}

}  // namespace portofu
