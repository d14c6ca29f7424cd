// Processes on several nodes: each has a loopback address of its own as its NID, so everything between them goes over
// the fabric, and what has one address goes through shared memory.

#include <cstdlib>
#include <cstring>

#include "tests/conformance/harness/fixture.h"
#include "tests/process/between_nodes.h"
#include "tests/process/own_node.h"
#include "tests/process/resources.h"
#include "tests/process/test_network.h"

namespace portofu {
namespace {

using namespace conformance;

/// The process is on a node of its own, unless it shares the number with others.
void live_on_node(int number, const char* fabric = "1") {
  setenv("PORTOFU_NID", test_address(number + 1).c_str(), 1);
  setenv("PORTOFU_FABRIC", fabric, 1);
}

/// The gtest process makes the number of the network, so that its children agree.
void run_on_nodes(int count, const Body& body) {
  live_on_node(0);
  run_processes(count, body);
  unsetenv("PORTOFU_NID");
  unsetenv("PORTOFU_FABRIC");
}

TEST(Fabric, Put_get_and_atomic__reach_another_node) {
  run_on_nodes(2, [](Process& self) {
    live_on_node(self.rank());
    const Ni ni(self);
    const Ends ends(ni);
    std::vector<std::int64_t> memory(512, 5);
    append(ni, me_of(ni, memory.data(), memory.size() * 8));
    self.barrier();
    EXPECT_NE(ni.id(0).phys.nid, ni.id(1).phys.nid);
    self.initiator([&] {
      put_and_wait(ends, ni.target(), {.length = 4096});
      std::vector<unsigned char> fetched(4096);
      const ptl_handle_md_t get_md = bind_quiet(ni, fetched.data(), fetched.size(), ends.source_eq);
      get(get_md, ni.target(), {.length = 4096});
      next_event(ends.source_eq, PTL_EVENT_REPLY);
      EXPECT_EQ(fetched, ends.data);
      fetch_atomic(get_md, 0, ends.md, ni.target(), {.length = 8});
      next_event(ends.source_eq, PTL_EVENT_REPLY);
      EXPECT_EQ(std::memcmp(fetched.data(), ends.data.data(), 8), 0);
    });
    self.barrier();
  });
}

TEST(Fabric, Long_messages__arrive_whole_both_ways) {
  run_on_nodes(2, [](Process& self) {
    live_on_node(self.rank());
    const Ni ni(self);
    const Ends ends(ni);
    constexpr std::size_t kBytes = 24u << 20;
    const std::vector<unsigned char> sent = pattern(kBytes, static_cast<unsigned>(self.rank() + 1));
    std::vector<unsigned char> memory(kBytes);
    append(ni, me_of(ni, memory.data(), memory.size()));
    const ptl_handle_md_t md = bind_quiet(ni, sent.data(), kBytes, ends.source_eq);
    self.barrier();
    put(md, ni.id(1 - self.rank()), {.length = kBytes});
    next_event(ends.source_eq, PTL_EVENT_ACK);
    next_event(ends.target_eq, PTL_EVENT_PUT);
    EXPECT_EQ(memory, pattern(kBytes, static_cast<unsigned>(2 - self.rank())));
    self.barrier();
  });
}

TEST(Fabric, Process_that_computes__is_served_by_the_library_and_a_sleeping_one_wakes) {
  run_on_nodes(2, [](Process& self) {
    live_on_node(self.rank());
    const Ni ni(self);
    Ends ends(ni);
    std::vector<std::atomic<int>> memory(4);
    append(ni, me_of(ni, memory.data(), 16));
    const std::vector<pid_t> both = self.share(getpid());
    self.barrier();
    if (self.is_target()) {
      EXPECT_TRUE(compute_until(memory[0], 20));
    } else {
      std::fill_n(ends.data.begin(), 16, 1);
      usleep(300'000);  // The target's own thread sleeps by then.
      const FairStopwatch watch(both);
      put_and_wait(ends, ni.target(), {.length = 16});
      EXPECT_LT(watch.seconds(), 0.5);
    }
    self.barrier();
  });
}

TEST(Fabric, Idle_processes__use_no_cpu) {
  run_on_nodes(2, [](Process& self) {
    live_on_node(self.rank());
    expect_idle_uses_no_cpu(self);
  });
}

TEST(Fabric, Killed_process__ends_what_is_under_way_within_a_second) {
  run_on_nodes(2, [](Process& self) {
    live_on_node(self.rank());
    expect_death_is_told(self, 1.5);
  });
}

// Two on one node, two on another: wires of both kinds in each engine at once.
TEST(Fabric, Mixed_job__reaches_everybody_from_everybody) {
  run_on_nodes(4, [](Process& self) {
    live_on_node(self.rank() / 2);
    const Ni ni(self);
    const Ends ends(ni);
    std::vector<std::int64_t> sum(1);
    append(ni, me_of(ni, sum.data(), 8));
    std::int64_t one = 1;
    const ptl_handle_md_t md = bind_quiet(ni, &one, 8, ends.source_eq);
    self.barrier();
    constexpr int kRounds = 200;
    for (int i = 0; i < kRounds; ++i) {
      for (int to = 0; to < self.size(); ++to) atomic(md, ni.id(to), {.length = 8});
    }
    for (int i = 0; i < kRounds * self.size(); ++i) next_event(ends.source_eq, PTL_EVENT_ACK);
    self.barrier();
    EXPECT_EQ(sum[0], kRounds * self.size());
    self.barrier();
  });
}

// Without PORTOFU_FABRIC the endpoint opens with the first packet to another node.
TEST(Fabric, Endpoint__opens_by_itself_for_who_sends_first) {
  run_on_nodes(2, [](Process& self) {
    live_on_node(self.rank(), self.is_target() ? "1" : "2");
    const Acquainted here(self);
    self.barrier();
  });
}

TEST(Fabric, Switched_off__other_nodes_are_undeliverable) {
  run_on_nodes(2, [](Process& self) {
    live_on_node(self.rank(), "0");
    const Ni ni(self);
    const Ends ends(ni);
    self.barrier();
    self.initiator([&] { put_and_wait(ends, ni.target(), {.length = 8}, PTL_NI_UNDELIVERABLE); });
    self.barrier();
  });
}

}  // namespace
}  // namespace portofu
