#include "engine/initiator/barrier.h"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "engine/atomic/atomic_unit.h"
#include "engine/initiator/tofu_owner.h"
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

/// Lets pass_gate run once `threshold` inputs are there.
void arm_inputs(Core& core, BarrierGate& gate, std::uint64_t threshold) {
  Descriptor passes;
  passes.type = PacketType::kTofuGate;
  passes.interface_index = kTofuInterface;
  passes.gate_number = queue_number(gate.id);
  arm_operation(core, gate.inputs, passes, {0, threshold});
}

/// The barrier of a start/end gate is over.
void end_barrier(Core& core, BarrierGate& start, BarrierState how) {
  start.state = how;
  ++core.activity;
}

/// Counts what has arrived for the round that is awaited.
void count_inputs(Core& core, BarrierGate& gate) {
  if (!gate.configured) return;
  if (!gate.signal_counted && !gate.signals.empty()) {
    gate.signal_counted = true;
    gate.inputs.add_success_on_duty(1, core.fired);
  }
  if (!gate.packet_counted && !gate.packets.empty() && gate.trusts_source()) {
    gate.packet_counted = true;
    gate.inputs.add_success_on_duty(1, core.fired);
  }
}

/// Lets the gate wait for the inputs of its next round: a relay gate always, a start/end gate from the start of each
/// barrier.
void arm_gate(Core& core, BarrierGate& gate) {
  if (gate.armed || gate.input_count() == 0) return;
  arm_inputs(core, gate, gate.round_inputs + gate.input_count());  // First: there may be no memory for it.
  gate.armed = true;
  gate.round_inputs += gate.input_count();
  count_inputs(core, gate);
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

/// The gate that its signals go to; nullptr if there is none.
BarrierGate* local_target_of(Core& core, const BarrierGate& gate) {
  if (gate.local_target == BarrierGate::kNoGate) return nullptr;
  BarrierGate* const next = core.tofu->gate(queue_number(gate.local_target));
  return next != nullptr && next->local_source == gate.id ? next : nullptr;
}

/// Nothing can be sent by the set of a gate, which its start/end gate learns.
/// @param fails  what runs, too; else only what starts later
void end_set(Core& core, const BarrierGate& gate, bool fails) {
  BarrierGate* const start = core.tofu->gate(queue_number(gate.set_id));
  if (start == nullptr || gate.is_left_out) return;
  end_gate(core, *start, start->rounds_started - (fails && start->state == BarrierState::kRunning ? 1 : 0));
}

/// @return false if the packet cannot go out
bool send_to_both(Core& core, BarrierGate& gate, const GateValue& value) {
  BarrierGate* const next = local_target_of(core, gate);
  if (next != nullptr && next->signals.size() < kMostWaitingInputs) {
    next->signals.push_back(value);
    count_inputs(core, *next);
  }
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

/// Lets pass_gate tell what the gate owes, to be noted next.
void arm_notice(Core& core, BarrierGate& gate) {
  if (!gate.owes_notice()) arm_inputs(core, gate, 0);
}

/// How many more rounds of a gate that has an end come.
std::uint32_t rounds_left(const BarrierGate& gate) {
  const std::uint64_t left = gate.whole_rounds - std::min(gate.whole_rounds, gate.rounds_sent());
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(left, kMostWaitingInputs));
}

/// Tells both destinations of a gate that has an end.
void tell_of_end(Core& core, const BarrierGate& gate) {
  const std::uint32_t left = rounds_left(gate);
  BarrierGate* const next = local_target_of(core, gate);
  if (next != nullptr) end_gate(core, *next, next->rounds_passed + next->signals.size() + left);
  // Of the target whom that does not reach nothing follows: it may have been through its last round. Whoever has the
  // number of a dead one would take it for the end of its own circuit, if we are its source there.
  if (gate.remote_target != BarrierGate::kNoGate && !gate.target_dead)
    send_gate_notice(core, gate, gate.remote_target, rounds_word(0, left));
}

/// Whether a setting was made before that one of the same process. Their numbers go up, and begin anew some day.
bool is_earlier(std::uint32_t setting, std::uint32_t than) { return static_cast<std::int32_t>(setting - than) < 0; }

/// What the source sends counts from that setting of it on; what came of earlier ones is of an earlier circuit.
void trust_source(Core& core, BarrierGate& gate, std::uint32_t setting) {
  if (gate.trusts_source()) return;
  gate.source_setting = setting;
  while (!gate.packets.empty() && is_earlier(gate.packets.front().setting, setting)) gate.packets.pop_front();
  count_inputs(core, gate);
}

/// Nothing comes from the source any more. It may have ended before it has answered, because its own barrier was over:
/// then its last setting, of which it has told, is that of this circuit. If it has not, or values of that have come in
/// the circuit before, it was killed, and what it has said of the next one is lost.
void lose_source(Core& core, BarrierGate& gate) {
  const bool is_told = gate.former_setting != 0 ? is_earlier(gate.former_setting, gate.heard_setting)
                                                : gate.told_setting == gate.heard_setting;
  if (!gate.trusts_source() && !is_told) gate.packets.clear();
  trust_source(core, gate, gate.heard_setting);
  end_gate(core, gate, gate.packets_in());
}

/// Says that the gate waits for packets of its source, and perhaps asks which ones come.
void send_to_source(Core& core, BarrierGate& gate, std::uint64_t word) {
  if (gate.remote_source == BarrierGate::kNoGate || send_gate_notice(core, gate, gate.remote_source, word)) return;
  lose_source(core, gate);
}

/// Sends what the gate owes. What fails for lack of memory is owed still.
void tell_what_is_owed(Core& core, BarrierGate& gate) {
  const auto pay = [](auto& owed, auto&& tell) {
    const auto what = std::exchange(owed, {});
    if (!what) return;
    try {
      tell(what);
    } catch (const std::bad_alloc&) {  // In the next cycle, with all that follows.
      owed = what;
      throw;
    }
  };
  pay(gate.owes_end, [&](bool) { tell_of_end(core, gate); });
  pay(gate.owes_question, [&](bool) { send_to_source(core, gate, rounds_word(gate.setting, kWhatIsLeft)); });
  pay(gate.owes_answer, [&](std::uint32_t setting) {
    const std::uint32_t left = gate.whole_rounds == kAllRounds ? kNoEnd : rounds_left(gate);
    if (gate.remote_target != BarrierGate::kNoGate)
      send_gate_notice(core, gate, gate.remote_target, rounds_word(setting, left));
  });
  if (gate.owes_notice()) arm_inputs(core, gate, 0);  // An end, because nobody is there to ask.
}

/// A barrier waits for the gates of a set: those in doubt ask, and those of other sets that signal to them.
void ask_sources(Core& core, std::uint64_t set_id) {
  std::vector<std::uint64_t> sets{set_id};
  bool has_doubts = false;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    has_doubts = false;
    core.tofu->for_each_gate([&](BarrierGate& gate) {
      has_doubts = has_doubts || (gate.doubts && gate.set_id != sets[i]);
      if (gate.set_id != sets[i]) return;
      const BarrierGate* const before = core.tofu->gate(queue_number(gate.local_source));
      const bool signals = before != nullptr && before->id == gate.local_source;
      if (signals && std::ranges::find(sets, before->set_id) == sets.end()) sets.push_back(before->set_id);
      if (!gate.doubts) return;
      arm_notice(core, gate);
      gate.owes_question = true;
      gate.doubts = false;
    });
  }
  core.tofu->has_doubts = has_doubts;
}

