#pragma once
// A directory of its own in shared memory, so that a test neither sees nor sweeps the segments of others.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "engine/segment/layout.h"
#include "engine/segment/process_segment.h"

namespace portofu {

inline constexpr std::uint32_t kTestNid = 0x0a000001;

/// Made empty, removed with all it holds.
class SegmentDirectory {
 public:
  SegmentDirectory() {
    std::string pattern = "/dev/shm/test-segments-XXXXXX";
    const char* made = mkdtemp(pattern.data());
    if (made == nullptr) std::abort();
    path_ = made;
  }
  ~SegmentDirectory() { std::filesystem::remove_all(path_); }
  SegmentDirectory(const SegmentDirectory&) = delete;
  SegmentDirectory& operator=(const SegmentDirectory&) = delete;

  const std::string& path() const { return path_; }

  SegmentOptions options(std::uint32_t pid = 0) const {
    SegmentOptions options;
    options.nid = kTestNid;
    options.pid = pid;
    options.directory = path_;
    return options;
  }

  std::unique_ptr<ProcessSegment> create(std::uint32_t pid = 0, bool keep_dead = false) const {
    SegmentError error{};
    SegmentOptions wanted = options(pid);
    wanted.keep_dead = keep_dead;
    return ProcessSegment::create(wanted, &error, nullptr);
  }

  std::size_t name_count() const {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(path_)) ++count;
    return count;
  }

 private:
  std::string path_;
};

/// Runs `body` in a forked child that then ends without any clean-up, as if it had been killed.
/// @return its exit status
inline int in_dying_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/// Leaves the segment of a process that died behind.
inline void leave_dead_segment(const SegmentDirectory& directory, std::uint32_t pid, bool keep_dead = false) {
  in_dying_child([&] { return directory.create(pid, keep_dead).release() != nullptr ? 0 : 1; });
}

/// What in_small_file_system returns where that cannot be had.
inline constexpr int kMayNotMount = 77;

/// Runs `body` in a child for which the directory is an empty file system of its own.
/// @param options  of the mount: size=300k
inline int in_small_file_system(const SegmentDirectory& directory, const char* options,
                                const std::function<int()>& body) {
  return in_dying_child([&] {
    if (unshare(CLONE_NEWNS | (geteuid() == 0 ? 0 : CLONE_NEWUSER)) != 0) return kMayNotMount;
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return kMayNotMount;
    if (mount("tmpfs", directory.path().c_str(), "tmpfs", 0, options) != 0) return kMayNotMount;
    return body();
  });
}

/// Makes the segment of a dead process one of a later version, of which only the head is known.
inline void become_unknown(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  const std::uint32_t version = kLayoutVersion + 1, none = 0;
  for (const auto& [at, value] : {std::pair{offsetof(SegmentDescriptorShared, layout_version), version},
                                  std::pair{offsetof(SegmentDescriptorShared, descriptor_bytes), none},
                                  std::pair{offsetof(SegmentDescriptorShared, channel_count), none}}) {
    ASSERT_EQ(pwrite(fd, &value, sizeof value, static_cast<off_t>(at)), static_cast<ssize_t>(sizeof value));
  }
  close(fd);
}

}  // namespace portofu
