// What an onlooker sees of uTofu: queues, sessions, gates.

#include "engine/inspect/core_picture.h"
#include "engine/inspect/inspected_fields.h"

namespace portofu {
namespace {

VcqPicture picture_of(FarMemory& memory, const VirtualControlQueue& vcq, Depth depth) {
  VcqPicture seen;
  seen.id = vcq.id;
  seen.session = vcq.session;
  seen.tcq_unread = vcq.tcq.unread();
  seen.tcq_entries = InspectedFields::entry_count(vcq.tcq);
  seen.mrq_unread = vcq.unread_notices();
  seen.mrq_entries = InspectedFields::entry_count(vcq.mrq);
  seen.tcq_progress = InspectedFields::passed(vcq.tcq);
  seen.mrq_progress = InspectedFields::passed(vcq.mrq) + InspectedFields::passed(vcq.direct.notices);
  seen.delayed = vcq.delayed.size();
  seen.steps = vcq.steps.success();
  seen.last_failed = vcq.last_failed;
  seen.astray_steps = vcq.astray_steps;
  seen.astray_from = vcq.astray_from;
  if (depth == Depth::kAll) seen.waiting = look_at_triggers(memory, vcq.steps);
  return seen;
}

GatePicture picture_of(const BarrierGate& gate) {
  GatePicture seen;
  seen.id = gate.id;
  seen.is_start = gate.is_start();
  seen.started = gate.state == BarrierState::kRunning;
  seen.armed = gate.rounds.armed;
  seen.local_source = gate.local_source;
  seen.remote_source = gate.remote_source;
  seen.has_signal = gate.rounds.signal_counted;
  seen.has_packet = gate.rounds.packet_counted;
  seen.holds_packets = !gate.source.is_trusted() && gate.rounds.packets.size() != 0;
  seen.rounds_passed = gate.rounds.passed;
  seen.remote_target = gate.remote_target;
  return seen;
}

}  // namespace

void look_at_tofu(FarMemory& memory, const Tofu* far, CorePicture* picture, Depth depth) {
  const Copy<Tofu> tofu = memory.copy(far);
  if (!tofu) return;
  const auto& handles = InspectedFields::vcqs(*tofu);
  const auto vcqs = memory.copy(handles.data(), std::min(handles.size(), kMostInspected));
  for (std::size_t i = 0; i < vcqs.size(); ++i) {
    const VirtualControlQueue* const place = vcqs[i];
    if (const auto vcq = memory.copy(place)) picture->vcqs.push_back(picture_of(memory, *vcq, depth));
  }
  if (depth == Depth::kQueues) return;
  each_in_map(memory, InspectedFields::gates(*tofu), [&](const auto& pair) {
    if (const auto gate = memory.copy(pair.second.get())) picture->gates.push_back(picture_of(*gate));
  });
  each_in_map(memory, tofu->ownerless, [&](const auto& pair) {
    if (!pair.second.empty()) picture->ownerless.push_back({pair.first, pair.second.size()});
  });
}

}  // namespace portofu
