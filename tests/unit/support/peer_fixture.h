#pragma once
// A core that has one peer, and operations that are started towards it.

#include <cstdint>

#include "engine/initiator/send.h"
#include "engine/mailbox/connect.h"
#include "tests/unit/support/core_fixture.h"

namespace portofu {

class PeerTest : public CoreTest {
 protected:
  Reach reach() { return ensure_connected(core, peer()); }
  void start(PacketType kind, std::uint64_t length, AckRequest ack_req = AckRequest::kNone) {
    Descriptor d = descriptor(kind, length);
    d.portals.ack_req = ack_req;
    d.portals.md_handle = md().handle;
    if (kind == PacketType::kFetchAtomic || kind == PacketType::kSwap) {
      d.portals.get_md_handle = d.portals.md_handle;
      d.portals.local_get_offset = kPacketBytes;
    }
    start_descriptor(core, d);
  }
  MemoryDescriptor& md() {
    if (made_ == nullptr) made_ = &make_md(ni, memory.data(), memory.size());
    return *made_;
  }

 private:
  MemoryDescriptor* made_ = nullptr;
};

/// For tests of what the peer answers.
class AnswerTest : public PeerTest {
 protected:
  /// Starts an operation and takes its packets away. @return its id; 0: nothing was sent
  std::uint32_t start(PacketType kind, std::uint64_t length, AckRequest ack_req = AckRequest::kNone) {
    PeerTest::start(kind, length, ack_req);
    if (wire.sent.empty()) return 0;
    const std::uint32_t id = next_sent().operation_id;
    wire.sent.clear();
    return id;
  }
  std::uint32_t start_get(std::uint64_t length) { return start(PacketType::kGet, length); }
  std::uint32_t start_put(std::uint64_t length = 8) { return start(PacketType::kPut, length, AckRequest::kFull); }
};

}  // namespace portofu
