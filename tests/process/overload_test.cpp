// A target that stands still under full load, on one node and between nodes: nothing is lost, nobody spins, and others
// talk as before. Rates are printed and not judged: they are the machine's.

#include <signal.h>

#include <atomic>
#include <map>

#include "tests/conformance/harness/fixture.h"
#include "tests/process/own_node.h"
#include "tests/process/resources.h"
#include "tests/process/test_network.h"
#include "tests/support/eventually.h"

namespace portofu {
namespace {

using namespace conformance;

constexpr ptl_size_t kBytes = 512;
constexpr double kMostCpu = 0.05;
constexpr double kRecoversWithinS = 1;  ///< Of time that it and the target got.

/// What processes share that cannot meet at a barrier, because one of them is stopped.
struct OverloadBoard {
  std::atomic<int> flooding{0};    ///< Ranks that have posted everything, and seen what it costs them to wait.
  std::atomic<int> talked{0};      ///< The bystanders are done.
  std::atomic<bool> woken{false};  ///< The target was allowed to go on.
};

/// false: all on one node. true: each on a node of its own.
class Overload : public testing::TestWithParam<bool> {
 protected:
  Overload() {
    const std::string first = test_address(1);
    if (GetParam()) setenv("PORTOFU_TEST_NODES", first.substr(0, first.rfind('.')).c_str(), 1);
  }
  ~Overload() override { unsetenv("PORTOFU_TEST_NODES"); }

