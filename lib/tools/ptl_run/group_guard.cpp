#include "lib/tools/ptl_run/group_guard.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <set>

namespace portofu::tools {
namespace {

/// Reads the groups that begin, and, as negative numbers, those that have ended, until nobody writes any more.
[[noreturn]] void guard(int fd) {
  setsid();  // What the terminal sends is not for it.
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  // Nobody shall wait for the end of what it has inherited.
  dup2(fd, STDIN_FILENO);
  const int nothing = open("/dev/null", O_RDWR);
  dup2(nothing, STDOUT_FILENO);
  dup2(nothing, STDERR_FILENO);
  close_range(STDERR_FILENO + 1, UINT_MAX, 0);
  std::set<pid_t> groups;
  for (std::int32_t word = 0;;) {
    const ssize_t got = read(STDIN_FILENO, &word, sizeof word);
    if (got < 0 && errno == EINTR) continue;
    if (got != static_cast<ssize_t>(sizeof word)) break;
    if (word > 0) groups.insert(word);
    if (word < 0) groups.erase(-word);
  }
  for (const pid_t group : groups) kill(-group, SIGKILL);
  _exit(0);
}

/// A pipe takes a word whole or not at all.
void tell(int fd, std::int32_t word) {
  while (fd >= 0 && write(fd, &word, sizeof word) < 0 && errno == EINTR) {
  }
}

}  // namespace

void GroupGuard::start() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return;
  pid_ = fork();
  if (pid_ == 0) {
    close(fds[1]);
    guard(fds[0]);
  }
  close(fds[0]);
  fd_ = fds[1];
}

GroupGuard::~GroupGuard() {
  if (fd_ >= 0) close(fd_);
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
}

void GroupGuard::add_own_group(int guard_fd) { tell(guard_fd, getpid()); }

void GroupGuard::remove(pid_t group) const { tell(fd_, -group); }

}  // namespace portofu::tools
