// A signal handler ends its thread (pthread_exit, pthread_cancel) in the middle of a call, after any of its
// instructions: the parent steps the thread there by ptrace(2).

#include <fcntl.h>
#include <portals4.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <random>
#include <string>
#include <thread>

#include "tests/process/child_process.h"
#include "tests/process/own_node.h"
#include "tests/process/portals_entry.h"
#include "tests/support/eventually.h"

namespace portofu {
namespace {

constexpr int kPlaces = 16;  ///< In each call.
constexpr unsigned int kMatching = PTL_NI_MATCHING | PTL_NI_PHYSICAL;

enum class Call { kPut, kEqGet, kAppend, kCounters };
constexpr Call kCalls[] = {Call::kPut, Call::kEqGet, Call::kAppend, Call::kCounters};

const char* name_of(Call call) {
  constexpr const char* kNames[] = {"PtlPut", "PtlEQGet", "PtlMEAppend and PtlMEUnlink", "PtlCTAlloc and PtlCTFree"};
  return kNames[static_cast<int>(call)];
}

struct Objects {
  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  ptl_handle_eq_t eq = PTL_INVALID_HANDLE;
  ptl_handle_eq_t other_eq = PTL_INVALID_HANDLE;  ///< Of the thread that is not stepped.
  ptl_handle_md_t md = PTL_INVALID_HANDLE;
  ptl_handle_md_t other_md = PTL_INVALID_HANDLE;
  ptl_pt_index_t pt = 0;
  ptl_process_t self{};
};
Objects objects;
std::uint8_t memory[64];

ptl_me_t entry() {
  return entry_for_all(memory, sizeof memory, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE);
}

bool bind(ptl_handle_eq_t* eq, ptl_handle_md_t* md) {
  if (PtlEQAlloc(objects.ni, 64, eq) != PTL_OK) return false;
  const ptl_md_t all{memory, sizeof memory, 0, *eq, PTL_CT_NONE};
  return PtlMDBind(objects.ni, &all, md) == PTL_OK;
}

bool open_objects() {
  Objects& o = objects;
  if (PtlInit() != PTL_OK) return false;
  if (PtlNIInit(PTL_IFACE_DEFAULT, kMatching, PTL_PID_ANY, nullptr, nullptr, &o.ni) != PTL_OK) return false;
  if (PtlGetPhysId(o.ni, &o.self) != PTL_OK) return false;
  if (PtlPTAlloc(o.ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &o.pt) != PTL_OK) return false;
  const ptl_me_t me = entry();
  ptl_handle_me_t handle = PTL_INVALID_HANDLE;
  if (PtlMEAppend(o.ni, o.pt, &me, PTL_PRIORITY_LIST, nullptr, &handle) != PTL_OK) return false;
  return bind(&o.eq, &o.md) && bind(&o.other_eq, &o.other_md);
}

int put(ptl_handle_md_t md) {
  return PtlPut(md, 0, sizeof memory, PTL_ACK_REQ, objects.self, objects.pt, 0, 0, nullptr, 0);
}

bool put_to_self() {
  ptl_event_t event{};
  unsigned int which = 0;
  if (put(objects.other_md) != PTL_OK) return false;
  for (;;) {
    if (PtlEQPoll(&objects.other_eq, 1, 1000 * kLongestWait.count(), &event, &which) != PTL_OK) return false;
    if (event.type == PTL_EVENT_ACK) return event.ni_fail_type == PTL_NI_OK;
  }
}

void call_once(Call call) {
  switch (call) {
    case Call::kPut: put(objects.md); return;
    case Call::kEqGet: {
      ptl_event_t event{};
      PtlEQGet(objects.eq, &event);
      return;
    }
    case Call::kAppend: {
      const ptl_me_t me = entry();
      ptl_handle_me_t handle = PTL_INVALID_HANDLE;
      if (PtlMEAppend(objects.ni, objects.pt, &me, PTL_PRIORITY_LIST, nullptr, &handle) == PTL_OK) PtlMEUnlink(handle);
      return;
    }
    case Call::kCounters: {
      ptl_handle_ct_t ct = PTL_INVALID_HANDLE;
      if (PtlCTAlloc(objects.ni, &ct) == PTL_OK) PtlCTFree(ct);
      return;
    }
  }
}

void end_thread(int) { pthread_exit(nullptr); }
void cancel_thread(int) {
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
  pthread_cancel(pthread_self());
}

struct Shared {
  std::atomic<int> thread{0};  ///< That is stepped; -1: it may not be.
  std::atomic<bool> let_go{false};
};

void stop_here() { syscall(SYS_tgkill, getpid(), gettid(), SIGSTOP); }

/// The process: one thread that is stepped, and one that calls all the time.
int run(Call call, void (*handler)(int), Shared& shared) {
  signal(SIGUSR1, handler);
  if (!open_objects()) return 1;
  std::atomic<bool> ended{false};
  std::thread other([&ended] {
    while (put_to_self() && !ended) {
    }
  });
  pthread_t stepped{};
  static Call what;
  static Shared* said;
  what = call;
  said = &shared;
  const auto body = [](void*) -> void* {
    for (int i = 0; i < 3; ++i) call_once(what);  // Its symbols are found, its memory is touched.
    const bool may = ptrace(PTRACE_TRACEME, 0, 0, 0) == 0;
    said->thread = may ? gettid() : -1;
    if (!may) return nullptr;
    stop_here();
    call_once(what);
    if (!said->let_go) stop_here();
    return nullptr;
  };
  if (pthread_create(&stepped, nullptr, body, nullptr) != 0) return 2;
  pthread_join(stepped, nullptr);
  ended = true;
  other.join();
  if (!put_to_self()) return 3;
  PtlFini();
  return 0;
}

/// A child whose thread is stepped, and what it says on standard error.
class SteppedChild {
 public:
  SteppedChild(Call call, void (*handler)(int))
      : child_([&] {
          dup2(pipe_.ends[1], STDERR_FILENO);
          return run(call, handler, *shared_);
        }) {
    close(pipe_.ends[1]);
  }
  ~SteppedChild() {
    close(pipe_.ends[0]);
    if (is_waited_for_) return;
    child_.send_signal(SIGKILL);
    if (shared_->thread > 0) waitpid(shared_->thread, nullptr, __WALL);  // Else the child would stay for its tracer.
  }
  SteppedChild(const SteppedChild&) = delete;
  SteppedChild& operator=(const SteppedChild&) = delete;

