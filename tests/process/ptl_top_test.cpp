// ptl_top, run as users run it: once, as JSON, and in a terminal.

#include <gtest/gtest.h>
#include <portals4.h>
#include <pty.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>
#include <utofu.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/process/child_process.h"
#include "tests/process/command_output.h"

namespace portofu {
namespace {

const std::string kTool = PORTOFU_PTL_TOP;
constexpr ptl_pt_index_t kPortal = 0;

/// An interface that takes puts of everybody.
struct Side {
  Side() {
    ptl_pt_index_t pt = 0;
    ptl_handle_le_t entry = PTL_INVALID_HANDLE;
    const ptl_le_t le{nullptr, 0, PTL_CT_NONE, PTL_UID_ANY, PTL_LE_OP_PUT};
    const ptl_md_t described{nullptr, 0, 0, PTL_EQ_NONE, PTL_CT_NONE};
    ok = PtlInit() == PTL_OK &&
         PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr, nullptr, &ni) ==
             PTL_OK &&
         PtlGetPhysId(ni, &id) == PTL_OK && PtlPTAlloc(ni, 0, PTL_EQ_NONE, kPortal, &pt) == PTL_OK &&
         PtlLEAppend(ni, pt, &le, PTL_PRIORITY_LIST, nullptr, &entry) == PTL_OK &&
         PtlMDBind(ni, &described, &md) == PTL_OK;
  }
  bool put(ptl_process_t to) const { return PtlPut(md, 0, 0, PTL_NO_ACK_REQ, to, kPortal, 0, 0, nullptr, 0) == PTL_OK; }

  bool ok = false;
  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  ptl_handle_md_t md = PTL_INVALID_HANDLE;
  ptl_process_t id{};
};

/// A process that does nothing, and one that puts to it every millisecond: a job of their own.
class PtlTop : public ::testing::Test {
 protected:
  PtlTop()
      : job_key_(set_job_key()),
        idle_([this] {
          const Side side;
          if (!side.ok || write(pipes_[1], &side.id, sizeof side.id) < 0) return 1;
          for (;;) pause();
        }),
        id_(read_id()),
        busy_([this] {
          const Side side;
          if (!side.ok) return 1;
          for (; side.put(id_); usleep(1000)) continue;
          return 1;
        }) {}

  nlohmann::json look_at_job(const std::string& job) const {
    int status = -1;
    const std::string text = output_of(kTool + " --once --json --interval 0.3 --job " + job, &status);
    EXPECT_EQ(status, 0) << text;
    return nlohmann::json::parse(text, nullptr, false);
  }
  /// What the tool says of a process. @return null if it is not there
  static nlohmann::json process_in(const nlohmann::json& all, pid_t os_pid) {
    for (const auto& one : all) {
      if (one["process"] == os_pid) return one;
    }
    return {};
  }

  nlohmann::json look() const { return look_at_job(job_key_); }

  const std::string job_key_;
  const std::array<int, 2> pipes_ = make_pipe();
  ChildProcess idle_;
  const ptl_process_t id_;
  ChildProcess busy_;

 private:
  static std::string set_job_key() {
    const std::string key = std::to_string(getpid());
    setenv("PORTOFU_JOB_KEY", key.c_str(), 1);
    return key;
  }
  static std::array<int, 2> make_pipe() {
    std::array<int, 2> made{};
    EXPECT_EQ(pipe(made.data()), 0);
    return made;
  }
  ptl_process_t read_id() const {
    ptl_process_t id{};
    EXPECT_EQ(read(pipes_[0], &id, sizeof id), static_cast<ssize_t>(sizeof id));
    return id;
  }
};

TEST_F(PtlTop, Processes__are_shown_with_what_they_do) {
  nlohmann::json all;
  nlohmann::json busy;
  EXPECT_TRUE(eventually([&] {
    busy = process_in(all = look(), busy_.pid());
    return !busy.is_null() && busy["per_second"]["sent"] > 10.0;
  })) << all.dump(2);
  EXPECT_EQ(busy["program"], "process_ptl_top");
  EXPECT_GT(busy["counters"]["puts_sent"], 10);
  const nlohmann::json idle = process_in(all, idle_.pid());
  ASSERT_FALSE(idle.is_null()) << all.dump(2);
  EXPECT_EQ(idle["pids"][0], id_.phys.pid);
  EXPECT_EQ(idle["per_second"]["sent"], 0.0);
  EXPECT_TRUE(process_in(look_at_job("4242"), busy_.pid()).is_null());
}

TEST_F(PtlTop, Process_that_is_stopped__is_shown_with_what_waits_for_it) {
  idle_.send_signal(SIGSTOP);
  nlohmann::json idle;
  EXPECT_TRUE(eventually([&] {
    idle = process_in(look(), idle_.pid());
    return !idle.is_null() && idle["state"] == "T" && !idle["waiting"].empty();
  })) << idle.dump(2);
  EXPECT_EQ(idle["waiting"][0]["to_pid"], id_.phys.pid);
  EXPECT_GT(idle["waiting"][0]["packets"], 0);
}

/// A process that has read none of `kUnread` events, of which its queue takes twice as many.
class Unread {
 public:
  static constexpr ptl_size_t kUnread = 8;

