#include "engine/initiator/connect.h"

#include "engine/initiator/answer_in.h"
#include "engine/initiator/send.h"
#include "engine/initiator/tofu_direct.h"
#include "engine/target/answer_out.h"
#include "engine/target/barrier.h"

namespace portofu {

Reach ensure_connected(Core& core, Peer& peer) {
  if (peer.state == PeerState::kConnected) return peer.link->lost ? Reach::kNever : Reach::kNow;
  switch (peer.wire->connect(peer.id, &peer.link)) {
    case ConnectResult::kConnected: peer.state = PeerState::kConnected; return Reach::kNow;
    case ConnectResult::kInProgress: break;
    case ConnectResult::kNoSuchPeer:
    case ConnectResult::kRefused: peer.state = PeerState::kUnconnected; return Reach::kNever;
  }
  const std::uint64_t now = core.now_ns();
  if (peer.state != PeerState::kConnecting) {
    peer.state = PeerState::kConnecting;
    peer.connect_deadline_ns = now + peer.wire->connect_timeout_ns();
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