  /// @return false if nobody may be stepped here
  bool is_ready() {
    if (!eventually([this] { return shared_->thread != 0 || child_.has_ended(); })) return false;
    return shared_->thread > 0 && wait_stop() == SIGSTOP;
  }

  /// @return how many of these instructions the call has had
  int step(int instructions) {
    for (int i = 0; i < instructions; ++i) {
      ptrace(PTRACE_SINGLESTEP, shared_->thread.load(), 0, 0);
      if (wait_stop() != SIGTRAP) return i;
    }
    return instructions;
  }

  /// @param signal_number  0: none
  void let_go(int signal_number) {
    shared_->let_go = true;
    ptrace(PTRACE_DETACH, shared_->thread.load(), 0, signal_number);
    child_.send_signal(SIGCONT);  // The last step may have been the system call of stop_here().
  }

  bool has_ended() {
    return eventually([this] { return child_.has_ended(); });
  }
  int wait_status() {
    is_waited_for_ = true;
    return child_.wait_status();
  }

  /// Once it has ended.
  std::string said() const {
    std::string text(4096, '\0');
    fcntl(pipe_.ends[0], F_SETFL, O_NONBLOCK);
    const ssize_t bytes = read(pipe_.ends[0], text.data(), text.size());
    text.resize(bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
    return text;
  }

 private:
  struct Pipe {
    Pipe() {
      if (pipe2(ends, O_CLOEXEC) != 0) _exit(1);
    }
    int ends[2];
  };

  /// @return the signal by which it stopped; 0: it is gone
  int wait_stop() {
    int status = 0;
    if (waitpid(shared_->thread, &status, __WALL) < 0 || !WIFSTOPPED(status)) return 0;
    return WSTOPSIG(status);
  }

  bool is_waited_for_ = false;
  Pipe pipe_;
  SharedMemory<Shared> shared_;
  ChildProcess child_;
};

class EndsSteppedTest : public testing::TestWithParam<Call> {};

INSTANTIATE_TEST_SUITE_P(Calls, EndsSteppedTest, testing::ValuesIn(kCalls));

TEST_P(EndsSteppedTest, Thread_that_a_handler_ends_at_any_instruction__leaves_all_whole_or_ends_the_process) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer's own frames do not let a handler end its thread";
#endif
  const OwnNode node;
  constexpr int kMany = 1'000'000;
  int length = 0;
  {
    SteppedChild child(GetParam(), end_thread);
    if (!child.is_ready()) GTEST_SKIP() << "ptrace(2) is not permitted here";
    length = child.step(kMany);
    child.let_go(0);
    ASSERT_TRUE(child.has_ended());
    ASSERT_EQ(child.wait_status(), 0);
  }
  std::mt19937_64 random(process_test_seed());
  for (void (*handler)(int) : {end_thread, cancel_thread}) {
    for (int place = 0; place < kPlaces; ++place) {
      const int at = length * place / kPlaces + static_cast<int>(random() % 8);
      SteppedChild child(GetParam(), handler);
      ASSERT_TRUE(child.is_ready());
      if (child.step(at) < at) continue;  // It was shorter this time.
      child.let_go(SIGUSR1);
      ASSERT_TRUE(child.has_ended()) << name_of(GetParam()) << " hangs, instruction " << at;
      const int status = child.wait_status();
      if (status == 0) continue;
      EXPECT_EQ(status, 128 + SIGABRT) << name_of(GetParam()) << ", instruction " << at;
      EXPECT_NE(child.said().find("has ended in the middle of a call"), std::string::npos)
          << name_of(GetParam()) << ", instruction " << at << ": " << child.said();
    }
  }
  ChildProcess next([] {  // Removes what the others have left.
    const bool opened = open_objects();
    PtlFini();
    return opened ? 0 : 1;
  });
  EXPECT_EQ(next.wait_status(), 0);
}

}  // namespace
}  // namespace portofu
