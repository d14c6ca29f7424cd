#include "engine/segment/heap_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "engine/queue/cancellation.h"
#include "engine/queue/clock.h"
#include "engine/queue/random_bytes.h"
#include "engine/segment/file_limit.h"
#include "engine/segment/file_name.h"
#include "engine/segment/file_pointer.h"
#include "engine/segment/heap_memory.h"
#include "engine/segment/own_descriptor.h"
#include "engine/segment/own_segments.h"

namespace portofu {
namespace {

constexpr const char* kHeapMark = "heap-";

bool lock_whole(int fd) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return fcntl(fd, F_OFD_SETLK, &lock) == 0;  // Ends with the last mapping (segment_file.h).
}

/// Memory has to be promised, and a promise that cannot be kept would be a SIGBUS (vm.overcommit_memory 2).
bool is_memory_accounted() {
  const int fd = ::open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return true;
  char mode = '2';
  const bool read = ::read(fd, &mode, 1) == 1;
  ::close(fd);
  return !read || mode == '2';
}

/// The caller holds an OwnSegmentsLock.
std::shared_ptr<SegmentFile> find_or_open_heap(const std::string& path) {
  if (std::shared_ptr<SegmentFile> own = find_own_segment(path)) return own;
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  return fd >= 0 ? std::make_shared<SegmentFile>(fd, FileOwner::kOtherProcess, path) : nullptr;
}

}  // namespace

std::string heap_path(const std::string& directory, std::uint64_t id) {
  char number[24];
  std::snprintf(number, sizeof number, "%016llx", static_cast<unsigned long long>(id));
  return directory + "/" + segment_name_prefix() + kHeapMark + number;
}

bool is_heap_name(const std::string& name) { return name.starts_with(segment_name_prefix() + kHeapMark); }

int open_heap_file(const char* directory, std::uint64_t bytes) {
  if (bytes > kMaxHeapBytes || !is_allowed_length(bytes)) return -1;
  const int fd = move_above_standard(::open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (fd < 0) return -1;
  // The umask may have taken our own rights away.
  if (fchmod(fd, 0600) == 0 && lock_whole(fd) && ftruncate(fd, static_cast<off_t>(bytes)) == 0) return fd;
  ::close(fd);
  return -1;
}

int open_heap_memory(std::uint64_t bytes) {
  if (bytes > kMaxHeapBytes || !is_allowed_length(bytes) || is_memory_accounted()) return -1;
  const int fd = move_above_standard(memfd_create("portofu-heap", MFD_CLOEXEC));
  if (fd < 0) return -1;
  if (fchmod(fd, 0600) == 0 && ftruncate(fd, static_cast<off_t>(bytes)) == 0) return fd;
  ::close(fd);
  return -1;
}

std::uint64_t name_heap_file(const std::string& directory, const std::shared_ptr<SegmentFile>& file) {
  const NoCancellation whole;
  const OwnSegmentsLock lock;
  std::uint64_t id = 0;
  if (!draw_random(&id, sizeof id)) return 0;
  id |= 1;
  const std::string path = heap_path(directory, id);
  if (give_name(file->fd(), path) != 0) return 0;
  file->set_path(path);
  add_own_segment(path, file);
  return id;
}

void unname_heap_file(const std::string& directory, std::uint64_t id, const SegmentFile& file) {
  if (!is_known_process()) return;
  constexpr std::uint64_t kPatienceNs = 1'000'000'000;
  const OwnSegmentsLock lock(monotonic_ns() + kPatienceNs);  // The process ends, perhaps in the middle of something.
  ::unlink(heap_path(directory, id).c_str());
  if (lock.is_held()) remove_own_segment(&file);
}

Mapping map_heap(const std::string& directory, const HeapPlace& place) {
  const NoCancellation whole;
  if (place.id == 0 || place.bytes == 0 || place.bytes > kMaxHeapBytes) return {};
  const OwnSegmentsLock lock;
  const std::shared_ptr<SegmentFile> file = find_or_open_heap(heap_path(directory, place.id));
  if (file == nullptr) return {};
  std::uint64_t file_bytes = 0;
  if (!is_private_file(file->fd(), &file_bytes) || !file->is_alive()) return {};
  FilePointerShared pointer;
  if (!read_file_pointer(file->fd(), &pointer)) {
    return file_bytes == place.bytes ? Mapping::map(file->fd(), 0, place.bytes) : Mapping();
  }
  const int fd = follow_file_pointer(pointer);
  if (fd < 0) return {};
  Mapping mapping;
  if (is_private_file(fd, &file_bytes) && file_bytes == place.bytes) mapping = Mapping::map(fd, 0, place.bytes);
  ::close(fd);
  return mapping;
}

}  // namespace portofu
