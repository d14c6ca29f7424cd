#pragma once
// A small file in /dev/shm that stands for a file which can have no name there: it says which descriptor of which
// process that is. A segment whose name was swept away gets one (signpost.h), and so does a heap that is memory alone
// (heap_memory.h). Its maker holds its lock, so whoever finds the maker dead removes it like a segment.

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>

#include "engine/segment/segment_file.h"

namespace portofu {

/// All that is in the file. Written before it has a name, and never again.
struct FilePointerShared {
  static constexpr std::uint64_t kMagic = 0x70726f6675776179;  ///< Neither a segment nor a heap begins so.

  std::uint64_t magic = kMagic;
  std::uint64_t device = 0;      ///< Device and inode of the file: another one may have got its descriptor, and a
  std::uint64_t inode = 0;       ///< process of another PID namespace may have the number of its owner.
  std::uint32_t os_pid = 0;      ///< Of its owner.
  std::uint32_t descriptor = 0;  ///< The owner's, of the file.
};
static_assert(sizeof(FilePointerShared) == 32 && std::is_standard_layout_v<FilePointerShared>);

/// Makes a pointer to a file of this process: locked, in `directory`, without a name yet.
/// @return nullptr, with errno, if that cannot be done
std::shared_ptr<SegmentFile> make_file_pointer(const std::string& directory, int fd);

/// @return false if the file is no pointer of this user
bool read_file_pointer(int fd, FilePointerShared* pointer);

/// Opens the file that a pointer leads to. The kernel lets only those through that may look into its owner.
/// @return the descriptor; -1, with errno, if that is another file by now, or none
int follow_file_pointer(const FilePointerShared& pointer);

/// @return true if the pointer leads to the file that is open as `fd`
bool leads_to(const FilePointerShared& pointer, int fd);

}  // namespace portofu
