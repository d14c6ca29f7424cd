#include "engine/initiator/barrier.h"

#include <new>
#include <utility>

#include "engine/initiator/circuit.h"
#include "engine/initiator/gate_inputs.h"
#include "engine/initiator/reduction.h"
#include "engine/initiator/tofu_send.h"
#include "engine/memory/guarded_copy.h"

namespace portofu {
namespace {

/// Nothing can be sent by the set of a gate, which its start/end gate learns.
/// @param fails  what runs, too; else only what starts later
void end_set(Core& core, const BarrierGate& gate, bool fails) {
  BarrierGate* const start = start_of(core, gate);
  if (start == nullptr || gate.is_left_out) return;
  end_gate(core, *start, start->rounds.started - (fails && start->state == BarrierState::kRunning ? 1 : 0));
}

/// @param value  of the last round
/// @return false if the packet cannot go out
bool send_to_both(Core& core, BarrierGate& gate, GateValue& value) {
  BarrierGate* const next = local_target_of(core, gate);
  if (next != nullptr && next->rounds.signals.size() < kMostWaitingInputs) {
    next->rounds.signals.push_back(value);
    count_inputs(core, *next);
  } else if (next != nullptr && next->configured) {
    end_gate(core, *next, next->rounds.signals_in());
  }
  value.setting = static_cast<std::uint32_t>(gate.rounds_sent());
  return gate.remote_target == BarrierGate::kNoGate || send_gate_packet(core, gate, value);
}

/// Takes a step of a round that sends. If it cannot, also for lack of memory, nothing comes from this set of gates any
/// more, and the whole circuit learns it.
/// @param step  bool(), false: it cannot
template <class Step>
void take_step(Core& core, const BarrierGate& gate, Step&& step) {
  bool taken = false;
  try {
    taken = step();
  } catch (const std::bad_alloc&) {
  }
  if (!taken) end_set(core, gate, true);
}

}  // namespace

void start_barrier(Core& core, BarrierGate& gate, const GateValue& value) {
  gate.result = value;
  if (gate.rounds.started >= gate.rounds.whole) return end_barrier(core, gate, BarrierState::kFailed);
  arm_gate(core, gate);  // First: without memory for it nothing has begun.
  gate.state = BarrierState::kRunning;
  ++gate.rounds.started;
  take_step(core, gate, [&] {
    if (core.tofu->has_doubts) [[unlikely]]
      ask_sources(core, gate.id);
    return send_to_both(core, gate, gate.result);
  });
  if (gate.input_count() == 0 && gate.state == BarrierState::kRunning)
    end_barrier(core, gate, BarrierState::kCompleted);
}

void pass_gate(Core& core, std::uint32_t number) {
  BarrierGate* gate = core.tofu->gate(number);
  if (gate == nullptr) return;
  if (gate->owed.any()) tell_what_is_owed(core, *gate);
  // It may have been configured anew meanwhile.
  if (!gate->rounds.armed || gate->rounds.inputs.success() < gate->rounds.awaited_inputs) return;
  // Inputs that come behind an end, as after a link was lost, are of later rounds.
  if (!gate->is_start() && gate->rounds.passed >= gate->rounds.whole) return;
  GateValue value = take_inputs(gate->rounds);
  ++core.activity;
  if (!gate->is_start()) {
    return take_step(core, *gate, [&] {
      arm_gate(core, *gate);
      return send_to_both(core, *gate, value);
    });
  }
  if (gate->state != BarrierState::kRunning) return;
  const bool other = value.operation != gate->result.operation || value.item_count != gate->result.item_count;
  if (other || value.mismatch != 0) {
    gate->result.mismatch = 1;
  } else {
    gate->result = value;
  }
  end_barrier(core, *gate, BarrierState::kCompleted);
}

void receive_gate_packet(Core& core, const PacketHeader& header, const std::byte* payload) {
  const std::uint32_t bytes = header.payload_bytes;
  if (core.tofu != nullptr && header.length == 0 && bytes == 0) return receive_gate_notice(core, header);
  BarrierGate* gate = core.tofu != nullptr ? core.tofu->gate(header.tofu_queue) : nullptr;
  GateValue value;
  const bool good = gate != nullptr && gate->takes_packets_of(header.sender_id) && header.gate_setting != 0 &&
                    header.length == bytes && bytes >= kLeastGateBytes && bytes <= sizeof value;
  // A peer that lies may unmake the packet at any time.
  const bool copied = good && guarded_copy(reinterpret_cast<std::byte*>(&value), payload, bytes);
  if (!copied || !is_possible(value) || bytes != gate_value_bytes(value)) {
    return core.counters.add(Counter::kPacketsRefusedMalformed);
  }
  GateSource& source = gate->source;
  const std::uint32_t round = std::exchange(value.setting, static_cast<std::uint32_t>(header.gate_setting));
  source.heard_setting = value.setting;
  if (source.first_setting != 0 && is_earlier(value.setting, source.first_setting)) return;
  if (!source.is_next(value.setting, round)) return lose_source(core, *gate);
  source.value_setting = value.setting;
  source.value_round = round;
  if (gate->rounds.packets.size() >= kMostWaitingInputs) {
    core.counters.add(Counter::kPacketsRefusedMalformed);
    if (gate->configured) end_gate(core, *gate, gate->rounds.packets_in());
    return;
  }
  gate->rounds.packets.push_back(value);
  note_value(core, *gate);
  count_inputs(core, *gate);
}

void fail_gate_packet(Core& core, const Descriptor& descriptor) {
  BarrierGate* gate = core.tofu != nullptr ? core.tofu->gate(queue_number(descriptor.sender_id)) : nullptr;
  if (gate == nullptr || gate->setting != descriptor.tofu.vcq_handle) return;
  const std::uint64_t other = descriptor.tofu.remote_vcq_id;
  if (descriptor.length != 0 && other == gate->remote_target) end_set(core, *gate, true);
  const bool waits = static_cast<std::uint32_t>(descriptor.rounds_left) == kWhatIsLeft;  // So does kAllRounds.
  if (descriptor.length != 0 || !waits || other != gate->remote_source) return;
  lose_source(core, *gate);
}

void fail_barriers_with(Core& core, ProcessId process) {
  if (core.tofu == nullptr) return;
  // It may be alive, and what it has sent be lost with a link: then it hears of the end by the link to it.
  Peer& peer = core.peer(process);
  peer.lost_setting = core.tofu->gate_settings;
  const bool is_heard = peer.state == PeerState::kConnected && !peer.link->lost;
  core.tofu->for_each_gate([&](BarrierGate& gate) {
    // A process may end as soon as its own barrier is over: what it has sent is enough for ours, and what it has got of
    // this round was enough for it.
    if (gate.source.process == process) lose_source(core, gate);
    if (gate.target.process != process) return;
    gate.target.is_dead |= !is_heard;
    end_set(core, gate, false);
  });
}

}  // namespace portofu
