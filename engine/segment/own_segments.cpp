// The list of own segments, its lock, and what becomes of both in a forked child.

#include "engine/segment/own_segments.h"

#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <utility>
#include <vector>

#include "engine/observe/log.h"
#include "engine/observe/system_failure.h"
#include "engine/queue/clock.h"
#include "engine/queue/fork_mutex.h"

namespace portofu {

struct OwnSegments {
  struct Entry {
    std::string path;
    std::shared_ptr<SegmentFile> file;
  };
  ForkMutex mutex;
  std::vector<Entry> entries;
  std::atomic<std::uint64_t> fork_generation{0};
  std::atomic<pid_t> process{getpid()};
};

namespace {

constinit OwnSegments* used_segments = nullptr;  ///< nullptr: the process has one list only.

OwnSegments& own_segments();

void before_fork() { own_segments().mutex.lock(); }
void after_fork_in_parent() { own_segments().mutex.unlock(); }

/// The child owns no segment: the locks stayed with its parent.
void after_fork_in_child() {
  OwnSegments& own = own_segments();
  own.entries.clear();
  own.fork_generation.fetch_add(1, std::memory_order_relaxed);
  own.process.store(getpid(), std::memory_order_relaxed);
  own.mutex.unlock();
}

OwnSegments& own_segments() {
  // Never destroyed: engines that the application forgot to close may outlive static objects.
  static OwnSegments* const own = [] {
    auto* made = new OwnSegments;
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    return made;
  }();
  return used_segments != nullptr ? *used_segments : *own;
}

/// Made when the library is loaded: a fork while another thread makes it would leave the child with a half-made list,
/// for which it would wait for ever, or with a lock that no handler gives back.
[[maybe_unused]] const OwnSegments& made_at_load = own_segments();

}  // namespace

void OwnSegmentsDelete::operator()(OwnSegments* own) const { delete own; }
std::unique_ptr<OwnSegments, OwnSegmentsDelete> make_own_segments() {
  return std::unique_ptr<OwnSegments, OwnSegmentsDelete>(new OwnSegments);
}
OwnSegments* use_own_segments(OwnSegments* own) { return std::exchange(used_segments, own); }

OwnSegmentsLock::OwnSegmentsLock() { own_segments().mutex.lock(); }
OwnSegmentsLock::OwnSegmentsLock(std::uint64_t deadline_ns) : held_(own_segments().mutex.try_lock()) {
  while (!held_ && monotonic_ns() < deadline_ns) {
    sched_yield();
    held_ = own_segments().mutex.try_lock();
  }
}
OwnSegmentsLock::~OwnSegmentsLock() {
  if (held_) own_segments().mutex.unlock();
}

std::shared_ptr<SegmentFile> find_own_segment(const std::string& path) {
  for (const OwnSegments::Entry& entry : own_segments().entries) {
    if (entry.path == path) return entry.file;
  }
  return nullptr;
}

void add_own_segment(const std::string& path, std::shared_ptr<SegmentFile> file) {
  own_segments().entries.push_back({path, std::move(file)});
}

void remove_own_segment(const SegmentFile* file) {
  std::erase_if(own_segments().entries, [file](const OwnSegments::Entry& entry) { return entry.file.get() == file; });
}

void remove_own_name(const std::string& path) {
  std::erase_if(own_segments().entries, [&path](const OwnSegments::Entry& entry) { return entry.path == path; });
}

void tell_if_names_are_hidden(const std::string& directory) {
  static constinit ToldOnce told;
  const std::string prefix = directory + "/" + segment_name_prefix();
  const std::string* hidden = nullptr;
  for (const OwnSegments::Entry& entry : own_segments().entries) {
    if (!entry.path.starts_with(directory + "/")) continue;
    const bool is_of_user = entry.path.starts_with(prefix);
    if (is_of_user && access(entry.path.c_str(), F_OK) == 0) return;
    struct stat status {};
    const bool is_swept = fstat(entry.file->fd(), &status) != 0 || status.st_nlink == 0;  // signpost.h
    if (!is_of_user || !is_swept) hidden = &entry.path;
  }
  if (hidden == nullptr || !told.is_first()) return;
  log_warning("%s, %s: processes that it has not talked to yet are not found, and what is to go there fails",
              hidden->starts_with(prefix) ? "this process no longer sees its own name (chroot, umount?)"
                                          : "this process has another user id than when it made its name",
              hidden->c_str());
}

bool is_known_process() { return own_segments().process.load(std::memory_order_relaxed) == getpid(); }

std::uint64_t fork_generation() { return own_segments().fork_generation.load(std::memory_order_relaxed); }

}  // namespace portofu
