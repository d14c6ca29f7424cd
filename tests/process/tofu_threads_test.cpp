// utofu.h: "every function may be called by any thread at any time, also for VCQs and VBGs without the thread-safe
// flag". One VCQ is used by several threads at once, into memory that both sides map, where calls go past the engine's
// lock as long as one thread makes them.

#include <gtest/gtest.h>
#include <portofu.h>
#include <unistd.h>
#include <utofu.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/harness/process.h"

namespace portofu {
namespace {

using namespace conformance;

constexpr std::size_t kHeapBytes = 1 << 20;
constexpr unsigned long kTcq = UTOFU_ONESIDED_FLAG_TCQ_NOTICE;

/// CQs belong to the jobs of a machine: each test is one of its own.
struct OwnJob {
  OwnJob() { setenv("PORTOFU_JOB_KEY", std::to_string(getpid()).c_str(), 1); }
  ~OwnJob() { unsetenv("PORTOFU_JOB_KEY"); }
  OwnJob(const OwnJob&) = delete;
  OwnJob& operator=(const OwnJob&) = delete;
};

/// A VCQ with memory of the heap.
struct Side {
  struct Name {
    utofu_vcq_id_t id = 0;
    utofu_stadd_t stadd = 0;
  };

  explicit Side(Process& self, unsigned long flags = 0) : memory(static_cast<char*>(portofu_alloc(kHeapBytes, 256))) {
    EXPECT_NE(memory, nullptr);
    EXPECT_EQ(utofu_create_vcq(0, flags, &vcq), UTOFU_SUCCESS);
    EXPECT_EQ(utofu_query_vcq_id(vcq, &own.id), UTOFU_SUCCESS);
    EXPECT_EQ(utofu_reg_mem(vcq, memory, kHeapBytes, 0, &own.stadd), UTOFU_SUCCESS);
    peer = self.share(own)[static_cast<std::size_t>(1 - self.rank())];
  }

  /// Puts 8 bytes; again until there is room, or `stop`.
  int put(std::uint64_t number, int thread, const std::atomic<bool>& stop) const {
    const std::uint64_t offset = 4096u * static_cast<unsigned>(thread) + 64 * (number % 8);
    int rc = UTOFU_ERR_BUSY;
    while (rc == UTOFU_ERR_BUSY && !stop) {
      rc = utofu_put(vcq, peer.id, own.stadd + 4096u * static_cast<unsigned>(thread), peer.stadd + offset, 8, 0, kTcq,
                     reinterpret_cast<void*>(number));
    }
    return rc;
  }

  char* memory;
  utofu_vcq_hdl_t vcq = 0;
  Name own;
  Name peer;
};

/// Two threads put, a third one reads the TCQ: each notice comes once.
void put_from_two_threads(Process& self, unsigned long flags) {
  const Side side(self, flags);
  constexpr std::uint64_t kPuts = 50'000;
  if (self.rank() == 0) {
    std::vector<std::atomic<int>> seen(2 * kPuts + 1);
    std::atomic<bool> stop{false};
    std::atomic<int> wrong{0};
    const auto putter = [&](int thread) {
      for (std::uint64_t i = 1; i <= kPuts; ++i) {
        if (side.put(static_cast<std::uint64_t>(thread) * kPuts + i, thread, stop) != UTOFU_SUCCESS) ++wrong;
      }
    };
    std::thread first(putter, 0);
    std::thread second(putter, 1);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    std::uint64_t got = 0;
    while (got < 2 * kPuts && std::chrono::steady_clock::now() < end) {
      void* data = nullptr;
      const int rc = utofu_poll_tcq(side.vcq, 0, &data);
      if (rc == UTOFU_ERR_NOT_FOUND) continue;
      const auto number = reinterpret_cast<std::uintptr_t>(data);
      if (rc != UTOFU_SUCCESS || number == 0 || number > 2 * kPuts || seen[number]++ != 0) ++wrong;
      ++got;
    }
    stop = true;
    first.join();
    second.join();
    EXPECT_EQ(got, 2 * kPuts);
    EXPECT_EQ(wrong, 0);
    std::size_t unread = 1;
    EXPECT_EQ(utofu_query_num_unread_tcq(side.vcq, &unread), UTOFU_SUCCESS);
    EXPECT_EQ(unread, 0u);
  }
  self.barrier();
}

TEST(TofuThreads, Notices__of_two_putting_threads_come_once_each) {
  const OwnJob job;
  run_processes(2, [](Process& self) { put_from_two_threads(self, 0); });
}

TEST(TofuThreads, Notices__with_the_flag_do_so_too) {
  const OwnJob job;
  run_processes(2, [](Process& self) { put_from_two_threads(self, UTOFU_VCQ_FLAG_THREAD_SAFE); });
}

/// A thread takes over from another one for good: it loses nothing, and none of what the first one left.
TEST(TofuThreads, Threads_one_after_the_other__use_one_vcq) {
  const OwnJob job;
  run_processes(2, [](Process& self) {
    const Side side(self);
    if (self.rank() == 0) {
      const std::atomic<bool> stop{false};
      std::uint64_t number = 0;
      for (int round = 0; round < 50; ++round) {
        std::thread([&] {
          for (int i = 0; i < 200; ++i) EXPECT_EQ(side.put(++number, 0, stop), UTOFU_SUCCESS);
        }).join();
        for (std::uint64_t i = 0; i < 200; ++i) {
          void* data = nullptr;
          int rc = UTOFU_ERR_NOT_FOUND;
          while (rc == UTOFU_ERR_NOT_FOUND) rc = utofu_poll_tcq(side.vcq, 0, &data);
          EXPECT_EQ(rc, UTOFU_SUCCESS);
          EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data), number - 199 + i);
        }
      }
    }
    self.barrier();
  });
}

