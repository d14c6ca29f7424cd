// ptl_run --hosts with real processes, on hosts that are loopback addresses of this machine: all that it does on one
// node it does on several, and whatever is killed, nothing stays.

#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>

#include "tests/process/launcher.h"
#include "tests/process/test_network.h"

namespace portofu {
namespace {

/// Hosts that are loopback addresses of this machine, reached by an agent that is only a local shell. It notes each
/// command that it is given.
class Hosts {
 public:
  explicit Hosts(int count) {
    std::ofstream(agent()) << "#!/bin/sh\necho \"$@\" >>" << notes() << "\nshift\nsh -c \"$*\"\n";
    chmod(agent().c_str(), 0700);
    for (int i = 1; i <= count; ++i) list_ += (i > 1 ? "," : "") + test_address(i);
  }
  ~Hosts() {
    unlink(agent().c_str());
    unlink(notes().c_str());
  }

  /// ptl_run with these hosts, and this very program as its ranks.
  Words with_ranks(int count, Words options = {}) const {
    Words words{PORTOFU_PTL_RUN, "--hosts", list_,      "-n",         std::to_string(count),
                "--agent",       agent(),   "--export", kRoleVariable};
    words.insert(words.end(), options.begin(), options.end());
    words.push_back(own_program());
    return words;
  }
  Words with_shell(int count, const std::string& command, Words options = {}) const {
    Words words = with_ranks(count, std::move(options));
    words.back() = "/bin/sh";
    words.insert(words.end(), {"-c", command});
    return words;
  }
  std::string address(int number) const { return test_address(number); }
  std::string agent_was_told() const {
    std::stringstream text;
    text << std::ifstream(notes()).rdbuf();
    return text.str();
  }

 private:
  static std::string agent() { return "/tmp/ptl-run-test-agent-" + std::to_string(getpid()); }
  static std::string notes() { return agent() + ".notes"; }

