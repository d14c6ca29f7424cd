#pragma once
// Real processes for tests: forked, killed, stopped, and never left behind.

#include <sched.h>
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <functional>

#include "tests/support/eventually.h"

namespace portofu {

/// A forked child that runs `body` and exits with its result. Killed at the end if it still runs.
class ChildProcess {
 public:
  explicit ChildProcess(const std::function<int()>& body) : pid_(fork()) {
    if (pid_ == 0) {
      alarm(kLongestTestS);  // Ends it also when the test's process was killed.
      _exit(body());
    }
  }
  ~ChildProcess() {
    if (pid_ > 0) kill_now();
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }

  void send_signal(int number) const { ::kill(pid_, number); }

  /// Kills it and leaves it a zombie, as a launcher does that reaps late.
  void kill_unreaped() const {
    send_signal(SIGKILL);
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  }

  /// Waits until it has died, and leaves it a zombie. @return the signal that killed it, or 0
  int wait_death() const {
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
    return info.si_code == CLD_EXITED ? 0 : info.si_status;
  }

  bool has_ended() const {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT | WNOHANG) == 0 && info.si_pid != 0;
  }

  void kill_now() {
    send_signal(SIGKILL);
    wait_status();
  }

  /// @return exit status, or 128 + signal
  int wait_status() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_;  ///< -1 once it was waited for.
};

/// Lets a short time pass: kills at any instruction are made by waiting for a random one.
inline void spend_us(unsigned us) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::microseconds(us);
  while (std::chrono::steady_clock::now() < deadline) sched_yield();
}

}  // namespace portofu
