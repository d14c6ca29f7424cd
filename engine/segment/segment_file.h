#pragma once
// An open segment file and the answer to "does its owner still live". The owner holds a write lock on the whole file
// from before the file has a name until it ends: the kernel releases it when the process dies, also while it is an
// unreaped zombie.
//
// It is an open file description lock (fcntl(2), F_OFD_SETLK), and the only one who refers to that description is a
// mapping of the owner that no child inherits. So the lock ends with the memory of the owner, and not before: a
// descriptor of the file that the program closes ends it as little as one that a child has got. Two copies of the
// library in one process (dlmopen) see each other's locks, which traditional ones would hide.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "engine/queue/fork_mutex.h"
#include "engine/segment/known_by.h"
#include "engine/segment/mapping.h"
#include "engine/segment/own_descriptor.h"
#include "engine/topology/process_id.h"

namespace portofu {

/// Who owns a segment file that is open in this process.
enum class FileOwner : std::uint8_t {
  kThisProcess,   ///< Locked by us.
  kOtherProcess,  ///< Locked by the owner, if it lives.
};

/// One open segment file; closes it at the end. Thread-safe.
class SegmentFile {
 public:
  /// @param fd    its descriptor, which this takes
  /// @param path  where it is opened again if the program closes that descriptor; empty: not at all
  SegmentFile(int fd, FileOwner owner, std::string path = {})
      : descriptor_(fd), path_(std::move(path)), owner_(owner) {}
  SegmentFile(const SegmentFile&) = delete;
  SegmentFile& operator=(const SegmentFile&) = delete;

  /// A descriptor of this very file; -1 if there is none any more. Costs a system call.
  int fd() const;

  /// In a child of a fork, which has a file of its own in place of its parent's. Allocates no memory: another allocator
  /// may not have come out of the fork yet.
  void become(int fd);

  /// The file has got its name.
  void set_path(const std::string& path);

  /// @return false once the owner has died or has closed its segment; costs a system call for another process
  bool is_alive() const;

  /// Takes the owner's lock; for the file of another process that of who removes it, which no living owner and nobody
  /// else who removes it leaves free. @return false if somebody has it
  bool lock() const;

  /// The owner closes: from now on everybody finds it dead.
  void end_life();

  /// Makes sure that [offset, offset + bytes) can be touched without a SIGBUS. @return false if memory is short
  bool allocate(std::uint64_t offset, std::uint64_t bytes) const;

  /// Writes what is not mapped. @return false if memory is short
  bool write(const std::byte* from, std::uint64_t offset, std::uint64_t bytes) const;

  /// Gives the memory of [offset, offset + bytes) back; it reads as zero afterwards.
  /// @return false if the kernel cannot
  bool clear(std::uint64_t offset, std::uint64_t bytes) const;

 private:
  bool hold_lock() const;

  mutable ForkMutex mutex_;           ///< Guards what is mutable here.
  mutable OwnDescriptor descriptor_;  ///< Not the locked description if we own the file.
  mutable Mapping hold_;              ///< Of the locked description; only if we own the file, and never touched.
  std::string path_;
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
