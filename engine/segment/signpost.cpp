#include "engine/segment/signpost.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "engine/observe/log.h"
#include "engine/queue/cancellation.h"
#include "engine/segment/file_name.h"
#include "engine/segment/file_pointer.h"
#include "engine/segment/own_segments.h"

namespace portofu {
namespace {

/// @return 0, or errno
int put_back(ProcessSegment& segment, const std::string& path) {
  // As long as another name is left the kernel gives more.
  if (const int error = give_name(segment.file()->fd(), path); error != ENOENT) return error;
  std::shared_ptr<SegmentFile> signpost = make_file_pointer(segment.directory(), segment.file()->fd());
  if (signpost == nullptr) return errno != 0 ? errno : EIO;
  const int error = give_name(signpost->fd(), path);
  if (error == 0) segment.lost_names().signposts.push_back(std::move(signpost));
  return error;
}

bool has_name(ProcessSegment& segment, const std::string& path) {
  const auto& signposts = segment.lost_names().signposts;
  return is_at(path, segment.file()->fd()) ||
         std::ranges::any_of(signposts, [&](const auto& signpost) { return is_at(path, signpost->fd()); });
}

/// Whether all names are as they were made. @return true also if that is not known
bool has_all_names(ProcessSegment& segment) {
  const LostNames& lost = segment.lost_names();
  struct stat status {};
  if (fstat(segment.file()->fd(), &status) != 0) return true;
  // The program may have closed the descriptor, and opened a file of its own that has its number now.
  const bool is_segment = static_cast<std::uint64_t>(status.st_size) == segment.layout().segment_bytes();
  return !is_segment ||
         (lost.signposts.empty() && lost.given_up.empty() && status.st_nlink == 1 + segment.aliases().size());
}

/// Says what became of the name, unless it was said already.
void restore(ProcessSegment& segment, const std::string& path) {
  if (has_name(segment, path)) return;
  std::vector<std::string>& given_up = segment.lost_names().given_up;
  const int error = put_back(segment, path);
  const bool is_known = std::erase(given_up, path) != 0;
  if (error == 0) return log_warning("somebody has removed %s; the name is back", path.c_str());
  given_up.push_back(path);
  if (is_known) return;
  if (error == EEXIST) {
    log_warning(
        "somebody has removed %s, and another process has this name now: whoever connects from now on reaches it",
        path.c_str());
  } else {
    log_warning("somebody has removed %s, and it cannot be put back (%s): nobody can connect any more", path.c_str(),
                std::strerror(error));
  }
}

}  // namespace

bool stands_for(const std::string& path, int segment_fd) {
  const NoCancellation whole;
  if (is_at(path, segment_fd)) return true;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  FilePointerShared signpost;
  const bool leads = read_file_pointer(fd, &signpost) && leads_to(signpost, segment_fd);
  ::close(fd);
  return leads;
}

int open_named_segment(const std::string& path) {
  const NoCancellation whole;
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return fd;
  FilePointerShared signpost;
  if (!read_file_pointer(fd, &signpost)) return fd;
  ::close(fd);
  return follow_file_pointer(signpost);
}

void look_after_names(ProcessSegment& segment) {
  if (!segment.in_owner_process() || has_all_names(segment)) return;
  const NoCancellation whole;
  const OwnSegmentsLock lock;
  struct stat status {};
  std::erase_if(segment.lost_names().signposts, [&status](const auto& signpost) {
    return fstat(signpost->fd(), &status) == 0 && status.st_nlink == 0;
  });
  restore(segment, segment.path());
  for (const std::string& alias : segment.aliases()) restore(segment, alias);
}

void remove_name(ProcessSegment& segment, const std::string& path) {
  if (has_name(segment, path)) ::unlink(path.c_str());
}

}  // namespace portofu
