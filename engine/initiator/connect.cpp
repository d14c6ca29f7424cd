#include "engine/initiator/connect.h"

#include <algorithm>

#include "engine/initiator/answer_in.h"
#include "engine/initiator/send.h"
#include "engine/initiator/tofu_direct.h"
#include "engine/target/answer_out.h"
#include "engine/target/barrier.h"

namespace portofu {

namespace {

/// What is lacking costs system calls each time that it is asked for.
constexpr std::uint64_t kShortestPauseNs = 500'000;
constexpr std::uint64_t kLongestPauseNs = 50'000'000;

/// Begins with a new deadline if it has not begun yet. @return the time
std::uint64_t begin_connecting(Core& core, Peer& peer) {
  const std::uint64_t now = core.now_ns();
  if (peer.state == PeerState::kConnecting) return now;
  peer.state = PeerState::kConnecting;
  peer.connect_deadline_ns = now + peer.wire->connect_timeout_ns();
  peer.connect_pause_ns = 0;
  return now;
}

/// The next attempt is due later, each time twice as late.
void rest_before_next(Peer& peer, std::uint64_t now) {
  peer.connect_pause_ns = std::clamp(2 * peer.connect_pause_ns, kShortestPauseNs, kLongestPauseNs);
  peer.connect_again_ns = std::min(now + peer.connect_pause_ns, peer.connect_deadline_ns);
}

}  // namespace

Reach ensure_connected(Core& core, Peer& peer) {
  if (peer.state == PeerState::kConnected) return peer.link->lost ? Reach::kNever : Reach::kNow;
  const bool rests = peer.state == PeerState::kConnecting && peer.connect_pause_ns != 0;
  if (rests && core.now_ns() < peer.connect_again_ns) return Reach::kLater;
  const ConnectResult result = peer.wire->connect(peer.id, &peer.link);
  std::uint64_t now = 0;
  switch (result) {
    case ConnectResult::kConnected: peer.state = PeerState::kConnected; return Reach::kNow;
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
  peer.state = PeerState::kUnconnected;
  return Reach::kNever;
}

void follow_name(Core& core, Peer& peer) {
  if (peer.wire->leads_to_name(*peer.link)) return;
  if (core.receive_arrived != nullptr) core.receive_arrived(core);
  // What arrived may have been news of the next process, which has made the link anew.
  if (peer.link != nullptr && peer.link->lost) lose_peer(core, peer);
}

Reach reach_for_new(Core& core, Peer& peer) {
  if (peer.state == PeerState::kConnecting) {
    if (peer.waiting) return Reach::kLater;
    peer.state = PeerState::kUnconnected;  // Who began has not waited for the end.
  }
  return ensure_connected(core, peer);
}

void lose_peer(Core& core, Peer& peer) {
  if (peer.state == PeerState::kConnected) {
    finish_taken(core, peer);  // What it read before it was gone has been sent.
    take_acknowledgements(core, peer);
    end_lane_on_duty(core, peer);
    peer.published.reset();
    peer.wire->disconnect(peer.link);
    core.counters.add(Counter::kPeersLost);
  } else if (!peer.answers.empty()) {
    peer.wire->give_up(peer.id);
  }
  peer.link = nullptr;
  peer.state = PeerState::kUnconnected;
  abandon_requests(core, peer, NiFail::kUndeliverable);
  fail_outstanding(core, peer, NiFail::kUndeliverable);
  drop_answers(core, peer);
  fail_barriers_with(core, peer.id);
}

}  // namespace portofu
