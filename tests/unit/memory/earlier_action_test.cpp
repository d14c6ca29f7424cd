// Signals that are not ours go where the kernel would have sent them without us (sigaction(2), signal(7)).

#include "engine/memory/earlier_action.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <thread>
#include <vector>

#include "engine/memory/guarded_copy.h"
#include "tests/unit/support/faulty_memory.h"

namespace portofu {
namespace {

constexpr std::array<int, 2> kSignals{SIGSEGV, SIGBUS};

std::atomic<int> calls{0};
std::atomic<int> earlier_calls{0};
sigset_t seen_mask;
std::atomic<bool> on_other_stack{false};
sigjmp_buf way_out;

void count_call(int) { ++calls; }
void count_call_with_info(int, siginfo_t*, void*) { ++calls; }
void note_mask(int) {
  ++calls;
  pthread_sigmask(SIG_BLOCK, nullptr, &seen_mask);
}
void leave(int) {
  ++calls;
  siglongjmp(way_out, 1);
}
void leave_from_earlier(int) {
  ++earlier_calls;
  siglongjmp(way_out, 1);
}
void note_stack(int) {
  stack_t own{};
  sigaltstack(nullptr, &own);
  on_other_stack = (own.ss_flags & SS_ONSTACK) != 0;
}

struct sigaction action_of(void (*handler)(int), int flags = 0) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  return action;
}

/// Puts an action of the application in place, and the guard in front of it.
void stand_before(const struct sigaction& action) {
  for (const int signal_number : kSignals) sigaction(signal_number, &action, nullptr);
  install_fault_guard();
}

bool is_guarded(std::byte* edge) {
  std::array<std::byte, 8> target{};
  return !guarded_copy(target.data(), edge, target.size());
}

void write_to(std::byte* address) { std::atomic_ref(*address).store(std::byte{1}, std::memory_order_relaxed); }

class EarlierActionTest : public testing::Test {
 protected:
  void SetUp() override {
    prctl(PR_SET_DUMPABLE, 0);  // Whoever dies here leaves no core.
    calls = 0;
    earlier_calls = 0;
    for (const int signal_number : kSignals) sigaction(signal_number, nullptr, &before_[signal_number]);
  }
  void TearDown() override {
    for (const int signal_number : kSignals) sigaction(signal_number, &before_[signal_number], nullptr);
  }
  FaultyMemory faulty;

