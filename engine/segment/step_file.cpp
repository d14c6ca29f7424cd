#include "engine/segment/step_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "engine/observe/system_failure.h"
#include "engine/segment/file_limit.h"
#include "engine/segment/file_name.h"
#include "engine/segment/own_segments.h"
#include "engine/topology/launcher.h"

namespace portofu {
namespace {

constexpr std::uint64_t kRingBytes = StepFile::kRingRecords * sizeof(StepRecord);
constexpr std::uint64_t kLogOffset = kStepHeadBytes + kRingBytes;
constexpr std::size_t kLogRoomBytes = StepFile::kRingRecords * StepLogWriter::kMostBytes;

/// Copies a text and its end; of a long one the beginning.
template <std::size_t kBytes>
void write_text(char (&to)[kBytes], const std::string& from) {
  std::snprintf(to, kBytes, "%s", from.c_str());
}

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::uint64_t realtime_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

/// @param began_ns  tells growing files apart of a process that has closed, or executed another program, and begins
/// again
std::string file_path(const StepFileOptions& options, ProcessId self, std::uint64_t began_ns) {
  char numbers[64];
  std::snprintf(numbers, sizeof numbers, "%08x-%u-%d", self.nid, self.pid, getpid());
  if (!options.grows) return options.directory + "/" + step_ring_prefix() + numbers;
  return options.directory + "/steps-" + numbers + "-" + std::to_string(began_ns);
}

bool remove_ring_if_dead(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  const SegmentFile file(fd, FileOwner::kOtherProcess);
  std::uint64_t bytes = 0;
  if (!is_private_file(fd, &bytes) || !file.lock() || file.is_alive() || !is_at(path, fd)) return false;
  return ::unlink(path.c_str()) == 0;
}

}  // namespace

std::string step_ring_prefix() { return "portofu-steps-" + std::to_string(geteuid()) + "-"; }

int sweep_dead_step_rings(const std::string& directory) {
  DIR* listing = opendir(directory.c_str());
  if (listing == nullptr) return 0;
  const std::string prefix = step_ring_prefix();
  int removed = 0;
  while (const dirent* entry = readdir(listing)) {
    if (std::strncmp(entry->d_name, prefix.c_str(), prefix.size()) != 0) continue;
    if (remove_ring_if_dead(directory + "/" + entry->d_name)) ++removed;
  }
  closedir(listing);
  return removed;
}

std::unique_ptr<StepFile> StepFile::create(const StepFileOptions& options, ProcessId self, std::string* why) {
  if (!options.grows && !options.keeps_dead) sweep_dead_step_rings(options.directory);
  const std::string wanted = "a file in " + options.directory + ", for the steps of this process,";
  const int fd = ::open(options.directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) {
    const int error = errno;
    const bool is_missing = options.grows && (error == ENOENT || error == ENOTDIR);
    *why = system_failure("open", wanted, error, is_missing ? "set PORTOFU_RECORD to a directory that is there" : "");
    return nullptr;
  }
  std::unique_ptr<StepFile> made(new StepFile);
  made->file_ = std::make_unique<SegmentFile>(fd, FileOwner::kThisProcess);
  made->grows_ = options.grows;
  made->fork_generation_ = fork_generation();
  const bool whole =
      made->take_memory(0, kStepHeadBytes, &made->head_) && made->take_memory(kStepHeadBytes, kRingBytes, &made->ring_);
  if (!whole || !made->file_->lock()) {
    *why = system_failure("fallocate", wanted, errno);
    return nullptr;
  }
  made->fill_head(self);
  if (options.grows) {
    made->log_room_ = std::make_unique_for_overwrite<std::byte[]>(kLogRoomBytes);
    made->log_end_ = kLogOffset;
  }
  const std::string path = file_path(options, self, made->head().first_realtime_ns);
  if (!options.grows) ::unlink(path.c_str());  // Of a process with the numbers of this one that is long gone.
  if (const int error = give_name(made->file_->fd(), path); error != 0) {
    *why = system_failure("linkat", path, error);
    return nullptr;
  }
  made->file_->set_path(path);
  made->path_ = path;
  return made;
}

void StepFile::fill_head(ProcessId self) {
  StepFileHead& head = this->head();
  head.magic = kStepFileMagic;
  head.version = kStepFileVersion;
  head.record_bytes = sizeof(StepRecord);
  head.capacity = kRingRecords;
  head.log_offset = grows_ ? kLogOffset : 0;
  head.nid = self.nid;
  head.pid = self.pid;
  head.os_pid = static_cast<std::uint32_t>(getpid());
  head.rank = static_cast<std::int32_t>(rank_of_launcher());
  head.first_realtime_ns = realtime_ns();
  write_text(head.machine, first_line("/proc/sys/kernel/random/boot_id"));
  write_text(head.host, first_line("/proc/sys/kernel/hostname"));
  write_text(head.program, first_line("/proc/self/comm"));
}

/// Makes room in the file, so that nothing that is written there later meets a full file system.
bool StepFile::take_memory(std::uint64_t offset, std::uint64_t bytes, Mapping* mapping) const {
  if (!is_allowed_length(offset + bytes)) {
    errno = EFBIG;
    return false;
  }
  if (!file_->allocate(offset, bytes)) return false;
  *mapping = Mapping::map(file_->fd(), offset, bytes);
  return static_cast<bool>(*mapping);
}

std::span<StepRecord> StepFile::next() {
  const bool is_full = head().count.load(std::memory_order_relaxed) != 0;
  if (is_full && grows_ && !log_ring()) return {};
  return {reinterpret_cast<StepRecord*>(ring_.at(0)), kRingRecords};
}

/// Appends the ring, which is full. To write it costs a third of what it costs to map new pages of the file.
bool StepFile::log_ring() {
  const std::span ring(reinterpret_cast<const StepRecord*>(ring_.at(0)), kRingRecords);
  const std::byte* const end = log_.write(ring, log_room_.get());
  const auto bytes = static_cast<std::uint64_t>(end - log_room_.get());
  if (!is_allowed_length(log_end_ + bytes) || !file_->write(log_room_.get(), log_end_, bytes)) return false;
  log_end_ += bytes;
  const std::uint64_t logged = head().logged.load(std::memory_order_relaxed);
  head().logged.store(logged + kRingRecords, std::memory_order_release);
  return true;
}

void StepFile::end() {
  if (ended_ || path_.empty() || fork_generation_ != fork_generation()) return;
  ended_ = true;
  if (!grows_ && is_at(path_, file_->fd())) ::unlink(path_.c_str());
}

}  // namespace portofu
