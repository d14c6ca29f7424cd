// A target that is stopped (SIGSTOP) under load and goes on later: nothing is lost or out of order, the initiators need
// bounded memory meanwhile, and others are served.

#include <signal.h>

#include <cstdio>
#include <map>

#include "tests/conformance/harness/fixture.h"
#include "tests/process/own_node.h"

namespace portofu {
namespace {

using namespace conformance;

constexpr int kPuts = 20000;
constexpr ptl_size_t kBytes = 256;

/// Bytes of memory that this process has in use.
long resident_bytes() {
  long pages = 0;
  long resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file != nullptr) {
    if (std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident * sysconf(_SC_PAGESIZE);
}

bool is_instrumented() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#else
  return false;
#endif
}

/// Posts everything while nobody takes it, and sees that a bystander still answers.
void post_while_stopped(const Ni& ni, const Ends& ends) {
  const long before = resident_bytes();
  for (int i = 0; i < kPuts; ++i) {
    put(ends.md, ni.target(), {.length = kBytes, .hdr_data = static_cast<ptl_hdr_data_t>(i), .user_ptr = tag(1)});
  }
  // A descriptor for each put that waits, and what the allocator and the queue of events need; no data.
  if (!is_instrumented()) {
    EXPECT_LT(resident_bytes() - before, kPuts * 400L + 8'000'000L);
  }
  put(ends.md, ni.id(3), {.length = 8, .user_ptr = tag(2)});
  for (bool answered = false; !answered;) {
    const ptl_event_t event = next_event(ends.source_eq, PTL_EVENT_ACK);
    answered = event.user_ptr == tag(2);
  }
}

TEST(Stop, Target_stopped_under_load__loses_nothing) {
  const OwnNode node;
  run_processes(4, [](Process& self) {
    const Ni ni(self);
    const Ends ends(ni, 0, 4 * kPuts);
    std::vector<unsigned char> memory(1024);
    append(ni, me_of(ni, memory.data(), memory.size()));
    const pid_t stopped = self.share(getpid())[0];
    // Ranks 1 and 2 load, rank 3 stands by. Rank 0 takes nothing, and rank 1 stops it for a second.
    if (self.rank() == 1) {
      for (int i = 0; i < 100; ++i) put_and_wait(ends, ni.target(), {.length = kBytes, .hdr_data = kPuts});
      kill(stopped, SIGSTOP);
    }
    if (self.rank() == 1 || self.rank() == 2) post_while_stopped(ni, ends);
    if (self.rank() == 1) {
      sleep(1);
      kill(stopped, SIGCONT);
    }
    self.barrier();
    if (self.rank() == 0) {
      std::map<ptl_pid_t, ptl_hdr_data_t> next;
      for (int i = 0; i < 2 * kPuts + 100; ++i) {
        const ptl_event_t event = next_event(ends.target_eq, PTL_EVENT_PUT);
        if (event.hdr_data == kPuts) continue;  // From before.
        EXPECT_EQ(event.hdr_data, next[event.initiator.phys.pid]++) << "out of order";
      }
      expect_empty(ends.target_eq);
    }
    self.barrier();
  });
}

}  // namespace
}  // namespace portofu
