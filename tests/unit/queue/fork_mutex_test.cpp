#include "engine/queue/fork_mutex.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <mutex>
#include <thread>
#include <vector>

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
    alarm(10);  // Ends a child that hangs.
    mutex.lock();
    mutex.unlock();
    mutex.lock();
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace portofu
