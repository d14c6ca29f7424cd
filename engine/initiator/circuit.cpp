#include "engine/initiator/circuit.h"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "engine/initiator/gate_inputs.h"
#include "engine/initiator/tofu_owner.h"
#include "engine/initiator/tofu_send.h"

namespace portofu {
namespace {

/// Lets pass_gate tell what the gate owes, to be noted next.
void arm_notice(Core& core, BarrierGate& gate) {
  if (!gate.owed.any()) arm_inputs(core, gate, 0);
}

/// Whoever has the number of a dead target is told nothing: he would take it for a word of his own circuit, if we are
/// his source there.
void tell_target(Core& core, const BarrierGate& gate, std::uint64_t word) {
  if (gate.remote_target != BarrierGate::kNoGate && !gate.target.is_dead)
    send_gate_notice(core, gate, gate.remote_target, word);
}

/// Who gets the packets of a gate is to ask for them, because none come any more, or those of another setting.
void let_target_ask(Core& core, const BarrierGate& gate) { tell_target(core, gate, rounds_word(0, kNoEnd)); }

/// Who waits in another set for signals of a gate gets none any more. In its own set all are connected anew.
void end_signals(Core& core, const BarrierGate& gate) {
  BarrierGate* const next = gate.configured ? local_target_of(core, gate) : nullptr;
  if (next != nullptr && next->set_id != gate.set_id) end_gate(core, *next, next->rounds.signals_in());
}

/// How many more rounds of a gate that has an end come.
std::uint32_t rounds_left(const BarrierGate& gate) {
  const std::uint64_t left = gate.rounds.whole - std::min(gate.rounds.whole, gate.rounds_sent());
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(left, kMostWaitingInputs));
}

/// Tells both destinations of a gate that has an end. Nothing follows of a target whom that does not reach: it may have
/// been through its last round.
void tell_of_end(Core& core, const BarrierGate& gate) {
  const std::uint32_t left = rounds_left(gate);
  BarrierGate* const next = local_target_of(core, gate);
  if (next != nullptr) end_gate(core, *next, next->rounds.signals_in() + left);
  tell_target(core, gate, rounds_word(0, left));
}

/// What the source sends counts from that setting of it on; what came of earlier ones is of an earlier circuit.
void trust_source(Core& core, BarrierGate& gate, std::uint32_t setting) {
  if (gate.source.is_trusted()) return;
  gate.source.first_setting = setting;
  GrowingRing<GateValue>& packets = gate.rounds.packets;
  while (!packets.empty() && is_earlier(packets.front().setting, setting)) packets.pop_front();
  count_inputs(core, gate);
}

/// Between two questions to a source to whom a link was lost once.
constexpr std::uint64_t kAskAgainNs = 1'000'000'000;

/// Former sources that are known of a gate. Those of one that had more are forgotten.
constexpr std::ptrdiff_t kMostFormerSources = 64;

/// A gate leaves its circuit: what its source had last there, as far as it is known, is not what it has in the next
/// one. Also of a source that was lost: it may live, and what it has sent since come late.
void note_former_source(Core& core, const BarrierGate& gate) {
  if (!gate.configured || gate.remote_source == BarrierGate::kNoGate) return;
  auto& former = core.tofu->former_sources;
  const std::uint32_t number = queue_number(gate.id);
  const auto first = former.lower_bound({number, 0, 0}), end = former.lower_bound({number + 1, 0, 0});
  if (std::distance(first, end) >= kMostFormerSources) {
    former.erase(first, end);
    former[{number, 0, 0}] = 0;
  }
  former[{number, gate.remote_source, process_key(gate.source.process)}] = gate.source.certain_setting();
}

/// Whether the last setting of the source that the gate has heard of is one of this circuit, though it has not
/// answered: the gate knows of none that it had in an earlier one, or of an earlier one. If it does not know what that
/// was, values of it may have been late.
bool is_of_this_circuit(const Core& core, const BarrierGate& gate) {
  const auto& former = core.tofu->former_sources;
  const std::uint32_t number = queue_number(gate.id);
  const std::uint64_t process = process_key(gate.source.process);
  if (former.contains({number, 0, 0})) return false;
  for (auto at = former.lower_bound({number, gate.remote_source, 0}); at != former.end(); ++at) {
    const auto& [of_gate, source, then] = at->first;
    if (of_gate != number || source != gate.remote_source) break;
    const bool is_same = then == process || then == 0 || process == 0;
    if (is_same && (at->second == 0 || !is_earlier(at->second, gate.source.heard_setting))) return false;
  }
  return true;
}

/// Asks which packets the source sends.
void ask_source(Core& core, BarrierGate& gate) {
  const std::uint64_t word = rounds_word(gate.setting, kWhatIsLeft);
  if (gate.remote_source == BarrierGate::kNoGate || send_gate_notice(core, gate, gate.remote_source, word)) return;
  lose_source(core, gate);
}

/// @param setting  of the target, which has asked
void answer_target(Core& core, const BarrierGate& gate, std::uint32_t setting) {
  const std::uint32_t left = gate.rounds.whole == kAllRounds ? kNoEnd : rounds_left(gate);
  if (gate.remote_target != BarrierGate::kNoGate)
    send_gate_notice(core, gate, gate.remote_target, rounds_word(setting, left));
}

/// What the source of a gate says may be of an earlier circuit, or it has left that of the gate: it is asked, if not
/// yet then when a barrier waits.
void doubt(Core& core, BarrierGate& gate) {
  gate.source.doubts = core.tofu->has_doubts = true;
  const BarrierGate* const start = start_of(core, gate);
  if (gate.was_asked || (start != nullptr && start->state == BarrierState::kRunning)) ask_sources(core, gate.set_id);
}

/// Whether barriers of the set start here. In one of relay gates only, what others ask and send tells that one waits.
bool has_start(const Core& core, const BarrierGate& gate) {
  const BarrierGate* const start = start_of(core, gate);
  return start != nullptr && start->input_count() != 0;
}

/// The target of a gate waits for it, in the setting of that number, which may be one of an earlier circuit.
void be_asked(Core& core, BarrierGate& gate, std::uint32_t setting) {
  arm_notice(core, gate);
  gate.owed.answer = setting;
  if (has_start(core, gate)) return;
  core.tofu->for_each_gate([&gate](BarrierGate& other) { other.was_asked |= other.set_id == gate.set_id; });
  ask_sources(core, gate.set_id);
}

/// Another gate waits for this one, which may be of its circuit no more.
void receive_question(Core& core, const PacketHeader& header, std::uint32_t setting) {
  BarrierGate* const gate = core.tofu->gate(header.tofu_queue);
  if (gate != nullptr && gate->configured && header.sender_id == gate->remote_target)
    return be_asked(core, *gate, setting);
  const std::uint64_t asked = make_tofu_id(TofuIdKind::kVbg, core.tofu->coordinates, header.tofu_queue);
  answer_for_nobody(core, asked, header.sender_id, rounds_word(setting, 0));
}

/// A source says how many rounds still come.
/// @param setting  that has asked; 0: none
/// @param left     or kNoEnd
void receive_rounds_left(Core& core, BarrierGate& gate, const PacketHeader& header, std::uint32_t setting,
                         std::uint32_t left) {
  const auto source_setting = static_cast<std::uint32_t>(header.gate_setting);
  if (!gate.takes_packets_of(header.sender_id)) {
    if (setting == 0 && left != kNoEnd) gate.ended_source = header.sender_id;
    return;
  }
  if (header.gate_setting != 0) gate.source.heard_setting = source_setting;
  if (setting == gate.setting) {
    if (header.gate_setting == 0) return lose_source(core, gate);  // Nobody's.
    trust_source(core, gate, source_setting);
  } else if (setting != 0) {
    return;  // It was asked by an earlier circuit.
  } else if (left == kNoEnd || !gate.source.is_of_this_circuit(source_setting)) {
    return doubt(core, gate);
  }
  if (left != kNoEnd)
    end_gate(core, gate, gate.rounds.packets_in() + std::min<std::uint64_t>(left, kMostWaitingInputs));
}

/// The gate becomes what these ends make of it; nothing is told yet. @param ends  not its own
void begin_circuit(Tofu& tofu, BarrierGate& gate, const GateEnds& ends) {
  gate.source = {};
  gate.source.asks = gate.source.doubts = tofu.circuits_over;
  gate.target = {};
  gate.rounds.reset_on_duty();
  gate.owed = {};
  static_cast<GateEnds&>(gate) = ends;
  gate.configured = true;
  gate.is_left_out = gate.was_asked = false;
  gate.state = BarrierState::kIdle;
  // 0 and the highest one name no setting.
  gate.setting = tofu.gate_settings = tofu.gate_settings % (UINT32_MAX - 1) + 1;
  tofu.has_doubts |= gate.source.doubts;
}

}  // namespace