/// What the source of a gate says may be of an earlier circuit, or it has left that of the gate: it is asked, if not
/// yet then when a barrier waits.
void doubt(Core& core, BarrierGate& gate) {
  gate.doubts = core.tofu->has_doubts = true;
  const BarrierGate* const start = core.tofu->gate(queue_number(gate.set_id));
  if (gate.was_asked || (start != nullptr && start->state == BarrierState::kRunning)) ask_sources(core, gate.set_id);
}

/// Whether barriers of the set start here. In one of relay gates only, what others ask and send tells that one waits.
bool has_start(const Core& core, const BarrierGate& gate) {
  const BarrierGate* const start = core.tofu->gate(queue_number(gate.set_id));
  return start != nullptr && start->input_count() != 0;
}

/// The target of a gate waits for it, in the setting of that number, which may be one of an earlier circuit.
void be_asked(Core& core, BarrierGate& gate, std::uint32_t setting) {
  arm_notice(core, gate);
  gate.owes_answer = setting;
  if (has_start(core, gate)) return;
  core.tofu->for_each_gate([&gate](BarrierGate& other) { other.was_asked |= other.set_id == gate.set_id; });
  ask_sources(core, gate.set_id);
}

/// Whether the gate waits for packets of that one.
bool is_source(const BarrierGate& gate, std::uint64_t id) {
  return id != BarrierGate::kNoGate && id == gate.remote_source;
}

