#pragma once
// A file descriptor of the library in a program that does not know of it. Such a program may have closed its standard
// streams, whose numbers the kernel gives out first: what it then writes to "standard error" must not go into our
// files. Or it closes what it has not opened (closefrom(3)), and opens files of its own under the same numbers: these
// are never touched. So every descriptor has a number above 2, is closed by exec, and remembers its file.

#include <sys/types.h>

#include <utility>

namespace portofu {

/// @param fd  -1, or a descriptor, which this takes
/// @return it, or another one of the same file that is above 2; -1 if there is none
int move_above_standard(int fd);

/// The same as far up as numbers are rarely given out again, for a descriptor that is used without a look (see
/// OwnDescriptor::is_ours).
int move_far_up(int fd);

/// Makes room for numbers far up. The kernel enlarges the table of descriptors for that, and makes a process whose
/// threads share it wait until all cores have come by: some 10 ms, seconds where others keep them busy.
void make_room_far_up();

/// Owns a descriptor. Not thread-safe.
class OwnDescriptor {
 public:
  OwnDescriptor() = default;
  /// @param fd  -1, or a descriptor, which this takes and moves above 2
  explicit OwnDescriptor(int fd);
  ~OwnDescriptor() { close(); }
  OwnDescriptor(OwnDescriptor&& other) noexcept { swap(other); }
  OwnDescriptor& operator=(OwnDescriptor&& other) noexcept {
    swap(other);
    return *this;
  }
  OwnDescriptor(const OwnDescriptor&) = delete;
  OwnDescriptor& operator=(const OwnDescriptor&) = delete;

  /// Whether there is one, as far as we know.
  explicit operator bool() const { return fd_ >= 0; }

  /// The number, unseen; -1: none.
  int number() const { return fd_; }

  /// Whether the number still stands for our file. Costs a system call; says once per process if not.
  bool is_ours() const;

  /// The number if is_ours, else -1.
  int get() const { return is_ours() ? fd_ : -1; }

  bool is_same_file(const OwnDescriptor& other) const { return device_ == other.device_ && file_ == other.file_; }

  /// Closes it if it is ours. What file it was is remembered.
  void close();

 private:
  void swap(OwnDescriptor& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(device_, other.device_);
    std::swap(file_, other.file_);
  }

  int fd_ = -1;
  dev_t device_ = 0;  ///< Of the file behind it.
  ino_t file_ = 0;    ///< Its inode.
};

/// While it lives, the numbers 0 to 2 are not free: for calls of other libraries that open descriptors. They stay taken
/// (by a pipe that nobody uses) if `keep` was called, because such a library opens more of them later.
class StandardNumbersTaken {
 public:
  StandardNumbersTaken();
  ~StandardNumbersTaken();
  StandardNumbersTaken(const StandardNumbersTaken&) = delete;
  StandardNumbersTaken& operator=(const StandardNumbersTaken&) = delete;
  void keep() { kept_ = true; }

 private:
  OwnDescriptor unused_;  ///< Above 2, of the same file.
  int taken_[3] = {-1, -1, -1};
  bool kept_ = false;
};

}  // namespace portofu
