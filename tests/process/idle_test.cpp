// Idle processes use no CPU: those that wait in the library and those that wait elsewhere with an open interface. What
// needs no kernel to be seen is in tests/unit/run/poll_policy_test.cpp.

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "tests/conformance/harness/fixture.h"
#include "tests/conformance/utofu/utofu_fixture.h"
#include "tests/process/own_node.h"
#include "tests/process/resources.h"
#include "tests/support/eventually.h"

namespace portofu {
namespace {

using namespace conformance;

constexpr int kIdleMs = 2000;
constexpr double kGuardPeriodS = 500e-6;  ///< What PORTOFU_GUARD_PERIOD_US is if nobody says otherwise.

/// A twentieth of a core, which is generous: a process that spins or looks every microsecond uses far more.
constexpr double kMostSeconds = kIdleMs * 1e-3 / 20;

void sleep_ms(int ms) {
  timespec time{ms / 1000, ms % 1000 * 1'000'000L};
  nanosleep(&time, nullptr);
}

/// The calling thread runs on the first core that it may use.
void bind_to_one_core() {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  int first = 0;
  while (!CPU_ISSET(first, &all)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
}

/// Rank 0 sleeps for a while and then wakes everybody with a put; all others wait for it as `wait` says.
void wait_for_put(Process& self, const std::function<void(const Ni&, const Ends&)>& wait) {
  const Ni ni(self);
  const Ends ends(ni);
  std::uint64_t word = 0;
  append(ni, me_of(ni, &word, sizeof word));
  self.barrier();
  const double before = cpu_s();
  if (self.rank() == 0) {
    sleep_ms(kIdleMs);
    EXPECT_LT(cpu_s() - before, kMostSeconds);
    for (int rank = 1; rank < self.size(); ++rank) put_and_wait(ends, ni.id(rank), {.length = 8});
  } else {
    wait(ni, ends);
    EXPECT_LT(cpu_s() - before, kMostSeconds);
  }
  self.barrier();
}

TEST(Idle, Eight_processes_in_PtlEQWait__use_almost_no_cpu) {
  const OwnNode node;
  run_processes(9, [](Process& self) {
    wait_for_put(self, [](const Ni&, const Ends& ends) {
      ptl_event_t event{};
      EXPECT_RC(PtlEQWait(ends.target_eq, &event), PTL_OK);
      EXPECT_EQ(event.type, PTL_EVENT_PUT);
    });
  });
}

TEST(Idle, Processes_in_PtlCTWait__use_almost_no_cpu) {
  const OwnNode node;
  run_processes(4, [](Process& self) {
    const Ni ni(self);
    const ptl_handle_ct_t ct = alloc_ct(ni);
    const ptl_size_t never = 1;
    ptl_ct_event_t value{};
    unsigned int which = 0;
    const double before = cpu_s();
    EXPECT_RC(PtlCTPoll(&ct, &never, 1, kIdleMs, &value, &which), PTL_CT_NONE_REACHED);
    EXPECT_LT(cpu_s() - before, kMostSeconds);
  });
}

/// How often the calling thread sleeps in so many milliseconds of a loop that asks one event queue.
long sleeps_of_loop(ptl_handle_eq_t eq, int ms) {
  const long before = sleeps_of_thread();
  ptl_event_t event{};
  for (const double end = now_s() + ms * 1e-3; now_s() < end;) {
    for (int i = 0; i < 16; ++i) EXPECT_EQ(PtlEQGet(eq, &event), PTL_EQ_EMPTY);
  }
  return sleeps_of_thread() - before;
}

// Open MPI asks its parts for Portals whatever its messages travel by. With nothing of ours to come, such a loop waits
// for others, whose messages ring no bell here.
TEST(Idle, Loop_that_awaits_nothing_of_ours__is_not_put_to_sleep) {
  const OwnNode node;
  run_processes(1, [](Process& self) {
    const Ni ni(self);
    const Ends ends(ni);
    std::uint64_t word = 0;
    append(ni, me_of(ni, &word, sizeof word));
    EXPECT_LE(sleeps_of_loop(ends.target_eq, 200), 10) << "a few for the turn of the progress thread";
  });
}

/// Runs `body` in a process that awaits a message, which never comes.
void while_awaiting(const std::function<void(ptl_handle_eq_t)>& body) {
  const OwnNode node;
  run_processes(1, [&](Process& self) {
    const Ni ni(self);
    const Ends ends(ni);
    std::uint64_t word = 0;
    append(ni, me_of(ni, &word, sizeof word, PTL_ME_USE_ONCE));
    body(ends.target_eq);
  });
}

/// Whom others keep from its core looks like one that does something else in between. With little patience it has
/// looked often enough before that.
TEST(Idle, Loop_that_awaits_a_message__sleeps) {
  setenv("PORTOFU_SLEEP_AFTER_US", "1", 1);
  while_awaiting([](ptl_handle_eq_t eq) {
    long sleeps = 0;
    EXPECT_TRUE(eventually([&] { return (sleeps += sleeps_of_loop(eq, 300)) > 5; })) << sleeps;
  });
  unsetenv("PORTOFU_SLEEP_AFTER_US");
}

/// One search for an unexpected message. @return whether there was one; it is gone then
bool takes_message(const Ni& ni, const Ends& ends) {
  const ptl_me_t wanted = me_of(ni, nullptr, 0, PTL_ME_USE_ONCE);
  EXPECT_RC(PtlMESearch(ni, kPt, &wanted, PTL_SEARCH_DELETE, nullptr), PTL_OK);
  ptl_event_t event{};
  EXPECT_RC(PtlEQGet(ends.target_eq, &event), PTL_OK);
  return event.type == PTL_EVENT_PUT_OVERFLOW;
}

// Whoever waits by searches, each of which has its event, finds something in every call, and waits all the same.
TEST(Idle, Searches_of_processes_that_share_a_core__let_the_others_run) {
  constexpr long kRounds = 300;
  const OwnNode node;
  run_processes(3, [](Process& self) {
    bind_to_one_core();
    const Ni ni(self);
    const Ends ends(ni);
    std::uint64_t word = 0;
    append(ni, me_of(ni, &word, sizeof word, PTL_ME_EVENT_COMM_DISABLE), PTL_OVERFLOW_LIST);
    self.barrier();
    const ptl_process_t next = ni.id((self.rank() + 1) % self.size());
    long searches = 0;
    for (long round = 0; round < kRounds; ++round) {
      if (self.rank() == 0) put(ends.md, next, {.length = 8, .ack = PTL_NO_ACK_REQ});
      do ++searches;
      while (!takes_message(ni, ends));
      if (self.rank() != 0) put(ends.md, next, {.length = 8, .ack = PTL_NO_ACK_REQ});
    }
    EXPECT_LT(searches, 300 * kRounds) << "a turn of the scheduler is ten thousand of them";
    self.barrier();
  });
}

// Nobody else moves the messages of a process that has no progress thread, and asks for nothing but an unlink.
TEST(Idle, Unlink_that_is_refused_while_a_message_comes__lets_it_come) {
  constexpr std::size_t kBytes = 64 << 20;
  setenv("PORTOFU_PROGRESS_THREAD", "0", 1);
  const OwnNode node;
  run_processes(2, [](Process& self) {
    const Ni ni(self);
    const Ends ends(ni);
    std::vector<unsigned char> data(kBytes, self.rank() == 1 ? 7 : 0);
    const ptl_handle_me_t me = self.rank() == 0 ? append(ni, me_of(ni, data.data(), kBytes)) : PTL_INVALID_HANDLE;
    self.barrier();
    if (self.rank() == 1) {
      const ptl_handle_md_t md = bind_quiet(ni, data.data(), kBytes, ends.source_eq);
      put(md, ni.target(), {.length = kBytes});
      next_event(ends.source_eq, PTL_EVENT_ACK);
    } else {
      ptl_event_t event{};
      const double end = now_s() + kLongestWaitS;
      while (data[0] == 0 && now_s() < end) ASSERT_EQ(PtlEQGet(ends.target_eq, &event), PTL_EQ_EMPTY);
      int rc = PtlMEUnlink(me);
      EXPECT_RC(rc, PTL_IN_USE);
      while (rc == PTL_IN_USE && now_s() < end) rc = PtlMEUnlink(me);
      EXPECT_RC(rc, PTL_OK);
      EXPECT_EQ(data[kBytes - 1], 7);
      next_event(ends.target_eq, PTL_EVENT_PUT);
    }
    self.barrier();
  });
  unsetenv("PORTOFU_PROGRESS_THREAD");
}

// A window of entries, each told by LINK, which the caller takes and then looks once more: messages that lie there
// already meet all of the window, not what has been posted of it by then.
TEST(Idle, Look_behind_a_LINK__does_not_make_messages_unexpected) {
  constexpr ptl_match_bits_t kWindow = 64;
  setenv("PORTOFU_PROGRESS_THREAD", "0", 1);
  const OwnNode node;
  run_processes(2, [](Process& self) {
    const Ni ni(self);
    const Ends ends(ni);
    std::vector<unsigned char> memory(kWindow * 8);
    ptl_me_t me = me_of(ni, memory.data(), memory.size(), PTL_ME_MANAGE_LOCAL);
    me.ignore_bits = ~ptl_match_bits_t{0};
    append(ni, me, PTL_OVERFLOW_LIST);
    self.barrier();
    for (ptl_match_bits_t i = 0; self.rank() == 1 && i < kWindow; ++i)
      put(ends.md, ni.target(), {.length = 8, .match_bits = i});
    self.barrier();
    if (self.rank() == 0) {
      ptl_event_t event{};
      unsigned int which = 0;
      for (ptl_match_bits_t i = 0; i < kWindow; ++i) {
        me = me_of(ni, memory.data(), memory.size(), PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE | kLink);
        me.match_bits = i;
        append(ni, me);
        ASSERT_EQ(PtlEQPoll(&ends.target_eq, 1, 0, &event, &which), PTL_OK);
        ASSERT_EQ(event.type, PTL_EVENT_LINK);
        ASSERT_EQ(PtlEQPoll(&ends.target_eq, 1, 0, &event, &which), PTL_EQ_EMPTY);
      }
      for (ptl_match_bits_t i = 0; i < kWindow; ++i) {
        event = next_event(ends.target_eq, PTL_EVENT_PUT);
        EXPECT_EQ(event.match_bits, i);
        EXPECT_EQ(event.ptl_list, PTL_PRIORITY_LIST);
      }
    }
    self.barrier();
  });
  unsetenv("PORTOFU_PROGRESS_THREAD");
}

// A long put goes by the kernel and rings no bell. A program that polls its memory and looks at its queues in between
// finds nothing there, however long it goes on, and is busy all the same.
TEST(Idle, Puts_by_the_kernel_between_empty_looks__put_nobody_to_sleep) {
  run_processes(2, [](Process& self) {
    constexpr std::size_t kBytes = 65536;
    constexpr std::uint64_t kRounds = 2000;
    Ring ring(self, 2 * kBytes);
    const std::atomic_ref came(*reinterpret_cast<std::uint64_t*>(ring.memory.data() + 2 * kBytes - 8));
    auto& last = *reinterpret_cast<std::uint64_t*>(ring.memory.data() + kBytes - 8);
    const auto put = [&](std::uint64_t round) {
      last = round;
      ASSERT_EQ(utofu_put(ring.vcq, ring.next.vcq_id, ring.stadd, ring.next.stadd + kBytes, kBytes, 0,
                          UTOFU_ONESIDED_FLAG_TCQ_NOTICE, nullptr),
                UTOFU_SUCCESS);
      void* data = nullptr;
      ASSERT_EQ(poll_tcq(ring.vcq, &data), UTOFU_SUCCESS);
    };
    self.barrier();
    const long before = sleeps_of_thread();
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      if (self.rank() == 0) put(round);
      utofu_mrq_notice notice{};
      for (const double end = now_s() + kLongestWaitS; came.load(std::memory_order_acquire) != round;) {
        for (int i = 0; i < 8; ++i) ASSERT_EQ(utofu_poll_mrq(ring.vcq, 0, &notice), UTOFU_ERR_NOT_FOUND);
        ASSERT_LT(now_s(), end);
      }
      if (self.rank() == 1) put(round);
    }
    EXPECT_LT(sleeps_of_thread() - before, static_cast<long>(kRounds) / 10);
    self.barrier();
  });
}

// Nobody is inside the library: the progress thread alone listens.
TEST(Idle, Processes_outside_the_library__use_almost_no_cpu) {
  const OwnNode node;
  run_processes(8, [](Process& self) {
    const Ni ni(self);
    const Ends ends(ni);
    std::uint64_t word = 0;
    append(ni, me_of(ni, &word, sizeof word));
    self.barrier();
    // Everybody has talked with everybody, so all channels are open.
    for (int rank = 0; rank < self.size(); ++rank) put_and_wait(ends, ni.id(rank), {.length = 8});
    self.barrier();
    const double before = cpu_s();
    sleep_ms(kIdleMs);
    EXPECT_LT(cpu_s() - before, kMostSeconds);
    self.barrier();
  });
}

// An operation that waits for a stopped peer is no reason to spin.
TEST(Idle, Process_that_waits_for_an_answer__uses_almost_no_cpu) {
  const OwnNode node;
  run_processes(2, [](Process& self) {
    const Ni ni(self);
    const Ends ends(ni);
    std::uint64_t word = 0;
    append(ni, me_of(ni, &word, sizeof word));
    self.barrier();
    const pid_t peer = self.share(getpid())[0];
    if (self.rank() == 1) {
      put_and_wait(ends, ni.id(0), {.length = 8});
      kill(peer, SIGSTOP);
      wait_for_state("/proc/" + std::to_string(peer), 'T');
      for (int i = 0; i < 5000; ++i) put(ends.md, ni.id(0), {.length = 8});
      ptl_event_t event{};
      unsigned int which = 0;
      const double before = cpu_s();
      EXPECT_RC(PtlEQPoll(&ends.source_eq, 1, kIdleMs, &event, &which), PTL_EQ_EMPTY);
      EXPECT_LT(cpu_s() - before, kMostSeconds);
      kill(peer, SIGCONT);
      for (int i = 0; i < 5000; ++i) next_event(ends.source_eq, PTL_EVENT_ACK);
    }
    self.barrier();
  });
}

/// Times the progress thread of this process has gone to sleep.
long sleeps_of_progress_thread() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(task.path() / "status");
    bool found = false;
    for (std::string line; std::getline(status, line);) {
      if (line == "Name:\tportofu") found = true;
      if (found && line.starts_with("voluntary_ctxt_switches:")) return std::stol(line.substr(line.find('\t')));
    }
  }
  ADD_FAILURE() << "no progress thread";
  return 0;
}

