#include "engine/queue/no_signals.h"

#include <gtest/gtest.h>

namespace portofu {
namespace {

bool is_blocked(int number) {
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  return sigismember(&mask, number) == 1;
}

void change(int how, int number) {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, number);
  pthread_sigmask(how, &one, nullptr);
}

int handled = 0;
void handle(int) { ++handled; }

TEST(NoSignals, Signal_that_comes_meanwhile__is_handled_at_the_end) {
  signal(SIGUSR1, handle);
  {
    const NoSignals unbroken;
    raise(SIGUSR1);
    EXPECT_EQ(handled, 0);
  }
  EXPECT_EQ(handled, 1);
  signal(SIGUSR1, SIG_DFL);
}

// sigprocmask(2): "If SIGBUS, SIGFPE, SIGILL, or SIGSEGV are generated while they are blocked, the result is
// undefined".
TEST(NoSignals, Faults__are_not_blocked) {
  const NoSignals unbroken;
  EXPECT_TRUE(is_blocked(SIGTERM));
  for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE}) EXPECT_FALSE(is_blocked(fault)) << fault;
}

TEST(NoSignals, One_in_another__ends_with_the_outer_one) {
  const NoSignals outer;
  { const NoSignals inner; }
  EXPECT_TRUE(is_blocked(SIGUSR1));
}

TEST(NoSignals, What_the_thread_has_blocked_or_unblocked_itself__stays_so) {
  change(SIG_BLOCK, SIGUSR1);
  change(SIG_BLOCK, SIGUSR2);
  {
    const NoSignals unbroken;
    change(SIG_UNBLOCK, SIGUSR2);
  }
  EXPECT_TRUE(is_blocked(SIGUSR1));
  EXPECT_FALSE(is_blocked(SIGUSR2));
  change(SIG_UNBLOCK, SIGUSR1);
}

}  // namespace
}  // namespace portofu