BarrierGate* local_target_of(Core& core, const BarrierGate& gate) {
  if (gate.local_target == BarrierGate::kNoGate) return nullptr;
  BarrierGate* const next = core.tofu->gate(queue_number(gate.local_target));
  return next != nullptr && next->local_source == gate.id ? next : nullptr;
}

BarrierGate* start_of(const Core& core, const BarrierGate& gate) { return core.tofu->gate(queue_number(gate.set_id)); }

void configure_gate(Core& core, BarrierGate& gate, const GateEnds& ends) {
  note_former_source(core, gate);
  core.tofu->circuits_over |= gate.configured;
  gate.setting = 0;
  if (gate.local_target != ends.local_target) end_signals(core, gate);
  if (gate.configured && gate.remote_target != ends.remote_target) let_target_ask(core, gate);
  begin_circuit(*core.tofu, gate, ends);
  if (!gate.is_start()) arm_gate(core, gate);
  // Now, so that the death of these processes is noticed, and understood, whenever it comes.
  for (const std::uint64_t other : {gate.remote_source, gate.remote_target}) {
    if (other != BarrierGate::kNoGate) learn_owner(core, other);
  }
  if (gate.remote_source != BarrierGate::kNoGate && !send_gate_notice(core, gate, gate.remote_source, kAllRounds)) {
    end_gate(core, gate, 0);
  }
  if (gate.source.asks) let_target_ask(core, gate);
  const std::uint64_t ended = std::exchange(gate.ended_source, BarrierGate::kNoGate);
  if (gate.takes_packets_of(ended) && !gate.source.asks) end_gate(core, gate, 0);
}

