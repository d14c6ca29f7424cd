#pragma once
// What must hold between two processes on two nodes, whatever carries their packets. Both run these.

#include <vector>

#include "tests/conformance/harness/fixture.h"
#include "tests/process/own_node.h"

namespace portofu {

/// Who waits for two seconds, in the library, uses less than 0.1 s of CPU; the nodes have talked before.
inline void expect_idle_uses_no_cpu(conformance::Process& self) {
  using namespace conformance;
  const Ni ni(self);
  const Ends ends(ni);
  std::vector<unsigned char> memory(64);
  append(ni, me_of(ni, memory.data(), memory.size()));
  self.barrier();
  self.initiator([&] { put_and_wait(ends, ni.target(), {.length = 8}); });
  ptl_event_t event;
  unsigned int which = 0;
  PtlEQPoll(&ends.source_eq, 1, 500, &event, &which);
  const double before = cpu_s();
  EXPECT_EQ(PtlEQPoll(&ends.source_eq, 1, 2000, &event, &which), PTL_EQ_EMPTY);
  EXPECT_LT(cpu_s() - before, 0.1);
  self.barrier();
}

/// The target dies by SIGKILL; what is sent to it then ends so soon.
inline void expect_death_is_told(conformance::Process& self, double within_s) {
  using namespace conformance;
  const Ni ni(self);
  const Ends ends(ni);
  std::vector<unsigned char> memory(64);
  append(ni, me_of(ni, memory.data(), memory.size()));
  self.barrier();
  self.initiator([&] { put_and_wait(ends, ni.target(), {.length = 8}); });
  if (self.is_target()) self.die();
  self.barrier();
  const double begin = now_s();
  put(ends.md, ni.target(), {.length = 8});
  next_event(ends.source_eq, PTL_EVENT_ACK, PTL_NI_UNDELIVERABLE);
  EXPECT_LT(now_s() - begin, within_s);
}

}  // namespace portofu
