#pragma once
// A core that has one peer, with what both its connection and its death need: operations that are started towards it.

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
    if (kind == PacketType::kFetchAtomic) d.portals.get_md_handle = d.portals.md_handle;
    start_descriptor(core, d);
  }
  MemoryDescriptor& md() {
    if (made_ == nullptr) made_ = &make_md(ni, memory.data(), memory.size());
    return *made_;
  }

 private:
  MemoryDescriptor* made_ = nullptr;
};

}  // namespace portofu
