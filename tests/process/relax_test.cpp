// portofu.h: the hint for loops that poll memory.

#include <portofu.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "tests/conformance/harness/fixture.h"
#include "tests/process/own_node.h"

namespace portofu {
namespace {

using namespace conformance;

TEST(Relax, Process_without_an_engine__may_call_it) {
  run_processes(1, [](Process&) {
    for (int i = 0; i < 100; ++i) portofu_relax();
  });
}

/// Nobody else looks after what arrives: there is no progress thread, and the target makes no other call.
TEST(Relax, Loop_that_polls_memory__sees_what_arrives) {
  setenv("PORTOFU_PROGRESS_THREAD", "0", 1);
  const OwnNode node;
  run_processes(2, [](Process& self) {
    const Ni ni(self);
    const Ends ends(ni);
    std::uint64_t word = 0;
    append(ni, me_of(ni, &word, sizeof word));
    self.barrier();
    if (self.is_initiator()) {
      word = 7;
      put(bind_md(ni, md_of(&word, sizeof word)), ni.target(), {.length = 8, .ack = PTL_NO_ACK_REQ});
    }
    self.barrier();
    if (self.is_target()) {
      const std::atomic_ref<std::uint64_t> flag(word);
      EXPECT_EQ(flag.load(), 0u);
      while (flag.load() == 0) portofu_relax();
      EXPECT_EQ(flag.load(), 7u);
    }
    self.barrier();
  });
  unsetenv("PORTOFU_PROGRESS_THREAD");
}

/// Interfaces come and go meanwhile.
TEST(Relax, Other_threads__open_and_close_what_it_looks_after) {
  const OwnNode node;
  run_processes(1, [](Process& self) {
    std::atomic<bool> done{false};
    std::thread relaxing([&done] {
      while (!done) portofu_relax();
    });
    for (int i = 0; i < 30; ++i) {
      const Ni ni(self);
      const Ends ends(ni);
      std::uint64_t word = 0;
      append(ni, me_of(ni, &word, sizeof word));
      put_and_wait(ends, ni.target(), {.length = 8});
    }
    done = true;
    relaxing.join();
  });
}

}  // namespace
}  // namespace portofu