void leave_circuit(Core& core, BarrierGate& gate) {
  if (!gate.configured) return;
  note_former_source(core, gate);
  core.tofu->circuits_over = true;
  gate.setting = 0;
  let_target_ask(core, gate);
  end_signals(core, gate);
  gate.rounds.armed = false;  // What its inputs have fired already passes nothing.
  gate.configured = false;
  gate.is_left_out = true;
}

void meet_owner(Core& core, std::uint64_t id, ProcessId process) {
  const auto meets = [&](std::uint64_t end, ProcessId& met) {
    const bool is_new = end != BarrierGate::kNoGate && claim_key(end) == claim_key(id) && met == ProcessId{};
    if (is_new) met = process;
    return is_new;
  };
  const std::uint32_t lost_setting = core.peer(process).lost_setting;
  core.tofu->for_each_gate([&](BarrierGate& gate) {
    meets(gate.remote_target, gate.target.process);
    // Of what it has sent a part may be lost since the gate was connected.
    const bool is_lost = lost_setting != 0 && gate.configured && !is_earlier(lost_setting, gate.setting);
    if (meets(gate.remote_source, gate.source.process) && is_lost) lose_source(core, gate);
  });
}

void end_gate(Core& core, BarrierGate& gate, std::uint64_t round) {
  if (round >= gate.rounds.whole) return;
  gate.rounds.whole = round;
  if (gate.state == BarrierState::kRunning && gate.rounds.started > round)
    end_barrier(core, gate, BarrierState::kFailed);
  core.tofu->circuits_over = true;
  arm_notice(core, gate);
  gate.owed.end = true;
}

