#include "engine/run/process_threads.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "engine/queue/lost_thread.h"

namespace portofu {
namespace {

class ProcessThreads : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ThreadSanitizer keeps a thread of its own in each process";
#endif
  }
};

TEST_F(ProcessThreads, Others__are_all_but_the_caller_and_the_librarys) {
  EXPECT_FALSE(has_other_threads());
  EXPECT_FALSE(has_main_thread_ended());
  enum class Step { kBegin, kAnybodys, kBecome, kLibrarys, kEnd };
  std::atomic<Step> step{Step::kBegin};
  const auto wait_for = [&step](Step wanted) {
    while (step != wanted) std::this_thread::yield();
  };
  std::thread other([&] {
    step = Step::kAnybodys;
    wait_for(Step::kBecome);
    const LibraryThread listed;
    step = Step::kLibrarys;
    wait_for(Step::kEnd);
  });
  wait_for(Step::kAnybodys);
  EXPECT_TRUE(has_other_threads());
  step = Step::kBecome;
  wait_for(Step::kLibrarys);
  EXPECT_FALSE(has_other_threads());
  std::thread([&] { EXPECT_TRUE(has_other_threads()) << "the first one"; }).join();
  step = Step::kEnd;
  other.join();
}

/// In a thread, because pthread_exit unwinds, and the frames of gtest catch everything.
void run_without_first_thread() {
  const pid_t child = fork();
  if (child == 0) {
    std::thread([] {
      while (!has_main_thread_ended()) std::this_thread::yield();
      _exit(has_other_threads() ? 1 : 0);
    }).detach();
    pthread_exit(nullptr);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(ProcessThreads, First_thread_that_has_ended__is_none_any_more) { std::thread(run_without_first_thread).join(); }

}  // namespace
}  // namespace portofu