  Unread()
      : child_([] {
          ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
          ptl_handle_eq_t eq = PTL_INVALID_HANDLE;
          ptl_handle_le_t entry = PTL_INVALID_HANDLE;
          ptl_pt_index_t pt = 0;
          const ptl_le_t le{nullptr, 0, PTL_CT_NONE, PTL_UID_ANY, PTL_LE_OP_PUT};
          if (PtlInit() != PTL_OK ||
              PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr, nullptr, &ni) !=
                  PTL_OK ||
              PtlEQAlloc(ni, 2 * kUnread, &eq) != PTL_OK || PtlPTAlloc(ni, 0, eq, kPortal, &pt) != PTL_OK)
            return 1;
          for (ptl_size_t i = 0; i < kUnread; ++i) {  // An event LINK each.
            if (PtlLEAppend(ni, pt, &le, PTL_PRIORITY_LIST, nullptr, &entry) != PTL_OK) return 2;
          }
          utofu_vcq_hdl_t vcq = 0;
          utofu_vcq_id_t own = 0;
          if (utofu_create_vcq(0, 0, &vcq) != UTOFU_SUCCESS || utofu_query_vcq_id(vcq, &own) != UTOFU_SUCCESS) return 3;
          alignas(256) static std::array<std::byte, 256> memory;
          utofu_stadd_t stadd = 0;
          if (utofu_reg_mem(vcq, memory.data(), memory.size(), 0, &stadd) != UTOFU_SUCCESS) return 4;
          if (utofu_put_piggyback8(vcq, own, 1, stadd, 8, 0, UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE, nullptr) !=
              UTOFU_SUCCESS)
            return 5;
          for (;;) pause();
        }) {}
  pid_t pid() const { return child_.pid(); }

 private:
  ChildProcess child_;
};

TEST_F(PtlTop, Queues_that_fill__are_shown_with_how_full_they_are) {
  const Unread unread;
  nlohmann::json seen;
  EXPECT_TRUE(eventually([&] {
    seen = process_in(look(), unread.pid());
    return !seen.is_null() && seen["eq_percent"] == 50.0 && seen["mrq_percent"].is_number() &&
           seen["mrq_percent"] > 0.0;
  })) << seen.dump(2);
  bool has_notice = false;
  for (const auto& queue : seen["queues"]) has_notice = has_notice || (queue["kind"] == "mrq" && queue["unread"] == 1);
  EXPECT_TRUE(has_notice) << seen["queues"];
}

TEST_F(PtlTop, Process__that_waits_is_shown_with_whom_it_waits_for) {
  idle_.send_signal(SIGSTOP);
  nlohmann::json busy;
  EXPECT_TRUE(eventually([&] {
    busy = process_in(look(), busy_.pid());
    return !busy.is_null() && !busy["waits_for_pids"].empty();
  })) << busy.dump(2);
  EXPECT_EQ(busy["waits_for_pids"][0], id_.phys.pid);
  EXPECT_EQ(busy["peers"][0]["pid"], id_.phys.pid);
}

