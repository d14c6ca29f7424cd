#include "engine/queue/lost_thread.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "tests/support/eventually.h"

namespace portofu {
namespace {

TEST(LostThread, Id__is_the_kernels_in_each_thread_and_in_a_child) {
  EXPECT_EQ(this_thread_id(), getpid());
  std::thread([] { EXPECT_EQ(this_thread_id(), static_cast<pid_t>(syscall(SYS_gettid))); }).join();
  const pid_t child = fork();
  if (child == 0) _exit(this_thread_id() == getpid() ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

/// The kernel lists a thread for a moment after it was joined.
void await_gone(pid_t thread) {
  alarm(kLongestWait.count());
  while (!is_thread_gone(thread)) std::this_thread::yield();
  alarm(0);
}

TEST(LostThread, Gone__is_a_thread_that_has_ended) {
  pid_t ended = 0;
  std::thread([&ended] {
    ended = this_thread_id();
    EXPECT_FALSE(is_thread_gone(ended));
  }).join();
  await_gone(ended);
  EXPECT_FALSE(is_thread_gone(getpid()));
  EXPECT_TRUE(is_thread_gone(getppid())) << "no thread of this process";
}

// pthread_exit(3) in main: the kernel lists the first thread until the process ends.
TEST(LostThread, Gone__is_the_first_thread_that_has_ended) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer keeps a thread of its own in each process";
#endif
  const pid_t child = fork();
  if (child == 0) {
    alarm(kLongestWait.count());
    std::thread([] {
      while (!is_thread_gone(getpid())) std::this_thread::yield();
      _exit(0);
    }).detach();
    syscall(SYS_exit, 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(LostThread, Expected_to_live__are_the_living_and_who_is_not_named_any_more) {
  pid_t ended = 0;
  std::thread([&ended] { ended = this_thread_id(); }).join();
  await_gone(ended);
  expect_living([] { return 0; });
  expect_living([] { return getpid(); });
  int looks = 0;
  expect_living([&] { return ++looks == 1 ? ended : 0; });
  EXPECT_EQ(looks, 2);
  EXPECT_DEATH(expect_living([&] { return ended; }), "has ended in the middle of a call");
}

}  // namespace
}  // namespace portofu
