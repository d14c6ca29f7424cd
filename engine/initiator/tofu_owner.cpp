#include "engine/initiator/tofu_owner.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "engine/initiator/circuit.h"
#include "engine/initiator/tofu_send.h"

namespace portofu {
namespace {

/// A look for answers costs system calls; not every cycle of a busy loop shall pay for them.
constexpr std::uint64_t kLookPauseNs = 50'000;

/// A process that is being connected was asked for just now.
bool is_reached(const Peer& peer) {
  return peer.state == PeerState::kConnecting || (peer.state == PeerState::kConnected && !peer.link->lost);
}

/// Whether the process has the name still that it had when its names word was this. Of a process that is being
/// connected no word can be seen, and it may be told meanwhile that its names are not to be believed.
bool has_name_still(const Peer& peer, std::uint64_t names) {
  return names != kNamesMoving && is_reached(peer) && (peer.link == nullptr || peer.link->names_now() == names);
}

/// The same for what is near, where a link there is connected.
bool is_good(const Tofu::NearOwner& near) {
  const Link* const link = near.peer->link;
  return link != nullptr && !link->lost && link->names_now() == near.names;
}

/// Whether something that was posted to the process before is not over yet.
bool has_under_way(const Peer& peer) { return peer.outstanding != 0 || !peer.requests.waiting.empty(); }

/// Nobody has the name now. Whoever had it last, if there is a link to it, answers for that itself: a process that has
/// given it up refuses, in order with what was sent before; and the death of one is told by the loss of its link, to
/// all who have to do with it (fail_barriers_with), before anything fails because of it. The same without a link, as
/// long as something is under way to it. Nobody remembers that this engine had a VCQ: what may have been one is refused
/// by the engine itself, behind all that it has sent to itself.
/// @return whether there is such a process
bool find_last_owner(Core& core, std::uint64_t id, NameOwner* owner) {
  const bool is_others = core.tofu->recall_owner(id, owner) && !(*owner == core.self);
  const bool may_be_own = is_kind(id, TofuIdKind::kVcq) && is_of_node(id, core.tofu->coordinates);
  if (!is_others && !may_be_own) return false;
  if (!is_others) *owner = NameOwner{core.self};
  owner->names = kNamesMoving;
  const Peer& last = core.peer(*owner);
  return has_under_way(last) || last.state != PeerState::kUnconnected;
}

/// Whether something that was posted to a queue is not over yet at another process than this one: that process had the
/// queue before, and how it ends is to be told first (2.2.10). Never of a gate, whose packets nobody is told of.
bool has_former(Core& core, std::uint64_t id, const Peer& owner) {
  if (!is_kind(id, TofuIdKind::kVcq)) return false;
  const std::uint64_t key = claim_key(id);
  for (const Peer* const peer : core.waiting_peers) {
    if (peer == &owner) continue;
    const auto goes_there = [key](const OutgoingMessage& message) {
      return message.interface_index == kTofuInterface && claim_key(message.words.request.tofu.remote_vcq_id) == key;
    };
    if (std::ranges::any_of(peer->requests.waiting, goes_there)) return true;
  }
  bool found = false;
  if (core.outstanding.open_count() == 0) return false;
  core.outstanding.for_each([&](std::uint32_t, const OutstandingOperation& operation) {
    found = found || (operation.interface_index == kTofuInterface && operation.peer != &owner &&
                      claim_key(operation.tofu.peer_vcq) == key);
  });
  return found;
}

/// Asks for the owner of an ID, or for the last one if it has none.
/// @return kLater also while something that was posted to a former owner is under way; nobody is asked meanwhile
FindResult ask_in_turn(Core& core, std::uint64_t id, NameOwner* owner) {
  const bool is_known = core.tofu->recall_owner(id, owner);
  if (is_known && has_former(core, id, core.peer(*owner))) return FindResult::kLater;
  FindResult found = core.tofu->ask_owner(id, owner);
  // A source may have died after the gate was connected, and before its node has answered.
  if (found == FindResult::kNobody && find_last_owner(core, id, owner)) found = FindResult::kFound;
  if (found == FindResult::kFound && is_kind(id, TofuIdKind::kVbg)) meet_owner(core, id, *owner);
  if (found == FindResult::kFound && has_former(core, id, core.peer(*owner))) return FindResult::kLater;
  return found;
}

/// Takes those that an answer is for. Of one that may be remembered we would have been told if it were no longer true.
/// Any other was true when it was given: the number may be another process's since, and who posts now may know that.
std::deque<OwnerlessRequest> take_answered(std::deque<OwnerlessRequest>& waiting, bool is_true_still) {
  std::deque<OwnerlessRequest> taken;
  while (!waiting.empty() && (is_true_still || !waiting.front().is_late)) {
    taken.push_back(std::move(waiting.front()));
    waiting.pop_front();
  }
  for (OwnerlessRequest& late : waiting) late.is_late = false;  // The next answer is for them.
  return taken;
}

/// The same as find_owner without what is near.
FindResult look_up_owner(Core& core, std::uint64_t id, Peer** peer, std::uint64_t* names) {
  // Behind those that wait already.
  if (is_asking_on_duty(core) && core.tofu->ownerless.contains(claim_key(id))) return FindResult::kLater;
  if (is_of_node(id, core.tofu->coordinates)) {
    const std::uint32_t number = queue_number(id);
    const bool own =
        is_kind(id, TofuIdKind::kVcq) ? core.tofu->queue(number) != nullptr : core.tofu->gate(number) != nullptr;
    if (own) {
      *peer = &core.peer(core.self);
      return FindResult::kFound;
    }
  }
  NameOwner owner;
  const bool known = core.tofu->recall_owner(id, &owner) && !(owner == core.self);
  FindResult found = FindResult::kFound;
  if (!known || !has_name_still(core.peer(owner), owner.names)) found = ask_in_turn(core, id, &owner);
  *peer = found == FindResult::kFound ? &core.peer(owner) : nullptr;
  *names = owner.names;
  return found;
}

}  // namespace

FindResult find_owner(Core& core, std::uint64_t id, Peer** peer) {
  if (!is_asking_on_duty(core)) [[likely]] {
    const Tofu::NearOwner* const near = core.tofu->near_owner(id);
    if (near != nullptr && is_good(*near)) [[likely]] {
      *peer = near->peer;
      return FindResult::kFound;
    }
  }
  std::uint64_t names = 0;
  const FindResult found = look_up_owner(core, id, peer, &names);
  if (found == FindResult::kFound && !((*peer)->id == core.self)) core.tofu->keep_near_owner({id, *peer, names});
  return found;
}

void learn_owner(Core& core, std::uint64_t id) {
  NameOwner owner;
  const FindResult found = core.tofu->ask_owner(id, &owner);
  if (found == FindResult::kLater) core.tofu->ownerless.try_emplace(claim_key(id));
  if (found == FindResult::kFound) meet_owner(core, id, owner);
}

void wait_for_owner(Core& core, OwnerlessRequest request) {
  const auto [at, is_first] = core.tofu->ownerless.try_emplace(claim_key(request.descriptor.tofu.remote_vcq_id));
  request.is_late = !is_first;
  at->second.push_back(std::move(request));
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
    NameOwner owner;
    const FindResult found = ask_in_turn(core, next->first, &owner);
    if (found == FindResult::kLater) {
      ++next;
      continue;
    }
    const bool is_true_still = found == FindResult::kFound && owner.names != kNamesMoving;
    Peer* const peer = found == FindResult::kFound ? &core.peer(owner) : nullptr;
    answered.push_back({peer, take_answered(next->second, is_true_still)});
    if (next->second.empty()) next = tofu.ownerless.erase(next);
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