/// The tool in a terminal of its own.
class Screen {
 public:
  /// @param prepare  what the tool does before it begins
  explicit Screen(const std::string& job, void (*prepare)() = nullptr) {
    const winsize size{30, 140, 0, 0};
    tool_ = forkpty(&terminal_, nullptr, nullptr, &size);
    if (tool_ == 0) {
      setenv("TERM", "xterm", 1);
      if (prepare != nullptr) prepare();
      execl(PORTOFU_PTL_TOP, PORTOFU_PTL_TOP, "--interval", "0.1", "--job", job.c_str(), nullptr);
      _exit(127);
    }
    EXPECT_GT(tool_, 0);
    alarm(60);  // Nothing comes from a tool that hangs.
  }
  ~Screen() {
    alarm(0);
    close_terminal();
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  pid_t tool() const { return tool_; }
  const std::string& shown() const { return shown_; }

  bool read_until(const std::string& words) {
    std::array<char, 4096> bytes;
    while (shown_.find(words) == std::string::npos) {
      const ssize_t got = read(terminal_, bytes.data(), bytes.size());
      if (got <= 0) return false;
      shown_.append(bytes.data(), static_cast<std::size_t>(got));
    }
    return true;
  }
  void press(const std::string& keys) const {
    EXPECT_EQ(write(terminal_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }
  void close_terminal() {
    if (terminal_ >= 0) close(terminal_);
    terminal_ = -1;
  }
  /// Reads until it has ended. @return its exit status, or 128 + signal
  int wait_status() {
    if (terminal_ >= 0) read_until("what the tool never says");
    int status = -1;
    EXPECT_EQ(waitpid(tool_, &status, 0), tool_);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  /// The last words of xterm's end mode: the screen is as it was before.
  bool is_restored() const { return shown_.find("\x1b[?1049l") != std::string::npos; }

 private:
  int terminal_ = -1;
  pid_t tool_ = -1;
  std::string shown_;
};

TEST_F(PtlTop, Terminal__shows_them_until_q_is_pressed) {
  Screen screen(job_key_);
  EXPECT_TRUE(screen.read_until("process_ptl_top"));
  screen.press("\n");
  EXPECT_TRUE(screen.read_until("channels from others")) << "details of the chosen process";
  screen.press("p");
  EXPECT_TRUE(screen.read_until("peers of process"));
  screen.press("l");
  EXPECT_TRUE(screen.read_until("portal table entry 0: enabled"));
  screen.press("f");
  screen.press("sjq");
  EXPECT_EQ(screen.wait_status(), 0) << screen.shown().substr(screen.shown().size() -
                                                              std::min<std::size_t>(screen.shown().size(), 2000));
  EXPECT_TRUE(screen.is_restored());
}

constexpr const char* kControlC = "\x03";
constexpr const char* kControlBackslash = "\x1c";

TEST_F(PtlTop, Control_C__ends_it_as_q_does) {
  Screen screen(job_key_);
  EXPECT_TRUE(screen.read_until("process_ptl_top"));
  screen.press(kControlC);
  EXPECT_EQ(screen.wait_status(), 0);
  EXPECT_TRUE(screen.is_restored());
}

TEST_F(PtlTop, Signal__kills_it_when_the_terminal_is_as_it_was) {
  const auto without_core = [] {
    const rlimit none{};
    setrlimit(RLIMIT_CORE, &none);
  };
  for (const int number : {SIGTERM, SIGHUP, SIGQUIT}) {
    Screen screen(job_key_, without_core);
    EXPECT_TRUE(screen.read_until("process_ptl_top"));
    if (number == SIGQUIT) {
      screen.press(kControlBackslash);
    } else {
      kill(screen.tool(), number);
    }
    EXPECT_EQ(screen.wait_status(), 128 + number);
    EXPECT_TRUE(screen.is_restored()) << number;
  }
}

TEST_F(PtlTop, Signal_that_was_ignored_when_it_began__stays_ignored) {
  Screen screen(job_key_, [] { signal(SIGTERM, SIG_IGN); });
  EXPECT_TRUE(screen.read_until("process_ptl_top"));
  kill(screen.tool(), SIGTERM);
  screen.press("p");
  EXPECT_TRUE(screen.read_until("peers of process"));
  screen.press("q");
  EXPECT_EQ(screen.wait_status(), 0);
}

TEST_F(PtlTop, Terminal_that_is_closed__ends_it) {
  Screen hears(job_key_);
  EXPECT_TRUE(hears.read_until("process_ptl_top"));
  hears.close_terminal();
  EXPECT_EQ(hears.wait_status(), 128 + SIGHUP);
  Screen ignores(job_key_, [] { signal(SIGHUP, SIG_IGN); });
  EXPECT_TRUE(ignores.read_until("process_ptl_top"));
  ignores.close_terminal();
  EXPECT_EQ(ignores.wait_status(), 128 + SIGHUP) << "as of nohup: the signal says nothing, so the reads must";
}

TEST(PtlTopOptions, Wrong_ones__are_refused) {
  int status = 0;
  output_of(kTool + " --interval 0", &status);
  EXPECT_EQ(status, 2);
  output_of(kTool + " --json", &status);
  EXPECT_EQ(status, 2) << "only --once prints";
  const std::string said = output_of("TERM=nonsense " + kTool, &status);
  EXPECT_EQ(status, 1);
  EXPECT_NE(said.find("--once"), std::string::npos) << said;
}

TEST(PtlTopOptions, Who_has_no_screen__is_told_and_nothing_is_drawn) {
  int status = 0;
  for (const char* term : {"xterm", "dumb"}) {
    const std::string said = output_of("TERM=" + std::string(term) + " " + kTool + " </dev/null", &status);
    EXPECT_EQ(status, 1);
    EXPECT_EQ(said, "ptl_top: this is no terminal, or none that it knows (TERM); --once prints a table\n");
  }
}

TEST(PtlTopOptions, Table_that_cannot_be_written__is_told) {
  int status = 0;
  const std::string said = output_of("{ " + kTool + " --once --interval 0.05 >/dev/full; }", &status);
  EXPECT_EQ(status, 1);
  EXPECT_EQ(said, "ptl_top: standard output cannot be written: No space left on device\n");
}

}  // namespace
}  // namespace portofu
