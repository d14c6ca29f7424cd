#pragma once
// What the tests of a duty cycle do as the application and as a peer.

#include <cstdint>

#include "engine/run/loop.h"
#include "tests/unit/support/peer_fixture.h"

namespace portofu {

class LoopTest : public PeerTest {
 protected:
  void arrive(const PacketHeader& header, ProcessId source = kPeer) {
    const std::uint64_t from = header.type == PacketType::kData ? header.remote_offset : 0;
    wire.arrive({source, header, pattern_bytes(from, header.payload_bytes)});
  }
  int cycle() { return run_cycle_on_duty(core); }

  /// Lets an operation wait for `threshold` successes of `ct`, as PtlTriggered* does.
  void arm(std::uint64_t threshold, const Descriptor& d) { arm_operation(core, *ni.cts.find(ct), d, {ct, threshold}); }
  Descriptor increment(Handle counter, std::uint64_t amount = 1) {
    Descriptor d = descriptor(PacketType::kCountIncrement, 0);
    d.count = {counter, false, amount, 0};
    return d;
  }
};

}  // namespace portofu
