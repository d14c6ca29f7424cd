// Processes, threads and the library end in the middle of calls: in the thread that calls, in a signal handler there,
// in another thread. The process ends, or the call returns, and nothing hangs or crashes.

#include <portals4.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "tests/process/child_process.h"
#include "tests/process/own_node.h"
#include "tests/process/portals_entry.h"
#include "tests/support/eventually.h"

namespace portofu {
namespace {

constexpr int kEnded = 3;        ///< Exit status of a process that ended as it was to.
constexpr int kRepetitions = 8;  ///< Of each row, each with another delay.
constexpr std::size_t kBytes = 1 << 16;
constexpr unsigned int kMatching = PTL_NI_MATCHING | PTL_NI_PHYSICAL;

/// What a thread is in the middle of.
enum class Place { kEqGet, kPut, kEqWait, kEqPoll, kCtWait, kCtPoll, kObjects, kInterfaces };
constexpr Place kPlaces[] = {Place::kEqGet,  Place::kPut,    Place::kEqWait,  Place::kEqPoll,
                             Place::kCtWait, Place::kCtPoll, Place::kObjects, Place::kInterfaces};
/// What comes then.
enum class End { kExit, k_Exit, kQuickExit, kFini, kNiFini };
constexpr End kEnds[] = {End::kExit, End::k_Exit, End::kQuickExit, End::kFini, End::kNiFini};
/// Where.
enum class Where { kHandler, kOtherThread };
constexpr Where kWheres[] = {Where::kHandler, Where::kOtherThread};

std::string name_of(Place place) {
  constexpr const char* kNames[] = {"EQGet", "Put", "EQWait", "EQPoll", "CTWait", "CTPoll", "objects", "interfaces"};
  return kNames[static_cast<int>(place)];
}
std::string name_of(End end) {
  constexpr const char* kNames[] = {"exit", "_exit", "quick_exit", "PtlFini", "PtlNIFini"};
  return kNames[static_cast<int>(end)];
}

/// The objects of one process. Global, because handlers need them.
struct Objects {
  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  ptl_handle_eq_t eq = PTL_INVALID_HANDLE;
  ptl_handle_ct_t ct = PTL_INVALID_HANDLE;
  ptl_handle_md_t md = PTL_INVALID_HANDLE;
  ptl_handle_me_t me = PTL_INVALID_HANDLE;
  ptl_pt_index_t pt = 0;
  ptl_process_t self{};
};
Objects objects;
std::uint8_t memory[kBytes];
std::atomic<bool> inside{false};

bool open_objects() {
  Objects& o = objects;
  if (PtlInit() != PTL_OK) return false;
  if (PtlNIInit(PTL_IFACE_DEFAULT, kMatching, PTL_PID_ANY, nullptr, nullptr, &o.ni) != PTL_OK) return false;
  if (PtlGetPhysId(o.ni, &o.self) != PTL_OK || PtlEQAlloc(o.ni, 4096, &o.eq) != PTL_OK) return false;
  if (PtlCTAlloc(o.ni, &o.ct) != PTL_OK || PtlPTAlloc(o.ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &o.pt) != PTL_OK) return false;
  const ptl_md_t md{memory, sizeof memory, 0, o.eq, PTL_CT_NONE};
  if (PtlMDBind(o.ni, &md, &o.md) != PTL_OK) return false;
  const ptl_me_t me = entry_for_all(memory, sizeof memory, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
  return PtlMEAppend(o.ni, o.pt, &me, PTL_PRIORITY_LIST, nullptr, &o.me) == PTL_OK;
}

bool put_to_self() {
  const int rc = PtlPut(objects.md, 0, kBytes, PTL_ACK_REQ, objects.self, objects.pt, 0, 0, nullptr, 0);
  ptl_event_t event{};
  unsigned int which = 0;
  for (int i = 0; rc == PTL_OK && i < 100; ++i) {
    if (PtlEQPoll(&objects.eq, 1, 100, &event, &which) == PTL_OK && event.type == PTL_EVENT_ACK)
      return event.ni_fail_type == PTL_NI_OK;
  }
  return false;
}

/// One call, or some. @return false once the library says that it is closed
bool call_once(Place place) {
  ptl_event_t event{};
  ptl_ct_event_t count{};
  unsigned int which = 0;
  const ptl_size_t test = 1;
  int rc = PTL_OK;
  switch (place) {
    case Place::kEqGet: rc = PtlEQGet(objects.eq, &event); break;
    case Place::kPut:
      rc = PtlPut(objects.md, 0, kBytes, PTL_NO_ACK_REQ, objects.self, objects.pt, 0, 0, nullptr, 0);
      while (rc == PTL_OK && PtlEQGet(objects.eq, &event) == PTL_OK) {
      }
      break;
    case Place::kEqWait: rc = PtlEQWait(objects.eq, &event); break;
    case Place::kEqPoll: rc = PtlEQPoll(&objects.eq, 1, 10, &event, &which); break;
    case Place::kCtWait: rc = PtlCTWait(objects.ct, test, &count); break;
    case Place::kCtPoll: rc = PtlCTPoll(&objects.ct, &test, 1, 10, &count, &which); break;
    case Place::kObjects: {
      ptl_handle_ct_t ct = PTL_INVALID_HANDLE;
      rc = PtlCTAlloc(objects.ni, &ct);
      if (rc == PTL_OK) PtlCTFree(ct);
      break;
    }
    case Place::kInterfaces: {
      ptl_handle_ni_t other = PTL_INVALID_HANDLE;
      rc = PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr, nullptr, &other);
      if (rc == PTL_OK) PtlNIFini(other);
      break;
    }
  }
  return rc == PTL_OK || rc == PTL_EQ_EMPTY || rc == PTL_EQ_DROPPED || rc == PTL_CT_NONE_REACHED;
}

void end_now(End end) {
  switch (end) {
    case End::kExit: std::exit(kEnded);
    case End::k_Exit: _exit(kEnded);
    case End::kQuickExit: std::quick_exit(kEnded);
    case End::kFini: PtlFini(); return;
    case End::kNiFini: PtlNIFini(objects.ni); return;
  }
}

End end_of_handler = End::kExit;
void on_signal(int) {
  end_now(end_of_handler);
  _exit(kEnded);
}

void pause_us(long us) {
  const timespec time{0, us * 1000};
  nanosleep(&time, nullptr);
}

/// The body of a process: calls until it ends, or until its calls say that the library has.
int run_row(Place place, Where where, End end, long delay_us, std::atomic<int>* begin) {
  end_of_handler = end;
  signal(SIGUSR1, on_signal);
  if (!open_objects()) return 10;
  std::thread other;
  static std::atomic<bool> ended{false};
  if (where == Where::kOtherThread) {
    other = std::thread([=] {
      while (!inside) std::this_thread::yield();
      pause_us(delay_us);
      end_now(end);
      ended = true;
    });
  }
  begin->store(1);
  inside = true;
  while (call_once(place) && !ended) {
  }
  // Only the end of the library makes a call fail.
  if (end != End::kFini && end != End::kNiFini) pause();
  if (where == Where::kOtherThread) other.join();
  return kEnded;
}

using Row = std::tuple<Place, Where, End>;
class EndsTest : public testing::TestWithParam<Row> {};

std::string name_of_row(const testing::TestParamInfo<Row>& row) {
  const auto [place, where, end] = row.param;
  return name_of(end) + (where == Where::kHandler ? "_in_a_handler_in_" : "_beside_") + name_of(place);
}

INSTANTIATE_TEST_SUITE_P(Rows, EndsTest,
                         testing::Combine(testing::ValuesIn(kPlaces), testing::ValuesIn(kWheres),
                                          testing::ValuesIn(kEnds)),
                         name_of_row);

/// What an end without destructors leaves behind, the next process removes.
void clean_up() {
  ChildProcess next([] {
    const bool opened = open_objects();
    PtlFini();
    return opened ? 0 : 1;
  });
  EXPECT_EQ(next.wait_status(), 0);
}

TEST_P(EndsTest, In_the_middle_of_a_call__ends_the_process_or_the_call) {
  const auto [place, where, end] = GetParam();
  const OwnNode node;
  std::mt19937_64 random(process_test_seed());
  for (int repetition = 0; repetition < kRepetitions; ++repetition) {
    const SharedMemory<std::atomic<int>> begun;
    const auto delay_us = static_cast<long>(random() % 20000);
    ChildProcess child(
        [&, place = place, where = where, end = end] { return run_row(place, where, end, delay_us, &*begun); });
    ASSERT_TRUE(eventually([&] { return begun->load() != 0 || child.has_ended(); }));
    if (where == Where::kHandler) {
      pause_us(delay_us);
      child.send_signal(SIGUSR1);
    }
    ASSERT_TRUE(eventually([&] { return child.has_ended(); })) << "it hangs";
    ASSERT_EQ(child.wait_status(), kEnded);
  }
  clean_up();
}

// What an end handler of the application does (MPI_Finalize), when a handler calls exit().
TEST(Ends, Handlers_of_exit_that_close_the_library__return) {
  const OwnNode node;
  std::mt19937_64 random(process_test_seed());
  for (const Place place : kPlaces) {
    for (int repetition = 0; repetition < kRepetitions; ++repetition) {
      const SharedMemory<std::atomic<int>> begun;
      ChildProcess child([&] {
        std::atexit([] {
          PtlMEUnlink(objects.me);
          PtlMDRelease(objects.md);
          PtlCTFree(objects.ct);
          PtlEQFree(objects.eq);
          PtlNIFini(objects.ni);
          PtlFini();
        });
        return run_row(place, Where::kHandler, End::kExit, 0, &*begun);
      });
      ASSERT_TRUE(eventually([&] { return begun->load() != 0 || child.has_ended(); }));
      pause_us(static_cast<long>(random() % 20000));
      child.send_signal(SIGUSR1);
      ASSERT_TRUE(eventually([&] { return child.has_ended(); })) << "it hangs in " << name_of(place);
      ASSERT_EQ(child.wait_status(), kEnded) << name_of(place);
    }
  }
}

TEST(Ends, Threads_that_call_until_it_says_no__see_the_end_of_the_library_again_and_again) {
  const OwnNode node;
  ChildProcess child([] {
    for (int round = 0; round < 5; ++round) {
      if (!open_objects()) return 1;
      std::vector<std::thread> threads;
      for (const Place place : {Place::kEqGet, Place::kPut, Place::kEqWait, Place::kCtPoll}) {
        threads.emplace_back([place] {
          while (call_once(place)) {
          }
        });
      }
      pause_us(2000);
      PtlFini();
      for (std::thread& thread : threads) thread.join();
    }
    return 0;
  });
  EXPECT_EQ(child.wait_status(), 0);
}

TEST(Ends, Main_function_that_ends_by_pthread_exit__ends_the_process) {
  const OwnNode node;
  for (const bool with_thread : {false, true}) {
    // In a thread, because pthread_exit unwinds, and the frames of gtest catch everything.
    std::thread([with_thread] {
      ChildProcess child([with_thread]() -> int {
        if (!open_objects() || !put_to_self()) return 1;
        if (with_thread) std::thread([] { pause_us(100000), put_to_self(); }).detach();
        pthread_exit(nullptr);
      });
      EXPECT_TRUE(eventually([&] { return child.has_ended(); }));
      EXPECT_EQ(child.wait_status(), 0);
    }).join();
  }
}

// fork(2) by the system call, as programs do that must not run handlers of fork; such a child owns nothing.
TEST(Ends, Child_that_the_library_does_not_know_of__takes_nothing_away_when_it_exits) {
  const OwnNode node;
  ChildProcess child([&node] {
    if (!open_objects()) return 1;
    const int before = node.segment_count();
    const long kid = syscall(SYS_fork);
    if (kid == 0) std::exit(0);
    int status = 0;
    waitpid(static_cast<pid_t>(kid), &status, 0);
    if (status != 0) return 2;
    if (node.segment_count() != before || !put_to_self()) return 3;
    PtlFini();
    return 0;
  });
  EXPECT_EQ(child.wait_status(), 0);
}

struct Cancelled {
  Place place;
  int type;
};

void* call_until_cancelled(void* argument) {
  const auto* row = static_cast<const Cancelled*>(argument);
  int before = 0;
  pthread_setcanceltype(row->type, &before);
  inside = true;
  while (call_once(row->place)) {
  }
  return nullptr;
}

// pthreads(7), Cancellation points: a thread that waits in the library can be cancelled, and leaves it in order.
TEST(Ends, Thread_that_waits__can_be_cancelled) {
  const OwnNode node;
  for (const Place place : {Place::kEqWait, Place::kCtWait, Place::kEqPoll, Place::kCtPoll}) {
    for (const int type : {PTHREAD_CANCEL_DEFERRED, PTHREAD_CANCEL_ASYNCHRONOUS}) {
      // An asynchronous one must be in the wait itself: between two calls, and at their beginning, nothing is safe.
      const bool returns = place == Place::kEqPoll || place == Place::kCtPoll;
      if (type == PTHREAD_CANCEL_ASYNCHRONOUS && returns) continue;
      ChildProcess child([place, type] {
        if (!open_objects()) return 1;
        for (int round = 0; round < 3; ++round) {
          inside = false;
          Cancelled row{place, type};
          pthread_t thread{};
          if (pthread_create(&thread, nullptr, call_until_cancelled, &row) != 0) return 2;
          while (!inside) std::this_thread::yield();
          pause_us(50000);
          pthread_cancel(thread);
          void* result = nullptr;
          pthread_join(thread, &result);
          if (result != PTHREAD_CANCELED) return 3;
          if (!put_to_self()) return 4;
        }
        PtlFini();
        return 0;
      });
      EXPECT_TRUE(eventually([&] { return child.has_ended(); })) << name_of(place) << " is not cancelled";
      EXPECT_EQ(child.wait_status(), 0) << name_of(place) << " type " << type;
    }
  }
}

// A thread that never waits is cancelled outside of the library only, whatever system calls its calls make.
TEST(Ends, Thread_that_is_cancelled_between_calls__leaves_the_library_usable) {
  const OwnNode node;
  ChildProcess child([] {
    if (!open_objects()) return 1;
    for (const Place place : {Place::kPut, Place::kObjects, Place::kInterfaces}) {
      for (int round = 0; round < 10; ++round) {
        inside = false;
        std::thread thread([place] {
          inside = true;
          while (call_once(place)) pthread_testcancel();
        });
        while (!inside) std::this_thread::yield();
        pause_us(1000 * round);
        pthread_cancel(thread.native_handle());
        thread.join();
        if (!put_to_self()) return 2;
      }
    }
    PtlFini();
    return 0;
  });
  EXPECT_TRUE(eventually([&] { return child.has_ended(); }));
  EXPECT_EQ(child.wait_status(), 0);
}

void end_thread(int) { pthread_exit(nullptr); }

// pthread_exit(3) is nothing that a handler may call in the middle of a call, but programs do. The thread may take with
// it what others wait for. They go on, or the process ends and says why; nobody waits for what cannot come.
TEST(Ends, Thread_that_a_handler_ends_in_the_middle_of_a_call__leaves_nobody_waiting) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer's own frames do not let a handler end its thread";
#endif
  const OwnNode node;
  std::mt19937_64 random(process_test_seed());
  for (const Place place : kPlaces) {
    for (int repetition = 0; repetition < kRepetitions; ++repetition) {
      const auto delay_us = static_cast<long>(random() % 20000);
      ChildProcess child([place, delay_us] {
        signal(SIGUSR1, end_thread);
        if (!open_objects()) return 1;
        inside = false;
        std::thread thread([place] {
          inside = true;
          while (call_once(place)) {
          }
        });
        while (!inside) std::this_thread::yield();
        pause_us(delay_us);
        pthread_kill(thread.native_handle(), SIGUSR1);
        thread.join();
        put_to_self();
        PtlFini();
        return 0;
      });
      EXPECT_TRUE(eventually([&] { return child.has_ended(); })) << "it hangs in " << name_of(place);
      if (!child.has_ended()) continue;
      const int status = child.wait_status();
      EXPECT_TRUE(status == 0 || status == 128 + SIGABRT) << name_of(place) << ": " << status;
    }
  }
  clean_up();
}

void end_thread_past_destructors(int) { syscall(SYS_exit, 0); }

// A thread is lost while it sleeps in a call, and no destructor says so. It was the one that would have taken messages.
TEST(Ends, Thread_that_is_lost_while_it_waits__leaves_its_process_answering) {
  const OwnNode node;
  struct Shared {
    std::atomic<int> step{0};
    ptl_process_t target{};
  };
  const SharedMemory<Shared> shared;
  ChildProcess target([&] {
    signal(SIGUSR1, end_thread_past_destructors);
    if (!open_objects()) return 1;
    shared->target = objects.self;
    inside = false;
    std::thread thread([] {
      inside = true;
      call_once(Place::kEqWait);
    });
    while (!inside) std::this_thread::yield();
    pause_us(100'000);  // It sleeps by now.
    pthread_kill(thread.native_handle(), SIGUSR1);
    thread.join();
    shared->step = 1;
    while (shared->step != 2) pause_us(10'000);
    PtlFini();
    return 0;
  });
  ChildProcess initiator([&] {
    if (!open_objects()) return 1;
    while (shared->step != 1) pause_us(10'000);
    objects.self = shared->target;
    for (int round = 0; round < 10; ++round) {
      const int rc = PtlPut(objects.md, 0, 8, PTL_ACK_REQ, objects.self, objects.pt, 0, 0, nullptr, 0);
      ptl_event_t event{};
      unsigned int which = 0;
      do {
        if (rc != PTL_OK || PtlEQPoll(&objects.eq, 1, 1000 * kLongestWait.count(), &event, &which) != PTL_OK) return 2;
      } while (event.type != PTL_EVENT_ACK);
      if (event.ni_fail_type != PTL_NI_OK) return 3;
    }
    PtlFini();
    return 0;
  });
  EXPECT_TRUE(eventually([&] { return initiator.has_ended(); }));
  EXPECT_EQ(initiator.wait_status(), 0);
  shared->step = 2;
  EXPECT_EQ(target.wait_status(), 0);
}

}  // namespace
}  // namespace portofu
