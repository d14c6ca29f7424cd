// Portals 4.3, 3.5: PtlInit, PtlFini, PtlAbort, and what a child of fork gets.
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "../harness/fixture.h"
#include "tests/support/eventually.h"

using namespace conformance;

namespace {

// Puts one byte to this very process and waits for the ACK; true if it came.
bool can_talk_to_itself(ptl_handle_ni_t ni) {
  ptl_process_t me{};
  ptl_handle_eq_t eq = PTL_INVALID_HANDLE;
  ptl_handle_md_t md = PTL_INVALID_HANDLE;
  ptl_handle_me_t entry = PTL_INVALID_HANDLE;
  ptl_pt_index_t pt = PTL_PT_ANY;
  static char memory[2];
  if (PtlGetPhysId(ni, &me) != PTL_OK || PtlEQAlloc(ni, 16, &eq) != PTL_OK) return false;
  if (PtlPTAlloc(ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &pt) != PTL_OK) return false;
  const ptl_md_t described = md_of(memory, 1, eq, PTL_CT_NONE, PTL_MD_EVENT_SEND_DISABLE);
  if (PtlMDBind(ni, &described, &md) != PTL_OK) return false;
  ptl_me_t accepting{};
  accepting.start = memory + 1;
  accepting.length = 1;
  accepting.ct_handle = PTL_CT_NONE;
  accepting.uid = PTL_UID_ANY;
  accepting.options = PTL_ME_OP_PUT;
  accepting.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
  if (PtlMEAppend(ni, pt, &accepting, PTL_PRIORITY_LIST, nullptr, &entry) != PTL_OK) return false;
  if (PtlPut(md, 0, 1, PTL_ACK_REQ, me, pt, 0, 0, nullptr, 0) != PTL_OK) return false;
  ptl_event_t event{};
  unsigned int which = 0;
  return PtlEQPoll(&eq, 1, kPatienceMs, &event, &which) == PTL_OK && event.type == PTL_EVENT_ACK &&
         event.ni_fail_type == PTL_NI_OK;
}

ptl_handle_ni_t open_interface() {
  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  REQUIRE_OK(PtlNIInit(PTL_IFACE_DEFAULT, kMatching, PTL_PID_ANY, nullptr, nullptr, &ni));
  return ni;
}

void abort_in_signal_handler(int) { PtlAbort(); }

}  // namespace

// 3.5.1: "may be safely called more than once".
TEST_PROCESSES(1, Init, Section3_5_1__may_be_called_more_than_once) {
  EXPECT_RC(PtlInit(), PTL_OK);
  EXPECT_RC(PtlInit(), PTL_OK);
  EXPECT_RC(PtlInit(), PTL_OK);
  EXPECT_TRUE(can_talk_to_itself(open_interface()));
}

// 3.5: repeated calls "do not invalidate Portals state until the reference count reaches zero".
TEST_PROCESSES(1, Init, Section3_5__state_lives_until_the_reference_count_is_zero) {
  REQUIRE_OK(PtlInit());
  REQUIRE_OK(PtlInit());
  const ptl_handle_ni_t ni = open_interface();
  PtlFini();
  ptl_process_t id{};
  EXPECT_RC(PtlGetPhysId(ni, &id), PTL_OK);
  EXPECT_TRUE(can_talk_to_itself(ni));
  PtlFini();
}

// 3.5.2: "When the reference count reaches zero, all Portals resources are freed", also those that nobody has freed.
TEST_PROCESSES(1, Init, Section3_5_2__ends_with_interfaces_open_and_objects_alive) {
  REQUIRE_OK(PtlInit());
  const ptl_handle_ni_t ni = open_interface();
  EXPECT_TRUE(can_talk_to_itself(ni));
  PtlFini();
}

// Silent in the spec; Open MPI's btl calls PtlFini although its PtlInit never ran (openmpi.md 2.1).
TEST_PROCESSES(1, Init, Section3_5_2__without_init_does_no_harm) {
  PtlFini();
  EXPECT_RC(PtlInit(), PTL_OK);
  EXPECT_TRUE(can_talk_to_itself(open_interface()));
}

