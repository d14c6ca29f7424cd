// By system calls alone: a handler that ends the process may have interrupted malloc.

#include "engine/run/process_threads.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "engine/queue/lost_thread.h"

namespace portofu {
namespace {

/// Directories of more threads than fit here several times belong to a process with other threads.
constexpr std::size_t kListingBytes = 4096;

/// Process and number of a thread of the library; 0: none. Those of another process are what a child has inherited.
constinit std::atomic<std::uint64_t> library_threads[kMostLibraryThreads]{};

std::uint64_t process_part(pid_t process) { return static_cast<std::uint64_t>(process) << 32; }

std::uint64_t this_thread() { return process_part(getpid()) | static_cast<std::uint32_t>(syscall(SYS_gettid)); }

bool is_of_library(long thread) {
  const std::uint64_t wanted = process_part(getpid()) | static_cast<std::uint32_t>(thread);
  for (const auto& place : library_threads) {
    if (place.load(std::memory_order_relaxed) == wanted) return true;
  }
  return false;
}

}  // namespace

LibraryThread::LibraryThread() : place_(0) {
  const std::uint64_t self = this_thread();
  for (; place_ < kMostLibraryThreads; ++place_) {
    std::uint64_t there = library_threads[place_].load(std::memory_order_relaxed);
    const bool is_free = there == 0 || there >> 32 != self >> 32;
    if (is_free && library_threads[place_].compare_exchange_strong(there, self, std::memory_order_relaxed)) return;
  }
}

LibraryThread::~LibraryThread() {
  if (place_ < kMostLibraryThreads) library_threads[place_].store(0, std::memory_order_relaxed);
}

bool has_other_threads() {
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
      if (thread > 0 && thread != own && thread != ended && !is_of_library(thread)) found = true;
      at += entry->d_reclen;
    }
  }
  syscall(SYS_close, fd);
  return found;
}

}  // namespace portofu
