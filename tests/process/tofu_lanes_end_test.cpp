// Lanes at the end of a process, in its children, and in signal handlers: what holds for one engine holds for several.

#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <atomic>
#include <cstdlib>

#include "tests/process/tofu_lanes.h"

namespace portofu {
namespace {

TEST_F(TofuLanes, Child__has_lanes_of_its_own) {
  run_processes(1, [](Process&) {
    const Ends ends = make_ends(kLanes);
    const pid_t child = fork();
    if (child == 0) {
      {
        const Ends own = make_ends(kLanes);
        EXPECT_EQ(count_segments(), std::size_t{kLanes});
        EXPECT_EQ(own[0]->put(own[1]->name, 3, kTcq | kRemote), UTOFU_SUCCESS);
        own[1]->expect_put(3);
      }
      std::exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(ends[0]->put(ends[3]->name, 4, kTcq | kRemote), UTOFU_SUCCESS);
    ends[3]->expect_put(4);
  });
}

/// @param end  called in a child that has lanes, whose exit status must be 0
void end_child(const std::function<void()>& end) {
  const pid_t child = fork();
  if (child == 0) {
    Ends* const ends = new Ends(make_ends(kLanes));
    EXPECT_EQ((*ends)[0]->put((*ends)[1]->name, 3, kTcq | kRemote), UTOFU_SUCCESS);
    end();
  }
  int status = -1;
  const bool ended = eventually([&] { return waitpid(child, &status, WNOHANG) == child; });
  EXPECT_TRUE(ended);
  EXPECT_EQ(status, 0);
  if (!ended) kill(child, SIGKILL), waitpid(child, &status, 0);
}

TEST_F(TofuLanes, Exit__while_threads_are_inside_ends_the_process) {
  run_processes(1, [](Process&) {
    end_child([] {
      static std::atomic<int> inside{0};
      for (int i = 0; i < kLanes; ++i) {
        std::thread([i] {
          const End end(i);
          for (bool first = true;; first = false) {
            void* data = nullptr;
            utofu_poll_tcq(end.vcq, 0, &data);
            if (first) ++inside;
          }
        }).detach();
      }
      if (!eventually([] { return inside == kLanes; })) std::_Exit(1);
      std::exit(0);
    });
  });
}

/// What a handler uses that may have interrupted any call.
struct Handled {
  utofu_vcq_hdl_t vcq = 0;
  std::atomic<int> calls{0};
  int most_calls = 0;
};
Handled handled;

void call_in_handler(int) {
  void* data = nullptr;
  utofu_mrq_notice notice;
  const int rc = utofu_poll_tcq(handled.vcq, 0, &data);
  if (rc != UTOFU_ERR_NOT_FOUND && rc != UTOFU_ERR_INVALID_VCQ_HDL) _exit(2);
  utofu_poll_mrq(handled.vcq, 0, &notice);
  if (++handled.calls == handled.most_calls) std::exit(0);
}

TEST_F(TofuLanes, Handler__calls_in_another_lane_or_ends_the_process) {
  run_processes(1, [](Process&) {
    end_child([] {
      const Ends ends = make_ends(2);
      handled.vcq = ends[1]->vcq;
      handled.most_calls = 200;
      struct sigaction action {};
      action.sa_handler = call_in_handler;
      sigaction(SIGALRM, &action, nullptr);
      const itimerval often{{0, 500}, {0, 500}};
      setitimer(ITIMER_REAL, &often, nullptr);
      for (;;) {
        EXPECT_EQ(ends[0]->put(ends[0]->name, 1, kTcq | kRemote), UTOFU_SUCCESS);
        EXPECT_EQ(ends[0]->poll_tcq(), UTOFU_SUCCESS);
        ends[0]->expect_put(1);
      }
    });
  });
}

/// The process ends with its last thread that is not the library's, however many of those there are. In a thread,
/// because pthread_exit unwinds, and the frames of gtest catch everything.
TEST_F(TofuLanes, First_thread_that_ends__leaves_no_process_of_progress_threads) {
  run_processes(1, [](Process&) { std::thread([] { end_child([] { pthread_exit(nullptr); }); }).join(); });
}

}  // namespace
}  // namespace portofu
