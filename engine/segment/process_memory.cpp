// Two ways lead there. A file in /proc is bound to the memory when it is opened; process_vm_writev finds the process,
// asks for its rights and counts its users with every call, in cache lines that it has in use, too. Two processes that
// write 8 bytes to each other in turn need 0.39 us by the file and 0.69 by the call, in a row 0.36 and 0.42. But the
// file goes page by page through a buffer of the kernel: for 8 KiB it is slower, from 64 KiB on half as fast or less.
//
// The call looks for the memory once, whatever it writes there. So its first piece is the mark, which is written over
// itself: where that is not mapped, because exec has put another program there, or the number is another process's, the
// call ends at it. No question before the call could be as good.

#include "engine/segment/process_memory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <utility>

#include "engine/queue/cancellation.h"
#include "engine/queue/cpu.h"

namespace portofu {
namespace {

/// What the file writes faster.
constexpr std::uint64_t kMostByFile = 4096;

/// Whether the kernel copies a short piece by one `rep movsb`, forward, and no byte twice. Its other way writes some
/// lengths from behind, and the last words of others twice, so that a target that polls for them would see them before
/// the rest, or once more after it has set them back.
bool copies_in_order() { return cpu_copies_short_strings(); }

iovec piece(std::uint64_t at, std::uint64_t bytes) {
  return {reinterpret_cast<void*>(at), static_cast<std::size_t>(bytes)};
}

}  // namespace

ProcessMemory::ProcessMemory(pid_t os_pid, std::uint64_t mark_address, std::uint64_t mark)
    : os_pid_(os_pid), reached_by_(os_pid), mark_address_(mark_address), mark_(mark) {}

bool ProcessMemory::may_be_its() const {
  errno = 0;
  return is_reachable() || errno == EPERM;
}

bool ProcessMemory::has_mark(pid_t thread) const {
  std::uint64_t found = 0;
  const iovec local{&found, sizeof found};
  const iovec remote = piece(mark_address_, sizeof found);
  return process_vm_readv(thread, &local, 1, &remote, 1, 0) == sizeof found && found == mark_;
}

bool ProcessMemory::is_reachable() const { return has_mark(reached_by_); }

/// A process lives on when its first thread has ended (pthread_exit in main), and is reached by another one.
bool ProcessMemory::find_thread() {
  const NoCancellation whole;
  DIR* const listing = opendir(("/proc/" + std::to_string(os_pid_) + "/task").c_str());
  if (listing == nullptr) return false;
  bool found = false;
  while (const dirent* entry = found ? nullptr : readdir(listing)) {
    const auto thread = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
    found = thread > 0 && has_mark(thread);
    if (found) reached_by_ = thread;
  }
  closedir(listing);
  return found;
}

bool ProcessMemory::read(std::uint64_t address, std::byte* target, std::uint64_t bytes) {
  iovec local[2] = {{target, bytes}};
  iovec remote[2] = {piece(address, bytes)};
  errno = 0;
  if (read(local, remote, 1)) return true;
  read_failed_ = true;
  if (errno != EPERM || bringer_ == nullptr || !bringer_->bring(address, target, bytes)) return false;
  bytes_read_ += bytes;
  return true;
}

// The mark is read behind the bytes, so that what was read before it is the owner's.
bool ProcessMemory::read(iovec* local, iovec* remote, std::uint32_t count) {
  std::uint64_t found = 0;
  local[count] = {&found, sizeof found};
  remote[count] = piece(mark_address_, sizeof found);
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < count; ++i) bytes += local[i].iov_len;
  ssize_t got = process_vm_readv(reached_by_, local, count + 1, remote, count + 1, 0);
  if (got < 0 && errno == ESRCH && find_thread())
    got = process_vm_readv(reached_by_, local, count + 1, remote, count + 1, 0);
  if (got != static_cast<ssize_t>(bytes + sizeof found) || found != mark_) return false;
  bytes_read_ += bytes;
  return true;
}

bool ProcessMemory::write(std::uint64_t address, const std::byte* data, std::uint64_t bytes, std::uint64_t tail_bytes) {
  const std::uint64_t body = bytes - tail_bytes;
  const auto from = reinterpret_cast<std::uint64_t>(data);
  const iovec local[2] = {piece(from, body), piece(from + body, tail_bytes)};
  const int first = body == 0;  // The kernel takes its time with an empty piece, too.
  const int pieces = (body != 0) + (tail_bytes != 0);
  if (bytes <= kMostByFile && file() >= 0) {
    // The kernel does one piece after the other.
    const long put = pieces == 1 ? syscall(SYS_pwrite64, file(), data, bytes, address)
                                 : syscall(SYS_pwritev, file(), local, static_cast<long>(pieces), address, 0L);
    if (put >= 0 || errno != EBADF) return put == static_cast<long>(bytes);
    file_.close();  // The program has closed it; the number may become that of a file of its own.
  }
  const iovec remote[2] = {piece(address, body), piece(address + body, tail_bytes)};
  return write_marked(local + first, remote + first, pieces) == static_cast<ssize_t>(bytes);
}

/// @return bytes written behind the mark, or less than 0
ssize_t ProcessMemory::write_marked(const iovec* local, const iovec* remote, int pieces) {
  constexpr int kMostPieces = 2;
  iovec from[1 + kMostPieces] = {piece(reinterpret_cast<std::uint64_t>(&mark_), sizeof mark_)};
  iovec to[1 + kMostPieces] = {piece(mark_address_, sizeof mark_)};
  std::copy_n(local, pieces, from + 1);
  std::copy_n(remote, pieces, to + 1);
  const unsigned long count = 1 + static_cast<unsigned long>(pieces);
  ssize_t put = process_vm_writev(reached_by_, from, count, to, count, 0);
  // The thread has ended; its number may have become another process's, which has no mark there.
  const bool is_other = put < 0 && (errno == ESRCH || (errno == EFAULT && reached_by_ != os_pid_));
  if (is_other && find_thread()) put = process_vm_writev(reached_by_, from, count, to, count, 0);
  return put - static_cast<ssize_t>(sizeof mark_);
}

/// @return the file, or less than 0 if it cannot be had. It is tried once. Of another process it is not taken: /proc
///         may be that of another namespace. System calls by number: glibc's functions are places to cancel a thread,
///         which is on duty here
int ProcessMemory::file() {
  if (asked_) [[likely]]
    return file_.number();
  asked_ = true;
  static const bool in_order = copies_in_order();
  if (!in_order) return -1;
  const std::string path = "/proc/" + std::to_string(os_pid_) + "/mem";
  // Far up, so that the number is not given out again between a look at what it stands for and its use.
  const auto fd = static_cast<int>(syscall(SYS_openat, AT_FDCWD, path.c_str(), O_RDWR | O_CLOEXEC));
  OwnDescriptor opened(move_far_up(fd));
  std::uint64_t found = 0;
  const bool is_its =
      opened && syscall(SYS_pread64, opened.number(), &found, sizeof found, mark_address_) == sizeof found;
  if (is_its && found == mark_) file_ = std::move(opened);
  return file_.number();
}

}  // namespace portofu
