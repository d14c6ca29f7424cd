#include "engine/queue/fork_mutex.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mutex>
#include <thread>
#include <vector>

#include "tests/support/eventually.h"

namespace portofu {
namespace {

TEST(ForkMutex, Lock__is_held_by_one_thread_at_a_time) {
  ForkMutex mutex;
  int count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 10000; ++k) {
        const std::lock_guard lock(mutex);
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 40000);
}

TEST(ForkMutex, Child__finds_it_free) {
  ForkMutex mutex;
  const std::lock_guard lock(mutex);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(kLongestWait.count());  // Ends a child that hangs.
    mutex.lock();
    mutex.unlock();
    mutex.lock();
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// clone(2) past the handlers of fork: the thread has another number there.
TEST(ForkMutex, Child_that_nobody_knows_of__holds_it_as_its_own) {
  ForkMutex mutex;
  mutex.lock();
  mutex.unlock();
  const auto child = static_cast<pid_t>(syscall(SYS_fork));
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(kLongestWait.count());
    mutex.lock();
    _exit(mutex.try_lock() ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(ForkMutex, Try_lock__takes_it_if_nobody_has_it) {
  ForkMutex mutex;
  ASSERT_TRUE(mutex.try_lock());
  EXPECT_FALSE(mutex.try_lock());
  std::thread([&mutex] { EXPECT_FALSE(mutex.try_lock()); }).join();
  mutex.unlock();
  std::thread([&mutex] {
    EXPECT_TRUE(mutex.try_lock());
    mutex.unlock();
  }).join();
}

TEST(ForkMutex, Lock__by_who_sleeps_meanwhile_gets_it) {
  ForkMutex mutex;
  mutex.lock();
  std::thread waits([&mutex] { const std::lock_guard lock(mutex); });
  usleep(400'000);  // Longer than until it asks whether the holder lives.
  mutex.unlock();
  waits.join();
}

TEST(ForkMutex, Holder_that_has_ended__ends_the_process_of_who_waits) {
  ForkMutex mutex;
  EXPECT_DEATH(
      {
        std::thread([&mutex] { mutex.lock(); }).join();
        alarm(kLongestWait.count());
        mutex.lock();
      },
      "has ended in the middle of a call");
}

}  // namespace
}  // namespace portofu