// Processes that take turns on one core, and always find something: their progress threads are needed by nobody, and
// every look of theirs takes the core from one who is.
TEST(Idle, Progress_threads_of_processes_that_share_a_core__look_rarely) {
  constexpr int kRounds = 20000;
  constexpr double kLongestS = 10;  // On a core that others use, too, a round takes a turn of all of them.
  const OwnNode node;
  run_processes(4, [](Process& self) {
    bind_to_one_core();
    const Ni ni(self);
    const Ends ends(ni);
    std::uint64_t word = 0;
    append(ni, me_of(ni, &word, sizeof word));
    self.barrier();
    const ptl_process_t next = ni.id((self.rank() + 1) % self.size());
    const auto pass_on = [&](bool is_last) {
      put(ends.md, next, {.length = 8, .hdr_data = is_last ? 1u : 0u, .ack = PTL_NO_ACK_REQ});
    };
    const auto run = [&](int rounds) {
      ptl_event_t event{};
      const double end = now_s() + kLongestS;
      for (int round = 1; event.hdr_data == 0; ++round) {
        if (self.rank() == 0) pass_on(round == rounds || now_s() > end);
        while (PtlEQGet(ends.target_eq, &event) == PTL_EQ_EMPTY) continue;
        if (self.rank() != 0) pass_on(event.hdr_data != 0);
      }
    };
    run(kRounds / 10);
    const long before = sleeps_of_progress_thread();
    const double began = now_s();
    run(kRounds);
    const double took_s = now_s() - began;
    const long looks = sleeps_of_progress_thread() - before;
    EXPECT_LT(looks, took_s / kGuardPeriodS / 3 + 20) << "in " << took_s << " s";
    self.barrier();
  });
}

}  // namespace
}  // namespace portofu
