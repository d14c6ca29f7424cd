// What more than one step needs: peers by address, and events and counts by handle.

#include "engine/address/core.h"

namespace portofu {

Peer& Core::look_up_peer(ProcessId id) {
  auto& place = peers[std::uint64_t{id.nid} << 32 | id.pid];
  if (place == nullptr) {
    place = std::make_unique<Peer>();
    place->id = id;
    place->wire = id == self ? wires.front() : wires.back();
  }
  recent_peer = place.get();
  return *place;
}

void Core::wait_for_room(Peer& waiting) {
  if (waiting.link != nullptr) waiting.link->leave_order();  // What waits comes first.
  if (!waiting.waiting) counters.add(Counter::kSendsBlocked);
  look_after(waiting);
}

void end_operation(Interface& ni, MemoryDescriptor& md) {
  if (--md.pending == 0 && md.released) {
    md.segment.clear();
    ni.mds.free(md.handle);
  }
}

}  // namespace portofu
