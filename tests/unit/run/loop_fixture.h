#pragma once
// What the tests of a duty cycle do as the application and as a peer.

#include <cstdint>

#include "engine/initiator/send.h"
#include "engine/run/loop.h"
#include "tests/unit/support/core_fixture.h"

namespace portofu {

class LoopTest : public CoreTest {
 protected:
  void arrive(const PacketHeader& header, ProcessId source = kPeer) {
    const std::uint64_t from = header.type == PacketType::kData ? header.remote_offset : 0;
    wire.arrive({source, header, pattern_bytes(from, header.payload_bytes)});
  }
  int cycle() { return run_cycle_on_duty(core); }

  void start(PacketType kind, std::uint64_t length, AckRequest ack_req = AckRequest::kNone) {
    if (md_ == nullptr) md_ = &make_md(ni, memory.data(), memory.size());
    Descriptor d = descriptor(kind, length);
    d.portals.md_handle = md_->handle;
    d.portals.ack_req = ack_req;
    start_descriptor(core, d);
  }

  /// Lets an operation wait for `threshold` successes of `ct`, as PtlTriggered* does.
  void arm(std::uint64_t threshold, const Descriptor& d) {
    auto* operation = new TriggeredOperation;
    operation->threshold = threshold;
    operation->descriptor = d;
    ++ni.triggered_count;
    ni.cts.find(ct)->add_triggered_on_duty(operation, core.fired);
  }
  Descriptor increment(Handle counter, std::uint64_t amount = 1) {
    Descriptor d = descriptor(PacketType::kCountIncrement, 0);
    d.count = {counter, false, amount, 0};
    return d;
  }

  MemoryDescriptor* md_ = nullptr;
};

}  // namespace portofu
