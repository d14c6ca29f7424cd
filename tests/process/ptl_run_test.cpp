// ptl_run with real processes: the PMI-1 dialogue, how jobs end, signals, input and output. The test program is its own
// rank: started with a role it plays that role instead of running tests. The roles that speak PMI are also played under
// Debian's mpiexec.hydra where there is one, so that both ends of the dialogue are checked against another's.

#include <sys/ioctl.h>

#include "tests/process/launcher.h"

namespace portofu {
namespace {

TEST(PtlRun, Dialogue__gives_rank_and_size_and_exchanges_pairs) {
  for (int count : {1, 2, 5}) {
    Launcher launcher(with_ranks(count), "exchange");
    EXPECT_EQ(launcher.wait_status(), 0) << launcher.output();
    EXPECT_EQ(launcher.output(), "");
  }
}

TEST(PtlRun, Dialogue__refuses_what_is_wrong_and_goes_on) {
  Launcher launcher(with_ranks(3), "refusals");
  EXPECT_EQ(launcher.wait_status(), 0) << launcher.output();
}

TEST(PtlRun, Dialogue__is_the_same_under_hydra) {
  const char* given = std::getenv("PORTOFU_TEST_MPIEXEC");
  const std::string mpiexec = given != nullptr ? given : "/usr/bin/mpiexec.hydra";
  if (access(mpiexec.c_str(), X_OK) != 0) GTEST_SKIP() << "there is no " << mpiexec << " (Debian: mpich)";
  for (const char* role : {"exchange", "portals"}) {
    Launcher launcher({mpiexec, "-n", "3", own_program()}, role);
    EXPECT_EQ(launcher.wait_status(), 0) << launcher.output();
  }
}

TEST(PtlRun, Portals__processes_find_each_other) {
  Launcher launcher(with_ranks(4), "portals");
  EXPECT_EQ(launcher.wait_status(), 0) << launcher.output();
}

TEST(PtlRun, Programs__need_not_speak) {
  Launcher launcher(with_shell(64, "exit 0"));
  EXPECT_EQ(launcher.wait_status(), 0) << launcher.output();
}

TEST(PtlRun, Environment__of_another_launcher_is_replaced) {
  setenv("PMI_RANK", "77", 1);
  setenv("PMI_PORT", "host:1", 1);
  Launcher launcher(with_shell(1, "echo $PMI_RANK $PMI_SIZE ${PMI_PORT-none} $MPI_LOCALRANKID $MPI_LOCALNRANKS"));
  unsetenv("PMI_RANK");
  unsetenv("PMI_PORT");
  EXPECT_EQ(launcher.wait_status(), 0);
  EXPECT_EQ(launcher.output(), "0 1 none 0 1\n");
}

TEST(PtlRun, Virtual_nodes__are_told_to_the_ranks) {
  const Words words = {PORTOFU_PTL_RUN, "-n", "1", "--per-node", "4", "sh", "-c", "echo $PORTOFU_PER_NODE"};
  Launcher launcher(words);
  EXPECT_EQ(launcher.wait_status(), 0);
  EXPECT_EQ(launcher.output(), "4\n");
}

TEST(PtlRun, Shape__says_how_many_ranks_there_are) {
  const Words words = {
      PORTOFU_PTL_RUN, "--shape", "2x3", "--per-node", "2", "sh", "-c", "echo $PORTOFU_SHAPE $PMI_SIZE"};
  Launcher launcher(words);
  EXPECT_EQ(launcher.wait_status(), 0);
  const std::string line = "2x3 12\n";
  std::string all;
  for (int rank = 0; rank < 12; ++rank) all += line;
  EXPECT_EQ(launcher.output(), all);
}

TEST(PtlRun, Cores__are_planned_for_any_machine_and_told) {
  setenv("HWLOC_SYNTHETIC", "numa:2 l3:2 core:2 pu:2", 1);
  const auto said = [](Words options) {
    Words words = {PORTOFU_PTL_RUN, "-v", "-n", "2"};
    words.insert(words.end(), options.begin(), options.end());
    words.emplace_back("true");
    Launcher launcher(words);
    EXPECT_EQ(launcher.wait_status(), 0);
    return launcher.output();
  };
  EXPECT_TRUE(contains(said({}), "CPUs 8-15")) << "four cores each";
  EXPECT_TRUE(contains(said({"--bind", "core"}), "CPUs 2-3")) << "the neighbour";
  EXPECT_TRUE(contains(said({"--bind", "core", "--map", "l3"}), "CPUs 4-5"));
  EXPECT_TRUE(contains(said({"--bind", "core", "--map", "numa"}), "CPUs 8-9"));
  EXPECT_TRUE(contains(said({"--bind", "l3", "--map", "l3"}), "CPUs 4-7"));
  EXPECT_TRUE(contains(said({"--bind", "none"}), "no rank is bound"));
  EXPECT_TRUE(contains(said({}), "here none is bound"));
  unsetenv("HWLOC_SYNTHETIC");
}

/// The ranks say in turn how many CPUs they may use. A core has two at most, on machines that we know.
TEST(PtlRun, Core__is_all_that_a_rank_may_use) {
  Launcher launcher({PORTOFU_PTL_RUN, "-n", "2", "--bind", "core", "nproc"});
  EXPECT_EQ(launcher.wait_status(), 0);
  EXPECT_TRUE(launcher.output() == "1\n1\n" || launcher.output() == "2\n2\n") << launcher.output();
}

TEST(PtlRun, End__status_is_that_of_the_first_bad_rank_and_all_others_are_ended) {
  Launcher launcher(with_ranks(4), "sleep_but_0_exits_3");
  EXPECT_EQ(launcher.wait_status(), 3);
  EXPECT_TRUE(contains(launcher.output(), "exited with status 3; ending the others")) << launcher.output();
  EXPECT_FALSE(contains(launcher.output(), "signal")) << "what follows is not told: " << launcher.output();
}

TEST(PtlRun, End__by_a_signal_is_128_and_its_number) {
  Launcher launcher(with_ranks(3), "crash");
  EXPECT_EQ(launcher.wait_status(), 128 + SIGABRT);
  EXPECT_TRUE(contains(launcher.output(), "rank 2 (process ")) << launcher.output();
  EXPECT_TRUE(contains(launcher.output(), "was ended by signal 6 (Aborted)")) << launcher.output();
}

TEST(PtlRun, End__who_ignores_SIGTERM_is_killed_after_the_grace) {
  Launcher launcher(with_ranks(3, {"--grace", "1"}), "stubborn");
  const std::vector<pid_t> pids = launcher.wait_until_ready(3);
  EXPECT_EQ(launcher.wait_status(), 5);
  EXPECT_TRUE(contains(launcher.output(), "have not ended within 1 s")) << launcher.output();
  for (pid_t pid : pids) EXPECT_TRUE(is_gone(pid));
}

TEST(PtlRun, End__of_a_rank_takes_its_descendants_with_it) {
  Launcher launcher(with_shell(1, "sleep 1000 & echo ready $!; exit 4"));
  const std::vector<pid_t> pids = launcher.wait_until_ready(1);
  EXPECT_EQ(launcher.wait_status(), 4) << launcher.output();
  ASSERT_EQ(pids.size(), 1u);
  for (pid_t pid : pids) EXPECT_TRUE(eventually([&] { return is_gone(pid); }));
}

TEST(PtlRun, End__before_a_barrier_that_others_wait_at_ends_the_job) {
  for (const char* role : {"leave_before_barrier", "finalize_before_barrier"}) {
    Launcher launcher(with_ranks(3), role);
    EXPECT_EQ(launcher.wait_status(), 1);
    EXPECT_TRUE(contains(launcher.output(), "can no longer reach")) << role << ": " << launcher.output();
  }
}

TEST(PtlRun, Abort__gives_its_status) {
  Launcher launcher(with_ranks(4), "abort");
  EXPECT_EQ(launcher.wait_status(), 7);
  EXPECT_TRUE(contains(launcher.output(), "rank 2 has aborted the job")) << launcher.output();
}

TEST(PtlRun, Nonsense__ends_the_job) {
  Launcher unknown(with_ranks(2), "unknown");
  EXPECT_EQ(unknown.wait_status(), 1);
  EXPECT_TRUE(contains(unknown.output(), "make_coffee")) << unknown.output();
  Launcher endless(with_ranks(2), "endless");
  EXPECT_EQ(endless.wait_status(), 1);
  EXPECT_TRUE(contains(endless.output(), "does not end")) << endless.output();
}

TEST(PtlRun, Signals__are_passed_on_to_all_ranks) {
  Launcher launcher(with_ranks(3), "exit_at_usr1");
  ASSERT_EQ(launcher.wait_until_ready(3).size(), 3u);
  launcher.send_signal(SIGUSR1);
  EXPECT_EQ(launcher.wait_status(), 0) << launcher.output();
}

TEST(PtlRun, Signals__that_ask_for_the_end_are_the_ranks_to_answer) {
  Launcher well(with_ranks(3), "exit_at_term");
  ASSERT_EQ(well.wait_until_ready(3).size(), 3u);
  well.send_signal(SIGTERM);
  EXPECT_EQ(well.wait_status(), 0) << well.output();
  for (int number : {SIGTERM, SIGINT, SIGHUP}) {
    Launcher launcher(with_ranks(3), "sleep");
    ASSERT_EQ(launcher.wait_until_ready(3).size(), 3u);
    launcher.send_signal(number);
    EXPECT_EQ(launcher.wait_status(), 128 + number) << launcher.output();
  }
}

TEST(PtlRun, Signals__sent_twice_kill) {
  Launcher launcher(with_ranks(2, {"--grace", "3600"}), "deaf");
  ASSERT_EQ(launcher.wait_until_ready(2).size(), 2u);
  launcher.send_signal(SIGINT);
  launcher.send_signal(SIGTERM);
  EXPECT_EQ(launcher.wait_status(), 128 + SIGKILL) << launcher.output();
}

TEST(PtlRun, Death__of_the_launcher_ends_the_ranks) {
  Launcher launcher(with_ranks(3), "sleep");
  const std::vector<pid_t> pids = launcher.wait_until_ready(3);
  ASSERT_EQ(pids.size(), 3u);
  launcher.send_signal(SIGKILL);
  EXPECT_EQ(launcher.wait_status(), 128 + SIGKILL);
  for (pid_t pid : pids) EXPECT_TRUE(eventually([&] { return is_gone(pid); }));
}

TEST(PtlRun, Death__of_the_launcher_ends_what_the_ranks_have_started) {
  Launcher launcher(with_shell(2, kWithDescendants));
  const std::vector<pid_t> pids = launcher.wait_until_ready(4);
  ASSERT_EQ(pids.size(), 4u);
  launcher.send_signal(SIGKILL);
  EXPECT_EQ(launcher.wait_status(), 128 + SIGKILL);
  for (pid_t pid : pids) EXPECT_TRUE(eventually([&] { return is_gone(pid); })) << pid;
}

TEST(PtlRun, Descendants__of_a_rank_that_ends_well_may_go_on) {
  Launcher launcher(with_shell(1, "sleep 1000 >/dev/null 2>&1 & echo ready $!"));
  const std::vector<pid_t> pids = launcher.wait_until_ready(1);
  ASSERT_EQ(pids.size(), 1u);
  EXPECT_EQ(launcher.wait_status(), 0);
  EXPECT_FALSE(is_gone(pids[0]));
  kill(pids[0], SIGKILL);
}

TEST(PtlRun, Input__goes_to_rank_0_only) {
  Launcher launcher(with_ranks(3), "input", std::string(5000, 'i'));
  EXPECT_EQ(launcher.wait_status(), 0);
  EXPECT_TRUE(contains(launcher.output(), "rank 0 read 5000\n")) << launcher.output();
  EXPECT_TRUE(contains(launcher.output(), "rank 1 read 0\n")) << launcher.output();
  EXPECT_TRUE(contains(launcher.output(), "rank 2 read 0\n")) << launcher.output();
}

TEST(PtlRun, Label__stands_before_each_line) {
  Launcher launcher(with_shell(2, "echo out; printf 'a\\n\\nerr' >&2", {"--label"}));
  EXPECT_EQ(launcher.wait_status(), 0);
  for (const char* line : {"[0] out\n", "[1] out\n", "[0] a\n", "[1] \n", "[1] err\n"})
    EXPECT_TRUE(contains(launcher.output(), line)) << line << "in\n" << launcher.output();
  EXPECT_EQ(line_count(launcher.output()), 8u) << launcher.output();
}

TEST(PtlRun, Label__carries_much_and_long_lines) {
  const std::string command =
      "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; head -c 200000 /dev/zero | tr '\\0' x";
  Launcher launcher(with_shell(3, command, {"-l"}));
  EXPECT_EQ(launcher.wait_status(), 0);
  std::istringstream lines(launcher.output());
  std::size_t numbered = 0;
  std::size_t exes = 0;
  for (std::string line; std::getline(lines, line);) {
    ASSERT_TRUE(line.size() > 4 && line[0] == '[' && line[2] == ']') << line.substr(0, 80);
    numbered += line.compare(4, 5, "line ") == 0 ? 1 : 0;
    exes += static_cast<std::size_t>(std::count(line.begin(), line.end(), 'x'));
  }
  EXPECT_EQ(numbered, 9000u);
  EXPECT_EQ(exes, 600'000u);
}

/// Of a shell that runs it with these redirections. @return what the shell prints
std::string redirected(const std::string& rank, const std::string& redirection) {
  Launcher launcher(
      {"/bin/sh", "-c", "{ " PORTOFU_PTL_RUN " --label -n 2 sh -c '" + rank + "'; echo =$? >&2; } " + redirection});
  EXPECT_EQ(launcher.wait_status(), 0);
  return launcher.output();
}

TEST(PtlRun, Output__that_nobody_takes_ends_the_job) {
  const std::string gone = redirected("while :; do echo line; done", "| head -1");
  EXPECT_TRUE(contains(gone, "ptl_run: standard output cannot be written: Broken pipe; ending the others\n")) << gone;
  EXPECT_TRUE(contains(gone, "=141\n")) << gone;
  const std::string full = redirected("echo line", ">/dev/full");
  EXPECT_TRUE(contains(full, "ptl_run: standard output cannot be written: No space left on device")) << full;
  EXPECT_TRUE(contains(full, "=125\n")) << full;
}

// A pager that shows its first page does not keep the job from hearing signals.
TEST(PtlRun, Output__that_is_not_read_keeps_no_signal_waiting) {
  for (const bool twice : {false, true}) {
    int out[2];
    ASSERT_EQ(pipe2(out, O_CLOEXEC), 0);
    const pid_t job = fork();
    if (job == 0) {
      dup2(out[1], STDOUT_FILENO);
      alarm(60);
      execl(PORTOFU_PTL_RUN, PORTOFU_PTL_RUN, "--grace", twice ? "60" : "1", "--label", "-n", "2", "sh", "-c",
            "trap '' TERM; while :; do echo line; done", nullptr);
      _exit(99);
    }
    close(out[1]);
    int waits = 0;
    EXPECT_TRUE(eventually([&] {  // Until the pipe is full: nothing more comes into it.
      const int before = waits;
      usleep(50'000);
      return ioctl(out[0], FIONREAD, &waits) == 0 && waits > 16'384 && waits == before;
    }));
    EXPECT_EQ(kill(job, SIGTERM), 0);
    int status = 0;
    EXPECT_TRUE(eventually([&] {
      if (twice) kill(job, SIGTERM);  // Again and again: two that come before the first is heeded are one.
      return waitpid(job, &status, WNOHANG) == job;
    }));
    EXPECT_EQ(WEXITSTATUS(status), 128 + SIGKILL) << "that of the ranks, which have not heeded SIGTERM";
    close(out[0]);
  }
}

TEST(PtlRun, Output__that_is_closed_harms_nothing) {
  EXPECT_EQ(redirected("echo line", ">&-"), "=0\n");
  EXPECT_EQ(redirected("echo line", "<&- >&-"), "=0\n");
}

TEST(PtlRun, Label__stands_before_a_line_that_a_daemon_keeps_from_its_end) {
  Launcher launcher({PORTOFU_PTL_RUN, "--label", "-n", "1", "sh", "-c", "printf 'one\\ntwo'; setsid sleep 2 & exit 0"});
  EXPECT_EQ(launcher.wait_status(), 0);
  EXPECT_EQ(launcher.output(), "[0] one\n[0] two\n");
}

TEST(PtlRun, Label__of_who_goes_on_keeps_the_job_no_longer) {
  const std::string daemon = "setsid sh -c 'while :; do echo line; done' & sleep 0.2";
  Launcher launcher({PORTOFU_PTL_RUN, "--label", "-n", "1", "sh", "-c", daemon});
  EXPECT_EQ(launcher.wait_status(), 0);
}

TEST(PtlRun, Job_key__differs_between_jobs_and_one_that_is_given_stays) {
  const auto key = [] {
    Launcher launcher(with_shell(1, "echo $PORTOFU_JOB_KEY"));
    EXPECT_EQ(launcher.wait_status(), 0);
    return launcher.output();
  };
  const std::string first = key();
  EXPECT_NE(first, key());
  setenv("PORTOFU_JOB_KEY", "4711", 1);
  EXPECT_EQ(key(), "4711\n");
  unsetenv("PORTOFU_JOB_KEY");
}

TEST(PtlRun, Command_line__mistakes_are_told) {
  const auto status_of = [](Words words, const std::string& expected) {
    words.insert(words.begin(), PORTOFU_PTL_RUN);
    Launcher launcher(words);
    const int status = launcher.wait_status();
    EXPECT_TRUE(contains(launcher.output(), expected)) << launcher.output();
    return status;
  };
  EXPECT_EQ(status_of({"-n", "2"}, "no program"), 125);
  EXPECT_EQ(status_of({"true"}, "--np"), 125);
  EXPECT_EQ(status_of({"-n", "0", "true"}, "--np"), 125);
  EXPECT_EQ(status_of({"-n", "2", "--bind", "sockets", "true"}, "--bind"), 125);
  EXPECT_EQ(status_of({"-n", "2", "--map", "x", "true"}, "--map"), 125);
  EXPECT_EQ(status_of({"-n", "2", "--per-node", "0", "true"}, "--per-node"), 125);
  EXPECT_EQ(status_of({"--hosts", "127.0.0.1:2", "--per-node", "1", "true"}, "one machine"), 125);
  EXPECT_EQ(status_of({"--hosts", "127.0.0.1:2", "--shape", "2x1", "true"}, "one machine"), 125);
  EXPECT_EQ(status_of({"-n", "7", "--shape", "2x3", "true"}, "room for 6"), 125);
  EXPECT_EQ(status_of({"-n", "2", "--shape", "2x", "true"}, "--shape 2x"), 125);
  EXPECT_EQ(status_of({"-n", "2", "--wrong", "true"}, "--wrong"), 125);
  EXPECT_EQ(status_of({"-n", "2", "/no/such/program"}, "No such file"), 127);
  EXPECT_EQ(status_of({"-n", "2", "/etc/passwd"}, "Permission denied"), 126);
  EXPECT_EQ(status_of({"--help"}, "SYNOPSIS"), 0);
  EXPECT_EQ(status_of({"--version"}, "Portofu"), 0);
  EXPECT_EQ(status_of({"-n", "1", "/bin/echo", "-n", "5", "--help"}, "5 --help"), 0) << "options of the program";
}

}  // namespace
}  // namespace portofu

int main(int argc, char** argv) { return portofu::play_or_test(argc, argv, portofu::play); }
