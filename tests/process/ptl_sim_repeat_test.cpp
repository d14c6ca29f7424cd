// Times under ptl_sim are the same in each run, however busy the machine is, and whoever is held up.

#include <signal.h>
#include <time.h>

#include <atomic>
#include <fstream>
#include <optional>
#include <random>
#include <thread>

#include "tests/process/sim_roles.h"
#include "tests/process/simulated_job.h"

namespace portofu {
namespace {

/// Uses CPU as long as it lives.
class Load {
 public:
  Load() {
    for (auto& thread : threads_) {
      thread = std::thread([this] {
        while (!ending_.load(std::memory_order_relaxed)) {
        }
      });
    }
  }
  ~Load() {
    ending_.store(true);
    for (auto& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> ending_{false};
  std::thread threads_[4];
};

void pause_for_ms(long ms) {
  const timespec pause{ms / 1000, ms % 1000 * 1'000'000};
  nanosleep(&pause, nullptr);
}

std::vector<pid_t> children_of(pid_t process) {
  const std::string number = std::to_string(process);
  std::ifstream file("/proc/" + number + "/task/" + number + "/children");
  std::vector<pid_t> children;
  for (pid_t child = 0; file >> child;) children.push_back(child);
  return children;
}

enum class HeldUp { kSim, kOneRank, kAll };

/// Stops processes of a job, and lets them go on, a few times: as a busy machine does, for longer than that.
void hold_up(const Launcher& job, HeldUp who, std::mt19937& random) {
  for (int i = 0; i < 6; ++i) {
    pause_for_ms(std::uniform_int_distribution<long>(5, 120)(random));
    if (job.has_ended()) return;
    std::vector<pid_t> stopped = children_of(job.pid());
    std::shuffle(stopped.begin(), stopped.end(), random);
    if (who == HeldUp::kOneRank && !stopped.empty()) stopped.resize(1);
    if (who == HeldUp::kSim) stopped.clear();
    if (who != HeldUp::kOneRank) stopped.push_back(job.pid());
    for (const pid_t one : stopped) kill(one, SIGSTOP);
    pause_for_ms(std::uniform_int_distribution<long>(200, 700)(random));
    for (const pid_t one : stopped) kill(one, SIGCONT);
  }
}

/// @param loaded  every other run has threads beside it that use the CPU
void expect_the_same_in_each_run(const char* role, const Words& options, int runs, bool loaded = false) {
  std::optional<nlohmann::json> first;
  for (int i = 0; i < runs; ++i) {
    std::optional<Load> load;
    if (loaded && i % 2 == 1) load.emplace();
    const Simulated job = run(role, options);
    ASSERT_EQ(job.status, 0) << job.output;
    if (!first) first = job.report;
    EXPECT_EQ(job.report, *first) << role << ", run " << i;
  }
}

TEST(PtlSimRepeat, Tofu__times_are_the_same_in_each_run) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer allows no fork in a process with threads, and the load is threads";
#endif
  for (const char* role : {"mrq", "memory", "get_armw"})
    expect_the_same_in_each_run(role, {"--nodes", "2", "--per-node", "2"}, 10, true);
}

TEST(PtlSimRepeat, Portals__times_are_the_same_in_each_run) {
  for (const char* role : {"ring", "triggered"}) expect_the_same_in_each_run(role, {"--nodes", "2x3x2"}, 5);
}

/// What counts is the thread that polls.
TEST(PtlSimRepeat, Tofu__times_are_the_same_beside_a_thread_that_computes) {
  expect_the_same_in_each_run("memory_beside_a_thread", {"--nodes", "2"}, 3);
}

/// They meet by PMI before they close the library, and who is seen first then is a matter of luck.
TEST(PtlSimRepeat, Ends__are_the_same_of_ranks_that_meet_past_the_library) {
  for (const char* role : {"two_tnis", "rate"}) expect_the_same_in_each_run(role, {"--nodes", "2x3x2"}, 3);
}

/// @param runs  of each kind of delay
void expect_the_same_whoever_is_held_up(const char* role, const Words& options, int runs) {
  const Simulated first = run(role, options);
  ASSERT_EQ(first.status, 0) << first.output;
  std::mt19937 random(1);
  for (const HeldUp who : {HeldUp::kSim, HeldUp::kOneRank, HeldUp::kAll}) {
    for (int i = 0; i < runs; ++i) {
      const Simulated job = run(role, options, true, [&](const Launcher& launcher) { hold_up(launcher, who, random); });
      ASSERT_EQ(job.status, 0) << job.output;
      EXPECT_EQ(job.report, first.report) << role << ", " << static_cast<int>(who) << ", run " << i;
    }
  }
}

/// What the coordinator takes for granted of a rank that tells nothing is what it has seen, and not how late it is.
TEST(PtlSimRepeat, Times__are_the_same_whoever_is_held_up) {
  expect_the_same_whoever_is_held_up("memory", {"--nodes", "2", "--per-node", "2"}, 2);
}

TEST(PtlSimRepeat, Portals__times_are_the_same_whoever_is_held_up) {
  for (const char* role : {"ring", "triggered"}) expect_the_same_whoever_is_held_up(role, {"--nodes", "2x3x2"}, 1);
}

}  // namespace
}  // namespace portofu

int main(int argc, char** argv) { return portofu::play_or_test(argc, argv, portofu::play_sim); }
