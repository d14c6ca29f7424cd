#include "engine/mailbox/connect.h"

#include <algorithm>
#include <utility>

#include "engine/mailbox/outbox.h"
#include "engine/wire/other_nodes.h"

namespace portofu {

namespace {

/// What is lacking costs system calls each time that it is asked for.
constexpr std::uint64_t kShortestPauseNs = 500'000;
constexpr std::uint64_t kLongestPauseNs = 50'000'000;

/// Whoever waits looks more often. Of a longer time only so much counts: the process was stopped, so nobody has waited.
constexpr std::uint64_t kLongestLookNs = 1'000'000'000;
/// The same of who waits for what a lost peer has sent. More than PORTOFU_PEER_CHECK_MS, as a rule.
constexpr std::uint64_t kLongestUnheardLookNs = kMostUnheardNs / 4;

/// Who waits looks again. @return how much of the time since its last look does not count
std::uint64_t time_stopped(Peer& peer, std::uint64_t now, std::uint64_t longest_look_ns) {
  const std::uint64_t looked_ns = now - std::exchange(peer.asked_ns, now);
  return looked_ns > longest_look_ns ? looked_ns - longest_look_ns : 0;
}

/// Begins with a new deadline if it has not begun yet. @return the time
std::uint64_t begin_connecting(Core& core, Peer& peer) {
  const std::uint64_t now = core.now_ns();
  if (peer.state == PeerState::kConnecting) {
    peer.connect_deadline_ns += time_stopped(peer, now, kLongestLookNs);
    return now;
  }
  peer.asked_ns = now;
  peer.state = PeerState::kConnecting;
  peer.connect_deadline_ns = now + peer.wire->limits().connect_timeout_ns;
  peer.connect_pause_ns = 0;
  return now;
}

/// The next attempt is due later, each time twice as late.
void rest_before_next(Peer& peer, std::uint64_t now) {
  peer.connect_pause_ns = std::clamp(2 * peer.connect_pause_ns, kShortestPauseNs, kLongestPauseNs);
  peer.connect_again_ns = std::min(now + peer.connect_pause_ns, peer.connect_deadline_ns);
}

/// What is known of the peer now is not older than any request.
void end_attempt(Peer& peer) {
  for (OutgoingMessage& message : peer.requests.waiting) message.anew = false;
}

void begin_link(Core& core, Peer& peer) {
  peer.state = PeerState::kConnected;
  end_attempt(peer);
  if (peer.answers_life == 0) [[likely]]
    return;
  keep_answers_for(core, peer, peer.link->life);
  peer.answers_life = 0;
}

}  // namespace

Reach ensure_connected(Core& core, Peer& peer) {
  if (peer.state == PeerState::kConnected) {
    if (!peer.link->lost) return Reach::kNow;
    return peer.lost_since_ns != 0 ? Reach::kLater : Reach::kNever;
  }
  OtherNodes* const others = peer.wire->other_nodes();
  if (peer.state != PeerState::kConnecting && others != nullptr) others->ask_anew(peer.id);
  const bool rests = peer.state == PeerState::kConnecting && peer.connect_pause_ns != 0;
  if (rests && core.now_ns() < peer.connect_again_ns) return Reach::kLater;
  const ConnectResult result = peer.wire->connect(peer.id, &peer.link);
  std::uint64_t now = 0;
  switch (result) {
    case ConnectResult::kConnected: begin_link(core, peer); return Reach::kNow;
    case ConnectResult::kNoSuchPeer:
    case ConnectResult::kRefused: peer.state = PeerState::kUnconnected; return Reach::kNever;
    case ConnectResult::kInProgress:
      now = begin_connecting(core, peer);
      peer.connect_pause_ns = 0;
      break;
    case ConnectResult::kShort:
      now = begin_connecting(core, peer);
      rest_before_next(peer, now);
      break;
  }
  if (now < peer.connect_deadline_ns) return Reach::kLater;
  end_attempt(peer);
  peer.state = PeerState::kUnconnected;
  return Reach::kNever;
}

void follow_name(Core& core, Peer& peer) {
  if (peer.wire->leads_to_name(*peer.link)) return;
  if (core.receive_arrived != nullptr) core.receive_arrived(core);
  // What arrived may have been news of the next process, which has made the link anew.
  if (is_over(core, peer)) core.lose_peer(core, peer);
}

Reach reach_for_new(Core& core, Peer& peer) {
  if (peer.state == PeerState::kConnecting) {
    if (peer.waiting) return Reach::kLater;
    peer.state = PeerState::kUnconnected;  // Whoever began has not waited for the end.
  }
  return ensure_connected(core, peer);
}

void part_with(Core& core, Wire& wire, ProcessId id) {
  for (const auto& [key, peer] : core.peers) {
    if (peer->id == id && peer->wire == &wire && peer->state == PeerState::kConnected) peer->link->lost = true;
  }
  wire.give_up(id);
}

bool is_over(Core& core, Peer& peer) {
  if (peer.state != PeerState::kConnected || !peer.link->lost) return false;
  if (!peer.wire->has_unheard(peer.id, peer.link->life)) return true;
  const std::uint64_t now = core.now_ns();
  if (peer.lost_since_ns == 0) peer.lost_since_ns = peer.asked_ns = now;
  peer.lost_since_ns += time_stopped(peer, now, kLongestUnheardLookNs);
  return now - peer.lost_since_ns >= kMostUnheardNs;
}

void keep_answers_for(Core& core, Peer& peer, std::uint64_t life) {
  if (peer.answers_life == 0 || peer.answers_life == life) return;
  abandon_outbox(core, peer, peer.answers);
  peer.answers_life = 0;
}

}  // namespace portofu
