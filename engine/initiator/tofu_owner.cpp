#include "engine/initiator/tofu_owner.h"

#include <deque>
#include <utility>

#include "engine/initiator/tofu_send.h"

namespace portofu {
namespace {

/// A look for answers costs system calls; not every cycle of a busy loop shall pay for them.
constexpr std::uint64_t kLookPauseNs = 50'000;

/// A process that is being connected was asked for just now.
bool is_reached(const Peer& peer) {
  return peer.state == PeerState::kConnecting || (peer.state == PeerState::kConnected && !peer.link->lost);
}

/// The same without what is near.
FindResult look_up_owner(Core& core, std::uint64_t id, Peer** peer) {
  if (is_of_node(id, core.tofu->coordinates)) {
    const std::uint32_t number = queue_number(id);
    const bool own =
        is_kind(id, TofuIdKind::kVcq) ? core.tofu->queue(number) != nullptr : core.tofu->gate(number) != nullptr;
    if (own) {
      *peer = &core.peer(core.self);
      return FindResult::kFound;
    }
  }
  // Behind those that wait already.
  if (is_asking_on_duty(core) && core.tofu->ownerless.contains(claim_key(id))) return FindResult::kLater;
  ProcessId owner;
  if (core.tofu->recall_owner(id, &owner) && !(owner == core.self)) {
    *peer = &core.peer(owner);
    if (is_reached(**peer)) return FindResult::kFound;
  }
  const FindResult found = core.tofu->ask_owner(id, &owner);
  *peer = found == FindResult::kFound ? &core.peer(owner) : nullptr;
  return found;
}

}  // namespace

FindResult find_owner(Core& core, std::uint64_t id, Peer** peer) {
  if (!is_asking_on_duty(core)) [[likely]] {
    *peer = core.tofu->near_owner(id);
    if (*peer != nullptr && is_reached(**peer)) return FindResult::kFound;
  }
  const FindResult found = look_up_owner(core, id, peer);
  if (found == FindResult::kFound && !((*peer)->id == core.self)) core.tofu->keep_near_owner(id, **peer);
  return found;
}

void learn_owner(Core& core, std::uint64_t id) {
  ProcessId owner;
  if (core.tofu->ask_owner(id, &owner) == FindResult::kLater) core.tofu->ownerless.try_emplace(claim_key(id));
}

void wait_for_owner(Core& core, OwnerlessRequest request) {
  core.tofu->ownerless[claim_key(request.descriptor.match_bits)].push_back(std::move(request));
}

int advance_ownerless(Core& core) {
  Tofu& tofu = *core.tofu;
  const std::uint64_t now = core.now_ns();
  if (now < tofu.ask_again_ns) return 0;
  tofu.ask_again_ns = now + kLookPauseNs;
  struct Answered {
    Peer* peer;
    std::deque<OwnerlessRequest> requests;
  };
  std::deque<Answered> answered;
  for (auto next = tofu.ownerless.begin(); next != tofu.ownerless.end();) {
    ProcessId owner;
    const FindResult found = tofu.ask_owner(next->first, &owner);
    if (found == FindResult::kLater) {
      ++next;
      continue;
    }
    answered.push_back({found == FindResult::kFound ? &core.peer(owner) : nullptr, std::move(next->second)});
    next = tofu.ownerless.erase(next);
  }
  int started = 0;
  for (Answered& one : answered) {
    for (OwnerlessRequest& request : one.requests) start_towards(core, one.peer, std::move(request));
    started += static_cast<int>(one.requests.size());
  }
  if (!answered.empty()) ++core.activity;
  return started;
}

}  // namespace portofu
