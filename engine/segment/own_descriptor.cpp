#include "engine/segment/own_descriptor.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "engine/observe/log.h"
#include "engine/queue/cancellation.h"

namespace portofu {
namespace {

constexpr int kFirstNumber = STDERR_FILENO + 1;

/// Numbers from here on are reached by programs only that have as many files open.
constexpr rlim_t kFarUp = 512;

std::atomic<bool> was_told{false};

void tell_once() {
  if (was_told.exchange(true, std::memory_order_relaxed)) return;
  log_warning(
      "the program has closed descriptors that this library had opened (closefrom?), or put its own in their place; "
      "they are opened anew where that is possible, and files of the program are not touched");
}

/// @return fd, or the same file under a number that is at least `lowest`; fd is closed then
int move_to(int fd, int lowest) {
  if (fd < 0 || fd >= lowest) return fd;
  const NoCancellation whole;
  const int moved = fcntl(fd, F_DUPFD_CLOEXEC, lowest);
  ::close(fd);
  return moved;
}

}  // namespace

int move_above_standard(int fd) { return move_to(fd, kFirstNumber); }

int move_far_up(int fd) {
  if (fd < 0) return fd;
  const NoCancellation whole;
  rlimit limit{};
  const bool known = getrlimit(RLIMIT_NOFILE, &limit) == 0;
  const rlim_t lowest = std::min(kFarUp, known ? limit.rlim_cur / 2 : 0);
  const int moved = fcntl(fd, F_DUPFD_CLOEXEC, static_cast<int>(std::max<rlim_t>(lowest, kFirstNumber)));
  if (moved < 0) return move_above_standard(fd);
  ::close(fd);
  return moved;
}

void make_room_far_up() { const OwnDescriptor unused(move_far_up(::open("/dev/null", O_RDONLY | O_CLOEXEC))); }

OwnDescriptor::OwnDescriptor(int fd) : fd_(move_above_standard(fd)) {
  struct stat status {};
  if (fd_ < 0 || fstat(fd_, &status) != 0) return;
  device_ = status.st_dev;
  file_ = status.st_ino;
}

bool OwnDescriptor::is_ours() const {
  if (fd_ < 0) return false;
  struct stat status {};
  if (fstat(fd_, &status) == 0 && status.st_dev == device_ && status.st_ino == file_) return true;
  tell_once();
  return false;
}

void OwnDescriptor::close() {
  const NoCancellation whole;
  if (is_ours()) ::close(fd_);
  fd_ = -1;
}

StandardNumbersTaken::StandardNumbersTaken() {
  const NoCancellation whole;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  unused_ = OwnDescriptor(fcntl(ends[0], F_DUPFD_CLOEXEC, kFirstNumber));
  for (const int end : ends) ::close(end);
  if (!unused_) return;
  // The end from which is read, of a pipe into which nobody writes: writing fails as if it was closed.
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number) {
    if (fcntl(number, F_GETFD) >= 0) continue;
    const int taken = fcntl(unused_.number(), F_DUPFD_CLOEXEC, number);
    if (taken == number) {
      taken_[number] = number;
    } else if (taken >= 0) {
      ::close(taken);
    }
  }
}

StandardNumbersTaken::~StandardNumbersTaken() {
  if (kept_) return;
  const NoCancellation whole;
  for (const int number : taken_) {
    if (number < 0) continue;
    struct stat there {};
    struct stat ours {};
    const bool is_ours = fstat(number, &there) == 0 && unused_ && fstat(unused_.number(), &ours) == 0 &&
                         there.st_dev == ours.st_dev && there.st_ino == ours.st_ino;
    if (is_ours) ::close(number);
  }
}

}  // namespace portofu