/// The next notice of the MRQ. @return its EDATA; -1 if `polls` polls found none
long read_mrq(utofu_vcq_hdl_t vcq, long polls) {
  utofu_mrq_notice notice{};
  int rc = UTOFU_ERR_NOT_FOUND;
  for (; rc == UTOFU_ERR_NOT_FOUND && polls > 0; --polls) rc = utofu_poll_mrq(vcq, 0, &notice);
  return rc == UTOFU_SUCCESS ? static_cast<long>(notice.edata) : -1;
}

constexpr long kManyPolls = 100'000;

/// Asks for local notices of all kinds, with EDATA 1 to 4. Behind calls that have made the thread the user of the VCQ.
void ask_for_local_notices(const Side& side) {
  constexpr unsigned long kLocal = UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE;
  const std::atomic<bool> stop{false};
  for (std::uint64_t i = 0; i < 300; ++i) {
    ASSERT_EQ(side.put(i, 0, stop), UTOFU_SUCCESS);
    void* data = nullptr;
    while (utofu_poll_tcq(side.vcq, 0, &data) == UTOFU_ERR_NOT_FOUND) {
    }
  }
  ASSERT_EQ(utofu_put_piggyback8(side.vcq, side.peer.id, 1, side.peer.stadd, 8, 1, kLocal, nullptr), UTOFU_SUCCESS);
  ASSERT_EQ(utofu_put(side.vcq, side.peer.id, side.own.stadd, side.peer.stadd + 64, 64, 2, kLocal, nullptr),
            UTOFU_SUCCESS);
  ASSERT_EQ(utofu_put(side.vcq, side.peer.id, side.own.stadd, side.peer.stadd + 64, 64, 3,
                      kLocal | UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE, nullptr),
            UTOFU_SUCCESS);
  ASSERT_EQ(utofu_armw8(side.vcq, side.peer.id, UTOFU_ARMW_OP_ADD, 1, side.peer.stadd + 128, 4, kLocal, nullptr),
            UTOFU_SUCCESS);
}

/// 2.1: "a thread can confirm the completion of communication started by another thread"; 2.2.10: in order.
TEST(TofuThreads, Local_notices__are_read_in_order_by_a_thread_that_has_not_asked_for_them) {
  const OwnJob job;
  run_processes(2, [](Process& self) {
    const Side side(self);
    for (int round = 0; round < 5 && self.rank() == 0; ++round) {
      ask_for_local_notices(side);
      std::thread([&side] {
        for (long edata = 1; edata <= 4; ++edata) EXPECT_EQ(read_mrq(side.vcq, kManyPolls), edata);
      }).join();
    }
    self.barrier();
  });
}

/// The same while the threads take turns, and nobody is the user of the VCQ for long. What both have read together is
/// in order, too.
TEST(TofuThreads, Local_notices__are_read_by_threads_that_take_turns) {
  const OwnJob job;
  run_processes(2, [](Process& self) {
    const Side side(self);
    if (self.rank() == 0) {
      ask_for_local_notices(side);
      std::size_t unread = 0;
      const auto count = [&] { EXPECT_EQ(utofu_query_num_unread_mrq(side.vcq, &unread), UTOFU_SUCCESS); };
      std::thread(count).join();
      EXPECT_GE(unread, 2u) << "those of what was complete when it was asked for";
      long edata = 1;
      for (int turn = 0; turn < 1000 && edata <= 4; ++turn) {
        std::thread([&] {
          const long read = read_mrq(side.vcq, 1);
          EXPECT_TRUE(read == -1 || read == edata) << read;
          if (read == edata) ++edata;
        }).join();
        void* data = nullptr;
        EXPECT_EQ(utofu_poll_tcq(side.vcq, 0, &data), UTOFU_ERR_NOT_FOUND);
      }
      EXPECT_EQ(edata, 5);
    }
    self.barrier();
  });
}

