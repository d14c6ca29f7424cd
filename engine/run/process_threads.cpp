// By system calls alone: a handler that ends the process may have interrupted malloc.

#include "engine/run/process_threads.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>

namespace portofu {
namespace {

/// Directories of more threads than fit here several times belong to a process with other threads.
constexpr std::size_t kListingBytes = 4096;

}  // namespace

bool has_main_thread_ended() {
  // The link is looked up in the memory of the first thread, which gives that back when it ends. That of the calling
  // thread tells apart the case that there is no /proc.
  char nothing = 0;
  if (readlink("/proc/self/exe", &nothing, sizeof nothing) >= 0 || errno != ENOENT) return false;
  return readlink("/proc/thread-self/exe", &nothing, sizeof nothing) >= 0;
}

bool has_other_threads(pid_t ours) {
  const auto fd =
      static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd < 0) return true;
  const auto own = static_cast<long>(syscall(SYS_gettid));
  const long ended = has_main_thread_ended() ? getpid() : 0;  // Listed until the process ends.
  alignas(dirent64) char listing[kListingBytes];
  bool found = false;
  for (long bytes = 1; bytes > 0 && !found;) {
    bytes = syscall(SYS_getdents64, fd, listing, sizeof listing);
    if (bytes < 0) found = true;
    for (long at = 0; at < bytes;) {
      const auto* entry = reinterpret_cast<const dirent64*>(listing + at);
      const long thread = std::strtol(entry->d_name, nullptr, 10);
      if (thread > 0 && thread != own && thread != ours && thread != ended) found = true;
      at += entry->d_reclen;
    }
  }
  syscall(SYS_close, fd);
  return found;
}

}  // namespace portofu
