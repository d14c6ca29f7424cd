// ptl_run with real processes: the PMI-1 dialogue, how jobs end, signals, input and output. The test program is its own
// rank: started with a role it plays that role instead of running tests. The roles that speak PMI are also played under
// Debian's mpiexec.hydra where there is one, so that both ends of the dialogue are checked against another's.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <portals4.h>
#include <sys/stat.h>
#include <utofu.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "tests/process/child_process.h"

namespace portofu {
namespace {

constexpr const char* kRoleVariable = "PTL_RUN_TEST_ROLE";

int environment_number(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : -1;
}

// ---- In the ranks --------------------------------------------------------------------------------------------------

/// The program's side of the dialogue.
class PmiClient {
 public:
  const int rank = environment_number("PMI_RANK");
  const int size = environment_number("PMI_SIZE");

  void say(const std::string& text) const {
    if (write(fd_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::_Exit(90);
  }

  /// Sends one request and waits for its answer. Ends the process if there is none.
  std::string ask(const std::string& request) const {
    say(request + '\n');
    std::string answer;
    for (char c = 0; c != '\n';) {
      if (read(fd_, &c, 1) != 1) std::_Exit(91);
      if (c != '\n') answer += c;
    }
    return answer;
  }

  /// @return the value of `key` in an answer, "" if it has none
  static std::string field(const std::string& answer, const std::string& key) {
    std::istringstream words(answer);
    for (std::string word; words >> word;) {
      if (word.starts_with(key + '=')) return word.substr(key.size() + 1);
    }
    return "";
  }

  /// Says `init` and learns the name of the space of pairs.
  void begin() {
    if (field(ask("cmd=init pmi_version=1 pmi_subversion=1"), "cmd") != "response_to_init") std::_Exit(92);
    name_ = field(ask("cmd=get_my_kvsname"), "kvsname");
  }
  std::string put(const std::string& key, const std::string& value) const {
    return ask("cmd=put kvsname=" + name_ + " key=" + key + " value=" + value);
  }
  std::string get(const std::string& key) const { return ask("cmd=get kvsname=" + name_ + " key=" + key); }
  std::string barrier() const { return ask("cmd=barrier_in"); }
  void end() const {
    if (field(ask("cmd=finalize"), "cmd") != "finalize_ack") std::_Exit(93);
  }
  const std::string& name() const { return name_; }

 private:
  int fd_ = environment_number("PMI_FD");
  std::string name_;
};

/// Everything that MPICH-style clients ask. @return 0, or the number of the line of the first wrong answer
int play_exchange() {
  PmiClient pmi;
  const auto is = [](const std::string& answer, const std::string& key, const std::string& value) {
    if (PmiClient::field(answer, key) == value) return true;
    std::fprintf(stderr, "expected %s=%s, got '%s'\n", key.c_str(), value.c_str(), answer.c_str());
    return false;
  };
#define CHECK_ANSWER(...) \
  if (!is(__VA_ARGS__)) return __LINE__ % 200
  const std::string init = pmi.ask("cmd=init pmi_version=1 pmi_subversion=1");
  CHECK_ANSWER(init, "cmd", "response_to_init");
  CHECK_ANSWER(init, "rc", "0");
  const std::string maxes = pmi.ask("cmd=get_maxes");
  CHECK_ANSWER(maxes, "cmd", "maxes");
  if (std::atoi(PmiClient::field(maxes, "vallen_max").c_str()) < 256) return 201;
  CHECK_ANSWER(pmi.ask("cmd=get_appnum"), "appnum", "0");
  CHECK_ANSWER(pmi.ask("cmd=get_universe_size"), "cmd", "universe_size");
  pmi.begin();
  if (pmi.name().empty()) return 202;
  CHECK_ANSWER(pmi.get("nobody-has-put-this"), "cmd", "get_result");
  for (int round = 0; round < 20; ++round) {
    const auto key = [&](int rank) { return "key-" + std::to_string(round) + "-" + std::to_string(rank); };
    const auto value = [&](int rank) { return std::string(static_cast<std::size_t>(1 + 40 * rank + round), 'v'); };
    CHECK_ANSWER(pmi.put(key(pmi.rank), value(pmi.rank)), "rc", "0");
    CHECK_ANSWER(pmi.barrier(), "cmd", "barrier_out");
    for (int rank = 0; rank < pmi.size; ++rank) CHECK_ANSWER(pmi.get(key(rank)), "value", value(rank));
    CHECK_ANSWER(pmi.barrier(), "cmd", "barrier_out");
  }
#undef CHECK_ANSWER
  pmi.end();
  return 0;
}

/// What only ptl_run promises.
int play_refusals() {
  PmiClient pmi;
  pmi.begin();
  const auto rc = [](const std::string& answer) { return PmiClient::field(answer, "rc"); };
  const std::string own = "key-" + std::to_string(pmi.rank);
  if (rc(pmi.put(own, "1")) != "0" || rc(pmi.put(own, "2")) != "-1") return 1;
  if (PmiClient::field(pmi.get(own), "value") != "1") return 2;
  if (rc(pmi.get("absent")) != "-1") return 3;
  if (rc(pmi.ask("cmd=get kvsname=another key=" + own)) != "-1") return 4;
  if (rc(pmi.put("", "empty")) != "-1" || rc(pmi.put(std::string(64, 'k'), "long")) != "-1") return 5;
  if (rc(pmi.put("long", std::string(1024, 'v'))) != "-1") return 6;
  if (rc(pmi.ask("cmd=publish_name service=a port=b")) != "-1") return 7;
  if (PmiClient::field(pmi.get("PMI_process_mapping"), "value") != "(vector,(0,1," + std::to_string(pmi.size) + "))")
    return 8;
  int pairs = 0;
  for (std::string index = "0"; !index.empty() && pairs < 1000; ++pairs) {
    const std::string answer = pmi.ask("cmd=getbyidx kvsname=" + pmi.name() + " idx=" + index);
    index = PmiClient::field(answer, "nextidx");
  }
  if (pairs < 3) return 9;
  pmi.barrier();
  pmi.end();
  return 0;
}

/// Finds the others by PMI and puts to the next one.
int play_portals() {
  PmiClient pmi;
  pmi.begin();
  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  ptl_handle_ct_t ct = PTL_INVALID_HANDLE;
  ptl_handle_md_t md = PTL_INVALID_HANDLE;
  ptl_handle_le_t entry = PTL_INVALID_HANDLE;
  ptl_pt_index_t pt = 0;
  ptl_process_t self{};
  std::uint64_t received = 0;
  std::uint64_t sent = 1000u + static_cast<unsigned>(pmi.rank);
  if (PtlInit() != PTL_OK) return 1;
  if (PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr, nullptr, &ni) != PTL_OK)
    return 2;
  if (PtlGetPhysId(ni, &self) != PTL_OK || PtlCTAlloc(ni, &ct) != PTL_OK) return 3;
  if (PtlPTAlloc(ni, 0, PTL_EQ_NONE, 4, &pt) != PTL_OK) return 4;
  const ptl_le_t le{&received, sizeof received, ct, PTL_UID_ANY, PTL_LE_OP_PUT | PTL_LE_EVENT_CT_COMM};
  if (PtlLEAppend(ni, pt, &le, PTL_PRIORITY_LIST, nullptr, &entry) != PTL_OK) return 5;
  const ptl_md_t described{&sent, sizeof sent, 0, PTL_EQ_NONE, PTL_CT_NONE};
  if (PtlMDBind(ni, &described, &md) != PTL_OK) return 6;
  pmi.put("id-" + std::to_string(pmi.rank), std::to_string(self.phys.nid) + ':' + std::to_string(self.phys.pid));
  pmi.barrier();
  const std::string next = PmiClient::field(pmi.get("id-" + std::to_string((pmi.rank + 1) % pmi.size)), "value");
  ptl_process_t target{};
  if (std::sscanf(next.c_str(), "%u:%u", &target.phys.nid, &target.phys.pid) != 2) return 7;
  if (PtlPut(md, 0, sizeof sent, PTL_NO_ACK_REQ, target, pt, 0, 0, nullptr, 0) != PTL_OK) return 8;
  ptl_ct_event_t value{};
  if (PtlCTWait(ct, 1, &value) != PTL_OK || value.failure != 0) return 9;
  if (received != 1000u + static_cast<unsigned>((pmi.rank + pmi.size - 1) % pmi.size)) return 10;
  pmi.barrier();
  pmi.end();
  PtlFini();
  return 0;
}

/// The same with uTofu: a put whose notice arrives. Prints its coordinates.
int play_utofu() {
  PmiClient pmi;
  pmi.begin();
  utofu_vcq_hdl_t vcq = 0;
  utofu_vcq_id_t vcq_id = 0;
  utofu_stadd_t stadd = 0;
  alignas(256) std::uint64_t memory[32] = {};
  std::uint8_t at[6] = {};
  if (utofu_query_my_coords(at) != UTOFU_SUCCESS) return 1;
  if (utofu_create_vcq(0, 0, &vcq) != UTOFU_SUCCESS || utofu_query_vcq_id(vcq, &vcq_id) != UTOFU_SUCCESS) return 2;
  if (utofu_reg_mem(vcq, memory, sizeof memory, 0, &stadd) != UTOFU_SUCCESS) return 3;
  pmi.put("id-" + std::to_string(pmi.rank), std::to_string(vcq_id) + ':' + std::to_string(stadd));
  pmi.barrier();
  const std::string next = PmiClient::field(pmi.get("id-" + std::to_string((pmi.rank + 1) % pmi.size)), "value");
  unsigned long target = 0;
  unsigned long there = 0;
  if (std::sscanf(next.c_str(), "%lu:%lu", &target, &there) != 2) return 4;
  const auto word = static_cast<std::uint64_t>(1000 + pmi.rank);
  if (utofu_put_piggyback8(vcq, target, word, there, 8, 0, UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE, nullptr) !=
      UTOFU_SUCCESS) {
    return 5;
  }
  utofu_mrq_notice notice{};
  int rc = UTOFU_ERR_NOT_FOUND;
  if (!eventually([&] { return (rc = utofu_poll_mrq(vcq, 0, &notice)) != UTOFU_ERR_NOT_FOUND; })) return 6;
  if (rc != UTOFU_SUCCESS || memory[0] != static_cast<std::uint64_t>(1000 + (pmi.rank + pmi.size - 1) % pmi.size))
    return 7;
  std::printf("rank %d at %d,%d,%d,%d,%d,%d\n", pmi.rank, at[0], at[1], at[2], at[3], at[4], at[5]);
  std::fflush(stdout);
  pmi.barrier();
  pmi.end();
  return 0;
}

/// Reads standard input to its end. @return number of bytes
std::size_t input_bytes() {
  std::size_t bytes = 0;
  char buffer[4096];
  for (ssize_t got; (got = read(STDIN_FILENO, buffer, sizeof buffer)) > 0;) bytes += static_cast<std::size_t>(got);
  return bytes;
}

[[noreturn]] void sleep_for_ever() {
  for (;;) pause();
}

void print_ready() {
  const std::string line = "ready " + std::to_string(getpid()) + '\n';
  if (write(STDOUT_FILENO, line.data(), line.size()) < 0) std::_Exit(94);
}

void exit_well(int) { std::_Exit(0); }

int play(const std::string& role) {
  const int rank = environment_number("PMI_RANK");
  if (role == "exchange") return play_exchange();
  if (role == "refusals") return play_refusals();
  if (role == "portals") return play_portals();
  if (role == "utofu") return play_utofu();
  if (role == "input") {
    std::printf("rank %d read %zu\n", rank, input_bytes());
    std::fflush(stdout);
    return 0;
  }
  if (role == "sleep" || role == "sleep_but_0_exits_3") {
    print_ready();
    if (rank == 0 && role != "sleep") return 3;
    sleep_for_ever();
  }
  if (role == "exit_at_usr1" || role == "exit_at_term") {
    signal(role == "exit_at_term" ? SIGTERM : SIGUSR1, exit_well);
    print_ready();
    sleep_for_ever();
  }
  if (role == "deaf") {
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    print_ready();
    sleep_for_ever();
  }
  if (role == "crash") {
    if (rank == 2) std::abort();
    sleep_for_ever();
  }
  PmiClient pmi;
  pmi.begin();
  if (role == "leave_before_barrier" && rank == 1) return 0;
  if (role == "finalize_before_barrier" && rank == 1) {
    pmi.end();
    sleep_for_ever();
  }
  if (role == "abort" && rank == 2) {
    pmi.say("cmd=abort exitcode=7\n");
    sleep_for_ever();
  }
  if (role == "stubborn") {
    signal(SIGTERM, SIG_IGN);
    print_ready();
    pmi.barrier();
    if (rank == 1) return 5;
    sleep_for_ever();
  }
  if (role == "unknown" && rank == 1) pmi.say("cmd=make_coffee\n");
  if (role == "endless" && rank == 1) pmi.say(std::string(100'000, 'x'));
  pmi.barrier();
  return 0;
}

// ---- In the tests --------------------------------------------------------------------------------------------------

/// A launcher that runs: ptl_run with the given arguments. Killed, with its job, at the end.
class Launcher {
 public:
  /// @param words  arguments; the first is the program
  explicit Launcher(const std::vector<std::string>& words, const std::string& role = "",
                    const std::string& input = "") {
    int out[2];
    int in[2];
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(in, O_CLOEXEC) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      setenv(kRoleVariable, role.c_str(), 1);
      dup2(in[0], STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      dup2(out[1], STDERR_FILENO);
      std::vector<char*> arguments;
      for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
      arguments.push_back(nullptr);
      alarm(60);  // Outlives exec.
      execv(arguments[0], arguments.data());
      _exit(99);
    }
    close(out[1]);
    close(in[0]);
    out_ = out[0];
    signal(SIGPIPE, SIG_IGN);
    if (write(in[1], input.data(), input.size()) < 0 && errno != EPIPE) std::abort();
    close(in[1]);
  }
  ~Launcher() {
    if (pid_ > 0) wait_status();
    close(out_);
  }
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  void send_signal(int number) const { ::kill(pid_, number); }

  /// Reads output until `count` ranks have said that they are ready. @return their process numbers
  std::vector<pid_t> wait_until_ready(int count) {
    std::vector<pid_t> pids;
    eventually([&] {
      const bool ended = !read_some(100);
      pids.clear();
      std::istringstream lines(output_);
      for (std::string word; lines >> word;) {
        if (word == "ready" && lines >> word) pids.push_back(std::atoi(word.c_str()));
      }
      return ended || static_cast<int>(pids.size()) >= count;
    });
    return pids;
  }

  pid_t pid() const { return pid_; }

  bool has_ended() const {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_;
  }

  /// Waits until it and all that write to its output have ended. @return exit status, or 128 + signal
  int wait_status() {
    while (read_some(-1)) {
    }
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  /// stdout and stderr, as far as they were read.
  const std::string& output() const { return output_; }

 private:
  /// @return false at the end of the output
  bool read_some(int timeout_ms) {
    pollfd readable{out_, POLLIN, 0};
    if (poll(&readable, 1, timeout_ms) == 0) return true;
    char buffer[65536];
    const ssize_t got = read(out_, buffer, sizeof buffer);
    if (got > 0) output_.append(buffer, static_cast<std::size_t>(got));
    return got > 0;
  }

  pid_t pid_ = -1;
  int out_ = -1;
  std::string output_;
};

std::string own_program() { return std::filesystem::read_symlink("/proc/self/exe"); }

using Words = std::vector<std::string>;

/// ptl_run with options, and this very program as its ranks.
Words with_ranks(int count, Words options = {}) {
  Words words{PORTOFU_PTL_RUN, "-n", std::to_string(count)};
  words.insert(words.end(), options.begin(), options.end());
  words.push_back(own_program());
  return words;
}

/// ptl_run with a shell command as its ranks.
Words with_shell(int count, const std::string& command, Words options = {}) {
  Words words = with_ranks(count, std::move(options));
  words.back() = "/bin/sh";
  words.insert(words.end(), {"-c", command});
  return words;
}

bool is_gone(pid_t pid) { return kill(pid, 0) != 0 && errno == ESRCH; }

std::size_t line_count(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

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

constexpr const char* kWithDescendants = "sleep 1000 & echo ready $!; (sleep 1000; true) & echo ready $!; wait";

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

// ---- Hosts ---------------------------------------------------------------------------------------------------------

/// Hosts that are loopback addresses of this machine, reached by an agent that is only a local shell. It notes each
/// command that it is given.
class Hosts {
 public:
  explicit Hosts(int count) {
    std::ofstream(agent()) << "#!/bin/sh\necho \"$@\" >>" << notes() << "\nshift\nsh -c \"$*\"\n";
    chmod(agent().c_str(), 0700);
    for (int i = 1; i <= count; ++i) list_ += (i > 1 ? ",127.12." : "127.12.") + network() + '.' + std::to_string(i);
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
  std::string address(int number) const { return "127.12." + network() + '.' + std::to_string(number); }
  std::string agent_was_told() const {
    std::stringstream text;
    text << std::ifstream(notes()).rdbuf();
    return text.str();
  }

 private:
  static std::string network() { return std::to_string(getpid() % 250 + 1); }
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
    EXPECT_TRUE(contains(launcher.output(), "the connection to the host 127.12.")) << launcher.output();
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
  EXPECT_EQ(status_of(with({"--hosts", "a", "--agent", "/no/such/agent", "true"}), "is lost"), 125);
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
  EXPECT_EQ(status_of({"-n", "2", "--wrong", "true"}, "--wrong"), 125);
  EXPECT_EQ(status_of({"-n", "2", "/no/such/program"}, "No such file"), 127);
  EXPECT_EQ(status_of({"-n", "2", "/etc/passwd"}, "Permission denied"), 126);
  EXPECT_EQ(status_of({"--help"}, "SYNOPSIS"), 0);
  EXPECT_EQ(status_of({"--version"}, "Portofu"), 0);
  EXPECT_EQ(status_of({"-n", "1", "/bin/echo", "-n", "5", "--help"}, "5 --help"), 0) << "options of the program";
}

}  // namespace

}  // namespace portofu

int main(int argc, char** argv) {
  const char* role = std::getenv(portofu::kRoleVariable);
  if (role != nullptr && *role != '\0' && std::getenv("PMI_RANK") != nullptr) std::_Exit(portofu::play(role));
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
