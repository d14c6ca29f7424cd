// Application bypass (Portals 4.3, 2.1): a target that computes and never calls still receives, answers, executes and
// triggers. It computes until the initiator says that everything has come back, so nothing here depends on how fast.

#include <sched.h>

#include <cstring>
#include <memory>

#include "tests/conformance/harness/fixture.h"
#include "tests/process/child_process.h"
#include "tests/process/own_node.h"

namespace portofu {
namespace {

using namespace conformance;

constexpr double kLongestComputing = 30;

struct Board {
  std::atomic<int> done{0};       ///< The initiator has seen everything.
  std::atomic<int> computing{0};  ///< Between the target's last call and its next.
  std::atomic<int> gave_up{0};    ///< The target stopped computing before the initiator was done.
};

/// Runs one step at the initiator while the target computes.
void while_target_computes(Process& self, Board& board, const std::function<void()>& step) {
  if (self.is_target()) {
    board.computing.store(1);
    if (!compute_until(board.done, kLongestComputing)) board.gave_up.store(1);
    board.computing.store(0);
  } else {
    while (board.computing.load() == 0) sched_yield();
    step();
    EXPECT_EQ(board.computing.load(), 1) << "the target has called meanwhile, so this test has shown nothing";
    board.done.store(1);
  }
  self.barrier();
  EXPECT_EQ(board.gave_up.load(), 0);
}

struct Sides {
  explicit Sides(Process& self) : ni(self), ends(ni), memory(pattern(1 << 20, 3)) {
    if (self.is_target()) append(ni, me_of(ni, memory.data(), memory.size()));
    self.barrier();
  }
  Ni ni;
  Ends ends;
  std::vector<unsigned char> memory;  ///< At the target: what the entry covers.
};

void bypass(Process& self, Board& board) {
  const Sides sides(self);
  std::vector<unsigned char> large = pattern(300000, 9);
  std::vector<unsigned char> fetched(300000);
  std::int64_t old_value = 0;
  while_target_computes(self, board, [&] {
    const ptl_process_t target = sides.ni.target();
    put_and_wait(sides.ends, target, {.length = 8});
    const ptl_handle_md_t large_md = bind_quiet(sides.ni, large.data(), large.size(), sides.ends.source_eq);
    put(large_md, target, {.length = large.size(), .remote_offset = 400000});
    next_event(sides.ends.source_eq, PTL_EVENT_ACK);
    const ptl_handle_md_t get_md = bind_quiet(sides.ni, fetched.data(), fetched.size(), sides.ends.source_eq);
    get(get_md, target, {.length = fetched.size(), .remote_offset = 400000});
    next_event(sides.ends.source_eq, PTL_EVENT_REPLY);
    EXPECT_EQ(fetched, large);
    const ptl_handle_md_t old_md = bind_quiet(sides.ni, &old_value, sizeof old_value, sides.ends.source_eq);
    for (int i = 0; i < 100; ++i) {
      fetch_atomic(old_md, 0, sides.ends.md, target, {.length = 8, .remote_offset = 8});
      next_event(sides.ends.source_eq, PTL_EVENT_REPLY);
    }
  });
  if (!self.is_target()) return;
  EXPECT_EQ(std::memcmp(sides.memory.data() + 400000, large.data(), large.size()), 0);
  EXPECT_EQ(std::memcmp(sides.memory.data(), sides.ends.data.data(), 8), 0);
  EXPECT_EQ(drain(sides.ends.target_eq).size(), 103u);
}

TEST(Bypass, Operations__complete_while_the_target_computes) {
  const OwnNode node;
  const SharedMemory<Board> board;
  run_processes(2, [&](Process& self) { bypass(self, *board); });
}

TEST(Bypass, Operations__complete_while_every_core_computes) {
  const OwnNode node;
  const SharedMemory<Board> board;
  std::vector<std::unique_ptr<ChildProcess>> hogs;
  for (long i = 0; i < 2 * sysconf(_SC_NPROCESSORS_ONLN); ++i) {
    hogs.push_back(
        std::make_unique<ChildProcess>([&] { return compute_until(board->done, kLongestComputing) ? 0 : 1; }));
  }
  run_processes(2, [&](Process& self) { bypass(self, *board); });
}

// A message that arrives fires an operation of a target that computes, which answers with a put.
TEST(Bypass, Triggered_operations__fire_while_the_target_computes) {
  const OwnNode node;
  const SharedMemory<Board> board;
  run_processes(2, [&](Process& self) {
    const Ni ni(self);
    const Ends ends(ni);
    const ptl_handle_ct_t ct = alloc_ct(ni);
    std::uint64_t word = 0;
    ptl_me_t me = me_of(ni, &word, sizeof word, PTL_ME_EVENT_CT_COMM);
    me.ct_handle = ct;
    append(ni, me);
    constexpr int kPuts = 50;
    if (self.is_target()) {
      for (int i = 1; i <= kPuts; ++i) {
        REQUIRE_OK(PtlTriggeredPut(ends.md, 0, 8, PTL_NO_ACK_REQ, ni.id(1), kPt, 0, 0, nullptr, 0, ct,
                                   static_cast<ptl_size_t>(i)));
      }
    }
    self.barrier();
    while_target_computes(self, *board, [&] {
      for (int i = 1; i <= kPuts; ++i) {
        put(ends.md, ni.target(), {.length = 8, .ack = PTL_NO_ACK_REQ});
        wait_for_count(ct, static_cast<ptl_size_t>(i));
      }
    });
  });
}

// The target sits in a call that blocks on something else than Portals.
TEST(Bypass, Operations__complete_while_the_target_sleeps_elsewhere) {
  const OwnNode node;
  const SharedMemory<Board> board;
  run_processes(2, [&](Process& self) {
    const Sides sides(self);
    // The barrier blocks in recv.
    self.initiator([&] {
      for (int i = 0; i < 100; ++i) put_and_wait(sides.ends, sides.ni.target(), {.length = 8});
    });
  });
}

}  // namespace
}  // namespace portofu