  std::string list_;
};

pid_t parent_of(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string word; status >> word;) {
    if (word == "PPid:" && status >> word) return std::atoi(word.c_str());
  }
  return -1;
}

void expect_all_gone(const std::vector<pid_t>& pids) {
  for (const pid_t pid : pids) EXPECT_TRUE(eventually([&] { return is_gone(pid); })) << pid;
}

TEST(PtlRunHosts, Dialogue__is_the_same) {
  const Hosts hosts(3);
  Launcher launcher(hosts.with_ranks(5), "exchange");
  EXPECT_EQ(launcher.wait_status(), 0) << launcher.output();
  EXPECT_EQ(launcher.output(), "");
}

TEST(PtlRunHosts, Portals__processes_find_each_other) {
  const Hosts hosts(3);
  Launcher launcher(hosts.with_ranks(6), "portals");
  EXPECT_EQ(launcher.wait_status(), 0) << launcher.output();
  EXPECT_EQ(launcher.output(), "");
}

TEST(PtlRunHosts, uTofu__finds_queues_of_all_nodes_and_each_knows_its_place) {
  const Hosts hosts(3);
  Launcher launcher(hosts.with_ranks(4), "utofu");
  EXPECT_EQ(launcher.wait_status(), 0) << launcher.output();
  // Without coordinates nodes stand along X, in the order of the hosts.
  for (const char* line :
       {"rank 0 at 0,0,0,0,0,0\n", "rank 1 at 0,0,0,0,0,0\n", "rank 2 at 1,0,0,0,0,0\n", "rank 3 at 2,0,0,0,0,0\n"})
    EXPECT_TRUE(contains(launcher.output(), line)) << line << " in\n" << launcher.output();
}

TEST(PtlRunHosts, Ranks__go_to_the_hosts_in_blocks_and_know_where_they_are) {
  const Hosts hosts(2);
  Launcher launcher(hosts.with_shell(
      3, "echo $PMI_RANK of $PMI_SIZE, $MPI_LOCALRANKID of $MPI_LOCALNRANKS at $PORTOFU_NID; pwd", {"-l"}));
  EXPECT_EQ(launcher.wait_status(), 0);
  const std::string directory = std::filesystem::current_path();
  for (const std::string& line :
       {"[0] 0 of 3, 0 of 2 at " + hosts.address(1), "[1] 1 of 3, 1 of 2 at " + hosts.address(1),
        "[2] 2 of 3, 0 of 1 at " + hosts.address(2), "[2] " + directory})
    EXPECT_TRUE(contains(launcher.output(), line + '\n')) << line << " in\n" << launcher.output();
}

TEST(PtlRunHosts, Hosts_file__is_the_same_for_all_and_has_no_name_that_could_stay) {
  const Hosts hosts(2);
  Launcher launcher(hosts.with_shell(2, "cat $PORTOFU_HOSTS"));
  EXPECT_EQ(launcher.wait_status(), 0);
  const std::string text = hosts.address(1) + '\n' + hosts.address(2) + '\n';
  EXPECT_EQ(launcher.output(), text + text);
}

TEST(PtlRunHosts, Coordinates__of_the_users_file_get_there) {
  const Hosts hosts(2);
  const std::string path = "/tmp/ptl-run-test-hosts-" + std::to_string(getpid());
  std::ofstream(path) << hosts.address(1) << "   0,0,0,0,0,0\n" << hosts.address(2) << ":2 7,0,0,1,2,1 # there\n";
  Words words = hosts.with_shell(3, "if [ $PMI_RANK = 2 ]; then cat $PORTOFU_HOSTS; fi");
  words[2] = path;
  Launcher launcher(words);
  EXPECT_EQ(launcher.wait_status(), 0);
  EXPECT_EQ(launcher.output(), hosts.address(1) + " 0,0,0,0,0,0\n" + hosts.address(2) + " 7,0,0,1,2,1\n");
  unlink(path.c_str());
}

TEST(PtlRunHosts, Job_key__is_one_for_the_job_and_on_no_command_line) {
  const Hosts hosts(2);
  Launcher launcher(hosts.with_shell(2, "echo $PORTOFU_JOB_KEY"));
  EXPECT_EQ(launcher.wait_status(), 0);
  std::istringstream lines(launcher.output());
  std::string first, second;
  lines >> first >> second;
  EXPECT_NE(first, "");
  EXPECT_NE(first, "0");
  EXPECT_EQ(first, second);
  EXPECT_TRUE(contains(hosts.agent_was_told(), hosts.address(2))) << hosts.agent_was_told();
  EXPECT_FALSE(contains(hosts.agent_was_told(), first));
}

TEST(PtlRunHosts, Receives_of_the_fabric__are_few_unless_the_user_says_how_many) {
  constexpr const char* kName = "FI_OFI_RXM_MSG_RX_SIZE";
  const char* const before = std::getenv(kName);
  const std::optional<std::string> kept = before != nullptr ? std::optional<std::string>(before) : std::nullopt;
  const Hosts hosts(2);
  const Words words = hosts.with_shell(2, std::string("echo $") + kName);
  unsetenv(kName);
  Launcher plain(words);
  EXPECT_EQ(plain.wait_status(), 0);
  EXPECT_EQ(plain.output(), "128\n128\n");
  setenv(kName, "512", 1);
  Launcher told(words);
  EXPECT_EQ(told.wait_status(), 0);
  EXPECT_EQ(told.output(), "512\n512\n");
  unsetenv(kName);
  if (kept) setenv(kName, kept->c_str(), 1);
}

TEST(PtlRunHosts, Input__goes_to_rank_0_only_and_ends) {
  const Hosts hosts(2);
  Launcher launcher(hosts.with_ranks(3), "input", std::string(50'000, 'i'));
  EXPECT_EQ(launcher.wait_status(), 0);
  EXPECT_TRUE(contains(launcher.output(), "rank 0 read 50000\n")) << launcher.output();
  EXPECT_TRUE(contains(launcher.output(), "rank 2 read 0\n")) << launcher.output();
}

TEST(PtlRunHosts, Output__is_carried_whole) {
  const Hosts hosts(3);
  Launcher launcher(hosts.with_shell(3, "head -c 3000000 /dev/zero | tr '\\0' x; echo err >&2"));
  EXPECT_EQ(launcher.wait_status(), 0);
  EXPECT_EQ(std::count(launcher.output().begin(), launcher.output().end(), 'x'), 9'000'000);
  EXPECT_EQ(line_count(launcher.output()), 3u);
}

TEST(PtlRunHosts, Output__that_nobody_takes_ends_the_job) {
  const Hosts hosts(2);
  std::string line = "{";
  for (const std::string& word : hosts.with_shell(2, "while :; do echo line; done")) line += " '" + word + "'";
  Launcher launcher({"/bin/sh", "-c", line + "; echo =$? >&2; } | head -1"});
  EXPECT_EQ(launcher.wait_status(), 0);
  EXPECT_TRUE(contains(launcher.output(), "standard output cannot be written: Broken pipe")) << launcher.output();
  EXPECT_TRUE(contains(launcher.output(), "=141\n")) << launcher.output();
}

TEST(PtlRunHosts, End__status_is_that_of_the_first_bad_rank_and_all_others_are_ended) {
  const Hosts hosts(3);
  Launcher launcher(hosts.with_ranks(4), "sleep_but_0_exits_3");
  EXPECT_EQ(launcher.wait_status(), 3);
  EXPECT_TRUE(contains(launcher.output(), " on " + hosts.address(1) + ") exited with status 3; ending the others"))
      << launcher.output();
  Launcher abort(hosts.with_ranks(4), "abort");
  EXPECT_EQ(abort.wait_status(), 7) << abort.output();
}

TEST(PtlRunHosts, Signals__are_passed_on_and_end_the_job) {
  const Hosts hosts(2);
  Launcher passed(hosts.with_ranks(3), "exit_at_usr1");
  ASSERT_EQ(passed.wait_until_ready(3).size(), 3u);
  passed.send_signal(SIGUSR1);
  EXPECT_EQ(passed.wait_status(), 0) << passed.output();
  Launcher ended(hosts.with_ranks(3), "sleep");
  ASSERT_EQ(ended.wait_until_ready(3).size(), 3u);
  ended.send_signal(SIGINT);
  EXPECT_EQ(ended.wait_status(), 128 + SIGINT) << ended.output();
  Launcher stubborn(hosts.with_ranks(3, {"--grace", "1"}), "stubborn");
  const std::vector<pid_t> pids = stubborn.wait_until_ready(3);
  EXPECT_EQ(stubborn.wait_status(), 5) << stubborn.output();
  expect_all_gone(pids);
}

TEST(PtlRunHosts, Death_of_the_launcher__leaves_nothing_running) {
  const Hosts hosts(3);
  Launcher launcher(hosts.with_ranks(3), "sleep");
  std::vector<pid_t> pids = launcher.wait_until_ready(3);
  ASSERT_EQ(pids.size(), 3u);
  for (int i = 0; i < 3; ++i) pids.push_back(parent_of(pids[static_cast<std::size_t>(i)]));
  launcher.send_signal(SIGKILL);
  expect_all_gone(pids);
  EXPECT_EQ(launcher.wait_status(), 128 + SIGKILL);
}

TEST(PtlRunHosts, Death_of_a_helper_or_its_agent__ends_the_job_and_is_told) {
  const Hosts hosts(3);
  for (const bool agent : {false, true}) {
    Launcher launcher(hosts.with_ranks(3), "sleep");
    std::vector<pid_t> pids = launcher.wait_until_ready(3);
    ASSERT_EQ(pids.size(), 3u);
    const pid_t helper = parent_of(pids[0]);
    for (int i = 0; i < 3; ++i) pids.push_back(parent_of(pids[static_cast<std::size_t>(i)]));
    // The agent's shell waits for the shell that becomes the helper.
    kill(agent ? parent_of(helper) : helper, SIGKILL);
    EXPECT_EQ(launcher.wait_status(), 125);
    EXPECT_TRUE(contains(launcher.output(), "the connection to the host " + test_address(1).substr(0, 4)))
        << launcher.output();
    EXPECT_TRUE(contains(launcher.output(), "is lost")) << launcher.output();
    expect_all_gone(pids);
  }
}

TEST(PtlRunHosts, Death_of_launcher_or_helper__ends_what_the_ranks_have_started) {
  const Hosts hosts(2);
  for (const bool helper : {false, true}) {
    Launcher launcher(hosts.with_shell(2, std::string("echo ready $$; ") + kWithDescendants));
    const std::vector<pid_t> pids = launcher.wait_until_ready(6);
    ASSERT_EQ(pids.size(), 6u);
    helper ? kill(parent_of(pids[0]), SIGKILL) : kill(launcher.pid(), SIGKILL);
    EXPECT_NE(launcher.wait_status(), 0);
    expect_all_gone(pids);
  }
}

TEST(PtlRunHosts, Helper_that_is_stopped__keeps_nobody_waiting) {
  const Hosts hosts(2);
  Launcher launcher(hosts.with_ranks(2, {"--grace", "1"}), "sleep");
  const std::vector<pid_t> pids = launcher.wait_until_ready(2);
  ASSERT_EQ(pids.size(), 2u);
  const pid_t helper = parent_of(pids[0]);
  kill(helper, SIGSTOP);
  launcher.send_signal(SIGTERM);
  EXPECT_TRUE(eventually([&] { return launcher.has_ended(); })) << "it waits for the grace and 7 s more";
  kill(helper, SIGCONT);
  EXPECT_EQ(launcher.wait_status(), 128 + SIGTERM);
  EXPECT_TRUE(contains(launcher.output(), "does not say that its ranks have ended")) << launcher.output();
  expect_all_gone(pids);
}

TEST(PtlRunHosts, Mistakes__are_told_and_nothing_begins) {
  const Hosts hosts(2);
  const auto status_of = [](const Words& words, const std::string& expected) {
    Launcher launcher(words);
    const int status = launcher.wait_status();
    EXPECT_TRUE(contains(launcher.output(), expected)) << launcher.output();
    return status;
  };
  const auto with = [](const Words& words) {
    Words all{PORTOFU_PTL_RUN};
    all.insert(all.end(), words.begin(), words.end());
    return all;
  };
  EXPECT_EQ(status_of(with({"--hosts", "a,b:x", "true"}), "'b:x'"), 125);
  EXPECT_EQ(status_of(with({"--hosts", "a,b", "-n", "0", "true"}), "--np"), 125);
  EXPECT_EQ(status_of(with({"--hosts", "a:1,b:1", "-n", "3", "true"}), "places for 2"), 125);
  EXPECT_EQ(status_of(with({"--hosts", "/no/such/file", "true"}), "/no/such/file"), 125);
  EXPECT_EQ(status_of(with({"--hosts", "a,b", "--agent", "/bin/false", "true"}), "is lost"), 125);
  EXPECT_EQ(status_of(with({"--hosts", "a", "--agent", "/no/such/agent", "true"}),
                      "ptl_run: cannot start '/no/such/agent': No such file or directory\n"),
            125);
  Words missing = hosts.with_ranks(2);
  missing.back() = "/no/such/program";
  EXPECT_EQ(status_of(missing, "No such file"), 127);
  // Both are asked for the address of the one machine.
  Words twice = hosts.with_shell(2, "echo began");
  twice[2] = "a,b";
  Launcher same(twice);
  EXPECT_EQ(same.wait_status(), 125);
  EXPECT_TRUE(contains(same.output(), "stands for the same node")) << same.output();
  EXPECT_FALSE(contains(same.output(), "began")) << same.output();
}

}  // namespace
}  // namespace portofu

int main(int argc, char** argv) { return portofu::play_or_test(argc, argv, portofu::play); }