 private:
  struct sigaction before_[NSIG] {};
};
using EarlierActionDeathTest = EarlierActionTest;

TEST_F(EarlierActionDeathTest, Sent_signal__ends_the_process_by_default) {
  for (const int signal_number : kSignals) {
    EXPECT_EXIT((stand_before(action_of(SIG_DFL)), raise(signal_number)), testing::KilledBySignal(signal_number), "");
    EXPECT_EXIT((stand_before(action_of(SIG_DFL)), kill(getpid(), signal_number), pause()),
                testing::KilledBySignal(signal_number), "");
    EXPECT_EXIT((stand_before(action_of(SIG_DFL)), sigqueue(getpid(), signal_number, {}), pause()),
                testing::KilledBySignal(signal_number), "");
  }
}

TEST_F(EarlierActionTest, Sent_signal__that_was_ignored_is_ignored_each_time) {
  stand_before(action_of(SIG_IGN));
  for (int i = 0; i < 3; ++i) {
    for (const int signal_number : kSignals) raise(signal_number);
  }
  EXPECT_TRUE(is_guarded(faulty.edge()));
}

TEST_F(EarlierActionDeathTest, Fault__ends_the_process_though_the_signal_was_ignored) {
  EXPECT_EXIT((stand_before(action_of(SIG_IGN)), write_to(faulty.edge())), testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(EarlierActionTest, Handler__is_called_each_time_and_the_guard_stays) {
  stand_before(action_of(count_call));
  for (const int signal_number : kSignals) raise(signal_number);
  struct sigaction with_info {};
  with_info.sa_sigaction = count_call_with_info;
  with_info.sa_flags = SA_SIGINFO;
  stand_before(with_info);
  for (const int signal_number : kSignals) raise(signal_number);
  EXPECT_EQ(calls, 4);
  EXPECT_TRUE(is_guarded(faulty.edge()));
}

TEST_F(EarlierActionDeathTest, Handler_with_RESETHAND__is_called_once_and_then_it_is_the_default) {
  for (const int signal_number : kSignals) {
    const auto raise_twice = [signal_number] {
      stand_before(action_of(count_call, SA_RESETHAND));
      raise(signal_number);
      if (calls != 1) _exit(1);
      raise(signal_number);
    };
    EXPECT_EXIT(raise_twice(), testing::KilledBySignal(signal_number), "");
  }
  // Its instruction runs again.
  EXPECT_EXIT((stand_before(action_of(count_call, SA_RESETHAND)), write_to(faulty.edge())),
              testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(EarlierActionTest, Handler__runs_under_the_mask_that_the_kernel_would_have_set) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer puts a handler of its own before ours, with a mask of its own";
#endif
  struct sigaction action = action_of(note_mask);
  sigaddset(&action.sa_mask, SIGUSR1);
  stand_before(action);
  raise(SIGSEGV);
  EXPECT_TRUE(sigismember(&seen_mask, SIGUSR1) == 1 && sigismember(&seen_mask, SIGSEGV) == 1);
  EXPECT_EQ(sigismember(&seen_mask, SIGBUS), 0);
  pthread_sigmask(SIG_BLOCK, nullptr, &seen_mask);
  EXPECT_TRUE(sigismember(&seen_mask, SIGUSR1) == 0 && sigismember(&seen_mask, SIGSEGV) == 0) << "after it";
  stand_before(action_of(note_mask, SA_NODEFER));
  raise(SIGSEGV);
  EXPECT_EQ(sigismember(&seen_mask, SIGSEGV), 0) << "SA_NODEFER";
  EXPECT_EQ(calls, 2);
}

TEST_F(EarlierActionDeathTest, Fault_in_a_handler_that_blocks_its_signal__ends_the_process) {
  static std::byte* edge = nullptr;
  edge = faulty.edge();
  const auto fault_in_handler = [] {
    stand_before(action_of([](int) { write_to(edge); }));
    raise(SIGSEGV);
  };
  EXPECT_EXIT(fault_in_handler(), testing::KilledBySignal(SIGSEGV), "");
}

struct sigaction in_front_of;  ///< What `chain` found when it was put in place.

void chain(int signal_number, siginfo_t* info, void* context) {
  ++calls;
  if ((in_front_of.sa_flags & SA_SIGINFO) != 0) in_front_of.sa_sigaction(signal_number, info, context);
}

TEST_F(EarlierActionTest, Handler_in_front_of_ours__that_calls_ours_reaches_what_was_there_before) {
  stand_before(action_of(leave_from_earlier));
  struct sigaction own {};
  own.sa_sigaction = chain;
  own.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSEGV, &own, &in_front_of);
  EXPECT_TRUE(is_guarded(faulty.edge())) << "through its handler";
  EXPECT_EQ(calls, 1);
  for (int i = 1; i <= 3; ++i) {  // The second and third time ours is in front of it.
    if (sigsetjmp(way_out, 1) == 0) write_to(faulty.edge());
    EXPECT_EQ(earlier_calls, i);
    EXPECT_EQ(calls, i + 1);
    install_fault_guard();
  }
  EXPECT_TRUE(is_guarded(faulty.edge()));
  EXPECT_EQ(calls, 4) << "ours is first";
}

TEST_F(EarlierActionTest, Handlers_that_come_and_go__are_told_apart) {
  stand_before(action_of(leave));
  for (int i = 1; i <= 20; ++i) {
    struct sigaction before {};
    const struct sigaction own = action_of(count_call);
    sigaction(SIGSEGV, &own, &before);
    install_fault_guard();
    raise(SIGSEGV);
    EXPECT_EQ(calls, 2 * i - 1);
    sigaction(SIGSEGV, &before, nullptr);  // Ours, in front of what was there.
    stand_before(action_of(leave));
    if (sigsetjmp(way_out, 1) == 0) write_to(faulty.edge());
    EXPECT_EQ(calls, 2 * i);
  }
}

TEST_F(EarlierActionTest, Signal_sent_while_bytes_are_copied__makes_no_copy_fail) {
  stand_before(action_of(count_call));
  std::atomic<bool> stop{false};
  std::atomic<int> failures{0};
  std::thread copier([&] {
    std::vector<std::byte> source(1 << 16, std::byte{1});
    std::vector<std::byte> target(source.size());
    while (!stop) {
      if (!guarded_copy(target.data(), source.data(), source.size())) ++failures;
      if (!guarded_look(target.data(), target.size())) ++failures;
    }
  });
  for (int i = 0; i < 2000; ++i) {
    const int before = calls;
    pthread_kill(copier.native_handle(), kSignals[static_cast<std::size_t>(i) % 2]);
    while (calls == before) std::this_thread::yield();
  }
  stop = true;
  copier.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(calls, 2000);
}

TEST_F(EarlierActionTest, Handler__runs_on_the_stack_that_it_asked_for) {
  std::vector<std::byte> memory(1 << 16);
  const stack_t other{memory.data(), 0, memory.size()};
  stack_t before{};
  ASSERT_EQ(sigaltstack(&other, &before), 0);
  stand_before(action_of(note_stack, SA_ONSTACK));
  raise(SIGSEGV);
  EXPECT_TRUE(on_other_stack);
  stand_before(action_of(note_stack));
  raise(SIGSEGV);
  EXPECT_FALSE(on_other_stack);
  sigaltstack(&before, nullptr);
}

TEST_F(EarlierActionTest, Signal__leaves_errno_alone) {
  stand_before(action_of([](int) { errno = EBADF; }));
  errno = 0;
  raise(SIGSEGV);
  EXPECT_EQ(errno, 0);
}

}  // namespace
}  // namespace portofu
