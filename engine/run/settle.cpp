#include "engine/run/settle.h"

#include "engine/initiator/answer_in.h"
#include "engine/mailbox/outbox.h"
#include "engine/wire/completions.h"

namespace portofu {
namespace {

/// Of one peer at a time, so that one who lies keeps nobody for ever.
constexpr int kMostAcknowledgements = 64;

}  // namespace

int take_acknowledgements(Core& core, Peer& peer) {
  int taken = 0;
  Completions* const completions = peer.wire->completions();
  if (completions == nullptr || peer.link == nullptr) return 0;
  while (taken < kMostAcknowledgements) {
    const std::uint32_t id = completions->take_acknowledgement(*peer.link);
    if (id == 0) break;
    if (taken++ == 0 && peer.has_lent()) finish_taken(core, peer);  // As in receive_packet.
    receive_acknowledgement(core, peer, id);
  }
  if (taken != 0) ++core.activity;
  return taken;
}

int take_acknowledgements(Core& core) {
  int taken = 0;
  for (std::size_t i = 0; i < core.awaited_peers.size();) {
    Peer& peer = *core.awaited_peers[i];
    taken += take_acknowledgements(core, peer);
    if (peer.outstanding != 0) {
      ++i;
      continue;
    }
    peer.awaited = false;
    core.awaited_peers[i] = core.awaited_peers.back();
    core.awaited_peers.pop_back();
  }
  return taken;
}

}  // namespace portofu
