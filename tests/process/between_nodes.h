#pragma once
// What must hold between two processes on two nodes, whatever carries their packets. Both run these.

#include <vector>

#include "tests/conformance/harness/fixture.h"
#include "tests/process/own_node.h"
#include "tests/process/resources.h"

namespace portofu {

/// An interface with an entry that takes puts; the initiator has put to the target and heard of it.
struct Acquainted {
  explicit Acquainted(conformance::Process& self) : ni(self), ends(ni) {
    conformance::append(ni, conformance::me_of(ni, memory.data(), memory.size()));
    self.barrier();
    self.initiator([&] { conformance::put_and_wait(ends, ni.target(), {.length = 8}); });
  }

  const conformance::Ni ni;
  const conformance::Ends ends;
  std::vector<unsigned char> memory = std::vector<unsigned char>(64);
};

/// Who waits for two seconds, in the library, uses less than 0.1 s of CPU; the nodes have talked before.
inline void expect_idle_uses_no_cpu(conformance::Process& self) {
  using namespace conformance;
  const Acquainted here(self);
  ptl_event_t event;
  unsigned int which = 0;
  PtlEQPoll(&here.ends.source_eq, 1, 500, &event, &which);
  const double before = cpu_s();
  EXPECT_EQ(PtlEQPoll(&here.ends.source_eq, 1, 2000, &event, &which), PTL_EQ_EMPTY);
  EXPECT_LT(cpu_s() - before, 0.1);
  self.barrier();
}

/// The target dies by SIGKILL; what is sent to it then ends so soon.
inline void expect_death_is_told(conformance::Process& self, double within_s) {
  using namespace conformance;
  const Acquainted here(self);
  if (self.is_target()) self.die();
  self.barrier();
  const FairStopwatch watch;
  put(here.ends.md, here.ni.target(), {.length = 8});
  next_event(here.ends.source_eq, PTL_EVENT_ACK, PTL_NI_UNDELIVERABLE);
  EXPECT_LT(watch.seconds(), within_s);
}

}  // namespace portofu
