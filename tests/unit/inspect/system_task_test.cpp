#include "engine/inspect/system_task.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "tests/process/child_process.h"

namespace portofu {
namespace {

/// Fields 3 to 52 of proc(5), of a stopped process that has used 150 + 50 ticks, and ran last on CPU 7.
const std::string kRest =
    " T 1 2 3 0 -1 4194304 100 0 0 0 150 50 0 0 20 0 3 0 1234 5678 90 1 1 1 1 1 0 0 0 0 0 0 0 0 17 7 0 0 0 0 0 1 1 1 1 "
    "1 "
    "1 1 0";

TEST(ReadStat, Program__may_have_any_name) {
  for (const char* name : {"77 (solver)", "77 (a) R 1 (b)"}) {
    SystemTask task;
    EXPECT_TRUE(read_stat(name + kRest, 100, &task));
    EXPECT_EQ(task.state, 'T');
    EXPECT_EQ(task.cpu_ns, 2'000'000'000u);
    EXPECT_EQ(task.cpu, 7);
  }
}

TEST(ReadStat, What_is_no_such_text__is_refused) {
  SystemTask task;
  EXPECT_FALSE(read_stat("", 100, &task));
  EXPECT_FALSE(read_stat("77 (solver) R 1 2", 100, &task));
  EXPECT_FALSE(read_stat("77 (solver)" + kRest, 0, &task));
  EXPECT_EQ(task.state, '?');
  EXPECT_EQ(task.cpu_ns, 0u);
  EXPECT_EQ(task.cpu, -1);
}

TEST(SystemTask, Living_process__has_name_state_time_and_CPU) {
  ChildProcess child([] {
    prctl(PR_SET_NAME, "solver");
    return pause();
  });
  const std::string directory = "/proc/" + std::to_string(child.pid());
  ASSERT_TRUE(eventually([&] { return look_at_task(directory).name == "solver"; }));
  child.send_signal(SIGSTOP);
  ASSERT_TRUE(eventually([&] { return look_at_task(directory).state == 'T'; }));
  EXPECT_GE(look_at_task(directory).cpu, 0);
  child.kill_now();
  EXPECT_TRUE(eventually([&] { return look_at_task(directory).name.empty(); }));
}

// Its files are still open when it has ended, and cannot be read any more.
TEST(SystemTask, Process_that_ends_while_it_is_looked_at__has_no_name) {
  for (int i = 0; i < 300; ++i) {
    ChildProcess child([] { return 0; });
    const auto os_pid = static_cast<std::uint32_t>(child.pid());
    const std::string directory = "/proc/" + std::to_string(os_pid);
    std::thread reaper([&child] { child.kill_now(); });
    while (!look_at_task(directory).name.empty()) rank_of_process(os_pid);
    reaper.join();
  }
}

TEST(SystemTask, Rank__is_what_the_launcher_has_set_before_the_program_began) {
  ChildProcess child([] {
    setenv("ZZ", "", 1);
    setenv("PMIX_RANK", "5", 1);
    execl("/bin/sleep", "sleep", "100", nullptr);
    return 1;
  });
  const auto os_pid = static_cast<std::uint32_t>(child.pid());
  EXPECT_TRUE(eventually([&] { return rank_of_process(os_pid) == 5; }));
  EXPECT_EQ(variable_of_process(os_pid, "PMIX_RANK"), "5");
  EXPECT_EQ(variable_of_process(os_pid, "PMIX_RAN"), "");
  child.kill_now();
  EXPECT_TRUE(eventually([&] { return rank_of_process(os_pid) == -1; }));
}

}  // namespace
}  // namespace portofu
