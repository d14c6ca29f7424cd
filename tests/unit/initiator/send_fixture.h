#pragma once
// What the tests of initiator/send have in common: a memory descriptor, and descriptors that use it.

#include <cstddef>
#include <cstdint>

#include "engine/atomic/atomic_unit.h"
#include "engine/initiator/send.h"
#include "engine/memory/guarded_copy.h"
#include "engine/run/loop.h"
#include "tests/unit/support/core_fixture.h"

namespace portofu {

class SendTest : public CoreTest {
 protected:
  void SetUp() override {
    install_fault_guard();
    memory = pattern_bytes(0, memory.size());
    md_ = &make_md(ni, memory.data(), memory.size());
  }

  MemoryDescriptor& md() { return *md_; }
  void set_options(std::uint32_t options) { md_->options = options; }

  Descriptor put(std::uint64_t length, AckRequest ack_req = AckRequest::kNone) {
    Descriptor d = descriptor(PacketType::kPut, length);
    d.portals.md_handle = md_->handle;
    d.portals.ack_req = ack_req;
    return d;
  }
  Descriptor get(std::uint64_t length) {
    Descriptor d = put(length);
    d.type = PacketType::kGet;
    return d;
  }
  Descriptor fetching(PacketType kind, AtomicOperation operation) {
    Descriptor d = put(4);
    d.type = kind;
    d.portals.get_md_handle = md_->handle;
    d.atomic_operation = static_cast<std::uint8_t>(operation);
    d.atomic_type = static_cast<std::uint8_t>(AtomicType::kInt32);
    return d;
  }
  void start(Descriptor d) { start_descriptor(core, d); }
  int advance() { return advance_peer(core, peer()); }
  /// Lets so many packets leave, and no more.
  int advance_with_room(std::uint32_t packets) {
    wire.room = packets;
    const int published = advance();
    wire.room = 0;
    return published;
  }
  std::size_t waiting() { return peer().requests.waiting.size(); }

 private:
  MemoryDescriptor* md_ = nullptr;
};

}  // namespace portofu