// 3.5: "A child process does not inherit any Portals resources"; it "must initialize Portals in order to obtain new,
// valid Portals resources". The parent goes on.
TEST_PROCESSES(1, Init, Section3_5__child_of_fork_initializes_for_itself) {
  const Ni ni(self);
  const ptl_process_t parent_id = ni.target();
  ASSERT_TRUE(can_talk_to_itself(ni));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ptl_handle_ni_t own = PTL_INVALID_HANDLE;
    ptl_process_t id{};
    int wrong = 0;
    if (PtlInit() != PTL_OK)
      wrong = 1;
    else if (PtlNIInit(PTL_IFACE_DEFAULT, kMatching, PTL_PID_ANY, nullptr, nullptr, &own) != PTL_OK)
      wrong = 2;
    else if (PtlGetPhysId(own, &id) != PTL_OK)
      wrong = 3;
    else if (id.phys.pid == parent_id.phys.pid)
      wrong = 4;
    else if (!can_talk_to_itself(own))
      wrong = 5;
    PtlFini();
    _exit(wrong);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0) << "number of the step that failed in the child";
  EXPECT_TRUE(can_talk_to_itself(ni)) << "after the child has ended";
}

// The same, whatever another thread does in the library at the moment of the fork, be it the very first call.
TEST_PROCESSES(1, Init, Section3_5__child_of_fork_while_a_thread_initializes) {
  std::atomic<bool> end{false};
  std::thread busy([&end] {
    while (!end) {
      ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
      EXPECT_RC(PtlInit(), PTL_OK);
      EXPECT_RC(PtlNIInit(PTL_IFACE_DEFAULT, kMatching, PTL_PID_ANY, nullptr, nullptr, &ni), PTL_OK);
      EXPECT_RC(PtlNIFini(ni), PTL_OK);
      PtlFini();
    }
  });
  for (int round = 0; round < 20; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(portofu::kLongestWait.count());  // Nobody else would end a child that hangs.
      ptl_handle_ni_t own = PTL_INVALID_HANDLE;
      int wrong = 0;
      if (PtlInit() != PTL_OK)
        wrong = 1;
      else if (PtlNIInit(PTL_IFACE_DEFAULT, kMatching, PTL_PID_ANY, nullptr, nullptr, &own) != PTL_OK)
        wrong = 2;
      else if (!can_talk_to_itself(own))
        wrong = 3;
      PtlFini();
      _exit(wrong);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "round " << round << ", exit " << WEXITSTATUS(status) << ", signal " << WTERMSIG(status);
  }
  end = true;
  busy.join();
}

// A child that never calls Portals and ends harms nothing, even if it runs the exit handlers.
TEST_PROCESSES(1, Init, Section3_5__child_of_fork_that_ignores_portals_harms_nothing) {
  const Ni ni(self);
  ASSERT_TRUE(can_talk_to_itself(ni));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(can_talk_to_itself(ni));
}

// 3.5.3: "Polling and waiting functions must stop and return once PtlAbort() is called."
TEST_PROCESSES(1, Init, Section3_5_3__abort_wakes_every_waiting_thread) {
  const Ni ni(self);
  const ptl_handle_eq_t eq = alloc_eq(ni);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  std::atomic<int> started{0};
  int rcs[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      ptl_event_t event{};
      ptl_ct_event_t count{};
      unsigned int which = 0;
      const ptl_size_t test = 1;
      ++started;
      if (i % 4 == 0) rcs[i] = PtlEQWait(eq, &event);
      if (i % 4 == 1) rcs[i] = PtlEQPoll(&eq, 1, PTL_TIME_FOREVER, &event, &which);
      if (i % 4 == 2) rcs[i] = PtlCTWait(ct, test, &count);
      if (i % 4 == 3) rcs[i] = PtlCTPoll(&ct, &test, 1, PTL_TIME_FOREVER, &count, &which);
    });
  }
  while (started < 8) std::this_thread::yield();
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();  // Likely inside by now; right either way.
  PtlAbort();
  for (std::thread& thread : threads) thread.join();
  for (int rc : rcs) EXPECT_RC(rc, PTL_ABORTED);
}

