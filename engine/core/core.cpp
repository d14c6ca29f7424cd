// What more than one step needs: peers by address, events and counts by handle, and notices.

#include "engine/core/core.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <utility>

#include "engine/core/steps.h"
#include "engine/observe/log.h"

namespace portofu {

Wire* Core::wire_to(ProcessId id) {
  if (id == self) return wires.front();
  if (fabric == nullptr) return wires.back();
  if (id.nid == self.nid) return wires[1];
  if (std::ranges::find(wires, fabric) == wires.end()) wires.push_back(fabric);
  return fabric;
}

void Core::leave_other_nodes() {
  Wire* const left = std::exchange(fabric, nullptr);
  if (left == nullptr) return;
  std::erase(wires, left);
  next_wire = 0;
  for (auto& [key, peer] : peers) {
    if (peer->wire == left) peer->wire = wire_to(peer->id);
  }
}

Peer& Core::look_up_peer(ProcessId id) {
  const std::uint64_t key = std::uint64_t{id.nid} << 32 | id.pid;
  auto found = peers.find(key);
  if (found == peers.end()) {
    auto made = std::make_unique<Peer>();  // Before it has a place: without memory it has none.
    made->id = id;
    made->wire = wire_to(id);
    // Who waits for it later, or looks after it, needs no memory. Room comes for many at once.
    const std::size_t room = std::bit_ceil(peers.size() + 1);
    waiting_peers.reserve(room);
    awaited_peers.reserve(room);
    found = peers.emplace(key, std::move(made)).first;
  }
  recent_peer = found->second.get();
  return *recent_peer;
}

void Core::wait_for_room(Peer& waiting) {
  if (waiting.link != nullptr) waiting.link->leave_order();  // What waits comes first.
  if (!waiting.waiting) counters.add(Counter::kSendsBlocked);
  look_after(waiting);
}

void post_notice(Core& core, VirtualControlQueue& vcq, const Notice& notice) {
  if (!vcq.mrq.post(notice)) {
    log_error("utofu: asynchronous error: MRQ Overflow on TNI %u CQ %u", tni_of(vcq.id), queue_of(vcq.id));
    std::abort();
  }
  if (core.observers != nullptr) [[unlikely]]
    put_notice(core, notice);
  ++core.activity;
  core.counters.add(Counter::kEventsPosted);
}

std::uint64_t uses_of(const Interface& ni, const Descriptor& descriptor) {
  switch (descriptor.type) {
    case PacketType::kCountIncrement:
    case PacketType::kCountSet: return ni.cts.use_of(descriptor.count.ct_handle);
    case PacketType::kLocalCall: return 0;
    default: break;
  }
  const PortalsTransfer& transfer = descriptor.portals;
  return std::uint64_t{ni.mds.use_of(transfer.get_md_handle)} << 32 | ni.mds.use_of(transfer.md_handle);
}

void arm_operation(Core& core, CountingEvent& counter, const Descriptor& descriptor, const Trigger& trigger,
                   const Claim& claim) {
  auto* operation = new TriggeredOperation;
  operation->descriptor = descriptor;
  static_cast<Trigger&>(*operation) = trigger;
  static_cast<Claim&>(*operation) = claim;
  if (Interface* const ni = core.interface(descriptor.interface_index)) {
    ++ni->triggered_count;
    operation->uses = uses_of(*ni, descriptor);
  }
  counter.add_triggered_on_duty(operation, core.fired);
}

void disarm_operations(Interface& ni, CountingEvent& counter) { ni.triggered_count -= counter.cancel_on_duty(); }

void forget_outstanding(Core& core, std::uint32_t operation_id, bool is_due) {
  OutstandingOperation& operation = *core.outstanding.find(operation_id);
  if (is_due && !operation.answered) return operation.forsake();
  close_outstanding(core, operation_id, operation);
}

void end_operation(Interface& ni, MemoryDescriptor& md) {
  if (--md.pending == 0 && md.released) {
    md.segment.clear();
    ni.mds.free(md.handle);
  }
}

}  // namespace portofu
