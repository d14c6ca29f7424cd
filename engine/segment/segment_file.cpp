// Locks, allocation and removal of segment files.

#include "engine/segment/segment_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <mutex>

#include "engine/queue/cancellation.h"
#include "engine/segment/file_name.h"
#include "engine/segment/names_word.h"
#include "engine/segment/own_segments.h"
#include "engine/segment/segment_alias.h"

namespace portofu {
namespace {

/// A signal may interrupt an allocation; so many in a row mean that something else is wrong.
constexpr int kMaxInterruptions = 100;

/// What the owner locks is all of the file. Who removes a dead one locks the first byte, so that it is alone, and so
/// that nobody takes it for the owner: whether that lives is asked of the other bytes.
struct flock bytes_of_file(short type, off_t first, off_t count) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = first;
  lock.l_len = count;  // 0: to the end, wherever that comes to lie.
  return lock;
}
struct flock whole_file(short type) {
  return bytes_of_file(type, 0, 0);
}

/// Whether some other description holds the owner's lock. A failing question is no proof of death.
bool is_locked_by_owner(int fd) {
  struct flock lock = bytes_of_file(F_WRLCK, 1, 0);
  return fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

int fallocate_patiently(int fd, int mode, std::uint64_t offset, std::uint64_t bytes) {
  const NoCancellation whole;
  for (int tries = 0; tries < kMaxInterruptions; ++tries) {
    if (fallocate(fd, mode, static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0) return 0;
    if (errno != EINTR) return errno;
  }
  return EINTR;
}

}  // namespace

int SegmentFile::fd() const {
  const NoCancellation whole;
  const std::lock_guard lock(mutex_);
  if (descriptor_.is_ours()) return descriptor_.number();
  if (path_.empty()) return -1;
  OwnDescriptor again(::open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!again || !again.is_same_file(descriptor_)) return -1;
  descriptor_ = std::move(again);
  return descriptor_.number();
}

void SegmentFile::become(int fd) {
  descriptor_ = OwnDescriptor(fd);
  hold_ = Mapping();
  path_.clear();
}

void SegmentFile::set_path(const std::string& path) {
  const std::lock_guard lock(mutex_);
  path_ = path;
}

bool SegmentFile::is_alive() const {
  if (owner_ == FileOwner::kThisProcess) return !ended_.load(std::memory_order_relaxed);
  const int file = fd();
  // The descriptor is gone, and so is the name, which only who ends, or who finds its owner dead, removes.
  if (file < 0) return !path_.empty() && access(path_.c_str(), F_OK) == 0;
  return is_locked_by_owner(file);
}

bool SegmentFile::lock() const {
  const bool owns = owner_ == FileOwner::kThisProcess;
  struct flock lock = owns ? whole_file(F_WRLCK) : bytes_of_file(F_WRLCK, 0, 1);
  if (fcntl(fd(), F_OFD_SETLK, &lock) != 0) return false;
  return !owns || hold_lock();
}

/// Leaves the locked description to a mapping, and works on with another one. Where the mapping refers to another
/// description (overlayfs), the lock is gone with ours, and nobody could tell whether we live.
bool SegmentFile::hold_lock() const {
  constexpr std::uint64_t kAnyLength = 4096;
  const std::lock_guard lock(mutex_);
  hold_ = Mapping::map(descriptor_.number(), 0, kAnyLength);
  if (!hold_) return false;
  const std::string same = "/proc/thread-self/fd/" + std::to_string(descriptor_.number());
  OwnDescriptor other(::open(same.c_str(), O_RDWR | O_CLOEXEC));
  if (!other) return true;  // Until the program closes it, or a child has it, it is as good.
  std::swap(descriptor_, other);
  other.close();  // What was ours before.
  if (is_locked_by_owner(descriptor_.number())) return true;
  errno = EOPNOTSUPP;
  return false;
}

void SegmentFile::end_life() {
  ended_.store(true, std::memory_order_relaxed);
  struct flock unlock = whole_file(F_UNLCK);
  fcntl(fd(), F_OFD_SETLK, &unlock);  // If there was no other description.
  const std::lock_guard lock(mutex_);
  hold_ = Mapping();
}

bool SegmentFile::allocate(std::uint64_t offset, std::uint64_t bytes) const {
  return fallocate_patiently(fd(), 0, offset, bytes) == 0;
}

bool SegmentFile::write(const std::byte* from, std::uint64_t offset, std::uint64_t bytes) const {
  const NoCancellation whole;
  const int file = fd();
  for (int interruptions = 0; bytes > 0 && interruptions < kMaxInterruptions;) {
    const ssize_t written = pwrite(file, from, bytes, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) {
      ++interruptions;
      continue;
    }
    if (written <= 0) return false;
    from += written;
    offset += static_cast<std::uint64_t>(written);
    bytes -= static_cast<std::uint64_t>(written);
  }
  return bytes == 0;
}

bool SegmentFile::clear(std::uint64_t offset, std::uint64_t bytes) const {
  return fallocate_patiently(fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes) == 0;
}

bool is_private_file(int fd, std::uint64_t* file_bytes) {
  struct stat status {};
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return false;
  *file_bytes = static_cast<std::uint64_t>(status.st_size);
  return status.st_uid == geteuid() && (status.st_mode & 077) == 0;
}

std::string segment_name_prefix() { return "portofu-" + std::to_string(geteuid()) + "-"; }

std::string segment_path(const std::string& directory, ProcessId id) {
  char numbers[32];
  std::snprintf(numbers, sizeof numbers, "%08x-%u", id.nid, id.pid);
  return directory + "/" + segment_name_prefix() + numbers;
}

bool remove_if_dead(const std::string& path, const Meanwhile& meanwhile) {
  const NoCancellation whole;
  if (find_own_segment(path) != nullptr) return false;
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  const SegmentFile file(fd, FileOwner::kOtherProcess);
  struct stat opened {};
  if (fstat(file.fd(), &opened) != 0 || !S_ISREG(opened.st_mode) || opened.st_uid != geteuid()) return false;
  if (!file.lock()) return false;
  // Somebody may have taken the name over between our open and our lock.
  if (!is_at(path, file.fd())) return false;
  const LastNamesChange change(file.fd());
  // Who does not hear that a PID is another process's is refused by it, because messages name the life that is meant.
  const int patience_ms = meanwhile ? kTellMs : kTellShortlyMs;  // Who serves others meanwhile wants this very name.
  const bool all_know = tell_knowers(file.fd(), NamesLost::kAllWithItsLife, patience_ms, meanwhile);
  if (!all_know && is_alias_name(path.substr(path.rfind('/') + 1))) return false;
  return ::unlink(path.c_str()) == 0;
}

}  // namespace portofu