// 3.5.3: "Subsequent calls to polling and waiting routines must immediately return PTL_ABORTED", also where they would
// have succeeded; "PtlAbort() does not affect the behavior of PtlCTGet() and PtlEQGet()".
TEST_PROCESSES(1, Init, Section3_5_3__later_waits_give_aborted_and_gets_still_work) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  REQUIRE_OK(PtlCTSet(ct, {5, 0}));
  append(ni, me_of(ni, nullptr, 0, kLink));
  PtlAbort();
  ptl_event_t event{};
  ptl_ct_event_t count{};
  unsigned int which = 0;
  const ptl_size_t test = 1;
  EXPECT_RC(PtlEQWait(ends.target_eq, &event), PTL_ABORTED);
  EXPECT_RC(PtlEQPoll(&ends.target_eq, 1, PTL_TIME_FOREVER, &event, &which), PTL_ABORTED);
  EXPECT_RC(PtlEQPoll(&ends.target_eq, 1, 0, &event, &which), PTL_ABORTED);
  EXPECT_RC(PtlCTWait(ct, test, &count), PTL_ABORTED);
  EXPECT_RC(PtlCTPoll(&ct, &test, 1, PTL_TIME_FOREVER, &count, &which), PTL_ABORTED);
  EXPECT_RC(PtlCTGet(ct, &count), PTL_OK);
  EXPECT_EQ(count.success, 5u);
  int rc = PTL_EQ_EMPTY;
  for (int i = 0; i < 100000 && rc == PTL_EQ_EMPTY; ++i) rc = PtlEQGet(ends.target_eq, &event);
  EXPECT_RC(rc, PTL_OK);
  EXPECT_EQ(event.type, PTL_EVENT_LINK);
}

// 3.5.3: "Once PtlAbort() is completed, the application may safely call PtlEQFree() and PtlCTFree()"; 3.13.6, 3.14.3:
// they wait for the callers inside.
TEST_PROCESSES(1, Init, Section3_5_3__free_after_abort_waits_for_the_waiters) {
  const Ni ni(self);
  const ptl_handle_eq_t eq = alloc_eq(ni);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  std::atomic<pid_t> threads[4] = {};
  int rcs[4] = {-1, -1, -1, -1};
  std::vector<std::thread> waiters;
  for (int i = 0; i < 4; ++i) {
    waiters.emplace_back([&, i] {
      ptl_event_t event{};
      ptl_ct_event_t count{};
      unsigned int which = 0;
      const ptl_size_t test = 1;
      threads[i] = gettid();
      if (i == 0) rcs[i] = PtlEQWait(eq, &event);
      if (i == 1) rcs[i] = PtlEQPoll(&eq, 1, PTL_TIME_FOREVER, &event, &which);
      if (i == 2) rcs[i] = PtlCTWait(ct, test, &count);
      if (i == 3) rcs[i] = PtlCTPoll(&ct, &test, 1, PTL_TIME_FOREVER, &count, &which);
    });
  }
  for (const auto& thread : threads) {
    while (thread == 0) std::this_thread::yield();
    wait_for_sleep(thread);  // Inside the call that it was about to make.
  }
  PtlAbort();
  EXPECT_RC(PtlEQFree(eq), PTL_OK);
  EXPECT_RC(PtlCTFree(ct), PTL_OK);
  for (std::thread& waiter : waiters) waiter.join();
  // All of them were inside: not one has found its handle freed.
  for (int rc : rcs) EXPECT_RC(rc, PTL_ABORTED);
}

// 3.5.3: "Single-threaded programs may use PtlAbort() in signal handlers".
TEST_PROCESSES(1, Init, Section3_5_3__may_be_called_in_a_signal_handler) {
  const Ni ni(self);
  const ptl_handle_eq_t eq = alloc_eq(ni);
  struct sigaction action {};
  action.sa_handler = abort_in_signal_handler;
  ASSERT_EQ(sigaction(SIGALRM, &action, nullptr), 0);
  itimerval soon{};
  soon.it_value.tv_usec = 20000;
  ASSERT_EQ(setitimer(ITIMER_REAL, &soon, nullptr), 0);
  ptl_event_t event{};
  EXPECT_RC(PtlEQWait(eq, &event), PTL_ABORTED);
}

