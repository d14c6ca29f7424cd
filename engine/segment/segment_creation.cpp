// The steps of making a segment, and the sweep that comes before them.

#include "engine/segment/segment_creation.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "engine/observe/counters.h"
#include "engine/observe/system_failure.h"
#include "engine/segment/file_limit.h"
#include "engine/segment/file_name.h"
#include "engine/segment/kernel.h"
#include "engine/segment/names_word.h"
#include "engine/segment/own_segments.h"
#include "engine/segment/segment_alias.h"
#include "engine/segment/segment_file.h"
#include "engine/segment/signpost.h"
#include "engine/topology/near_cpus.h"
#include "engine/topology/node_id.h"

namespace portofu {
namespace {

/// PIDs below are left to those who ask for them; as ports they need privileges.
constexpr std::uint32_t kFirstAnyPid = 1024;

/// A sweeper in another process holds the lock of a dead file, and tells who knows it, before it removes the name: a
/// wanted PID is tried for so long, if its owner is dead. So it is if the owner is gone, and its lock is still there.
constexpr std::uint64_t kLongestSweepNs = 500'000'000;
constexpr useconds_t kWantedPidPauseUs = 200;

/// What failures are about.
constexpr const char* kNewFile = "a new file in ";
/// A sweep tells others of the dead for so long.
constexpr std::uint64_t kLongestTellNs = 150'000'000;

std::uint64_t random_incarnation() {
  std::uint64_t incarnation = 0;
  if (!kernel().draw_random(&incarnation, sizeof incarnation)) {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    incarnation = static_cast<std::uint64_t>(now.tv_sec) << 32 ^ static_cast<std::uint64_t>(now.tv_nsec) << 2 ^
                  static_cast<std::uint64_t>(getpid()) << 40;
  }
  return incarnation | 1;
}

/// Whether there is a process that has made the segment. The lock goes with its memory, which outlives it for a moment
/// if somebody reads that just then.
bool has_maker(int fd) {
  SegmentDescriptorShared descriptor{};
  const bool whole = pread(fd, &descriptor, sizeof descriptor, 0) == static_cast<ssize_t>(sizeof descriptor);
  const auto os_pid = static_cast<pid_t>(descriptor.os_pid);
  return !whole || os_pid <= 0 || kill(os_pid, 0) == 0 || errno != ESRCH;
}

/// @return false also if nobody has the name
bool is_alive(const std::string& path) {
  if (find_own_segment(path) != nullptr) return true;
  const int fd = open_named_segment(path);
  if (fd < 0) return false;
  const SegmentFile file(fd, FileOwner::kOtherProcess);
  return file.is_alive() && has_maker(fd);
}

/// Whether a segment shall stay when its owner is dead (SegmentOptions::keep_dead).
bool is_to_be_kept(const std::string& path) {
  const int fd = open_named_segment(path);
  if (fd < 0) return false;
  SegmentDescriptorShared descriptor{};
  struct stat status {};
  const bool whole = fstat(fd, &status) == 0 &&
                     pread(fd, &descriptor, sizeof descriptor, 0) == static_cast<ssize_t>(sizeof descriptor);
  ::close(fd);
  return whole && has_head(descriptor, static_cast<std::uint64_t>(status.st_size)) && descriptor.keep_dead != 0;
}

/// Of this user; kMaxSweptNames at most.
std::vector<std::string> names_of_segments(const std::string& directory) {
  std::vector<std::string> names;
  DIR* const listing = opendir(directory.c_str());
  if (listing == nullptr) return names;
  const std::string prefix = segment_name_prefix();
  for (int count = 0; count < kMaxSweptNames; ++count) {
    const dirent* const entry = readdir(listing);
    if (entry == nullptr) break;
    if (std::strncmp(entry->d_name, prefix.c_str(), prefix.size()) == 0) names.emplace_back(entry->d_name);
  }
  closedir(listing);
  return names;
}

}  // namespace

int remove_dead_segments(const std::string& directory) {
  const OwnSegmentsLock lock;
  return sweep_dead_segments(directory, Sweep::kAll);
}

int sweep_dead_segments(const std::string& directory, Sweep which) {
  const std::vector<std::string> names = names_of_segments(directory);
  const std::uint64_t started_ns = kernel().now_ns();
  // Elsewhere each time: processes that start together look at all names together.
  const std::size_t first = names.empty() ? 0 : random_incarnation() % names.size();
  int removed = 0;
  int left = 0;
  for (std::size_t i = 0; i < names.size() && (which != Sweep::kShare || left < kMostLeftNames); ++i) {
    const std::string& name = names[(first + i) % names.size()];
    // Somebody who knows aliases of the dead, and does not hear, is waited for once only.
    if (is_alias_name(name) && kernel().now_ns() - started_ns > kLongestTellNs) continue;
    const std::string path = directory + "/" + name;
    const bool stays = which != Sweep::kAll && is_to_be_kept(path);
    if (!stays && remove_if_dead(path)) {
      ++removed;
    } else {
      ++left;
    }
  }
  return removed;
}

std::unique_ptr<ProcessSegment> SegmentCreation::run() {
  const OwnSegmentsLock lock;
  int removed = sweep_dead_segments(options_.directory, Sweep::kShare);
  segment_.reset(new ProcessSegment);
  segment_->directory_ = options_.directory;
  segment_->layout_ = {options_.channel_count, options_.ring, options_.area_bytes};
  // Until it has a name, the destructor of a failed attempt must not try to take the lock that is held here.
  segment_->fork_generation_ = ~fork_generation();
  if (!check_options() || !open_nameless_file()) return nullptr;
  if (!take_memory()) {  // The dead may have it.
    const int more = sweep_dead_segments(options_.directory);
    removed += more;
    if (more == 0 || !take_memory()) return nullptr;
  }
  if (!fill_descriptor() || !claim_name()) return nullptr;
  segment_->fork_generation_ = fork_generation();
  segment_->descriptor_ = *reinterpret_cast<const SegmentDescriptorShared*>(segment_->header_.at(0));
  segment_->header_.protect_front(kPageBytes);
  segment_->guard_ = options_.membarrier ? register_node_guard() : NodeGuard::kFence;
  add_own_segment(segment_->path_, segment_->file_);
  Counters(segment_->counters()).add(Counter::kSegmentsRemoved, static_cast<std::uint64_t>(removed));
  return std::move(segment_);
}

bool SegmentCreation::check_options() {
  if (!segment_->layout_.valid()) return fail(SegmentError::kSystem, "the sizes of the segment make no sense");
  if (options_.pid > kMaxPid) return fail(SegmentError::kSystem, "a PID is at most 65535");
  return true;
}

bool SegmentCreation::open_nameless_file() {
  const int fd = ::open(options_.directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) {
    const bool full = errno == ENOSPC || errno == ENOMEM;
    return fail(
        full ? SegmentError::kNoMemory : SegmentError::kSystem,
        system_failure("open", "a new file in " + options_.directory + ", for messages to this process,", errno));
  }
  segment_->file_ = std::make_shared<SegmentFile>(fd, FileOwner::kThisProcess);
  // The umask may have taken our own rights away.
  if (fchmod(segment_->file_->fd(), 0600) != 0)
    return fail(SegmentError::kSystem, system_failure("fchmod", kNewFile + options_.directory, errno));
  if (!segment_->file_->lock())
    return fail(SegmentError::kSystem, system_failure("fcntl(F_OFD_SETLK)", kNewFile + options_.directory, errno));
  return true;
}

bool SegmentCreation::take_memory() {
  const SegmentLayout& layout = segment_->layout_;
  if (!is_allowed_length(layout.segment_bytes())) return fail_to_take("ftruncate", layout.segment_bytes(), EFBIG);
  if (ftruncate(segment_->file_->fd(), static_cast<off_t>(layout.segment_bytes())) != 0)
    return fail_to_take("ftruncate", layout.segment_bytes(), errno);
  prefer_own_node();
  if (!segment_->file_->allocate(0, layout.rings_offset()))
    return fail_to_take("fallocate", layout.rings_offset(), errno);
  segment_->header_ = Mapping::map(segment_->file_->fd(), 0, layout.rings_offset());
  return segment_->header_ ? true : fail_to_take("mmap", layout.rings_offset(), errno);
}

/// Rings are touched first by who sends, and read by us. Where the kernel cannot do it, they lie with their senders.
void SegmentCreation::prefer_own_node() {
  if (options_.memory_node < 0) return;
  const std::uint64_t bytes = segment_->layout_.segment_bytes();
  // What is asked of a mapping of shared memory holds for the file. Nothing is touched.
  const Mapping whole = Mapping::map(segment_->file_->fd(), 0, bytes);
  if (whole) prefer_node(whole.at(0), bytes, options_.memory_node);
}

bool SegmentCreation::fail_to_take(const char* call, std::uint64_t bytes, int error) {
  const std::string wanted = std::to_string(bytes) + " bytes for " + kNewFile + options_.directory;
  return fail(SegmentError::kNoMemory, system_failure(call, wanted, error));
}

bool SegmentCreation::fill_descriptor() {
  auto* descriptor = reinterpret_cast<SegmentDescriptorShared*>(segment_->header_.at(0));
  *descriptor = {};
  descriptor->magic = kSegmentMagic;
  descriptor->layout_version = kLayoutVersion;
  descriptor->descriptor_bytes = sizeof *descriptor;
  descriptor->incarnation = random_incarnation();
  descriptor->nid = options_.nid;
  descriptor->os_pid = static_cast<std::uint32_t>(getpid());
  descriptor->uid = options_.uid;
  descriptor->job_key = options_.job_key;
  descriptor->channel_count = options_.channel_count;
  descriptor->ring = options_.ring;
  descriptor->area_bytes = options_.area_bytes;
  descriptor->segment_bytes = segment_->layout_.segment_bytes();
  descriptor->rank = options_.rank;
  descriptor->keep_dead = options_.keep_dead ? 1 : 0;
  descriptor->network = network_identity();
  // Before anybody can look for it there.
  segment_->descriptor_.incarnation = descriptor->incarnation;
  descriptor->probe_address = segment_->mark_.take(descriptor->incarnation)
                                  ? segment_->mark_.address()
                                  : reinterpret_cast<std::uint64_t>(&segment_->descriptor_.incarnation);
  segment_->doorbell().names.store(first_names(descriptor->incarnation), std::memory_order_relaxed);
  return true;
}

bool SegmentCreation::claim_name() { return options_.pid != 0 ? claim_wanted_pid() : claim_any_pid(); }

bool SegmentCreation::claim_wanted_pid() {
  const std::string path = segment_path(options_.directory, {options_.nid, options_.pid});
  const std::uint64_t until_ns = kernel().now_ns() + kLongestSweepNs;
  for (bool is_last = false;; usleep(kWantedPidPauseUs)) {
    const LinkResult result = link_as(options_.pid);
    if (result != LinkResult::kInUse) return result == LinkResult::kLinked;
    if (is_last) break;
    // Whose name vanishes meanwhile leaves it to us, or to another one, at the next try.
    is_last = kernel().now_ns() >= until_ns || is_alive(path);
  }
  return fail(SegmentError::kPidInUse, "PID " + std::to_string(options_.pid) + " belongs to a living process");
}

// By chance: whoever still sends to a process that has died must not reach one that has begun since. With the PIDs of
// the system, or the next free one, two processes in a row would often have the same.
bool SegmentCreation::claim_any_pid() {
  constexpr std::uint32_t kAnyPidCount = kMaxPid - kFirstAnyPid;  // Not the last: PTL_PID_MAX is none to ask for.
  const auto start = static_cast<std::uint32_t>((segment_->descriptor_.incarnation >> 1) % kAnyPidCount);
  for (std::uint32_t i = 0; i < kAnyPidCount; ++i) {
    const LinkResult result = link_as(kFirstAnyPid + (start + i) % kAnyPidCount);
    if (result != LinkResult::kInUse) return result == LinkResult::kLinked;
  }
  return fail(SegmentError::kNoPidFree, "all PIDs are taken");
}

SegmentCreation::LinkResult SegmentCreation::link_as(std::uint32_t pid) {
  reinterpret_cast<SegmentDescriptorShared*>(segment_->header_.at(0))->pid = pid;
  const std::string path = segment_path(options_.directory, {options_.nid, pid});
  for (int tries = 0; tries < 2; ++tries) {
    const int error = give_name(segment_->file_->fd(), path);
    if (error == 0) {
      segment_->path_ = path;
      segment_->file_->set_path(path);
      return LinkResult::kLinked;
    }
    if (error != EEXIST) {
      const std::string advice = error == ENOENT ? "mount /proc" : advice_for(error);
      const std::string from = "/proc/thread-self/fd/" + std::to_string(segment_->file_->fd());
      fail(SegmentError::kSystem, system_failure("linkat", from + " to " + path, error, advice));
      return LinkResult::kFailed;
    }
    const bool any_other_will_do = options_.pid == 0;
    if ((any_other_will_do && is_to_be_kept(path)) || !remove_if_dead(path)) return LinkResult::kInUse;
  }
  return LinkResult::kInUse;
}

bool SegmentCreation::fail(SegmentError error, const std::string& why) {
  error_ = error;
  why_ = why;
  return false;
}

}  // namespace portofu