  const OwnNode node_;
  SharedMemory<OverloadBoard> board_;
};

/// Posts `puts` numbered ones to the target, which takes none of them now.
void flood(const Ni& ni, ptl_handle_md_t md, int puts) {
  for (int i = 0; i < puts; ++i)
    put(md, ni.target(), {.length = kBytes, .hdr_data = static_cast<ptl_hdr_data_t>(i), .user_ptr = tag(1)});
}

/// The target sees the puts of each in the order in which they were posted. Its time runs while it stands still.
void take_all(const Ends& ends, int senders, int puts) {
  std::map<std::uint64_t, ptl_hdr_data_t> next;
  for (int i = 0; i < senders * puts; ++i) {
    ptl_event_t event{};
    unsigned int which = 0;
    ASSERT_EQ(PtlEQPoll(&ends.target_eq, 1, kPatienceMs, &event, &which), PTL_OK) << i;
    ASSERT_EQ(event.type, PTL_EVENT_PUT);
    ASSERT_EQ(event.ni_fail_type, PTL_NI_OK);
    ASSERT_EQ(event.hdr_data, next[std::uint64_t{event.initiator.phys.nid} << 32 | event.initiator.phys.pid]++);
  }
  expect_empty(ends.target_eq);
}

TEST_P(Overload, Target_stopped_for_five_seconds_under_eight_senders__loses_nothing_and_nobody_spins) {
  constexpr int kSenders = 8;
  constexpr int kPuts = 4000;
  constexpr double kStoppedS = 5;
  run_processes(kSenders + 1, [this](Process& self) {
    const Ni ni(self);
    const Ends ends(ni, 0, 2 * kSenders * kPuts);
    std::vector<unsigned char> memory(1024);
    append(ni, me_of(ni, memory.data(), memory.size()));
    const pid_t stopped = self.share(getpid())[0];
    self.initiator([&] { put_and_wait(ends, ni.target(), {.length = kBytes}); });
    if (self.is_target()) {
      for (int i = 0; i < kSenders; ++i) next_event(ends.target_eq, PTL_EVENT_PUT);
    }
    self.barrier();
    if (self.rank() == 1) kill(stopped, SIGSTOP);
    if (self.is_initiator()) {
      const long bytes = private_bytes(getpid());
      const long set_aside = data_bytes(getpid());
      const ptl_handle_eq_t eq = alloc_eq(ni, kPuts);
      const ptl_handle_md_t md = bind_quiet(ni, ends.data.data(), kBytes, eq);
      flood(ni, md, kPuts);
      const long grown = private_bytes(getpid()) - bytes;
      // A descriptor for each put that waits, the queue of events, and what a link holds; no data. A pool of buffers of
      // libfabric that grows meanwhile, as it does by a step in some of the senders, can be seen to.
      constexpr long kMost = kPuts * 800L + 8'000'000L;
      const long pools = (data_bytes(getpid()) - set_aside) / kFabricPoolBytes;
      EXPECT_LE(pools, GetParam() ? 1 : 0);
      EXPECT_LT(grown, kMost + pools * kFabricPoolBytes);
      const double begin = now_s();
      const double cpu = cpu_s();
      ptl_event_t event{};
      unsigned int which = 0;
      int taken = 0;
      // Whoever sent before the target stood still has some answers.
      const auto take_one = [&] { taken += PtlEQPoll(&eq, 1, 500, &event, &which) == PTL_OK ? 1 : 0; };
      while (now_s() - begin < kStoppedS - 0.2) take_one();
      const double used = (cpu_s() - cpu) / (now_s() - begin);
      EXPECT_LT(used, kMostCpu);
      board_->flooding.fetch_add(1);
      if (self.rank() == 1) {
        EXPECT_TRUE(eventually([this] { return board_->flooding == kSenders; }));
        board_->woken = true;
        kill(stopped, SIGCONT);
      }
      while (!board_->woken && taken < kPuts) take_one();
      const FairStopwatch watch({getpid(), stopped});
      double recovered_s = 0;
      for (; taken < kPuts; ++taken) {
        ASSERT_EQ(PtlEQPoll(&eq, 1, kPatienceMs, &event, &which), PTL_OK) << taken;
        EXPECT_EQ(event.ni_fail_type, PTL_NI_OK);
        if (recovered_s == 0) recovered_s = watch.seconds();
      }
      EXPECT_LT(recovered_s, kRecoversWithinS);
      if (self.rank() == 1)
        std::printf(
            "  %.1f %% CPU while it waited, %ld KiB for what waited, the first answer %.3f s after the end of it\n",
            used * 100, grown / 1024, recovered_s);
      std::fflush(stdout);
    } else {
      take_all(ends, kSenders, kPuts);
    }
    self.barrier();
  });
}

/// Round trips between two for a while. @return how many a second
double talk(const Ends& ends, ptl_process_t other, double seconds) {
  const double begin = now_s();
  int trips = 0;
  for (; now_s() - begin < seconds; ++trips) put_and_wait(ends, other, {.length = kBytes});
  return trips / (now_s() - begin);
}

TEST_P(Overload, Flood_of_a_stuck_process__does_not_keep_others_from_talking) {
  constexpr int kPuts = 20000;
  run_processes(4, [this](Process& self) {
    const Ni ni(self);
    const Ends ends(ni, 0, 2 * kPuts);
    std::vector<unsigned char> memory(1024);
    append(ni, me_of(ni, memory.data(), memory.size()));
    const pid_t stopped = self.share(getpid())[0];
    double alone = 0;
    if (self.rank() == 2) alone = talk(ends, ni.id(3), 0.5);
    self.barrier();
    if (self.rank() == 1) {
      const ptl_handle_eq_t eq = alloc_eq(ni, kPuts);
      const ptl_handle_md_t md = bind_quiet(ni, ends.data.data(), kBytes, eq);
      kill(stopped, SIGSTOP);
      flood(ni, md, kPuts);
      board_->flooding = 1;
      EXPECT_TRUE(eventually([this] { return board_->talked == 1; }));
      kill(stopped, SIGCONT);
      for (int i = 0; i < kPuts; ++i) next_event(eq, PTL_EVENT_ACK);
    } else if (self.rank() == 2) {
      EXPECT_TRUE(eventually([this] { return board_->flooding == 1; }));
      const double beside = talk(ends, ni.id(3), 1);
      board_->talked = 1;
      EXPECT_GT(beside, 0);
      std::printf("  %.0f round trips a second beside the flood, %.0f without it\n", beside, alone);
      std::fflush(stdout);
    } else if (self.is_target()) {
      take_all(ends, 1, kPuts);
    }
    self.barrier();
  });
}

INSTANTIATE_TEST_SUITE_P(Places, Overload, testing::Values(false, true), [](const testing::TestParamInfo<bool>& each) {
  return each.param ? "fabric" : "shared_memory";
});

}  // namespace
}  // namespace portofu