/// Another gate waits for this one, which may be of its circuit no more.
void receive_question(Core& core, const PacketHeader& header, std::uint32_t setting) {
  BarrierGate* const gate = core.tofu->gate(header.tofu_queue);
  if (gate != nullptr && gate->configured && header.sender_id == gate->remote_target)
    return be_asked(core, *gate, setting);
  const std::uint64_t asked = make_tofu_id(TofuIdKind::kVbg, core.tofu->coordinates, header.tofu_queue);
  answer_for_nobody(core, asked, header.sender_id, rounds_word(setting, 0));
}

void receive_gate_notice(Core& core, BarrierGate& gate, const PacketHeader& header) {
  const auto setting = static_cast<std::uint32_t>(header.rounds_left >> 32);
  const auto left = static_cast<std::uint32_t>(header.rounds_left);
  if (!is_source(gate, header.sender_id)) {
    if (setting == 0 && left != kNoEnd) gate.ended_source = header.sender_id;
    return;
  }
  if (header.gate_setting != 0) gate.heard_setting = static_cast<std::uint32_t>(header.gate_setting);
  if (setting == 0 && left == kNoEnd) gate.told_setting = static_cast<std::uint32_t>(header.gate_setting);
  if (setting == gate.setting) {
    if (header.gate_setting == 0) return lose_source(core, gate);  // Nobody's.
    trust_source(core, gate, static_cast<std::uint32_t>(header.gate_setting));
  } else if (setting != 0) {
    return;  // It was asked by an earlier circuit.
  } else if (gate.asks || left == kNoEnd) {
    return doubt(core, gate);
  }
  if (left != kNoEnd) end_gate(core, gate, gate.packets_in() + std::min<std::uint64_t>(left, kMostWaitingInputs));
}

/// A packet of a gate without a value.
void receive_notice(Core& core, const PacketHeader& header) {
  if (header.rounds_left == kAllRounds) return;  // The link is what it was sent for.
  if (static_cast<std::uint32_t>(header.rounds_left) == kWhatIsLeft)
    return receive_question(core, header, static_cast<std::uint32_t>(header.rounds_left >> 32));
  BarrierGate* const gate = core.tofu->gate(header.tofu_queue);
  if (gate != nullptr) receive_gate_notice(core, *gate, header);
}

