// Fuzzes the target and the initiator through the one door that peers have: receive_packet. The bytes are a sequence of
// packets, calls of the application and accidents of links; see receive_world.h. What has to hold:
//   - no byte is written that no entry and no operation of the application has opened;
//   - everything that the engine counts agrees with what is there (core_census.h), after every step;
//   - at the end nothing is under way, and everything can be taken down;
//   - no crash, no leak, nothing that a sanitizer complains of.

#include "engine/memory/guarded_copy.h"
#include "tests/fuzz/receive_world.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  portofu::install_fault_guard();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace portofu::fuzz;
  constexpr int kMostSteps = 400;
  FuzzInput input(data, bytes);
  const bool ends_in_order = input.byte() % 4 != 0;  // Else the interfaces are closed with everything in flight.
  ReceiveWorld world(input);
  for (int step = 0; step < kMostSteps && !input.is_used_up(); ++step) {
    world.step();
    world.check();
  }
  if (ends_in_order) world.come_to_rest();
  return 0;
}