// 3.5 and lib/portals4/README.md: a child "has no Portals resources: its calls return PTL_NO_INIT until it calls
// PtlInit itself"; what it does, and its end with all exit handlers, does not touch the parent, which others go on to
// reach.
TEST_PROCESSES(2, Init, Section3_5__child_of_fork_gets_nothing_and_harms_nothing) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  std::vector<unsigned char> memory(300000);
  const std::vector<unsigned char> out = pattern(memory.size());
  const ptl_handle_md_t md = bind_quiet(ni, out.data(), out.size(), ends.source_eq);
  append(ni, me_of(ni, memory.data(), memory.size()));
  self.barrier();
  const ptl_process_t peer = ni.id(1 - self.rank());
  for (int round = 0; round < 5; ++round) {
    // Both processes fork while messages are under way in both directions.
    for (int i = 0; i < 4; ++i) put(md, peer, {.length = i % 2 == 0 ? memory.size() : 8});
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ptl_event_t event{};
      ptl_ct_event_t count{};
      ptl_process_t id{};
      int wrong = 0;
      if (PtlGetPhysId(ni, &id) != PTL_NO_INIT) wrong |= 1;
      if (PtlEQGet(ends.target_eq, &event) != PTL_NO_INIT) wrong |= 2;
      if (PtlCTInc(ct, {1, 0}) != PTL_NO_INIT || PtlCTGet(ct, &count) != PTL_NO_INIT) wrong |= 4;
      if (PtlPut(md, 0, 8, PTL_NO_ACK_REQ, peer, kPt, 0, 0, nullptr, 0) != PTL_NO_INIT) wrong |= 8;
      PtlAbort();
      PtlFini();
      exit(wrong);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 0) << "bits of the wrong answers";
    for (int i = 0; i < 4; ++i) next_event(ends.source_eq, PTL_EVENT_ACK);
    for (int i = 0; i < 4; ++i) next_event(ends.target_eq, PTL_EVENT_PUT);
    EXPECT_EQ(count_of(ct).success, 0u);
    self.barrier();
  }
  EXPECT_EQ(memory, out);
}

// lib/portals4/README.md: the library may be initialised again after PtlFini, which "also ends the effect of PtlAbort".
TEST_PROCESSES(1, Init, Section3_5_3__ends_with_the_last_fini) {
  for (int round = 0; round < 3; ++round) {
    REQUIRE_OK(PtlInit());
    const ptl_handle_ni_t ni = open_interface();
    EXPECT_TRUE(can_talk_to_itself(ni)) << "round " << round;
    PtlAbort();
    EXPECT_FALSE(can_talk_to_itself(ni)) << "it uses PtlEQPoll";
    PtlFini();
  }
}

// 3.5.3: "Subsequent calls ... must immediately return PTL_ABORTED", also on interfaces that are opened later, and
// while another thread closes interfaces (which must not make waiters miss the abort).
TEST_PROCESSES(1, Init, Section3_5_3__holds_for_interfaces_that_come_and_go) {
  const Ni ni(self);
  const ptl_handle_eq_t eq = alloc_eq(ni);
  PtlAbort();
  std::atomic<bool> stop_it{false};
  std::thread waiter([&] {
    ptl_event_t event{};
    while (!stop_it) EXPECT_RC(PtlEQWait(eq, &event), PTL_ABORTED);
  });
  for (int round = 0; round < 200; ++round) {
    ptl_handle_ni_t other = PTL_INVALID_HANDLE;
    ptl_handle_ct_t ct = PTL_INVALID_HANDLE;
    ptl_ct_event_t count{};
    REQUIRE_OK(PtlNIInit(PTL_IFACE_DEFAULT, kNonMatching, PTL_PID_ANY, nullptr, nullptr, &other));
    REQUIRE_OK(PtlCTAlloc(other, &ct));
    EXPECT_RC(PtlCTWait(ct, 1, &count), PTL_ABORTED);
    REQUIRE_OK(PtlNIFini(other));
  }
  stop_it = true;
  waiter.join();
}

// 3.5.3 speaks of "waiting and polling Portals routines": PtlPTDisable still "blocks until ... all messages being
// actively processed are completed, and all events are delivered" (3.7.3).
TEST_PROCESSES(2, Init, Section3_5_3__does_not_cut_pt_disable_short) {
  const Ni ni(self);
  const Ends ends(ni);
  std::vector<unsigned char> memory(std::size_t{16} << 20);
  std::vector<unsigned char> out(memory.size(), 7);
  const ptl_handle_md_t md = bind_quiet(ni, out.data(), out.size(), ends.source_eq);
  self.target([&] { append(ni, me_of(ni, memory.data(), memory.size())); });
  if (self.is_initiator()) {
    put(md, ni.target(), {.length = memory.size()});
    next_event(ends.source_eq, PTL_EVENT_ACK);
  } else {
    PtlAbort();
    // The message has begun; it may have ended as well, then this run shows nothing.
    while (std::atomic_ref(memory[0]).load(std::memory_order_relaxed) == 0) std::this_thread::yield();
    EXPECT_RC(PtlPTDisable(ni, kPt), PTL_OK);
    EXPECT_EQ(memory.back(), 7) << "the message was complete when PtlPTDisable returned";
    ptl_event_t event{};
    EXPECT_RC(PtlEQGet(ends.target_eq, &event), PTL_OK);
    EXPECT_EQ(event.type, PTL_EVENT_PUT);
  }
  self.barrier();
}
