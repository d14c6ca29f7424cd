// Makes, joins and leaves the file of counts.

#include "engine/segment/stag_counts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "engine/queue/cancellation.h"
#include "engine/segment/file_limit.h"
#include "engine/segment/file_name.h"
#include "engine/segment/kernel.h"
#include "engine/segment/own_descriptor.h"
#include "engine/segment/segment_file.h"

namespace portofu {
namespace {

constexpr const char* kCountsMark = "stags-";
constexpr std::uint64_t kCountsBytes = kStagCounts * sizeof(StagCountShared);

/// Somebody who removes the file, or looks whether it is to be removed, has its lock for an instant.
constexpr int kMostJoins = 200;
constexpr useconds_t kJoinPauseUs = 500;

/// As long as a mapping refers to what `fd` is. @return false if somebody is about to remove the file, or has
bool join(int fd, const std::string& path) {
  struct flock lock {};
  lock.l_type = F_RDLCK;
  lock.l_whence = SEEK_SET;
  const bool is_shared = fcntl(fd, F_OFD_SETLK, &lock) == 0 && is_at(path, fd);
  if (!is_shared) errno = EAGAIN;
  return is_shared;
}

/// All that is not there yet reads as zero. The memory is taken at once: to touch a hole without any is a SIGBUS.
bool take_memory(int fd) {
  if (!is_allowed_length(kCountsBytes)) {
    errno = EFBIG;
    return false;
  }
  // The umask may have taken our own rights away.
  if (fchmod(fd, 0600) != 0 || ftruncate(fd, kCountsBytes) != 0) return false;
  errno = posix_fallocate(fd, 0, kCountsBytes);
  return errno == 0;
}

}  // namespace

std::string stag_counts_path(const std::string& directory, std::uint32_t job_key) {
  char number[16];
  std::snprintf(number, sizeof number, "%08x", job_key);
  return directory + "/" + segment_name_prefix() + kCountsMark + number;
}

bool is_stag_counts_name(const std::string& name) { return name.starts_with(segment_name_prefix() + kCountsMark); }

bool StagCounts::open(const std::string& directory, std::uint32_t job_key) {
  if (counts_) return true;
  const NoCancellation whole;
  path_ = stag_counts_path(directory, job_key);
  for (int tries = 0; tries < kMostJoins; ++tries) {
    if (tries > 0) usleep(kJoinPauseUs);
    remove_if_dead(path_);
    const OwnDescriptor file(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
    if (!file) return false;
    if (!join(file.number(), path_)) continue;
    if (!take_memory(file.number())) return false;
    counts_ = Mapping::map(file.number(), 0, kCountsBytes);
    return static_cast<bool>(counts_);
  }
  return false;
}

std::atomic<std::uint64_t>& StagCounts::of(std::uint64_t key) {
  const auto first = static_cast<std::uint32_t>(key * 0x9e3779b97f4a7c15u >> 32);
  for (std::uint32_t i = 0; counts_ && i < kStagCounts; ++i) {
    StagCountShared& count = reinterpret_cast<StagCountShared*>(counts_.at(0))[(first + i) % kStagCounts];
    std::uint64_t found = 0;
    // Who takes it for another queue at the same time goes before us.
    if (count.key.compare_exchange_strong(found, key, std::memory_order_relaxed) || found == key) return count.given;
  }
  std::uint64_t drawn = 0;
  if (uncounted_.load(std::memory_order_relaxed) == 0 && kernel().draw_random(&drawn, sizeof drawn))
    uncounted_.store(drawn, std::memory_order_relaxed);
  return uncounted_;
}

void StagCounts::close() {
  if (!counts_) return;
  counts_.let_go();
  remove_if_dead(path_);
}

}  // namespace portofu
