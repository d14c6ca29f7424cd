// What more than one step needs: peers by address, and events and counts by handle.

#include "engine/address/core.h"

namespace portofu {

Peer& Core::peer(ProcessId id) {
  if (recent_peer != nullptr && recent_peer->id == id) return *recent_peer;
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
  if (waiting.link != nullptr) waiting.link->close_lane();  // Nothing may overtake what waits.
  if (waiting.waiting) return;
  waiting.waiting = true;
  waiting_peers.push_back(&waiting);
  counters.add(Counter::kSendsBlocked);
}

void count_success(Core& core, Interface& ni, Handle ct_handle, std::uint64_t count) {
  if (ct_handle == 0) return;
  CountingEvent* counter = ni.cts.find(ct_handle);
  if (counter == nullptr) return;
  counter->add_success_on_duty(count, core.fired);
  ++core.activity;
}

void count_failure(Core& core, Interface& ni, Handle ct_handle) {
  if (ct_handle == 0) return;
  CountingEvent* counter = ni.cts.find(ct_handle);
  if (counter == nullptr) return;
  counter->add_failure_on_duty(1);
  ++core.activity;
}

void end_operation(Interface& ni, MemoryDescriptor& md) {
  if (--md.pending == 0 && md.released) {
    md.segment.clear();
    ni.mds.free(md.handle);
  }
}

}  // namespace portofu
