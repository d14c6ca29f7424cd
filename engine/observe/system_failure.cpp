#include "engine/observe/system_failure.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "engine/observe/log.h"

namespace portofu {
namespace {

constexpr const char* kMoreMemory =
    "free memory, or raise its limits (ulimit -v, sysctl vm.max_map_count, that of the container)";

}  // namespace

std::string advice_for(int error) {
  switch (error) {
    case EMFILE: return "raise the limit of open files (ulimit -n)";
    case ENFILE: return "raise the node's limit of open files (sysctl fs.file-max)";
    case ENOSPC: return "make that file system larger (mount -o remount,size=, docker run --shm-size), or remove files";
    case EDQUOT: return "raise the quota of this user, or remove files";
    case ENOMEM: return kMoreMemory;
    case EAGAIN: return "raise the limits of memory and threads (ulimit -v, ulimit -l, ulimit -u)";
    case EFBIG: return "raise the limit of file sizes (ulimit -f)";
    case EROFS: return "mount it writable";
    case ENOENT: return "mount what is missing (a tmpfs on /dev/shm, /proc)";
    case ENOTDIR: return "put a directory there";
    case EOPNOTSUPP:
    case EISDIR: return "mount a tmpfs there";
    case EACCES:
    case EPERM: return "give this user the right to it";
    case ENOSYS: return "let the sandbox (seccomp) allow the call";
    default: return {};
  }
}

std::string system_failure(const std::string& call, const std::string& wanted, int error, const std::string& advice) {
  std::string text = call + " of " + wanted + " failed";
  if (error != 0) text.append(": ").append(std::strerror(error));
  const std::string& change = advice.empty() ? advice_for(error) : advice;
  if (!change.empty()) text.append("; ").append(change);
  return text;
}

bool is_shortage(int error) { return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS; }

void tell_of_wait(ToldOnce& told, const std::string& call, const std::string& wanted, int error) {
  if (!told.is_first()) return;
  log_warning("%s; what is to go there waits, and fails after a second", system_failure(call, wanted, error).c_str());
}

void tell_of_closed_way(const std::string& call, const std::string& wanted, int error) {
  static constinit ToldOnce told;
  if (error == ECONNREFUSED || !told.is_first()) return;
  constexpr const char* kAdvice = "look at the routes and the filters of packets between the nodes";
  log_warning("%s", system_failure(call, wanted, error, kAdvice).c_str());
}

void tell_of_memory(const char* what) noexcept {
  static constinit ToldOnce told;
  if (!told.is_first()) return;
  // Without strings, for which there may be no memory.
  log_error("malloc of memory for %s failed: Cannot allocate memory; %s", what, kMoreMemory);
}

bool ToldOnce::is_first() {
  const pid_t self = getpid();
  return told_by_.exchange(self, std::memory_order_relaxed) != self;
}

}  // namespace portofu
