#pragma once
// An open segment file and the answer to "does its owner still live". The owner holds a traditional POSIX write lock on
// the whole file from before the file has a name until it ends: the kernel releases it when the process dies, also
// while it is an unreaped zombie, and a forked child does not inherit it.
//
// Two properties of such locks shape this directory. (1) Closing any descriptor of the file drops the lock of the
// closing process: a process therefore opens a segment of its own exactly once, and everybody in the process who needs
// it finds that descriptor in own_segments.h. (2) A process does not see its own locks: whether a segment of this
// process lives is told by a flag.

#include <atomic>
#include <cstdint>
#include <string>

#include "engine/segment/known_by.h"
#include "engine/topology/process_id.h"

namespace portofu {

/// Who owns a segment file that is open in this process.
enum class FileOwner : std::uint8_t {
  kThisProcess,   ///< Locked by us; the descriptor is the only one we may have.
  kOtherProcess,  ///< Locked by the owner, if it lives.
};

/// One open segment file; closes it at the end. Thread-safe.
class SegmentFile {
 public:
  SegmentFile(int fd, FileOwner owner) : fd_(fd), owner_(owner) {}
  ~SegmentFile();
  SegmentFile(const SegmentFile&) = delete;
  SegmentFile& operator=(const SegmentFile&) = delete;

  int fd() const { return fd_; }

  /// @return false once the owner has died or has closed its segment; costs a system call for another process
  bool is_alive() const;

  /// Takes the owner's lock. @return false if somebody else has it
  bool lock() const;

  /// The owner closes: from now on everybody finds it dead.
  void end_life();

  /// Makes sure that [offset, offset + bytes) can be touched without a SIGBUS. @return false if memory is short
  bool allocate(std::uint64_t offset, std::uint64_t bytes) const;

  /// Gives the memory of [offset, offset + bytes) back; it reads as zero afterwards.
  /// @return false if the kernel cannot
  bool clear(std::uint64_t offset, std::uint64_t bytes) const;

 private:
  const int fd_;
  const FileOwner owner_;
  std::atomic<bool> ended_{false};  ///< kThisProcess only: the owner has closed it. Relaxed, guards no data.
};

/// @return true if it is a regular file to which nobody but this effective user can write; then with its length
bool is_private_file(int fd, std::uint64_t* file_bytes);

/// @return path of the segment of a process of this effective user
std::string segment_path(const std::string& directory, ProcessId id);

/// @return what the names of all segments of this effective user begin with
std::string segment_name_prefix();

/// Removes the name if the segment behind it is dead. A name is only ever removed by who holds the lock of the very
/// file that it names, so a living process that takes over the name meanwhile is safe. The caller holds own_segments'
/// lock.
/// @param meanwhile  for tell_knowers; an alias stays until everybody has heard who knows it
/// @return true if the name was removed
bool remove_if_dead(const std::string& path, const Meanwhile& meanwhile = {});

}  // namespace portofu
