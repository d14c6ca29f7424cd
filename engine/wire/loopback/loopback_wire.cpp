// Sends to oneself.

#include "engine/wire/loopback/loopback_wire.h"

#include <cstring>
#include <new>
#include <utility>

#include "engine/queue/assert.h"

namespace portofu {
namespace {

constexpr std::align_val_t kRingAlignment{128};

std::byte* make_memory(const RingGeometry& ring) {
  auto* memory = static_cast<std::byte*>(::operator new(ring.bytes(), kRingAlignment));
  std::memset(memory, 0, ring.bytes());
  return memory;
}

}  // namespace

void LoopbackWire::FreeMemory::operator()(std::byte* memory) const { ::operator delete(memory, kRingAlignment); }

LoopbackWire::LoopbackWire(ProcessId self, const RingGeometry& ring)
    : Wire({.max_payload_bytes = ring.max_payload_bytes}, {.loans = nullptr,
                                                           .copies = nullptr,
                                                           .peer_memory = nullptr,
                                                           .completions = nullptr,
                                                           .other_nodes = nullptr}),
      ring_(ring),
      memory_(make_memory(ring)),
      producer_(RingView(memory_.get(), ring)),
      consumer_(RingView(memory_.get(), ring), false) {
  link_.peer = self;
  closed_sources_ = 0;
  silent_ = true;
}

ConnectResult LoopbackWire::connect(ProcessId peer, Link** link) {
  if (peer != link_.peer) return ConnectResult::kNoSuchPeer;
  // The end of the last connection has not been taken yet.
  if (source_open_ && !connected_) return ConnectResult::kInProgress;
  connected_ = true;
  source_open_ = true;
  *link = &link_;
  return ConnectResult::kConnected;
}

void LoopbackWire::disconnect(Link* link) {
  PORTOFU_ASSERT(link == &link_ && connected_);
  connected_ = false;
  blocked_ = false;
  closed_sources_ = 1;
}

std::byte* LoopbackWire::claim(Link& link, std::uint32_t payload_bytes) {
  PORTOFU_ASSERT(&link == &link_ && connected_);
  std::byte* room = producer_.claim(payload_bytes);
  if (room == nullptr) blocked_ = true;
  return room;
}

void LoopbackWire::publish(Link&, const PacketHeader& header) {
  producer_.publish(header);
  silent_ = false;
}

void LoopbackWire::discard(Link&) { producer_.discard(); }

bool LoopbackWire::peek(Packet& packet) {
  if (!consumer_.ready()) {
    consumer_.publish_released();
    silent_ = true;
    return false;
  }
  const std::byte* payload = nullptr;
  const TakeResult taken = consumer_.take(packet.header, &payload);
  // We are the sender: a lie would be our own bug.
  PORTOFU_ASSERT(taken == TakeResult::kPacket);
  packet.payload = payload;
  packet.source = link_.peer;
  packet.source_context = &source_;
  return true;
}

void LoopbackWire::release() {
  consumer_.release();
  // Nobody else could ever give the room back that a blocked claim waits for.
  if (blocked_) consumer_.publish_released();
}

bool LoopbackWire::has_packets() { return consumer_.ready(); }

bool LoopbackWire::has_room_again() {
  if (!blocked_) return false;
  consumer_.publish_released();
  if (producer_.waits_for_room() && !producer_.has_room_again()) return false;
  blocked_ = false;
  return true;
}

bool LoopbackWire::take_closed_source(ProcessId* source, void** engines) {
  if (connected_ || !source_open_ || consumer_.ready()) return false;
  source_open_ = false;
  closed_sources_ = 0;
  *source = link_.peer;
  *engines = std::exchange(source_.engines, nullptr);
  return true;
}

}  // namespace portofu