/// Another thread that does something else for the VCQ does not delay what its user has asked for.
TEST(TofuThreads, Local_notices__are_there_at_once_though_another_thread_has_registered_memory) {
  const OwnJob job;
  run_processes(2, [](Process& self) {
    const Side side(self);
    for (unsigned round = 0; round < 20 && self.rank() == 0; ++round) {
      ask_for_local_notices(side);
      std::thread([&side, round] {
        utofu_stadd_t stadd = 0;
        EXPECT_EQ(utofu_reg_mem(side.vcq, side.memory + 4096 * round, 64, 0, &stadd), UTOFU_SUCCESS);
      }).join();
      EXPECT_EQ(read_mrq(side.vcq, 1), 1);
      for (long edata = 2; edata <= 4; ++edata) EXPECT_EQ(read_mrq(side.vcq, kManyPolls), edata);
    }
    self.barrier();
  });
}

/// A VCQ is freed while others call for it: their calls return, with the code for a handle that is none.
TEST(TofuThreads, Freed_vcq__is_not_used) {
  const OwnJob job;
  run_processes(2, [](Process& self) {
    const Side kept(self);
    for (int round = 0; round < 100 && self.rank() == 0; ++round) {
      utofu_vcq_hdl_t vcq = 0;
      utofu_stadd_t stadd = 0;
      ASSERT_EQ(utofu_create_vcq(1, 0, &vcq), UTOFU_SUCCESS);
      ASSERT_EQ(utofu_reg_mem(vcq, kept.memory, kHeapBytes, 0, &stadd), UTOFU_SUCCESS);
      std::atomic<int> running{0};
      const auto caller = [&](bool puts) {
        ++running;
        int rc = UTOFU_SUCCESS;
        while (rc != UTOFU_ERR_INVALID_VCQ_HDL) {
          void* data = nullptr;
          rc = puts ? utofu_put(vcq, kept.peer.id, stadd, kept.peer.stadd, 8, 0, kTcq, nullptr)
                    : utofu_poll_tcq(vcq, 0, &data);
          EXPECT_TRUE(rc == UTOFU_SUCCESS || rc == UTOFU_ERR_BUSY || rc == UTOFU_ERR_NOT_FOUND ||
                      rc == UTOFU_ERR_INVALID_VCQ_HDL)
              << rc;
        }
      };
      std::thread putter(caller, true);
      std::thread poller(caller, false);
      while (running != 2) std::this_thread::yield();
      usleep(static_cast<useconds_t>(round * 10));
      EXPECT_EQ(utofu_free_vcq(vcq), UTOFU_SUCCESS);
      putter.join();
      poller.join();
    }
    self.barrier();
  });
}

/// Threads that make and free VCQs without a pause do not keep another one from doing so.
TEST(TofuThreads, Threads_that_make_and_free_all_the_time__let_another_one_have_its_turn) {
  const OwnJob job;
  run_processes(1, [](Process&) {
    const auto make_and_free = [](utofu_tni_id_t tni) {
      utofu_vcq_hdl_t vcq = 0;
      EXPECT_EQ(utofu_create_vcq(tni, 0, &vcq), UTOFU_SUCCESS);
      EXPECT_EQ(utofu_free_vcq(vcq), UTOFU_SUCCESS);
    };
    constexpr int kRounds = 50;
    constexpr int kTurnsOfOthers = 200;  ///< In one round; counted, because time says nothing on a busy machine.
    std::atomic<bool> stop{false};
    std::atomic<int> others{0};
    std::vector<std::thread> threads;
    for (utofu_tni_id_t tni = 1; tni <= 3; ++tni) {
      threads.emplace_back([&, tni] {
        for (; !stop; ++others) make_and_free(tni);
      });
    }
    while (others < 3) std::this_thread::yield();
    const int before = others;
    for (int round = 0; round < kRounds; ++round) make_and_free(0);
    EXPECT_LT(others - before, kRounds * kTurnsOfOthers);
    stop = true;
    for (std::thread& thread : threads) thread.join();
  });
}

}  // namespace
}  // namespace portofu