/// Who gets the packets of a gate is to ask for them, because none come any more, or those of another setting.
void let_target_ask(Core& core, const BarrierGate& gate) {
  if (gate.remote_target != BarrierGate::kNoGate && !gate.target_dead)
    send_gate_notice(core, gate, gate.remote_target, rounds_word(0, kNoEnd));
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

void leave_circuit(Core& core, BarrierGate& gate) {
  if (!gate.configured) return;
  core.tofu->circuits_over = true;
  gate.setting = 0;
  let_target_ask(core, gate);
  BarrierGate* const next = local_target_of(core, gate);
  if (next != nullptr && next->set_id != gate.set_id) end_gate(core, *next, next->rounds_passed + next->signals.size());
  gate.armed = false;  // What its inputs have fired already passes nothing.
  gate.configured = false;
  gate.is_left_out = true;
}

void configure_gate(Core& core, BarrierGate& gate, const GateEnds& ends) {
  core.tofu->circuits_over |= gate.configured;
  gate.setting = 0;
  if (gate.configured && gate.remote_target != ends.remote_target) let_target_ask(core, gate);
  gate.former_setting = gate.remote_source == ends.remote_source ? gate.value_setting : 0;
  static_cast<GateEnds&>(gate) = ends;
  gate.configured = true;
  gate.is_left_out = false;
  gate.source_process = gate.target_process = {};
  gate.inputs.reset_on_duty();
  gate.round_inputs = 0;
  gate.signals.clear();
  gate.packets.clear();
  gate.signal_counted = gate.packet_counted = gate.armed = gate.owes_end = gate.target_dead = false;
  gate.owes_question = gate.was_asked = false;
  gate.owes_answer = 0;
  // 0 and the highest one name no setting.
  gate.setting = core.tofu->gate_settings = core.tofu->gate_settings % (UINT32_MAX - 1) + 1;
  gate.asks = gate.doubts = core.tofu->circuits_over;
  core.tofu->has_doubts |= gate.doubts;
  gate.source_setting = 0;
  gate.rounds_started = gate.rounds_passed = 0;
  gate.whole_rounds = kAllRounds;
  gate.state = BarrierState::kIdle;
  if (!gate.is_start()) arm_gate(core, gate);
  // Now, so that the death of these processes is noticed, and understood, whenever it comes.
  for (const std::uint64_t other : {gate.remote_source, gate.remote_target}) {
    if (other != BarrierGate::kNoGate) learn_owner(core, other);
  }
  if (gate.remote_source != BarrierGate::kNoGate && !send_gate_notice(core, gate, gate.remote_source, kAllRounds)) {
    end_gate(core, gate, 0);
  }
  if (gate.asks) let_target_ask(core, gate);
  if (is_source(gate, std::exchange(gate.ended_source, BarrierGate::kNoGate)) && !gate.asks) end_gate(core, gate, 0);
}

void end_gate(Core& core, BarrierGate& gate, std::uint64_t round) {
  if (round >= gate.whole_rounds) return;
  gate.whole_rounds = round;
  if (gate.state == BarrierState::kRunning && gate.rounds_started > round)
    end_barrier(core, gate, BarrierState::kFailed);
  core.tofu->circuits_over = true;
  arm_notice(core, gate);
  gate.owes_end = true;
}

void fail_barriers_with(Core& core, ProcessId process) {
  if (core.tofu == nullptr) return;
  core.tofu->for_each_gate([&](BarrierGate& gate) {
    // A process may end as soon as its own barrier is over: what it has sent is enough for ours, and what it has got of
    // this round was enough for it.
    if (gate.source_process == process) lose_source(core, gate);
    if (gate.target_process != process) return;
    gate.target_dead = true;
    end_set(core, gate, false);
  });
}

void start_barrier(Core& core, BarrierGate& gate, const GateValue& value) {
  gate.result = value;
  if (gate.rounds_started >= gate.whole_rounds) return end_barrier(core, gate, BarrierState::kFailed);
  arm_gate(core, gate);  // First: without memory for it nothing has begun.
  gate.state = BarrierState::kRunning;
  ++gate.rounds_started;
  take_step(core, gate, [&] {
    if (core.tofu->has_doubts) [[unlikely]]
      ask_sources(core, gate.id);
    return send_to_both(core, gate, value);
  });
  if (gate.input_count() == 0 && gate.state == BarrierState::kRunning)
    end_barrier(core, gate, BarrierState::kCompleted);
}

void pass_gate(Core& core, std::uint32_t number) {
  BarrierGate* gate = core.tofu->gate(number);
  if (gate == nullptr) return;
  if (gate->owes_notice()) tell_what_is_owed(core, *gate);
  // It may have been configured anew meanwhile.
  if (!gate->armed || gate->inputs.success() < gate->round_inputs) return;
  const GateValue value = take_inputs(*gate);
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
  if (core.tofu != nullptr && header.length == 0 && bytes == 0) return receive_notice(core, header);
  BarrierGate* gate = core.tofu != nullptr ? core.tofu->gate(header.tofu_queue) : nullptr;
  GateValue value;
  const bool good = gate != nullptr && is_source(*gate, header.sender_id) && header.gate_setting != 0 &&
                    header.length == bytes && bytes >= kLeastGateBytes && bytes <= sizeof value &&
                    gate->packets.size() < kMostWaitingInputs;
  // A peer that lies may unmake the packet at any time.
  const bool copied = good && guarded_copy(reinterpret_cast<std::byte*>(&value), payload, bytes);
  if (!copied || !is_possible(value) || bytes != gate_value_bytes(value)) {
    return core.counters.add(Counter::kPacketsRefusedMalformed);
  }
  value.setting = gate->heard_setting = gate->value_setting = static_cast<std::uint32_t>(header.gate_setting);
  if (gate->source_setting != 0 && is_earlier(value.setting, gate->source_setting)) return;
  gate->packets.push_back(value);
  if (!gate->trusts_source() && gate->doubts && !has_start(core, *gate)) ask_sources(core, gate->set_id);
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

}  // namespace portofu
