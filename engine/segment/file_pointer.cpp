#include "engine/segment/file_pointer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "engine/segment/own_descriptor.h"

namespace portofu {

std::shared_ptr<SegmentFile> make_file_pointer(const std::string& directory, int fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return nullptr;
  const FilePointerShared pointer{FilePointerShared::kMagic, status.st_dev, status.st_ino,
                                  static_cast<std::uint32_t>(getpid()), static_cast<std::uint32_t>(fd)};
  const int made = move_above_standard(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (made < 0) return nullptr;
  auto file = std::make_shared<SegmentFile>(made, FileOwner::kThisProcess);
  const bool written = write(made, &pointer, sizeof pointer) == static_cast<ssize_t>(sizeof pointer);
  // The umask may have taken our own rights away.
  return written && fchmod(made, 0600) == 0 && file->lock() ? file : nullptr;
}

bool read_file_pointer(int fd, FilePointerShared* pointer) {
  std::uint64_t file_bytes = 0;
  return is_private_file(fd, &file_bytes) && file_bytes == sizeof *pointer &&
         pread(fd, pointer, sizeof *pointer, 0) == static_cast<ssize_t>(sizeof *pointer) &&
         pointer->magic == FilePointerShared::kMagic;
}

int follow_file_pointer(const FilePointerShared& pointer) {
  const std::string path = "/proc/" + std::to_string(pointer.os_pid) + "/fd/" + std::to_string(pointer.descriptor);
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0 || leads_to(pointer, fd)) return fd;
  ::close(fd);
  errno = ENOENT;
  return -1;
}

bool leads_to(const FilePointerShared& pointer, int fd) {
  struct stat status {};
  return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_dev == pointer.device &&
         status.st_ino == pointer.inode;
}

}  // namespace portofu