void lose_source(Core& core, BarrierGate& gate) {
  if (gate.source.is_trusted() || is_of_this_circuit(core, gate)) {
    trust_source(core, gate, gate.source.heard_setting);
  } else {
    gate.rounds.packets.clear();  // Of which circuit they were stays unknown, unless an answer comes yet.
  }
  end_gate(core, gate, gate.rounds.packets_in());
}

void end_barrier(Core& core, BarrierGate& start, BarrierState how) {
  start.state = how;
  ++core.activity;
}

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
  pay(gate.owed.end, [&](bool) { tell_of_end(core, gate); });
  pay(gate.owed.question, [&](bool) { ask_source(core, gate); });
  pay(gate.owed.answer, [&](std::uint32_t setting) { answer_target(core, gate, setting); });
  if (gate.owed.any()) arm_inputs(core, gate, 0);  // An end, because nobody is there to ask.
}

void receive_gate_notice(Core& core, const PacketHeader& header) {
  if (header.rounds_left == kAllRounds) return;  // The link is what it was sent for.
  const auto setting = static_cast<std::uint32_t>(header.rounds_left >> 32);
  const auto left = static_cast<std::uint32_t>(header.rounds_left);
  if (left == kWhatIsLeft) return receive_question(core, header, setting);
  BarrierGate* const gate = core.tofu->gate(header.tofu_queue);
  if (gate != nullptr) receive_rounds_left(core, *gate, header, setting, left);
}

void note_value(Core& core, BarrierGate& gate) {
  if (!gate.source.is_trusted() && gate.source.doubts && !has_start(core, gate)) ask_sources(core, gate.set_id);
}

void ask_sources(Core& core, std::uint64_t set_id) {
  std::vector<std::uint64_t> sets{set_id};
  bool has_doubts = false;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    has_doubts = false;
    core.tofu->for_each_gate([&](BarrierGate& gate) {
      has_doubts = has_doubts || (gate.source.doubts && gate.set_id != sets[i]);
      if (gate.set_id != sets[i]) return;
      const BarrierGate* const before = core.tofu->gate(queue_number(gate.local_source));
      const bool signals = before != nullptr && before->id == gate.local_source;
      if (signals && std::ranges::find(sets, before->set_id) == sets.end()) sets.push_back(before->set_id);
      if (!gate.source.doubts) return;
      arm_notice(core, gate);
      gate.owed.question = true;
      gate.source.doubts = false;
    });
  }
  core.tofu->has_doubts = has_doubts;
}

void ask_sources_again(Core& core) {
  if (core.tofu == nullptr || !core.tofu->circuits_over) return;
  const std::uint64_t now = core.now_ns();
  if (now < core.tofu->ask_sources_again_ns) return;
  core.tofu->ask_sources_again_ns = now + kAskAgainNs;
  std::vector<std::uint64_t> waiting;
  bool was_lost = false;
  core.tofu->for_each_gate([&](BarrierGate& gate) {
    const bool waits = gate.state == BarrierState::kRunning || gate.was_asked;
    if (waits && std::ranges::find(waiting, gate.set_id) == waiting.end()) waiting.push_back(gate.set_id);
    const bool is_enough = gate.source.is_trusted() && gate.rounds.packets_in() >= gate.rounds.whole;
    if (!gate.configured || is_enough || gate.source.process == ProcessId{}) return;
    const Peer& source = core.peer(gate.source.process);
    if (source.lost_setting == 0 || !source.requests.waiting.empty()) return;
    gate.source.doubts = was_lost = true;
  });
  if (!was_lost) return;
  core.tofu->has_doubts = true;
  for (const std::uint64_t set_id : waiting) ask_sources(core, set_id);
}

}  // namespace portofu
