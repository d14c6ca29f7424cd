#include "engine/run/death.h"

#include "engine/initiator/answer_in.h"
#include "engine/initiator/barrier.h"
#include "engine/initiator/tofu_direct.h"
#include "engine/initiator/tofu_report.h"
#include "engine/mailbox/outbox.h"
#include "engine/run/settle.h"

namespace portofu {

void expect_words(Core& core, Peer& peer, std::uint64_t life) {
  finish_taken(core, peer);
  // Answers cannot leave any more, and whoever waits for them has lost its link, too.
  abandon_outbox(core, peer, peer.answers);
  peer.answers_life = life;
}

void lose_peer(Core& core, Peer& peer) {
  const bool answers_anew = peer.answers_life != 0 && peer.state == PeerState::kConnected;
  if (peer.state == PeerState::kConnected) {
    finish_taken(core, peer);  // What it read before it was gone has been sent.
    take_acknowledgements(core, peer);
    end_lane_on_duty(core, peer);
    peer.published.reset();
    peer.put_regions.clear();
    // What it has left unfinished may be answered later than this, and is for nobody else.
    if (peer.answers_life == 0) peer.answers_life = peer.link->life;
    if (peer.wire->has_unheard(peer.id, peer.link->life)) peer.was_lost_unheard = true;
    peer.wire->disconnect(peer.link);
    core.counters.add(Counter::kPeersLost);
  } else if (!peer.answers.waiting.empty()) {
    peer.wire->give_up(peer.id);
  }
  peer.link = nullptr;
  peer.lost_since_ns = 0;
  peer.state = PeerState::kUnconnected;
  gather_lost(core);
  try {
    abandon_outbox(core, peer, peer.requests);
    fail_outstanding(core, peer, NiFail::kUndeliverable);
  } catch (...) {
    tell_lost(core);
    throw;
  }
  tell_lost(core);
  if (!answers_anew) abandon_outbox(core, peer, peer.answers);
  fail_barriers_with(core, peer.id);
}

void leave_peer(Core& core, Peer& peer) {
  lose_peer(core, peer);
  lose_peer(core, peer);  // What had waited for the next link.
}

}  // namespace portofu
