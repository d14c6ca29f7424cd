// kill -9 of processes under load, at any instruction: the others see their operations end, and go on; nothing is left.

#include <gtest/gtest.h>
#include <portals4.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "tests/process/child_process.h"
#include "tests/process/own_node.h"
#include "tests/process/traffic.h"

namespace portofu {
namespace {

class PortalsKill : public testing::Test {
 protected:
  /// Starts, or starts again, one worker.
  void start(int rank, int cycle_operations = 0) {
    const WorkerOptions options{&*board_,  node_.nid(),     rank, static_cast<int>(workers_.size()),
                                random_(), cycle_operations};
    workers_[static_cast<std::size_t>(rank)] =
        std::make_unique<ChildProcess>([options] { return run_worker(options); });
  }

  void start_all(int count) {
    workers_.resize(static_cast<std::size_t>(count));
    for (int rank = 0; rank < count; ++rank) start(rank);
  }

  unsigned some(unsigned bound) { return static_cast<unsigned>(random_() % bound); }

  /// Waits until the first `count` workers, or all, have got something delivered since the call.
  void expect_progress(std::size_t count = SIZE_MAX) {
    std::vector<std::uint64_t> before;
    for (std::size_t i = 0; i < workers_.size(); ++i) before.push_back(board_->delivered[i].load());
    EXPECT_TRUE(eventually([&] {
      for (std::size_t i = 0; i < std::min(count, workers_.size()); ++i) {
        if (workers_[i] != nullptr && board_->delivered[i].load() == before[i]) return false;
      }
      return true;
    })) << "somebody got nothing delivered any more";
  }

  /// Lets all end, and expects that they end well.
  void stop_all() {
    board_->stop.store(1);
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      if (workers_[i] != nullptr) {
        EXPECT_EQ(workers_[i]->wait_status(), 0) << "worker " << i << " (see WorkerEnd in traffic.h)";
      }
    }
  }

  OwnNode node_;
  SharedMemory<TrafficBoard> board_;
  std::mt19937_64 random_{process_test_seed()};
  std::vector<std::unique_ptr<ChildProcess>> workers_;
};

TEST_F(PortalsKill, Workers_killed_under_load__are_found_lost_and_come_back) {
  constexpr int kWorkers = 4;
  constexpr int kKills = 100;
  start_all(kWorkers);
  expect_progress();
  for (int i = 0; i < kKills; ++i) {
    const int victim = static_cast<int>(some(kWorkers));
    spend_us(some(20000));
    workers_[static_cast<std::size_t>(victim)]->kill_now();
    if (some(2) == 0) spend_us(some(5000));
    start(victim);
    if (i % 20 == 19) expect_progress();
  }
  expect_progress();
  stop_all();
  std::uint64_t lost = 0;
  for (int i = 0; i < kWorkers; ++i) lost += board_->lost[i].load();
  EXPECT_GT(lost, 0u) << "nobody noticed a death";
}

// Early kills meet PtlInit, PtlNIInit and the first connect.
TEST_F(PortalsKill, Workers_killed_while_they_start__leave_nothing_behind) {
  constexpr int kWorkers = 3;
  start_all(kWorkers);
  expect_progress();
  for (int i = 0; i < 120; ++i) {
    workers_[2]->kill_now();
    start(2);
    spend_us(some(3000));
  }
  expect_progress();
  stop_all();
}

// Workers that close and open their interfaces all the time are killed in PtlNIFini and PtlFini too.
TEST_F(PortalsKill, Workers_killed_while_they_open_and_close__leave_nothing_behind) {
  constexpr int kWorkers = 4;
  start_all(kWorkers);
  for (int rank = 2; rank < kWorkers; ++rank) {
    workers_[static_cast<std::size_t>(rank)]->kill_now();
    start(rank, 60);
  }
  expect_progress(2);
  for (int i = 0; i < 100; ++i) {
    const int victim = 2 + static_cast<int>(some(2));
    spend_us(some(8000));
    workers_[static_cast<std::size_t>(victim)]->kill_now();
    start(victim, 1 + static_cast<int>(some(100)));
  }
  expect_progress(2);
  stop_all();
}

// Nobody is killed: interfaces come and go, with operations under way in both directions.
TEST_F(PortalsKill, Interfaces_that_open_and_close_all_the_time__harm_nobody) {
  workers_.resize(5);
  for (int rank = 0; rank < 5; ++rank) start(rank, rank < 2 ? 0 : 1 << (rank - 2));
  const auto spent = [](const char* variable) {
    const char* given = std::getenv(variable);
    return given != nullptr ? std::atoi(given) : 1;
  };
  for (int second = 0; second < spent("PORTOFU_TEST_SECONDS"); ++second) {
    spend_us(1'000'000);
    expect_progress(2);
  }
  stop_all();
}

// Nobody comes back: the survivors end what they owed to the dead, and remove their segments.
TEST_F(PortalsKill, Segments_of_the_dead__are_removed_by_the_living) {
  constexpr int kWorkers = 4;
  start_all(kWorkers);
  expect_progress();
  for (int rank = 1; rank < kWorkers; ++rank) workers_[static_cast<std::size_t>(rank)]->kill_now();
  for (int rank = 1; rank < kWorkers; ++rank) workers_[static_cast<std::size_t>(rank)] = nullptr;
  EXPECT_TRUE(eventually([&] { return node_.segment_count() == 1; }));
  expect_progress();
  stop_all();
}

/// What two processes of the last test tell each other.
struct LastMeeting {
  std::atomic<int> open{0}, taken{0}, go_on{0};
};

constexpr ptl_pid_t kTakerPid = 41;

bool open_interface(ptl_handle_ni_t* ni, ptl_pid_t pid) {
  return PtlInit() == PTL_OK &&
         PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, pid, nullptr, nullptr, ni) == PTL_OK;
}

