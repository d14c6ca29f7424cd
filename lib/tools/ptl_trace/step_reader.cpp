#include "lib/tools/ptl_trace/step_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <tuple>

namespace portofu::tools {
namespace {

class File {
 public:
  explicit File(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }

  /// @return false if there are not so many bytes
  bool read(std::uint64_t offset, void* to, std::size_t bytes) const {
    auto* at = static_cast<char*>(to);
    while (bytes > 0) {
      const ssize_t got = pread(fd_, at, bytes, static_cast<off_t>(offset));
      if (got <= 0) return false;
      at += got;
      offset += static_cast<std::uint64_t>(got);
      bytes -= static_cast<std::size_t>(got);
    }
    return true;
  }

  std::uint64_t bytes() const {
    struct stat status {};
    return fstat(fd_, &status) == 0 && S_ISREG(status.st_mode) ? static_cast<std::uint64_t>(status.st_size) : 0;
  }

  /// Whether somebody holds the lock of an owner.
  bool is_locked() const {
    struct flock lock {};
    lock.l_type = F_RDLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = 1;
    return fcntl(fd_, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  }

 private:
  int fd_;
};

template <std::size_t kBytes>
std::string text_of(const char (&text)[kBytes]) {
  return {text, strnlen(text, kBytes)};
}

/// One of the counts of a head that is perhaps being written.
std::uint64_t count_now(const File& file, std::size_t offset) {
  std::uint64_t count = 0;
  return file.read(offset, &count, sizeof count) ? count : 0;
}

/// The first records of the log, or as many as there are.
std::vector<StepRecord> read_log(const File& file, std::uint64_t offset, std::uint64_t count) {
  std::vector<std::byte> log(file.bytes() - std::min(file.bytes(), offset));
  std::vector<StepRecord> records;
  if (!file.read(offset, log.data(), log.size())) return records;
  records.reserve(std::min<std::uint64_t>(count, log.size() / StepLogReader::kLeastBytes));
  StepLogReader reader(log);
  StepRecord record{};
  while (records.size() < count && reader.read(&record)) records.push_back(record);
  return records;
}

/// The records of a file that is perhaps being written.
void read_records(const File& file, const StepFileHead& head, LaneSteps* lane) {
  std::vector<StepRecord> ring(head.capacity);
  if (!file.read(kStepHeadBytes, ring.data(), head.capacity * sizeof(StepRecord))) return;
  std::uint64_t begin = 0;  // What was before it in the ring, and only that, may have been overwritten meanwhile.
  if (head.log_offset != 0) {
    begin = count_now(file, offsetof(StepFileHead, logged));
    lane->steps = read_log(file, head.log_offset, begin);
    lane->written = std::max(lane->written, begin);
    if (lane->written - begin > head.capacity) return;  // No owner wrote these numbers.
  } else {
    const std::uint64_t after = count_now(file, offsetof(StepFileHead, count)) + 1;  // One may be half written.
    begin = after > head.capacity ? after - head.capacity : 0;
    if (lane->written > kLastSteps) begin = std::max(begin, lane->written - kLastSteps);
  }
  for (std::uint64_t i = begin; i < lane->written; ++i) lane->steps.push_back(ring[i % head.capacity]);
}

}  // namespace

std::optional<LaneSteps> read_steps(const std::string& path, std::string* why) {
  const File file(path);
  StepFileHead head{};
  if (file.fd() < 0 || !file.read(0, &head, sizeof head)) {
    *why = path + ": cannot be read";
    return std::nullopt;
  }
  const std::uint64_t room =
      (std::max(file.bytes(), std::uint64_t{kStepHeadBytes}) - kStepHeadBytes) / sizeof(StepRecord);
  if (head.magic != kStepFileMagic || head.version != kStepFileVersion || head.record_bytes != sizeof(StepRecord) ||
      head.capacity == 0 || head.capacity > room) {
    *why = path + ": no file of steps of this version";
    return std::nullopt;
  }
  LaneSteps lane;
  lane.id = {head.nid, head.pid};
  lane.os_pid = head.os_pid;
  lane.rank = head.rank;
  lane.machine = text_of(head.machine);
  lane.host = text_of(head.host);
  lane.program = text_of(head.program);
  lane.alive = file.is_locked();
  lane.first = {head.first_ticks, head.first_ns};
  lane.last = {head.last_ticks.load(), head.last_ns.load()};
  lane.first_realtime_ns = head.first_realtime_ns;
  lane.written = head.count.load();
  lane.lost = head.lost.load();
  read_records(file, head, &lane);
  std::erase_if(lane.steps, [](const StepRecord& record) {
    return record.step == Step::kNone || record.step >= Step::kCountOfSteps;
  });
  return lane;
}

std::vector<LaneSteps> read_all_steps(const std::string& directory, const std::string& prefix,
                                      std::vector<std::string>* complaints) {
  std::vector<LaneSteps> lanes;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (!entry.path().filename().string().starts_with(prefix)) continue;
    std::string why;
    if (auto lane = read_steps(entry.path(), &why)) {
      lanes.push_back(std::move(*lane));
    } else {
      complaints->push_back(why);
    }
  }
  if (error) complaints->push_back(directory + ": " + error.message());
  std::ranges::sort(lanes, {}, [](const LaneSteps& lane) {
    return std::tuple(lane.rank, lane.machine, lane.first.ns, lane.id.nid, lane.id.pid);
  });
  return lanes;
}

ClockPair clock_now() {
  const std::uint64_t ns = monotonic_ns();
  return {cpu_ticks_are_steady() ? cpu_ticks() : ns, ns};
}

std::string this_machine() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace portofu::tools
