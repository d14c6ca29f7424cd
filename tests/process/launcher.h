#pragma once
// A ptl_run that a test starts, with its output and its end.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "lib/tools/arguments.h"
#include "tests/process/pmi_roles.h"

namespace portofu {

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
      const std::vector<char*> arguments = portofu::tools::argument_pointers(words);
      alarm(kLongestTestS);  // Outlives exec.
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

  /// Reads what comes within a tenth of a second.
  void read_for_a_while() { read_some(100); }

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

inline std::string own_program() { return std::filesystem::read_symlink("/proc/self/exe"); }

using Words = std::vector<std::string>;

/// ptl_run with options, and this very program as its ranks.
inline Words with_ranks(int count, Words options = {}) {
  Words words{PORTOFU_PTL_RUN, "-n", std::to_string(count)};
  words.insert(words.end(), options.begin(), options.end());
  words.push_back(own_program());
  return words;
}

/// ptl_run with a shell command as its ranks.
inline Words with_shell(int count, const std::string& command, Words options = {}) {
  Words words = with_ranks(count, std::move(options));
  words.back() = "/bin/sh";
  words.insert(words.end(), {"-c", command});
  return words;
}

inline bool is_gone(pid_t pid) { return kill(pid, 0) != 0 && errno == ESRCH; }

inline std::size_t line_count(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// A rank with two descendants, that says so.
inline constexpr const char* kWithDescendants = "sleep 1000 & echo ready $!; (sleep 1000; true) & echo ready $!; wait";

}  // namespace portofu