/// Puts once, and waits to be killed.
int give_and_wait(std::uint32_t nid, LastMeeting& meeting) {
  ptl_handle_ni_t ni;
  ptl_handle_ct_t acks;
  ptl_handle_md_t handle;
  if (!open_interface(&ni, PTL_PID_ANY) || PtlCTAlloc(ni, &acks) != PTL_OK) return 2;
  std::uint64_t word = 7;
  const ptl_md_t md{&word, sizeof word, PTL_MD_EVENT_CT_ACK, PTL_EQ_NONE, acks};
  if (PtlMDBind(ni, &md, &handle) != PTL_OK || !eventually([&] { return meeting.open != 0; })) return 3;
  ptl_process_t taker;
  taker.phys = {nid, kTakerPid};
  ptl_ct_event_t count;
  if (PtlPut(handle, 0, sizeof word, PTL_CT_ACK_REQ, taker, 0, 0, 0, nullptr, 0) != PTL_OK) return 4;
  if (PtlCTWait(acks, 1, &count) != PTL_OK) return 5;
  meeting.taken = 1;
  for (;;) pause();
}

/// Takes one put, and ends when it is told to, without a look in between.
int take_and_end(LastMeeting& meeting) {
  ptl_handle_ni_t ni;
  ptl_handle_ct_t puts;
  ptl_pt_index_t pt;
  ptl_handle_le_t handle;
  if (!open_interface(&ni, kTakerPid) || PtlCTAlloc(ni, &puts) != PTL_OK) return 2;
  std::uint64_t word = 0;
  const ptl_le_t le{&word, sizeof word, puts, PTL_UID_ANY, PTL_LE_OP_PUT | PTL_LE_EVENT_CT_COMM};
  if (PtlPTAlloc(ni, 0, PTL_EQ_NONE, 0, &pt) != PTL_OK) return 3;
  if (PtlLEAppend(ni, pt, &le, PTL_PRIORITY_LIST, nullptr, &handle) != PTL_OK) return 4;
  meeting.open = 1;
  ptl_ct_event_t count;
  if (PtlCTWait(puts, 1, &count) != PTL_OK || !compute_until(meeting.go_on, 30)) return 5;
  const bool closed = PtlNIFini(ni) == PTL_OK;
  PtlFini();
  return closed && word == 7 ? 0 : 6;
}

TEST(PortalsEnd, Process_that_ends_before_it_has_noticed_a_death__removes_the_segment_of_the_dead) {
  for (int round = 0; round < 10; ++round) {
    const OwnNode node;
    const SharedMemory<LastMeeting> meeting;
    ChildProcess taker([&] { return take_and_end(*meeting); });
    ChildProcess giver([&] { return give_and_wait(node.nid(), *meeting); });
    ASSERT_TRUE(eventually([&] { return meeting->taken != 0 || giver.has_ended() || taker.has_ended(); }));
    giver.kill_now();
    meeting->go_on = 1;
    EXPECT_EQ(taker.wait_status(), 0);
  }
}

}  // namespace
}  // namespace portofu
