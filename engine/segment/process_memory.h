#pragma once
// The memory of another process of this machine, as the kernel lets us read and write it. What is asked of it is
// checked by the kernel: an address that is not mapped there, or here, is a `false`.

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

#include "engine/segment/own_descriptor.h"

namespace portofu {

/// Brings what we may not read ourselves: the process itself may write it to us.
class MemoryBringer {
 public:
  /// @return false if that is not to be had either
  virtual bool bring(std::uint64_t address, std::byte* target, std::uint64_t bytes) = 0;

 protected:
  ~MemoryBringer() = default;
};

/// Used by the thread on duty.
class ProcessMemory {
 public:
  /// @param os_pid        the process, by its number in the namespace of its own; that may name a stranger here
  /// @param mark_address  where it has its mark, by which it is told from strangers, and from who runs later under its
  ///                      number
  ProcessMemory(pid_t os_pid, std::uint64_t mark_address, std::uint64_t mark);
  ProcessMemory(const ProcessMemory&) = delete;
  ProcessMemory& operator=(const ProcessMemory&) = delete;

  /// Asks the kernel whether this process may read there, and whether it is the process that is meant.
  bool is_reachable() const;

  /// Whether nothing says that the number is a stranger's: the mark is found, or it may not be looked for.
  bool may_be_its() const;

  /// Writes. The last `tail_bytes` are written last, in ascending order. Pages that the process has protected from
  /// itself (mprotect) are written all the same if little is written to them.
  /// Nothing is written to another program, which exec has put in place of this one, or which has its number now.
  /// @pre its mark was found once (is_reachable), and can be written to
  /// @return false if not all was written
  bool write(std::uint64_t address, const std::byte* data, std::uint64_t bytes, std::uint64_t tail_bytes);

  /// @param bringer  is asked when a piece may not be read any more; outlives all reads
  void set_bringer(MemoryBringer* bringer) { bringer_ = bringer; }

  /// Reads, if it is still the same process. @return false if not all could be read there, or written here
  bool read(std::uint64_t address, std::byte* target, std::uint64_t bytes);

  /// Reads several pieces at once. @param count  pieces; both lists have one place more, which is for this function
  bool read(iovec* local, iovec* remote, std::uint32_t count);

  /// What read has read so far, and whether it has ever failed.
  std::uint64_t bytes_read() const { return bytes_read_; }
  bool has_failed_to_read() const { return read_failed_; }

 private:
  int file();
  ssize_t write_marked(const iovec* local, const iovec* remote, int pieces);
  bool has_mark(pid_t thread) const;
  bool find_thread();

  const pid_t os_pid_;
  pid_t reached_by_;  ///< A thread of it, the first one as long as that lives: the kernel finds the memory by threads.
  const std::uint64_t mark_address_;
  const std::uint64_t mark_;
  OwnDescriptor file_;  ///< Its file in /proc, opened when it is first needed.
  bool asked_ = false;  ///< It was tried.
  MemoryBringer* bringer_ = nullptr;
  std::uint64_t bytes_read_ = 0;  ///< By read.
  bool read_failed_ = false;      ///< Some read of one piece has.
};

}  // namespace portofu
