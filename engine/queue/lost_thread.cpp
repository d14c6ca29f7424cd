#include "engine/queue/lost_thread.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace portofu {
namespace {

/// 0: it has not asked yet.
__attribute__((tls_model("initial-exec"))) constinit thread_local pid_t own_id = 0;

/// Set when the library is loaded, so that no fork can come before the handler.
[[maybe_unused]] const int fork_handler = pthread_atfork(nullptr, nullptr, forget_thread_id);

}  // namespace

pid_t this_thread_id() {
  if (own_id == 0) [[unlikely]]
    own_id = static_cast<pid_t>(syscall(SYS_gettid));
  return own_id;
}

void forget_thread_id() { own_id = 0; }

bool has_main_thread_ended() {
  // The link is looked up in the memory of the first thread, which gives that back when it ends. That of the calling
  // thread tells apart the case that there is no /proc.
  char nothing = 0;
  if (readlink("/proc/self/exe", &nothing, sizeof nothing) >= 0 || errno != ENOENT) return false;
  return readlink("/proc/thread-self/exe", &nothing, sizeof nothing) >= 0;
}

bool is_thread_gone(pid_t thread) {
  const int before = errno;
  const pid_t process = getpid();
  bool is_gone = syscall(SYS_tgkill, process, thread, 0) != 0 && errno == ESRCH;
  // The first thread keeps its TID until the process ends.
  if (!is_gone && thread == process) is_gone = has_main_thread_ended();
  errno = before;
  return is_gone;
}

/// By the system call: in a thread that is being cancelled at any instruction write(2) does not return.
void end_without(pid_t thread) {
  char text[256];
  const int length = std::snprintf(
      text, sizeof text,
      "portofu: thread %d has ended in the middle of a call (by pthread_exit or cancellation in a signal "
      "handler, or by a system call), and took with it what other threads wait for; the process is ended\n",
      static_cast<int>(thread));
  syscall(SYS_write, STDERR_FILENO, text, std::min<std::size_t>(static_cast<std::size_t>(length), sizeof text - 1));
  std::abort();
}

}  // namespace portofu
