// Finding, attaching and asking after peers.

#include "engine/wire/shm/peer_table.h"

namespace portofu {

AttachResult PeerTable::attach(ProcessId id, std::uint64_t incarnation, std::shared_ptr<PeerSegment>* peer) {
  std::shared_ptr<PeerSegment> found = find_living(id);
  if (found == nullptr) {
    const AttachResult result = PeerSegment::attach(directory_, id, &found);
    if (result != AttachResult::kAttached) return result;
    peers_.push_back(found);
  }
  if (incarnation != 0 && found->incarnation() != incarnation) return AttachResult::kNoSuchSegment;
  *peer = std::move(found);
  return AttachResult::kAttached;
}

void PeerTable::check_alive() {
  std::erase_if(peers_, [](const std::weak_ptr<PeerSegment>& entry) {
    const std::shared_ptr<PeerSegment> peer = entry.lock();
    return peer == nullptr || !peer->check_alive();
  });
}

std::shared_ptr<PeerSegment> PeerTable::find_living(ProcessId id) {
  std::erase_if(peers_, [](const std::weak_ptr<PeerSegment>& entry) { return entry.expired(); });
  for (const std::weak_ptr<PeerSegment>& entry : peers_) {
    std::shared_ptr<PeerSegment> peer = entry.lock();
    if (peer != nullptr && peer->id() == id && peer->check_alive()) return peer;
  }
  return nullptr;
}

}  // namespace portofu
