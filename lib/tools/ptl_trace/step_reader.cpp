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
#include <utility>

#include "lib/tools/ptl_trace/late_steps.h"

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

/// The log of a file, of which a piece is in memory at a time.
class LogStream {
 public:
  /// @param offset  where it begins
  LogStream(const File& file, std::uint64_t offset)
      : file_(file), next_(offset), end_(std::max(offset, file.bytes())), piece_(kPieceBytes) {}

  /// @return false if no whole record is left
  bool read(StepRecord* record) {
    if (reader_.left().size() < StepLogReader::kMostBytes) read_on();
    return reader_.read(record);
  }

 private:
  static constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

  void read_on() {
    const auto left = reader_.left();
    std::ranges::copy(left, piece_.begin());
    std::size_t more = std::min<std::uint64_t>(piece_.size() - left.size(), end_ - next_);
    if (!file_.read(next_, piece_.data() + left.size(), more)) more = 0;
    next_ += more;
    reader_.go_on({piece_.data(), left.size() + more});
  }

  const File& file_;
  std::uint64_t next_;  ///< Where in the file the next piece begins.
  const std::uint64_t end_;
  std::vector<std::byte> piece_;
  StepLogReader reader_;
};

/// The first records of the log, or as many as there are.
void read_log(const File& file, const StepFileHead& head, std::uint64_t count, std::uint64_t until_ticks,
              LaneSteps* lane) {
  LogStream log(file, head.log_offset);
  StepRecord record{};
  for (std::uint64_t i = 0; i < count && log.read(&record); ++i) {
    if (record.ticks > until_ticks) return;
    lane->steps.push_back(record);
  }
}

/// The records of a file that is perhaps being written.
void read_records(const File& file, const StepFileHead& head, std::uint64_t until_ticks, LaneSteps* lane) {
  std::vector<StepRecord> ring(head.capacity);
  if (!file.read(kStepHeadBytes, ring.data(), head.capacity * sizeof(StepRecord))) return;
  std::uint64_t begin = 0;  // What was before it in the ring, and only that, may have been overwritten meanwhile.
  if (head.log_offset != 0) {
    begin = count_now(file, offsetof(StepFileHead, logged));
    read_log(file, head, begin, until_ticks, lane);
    lane->written = std::max(lane->written, begin);
    if (lane->written - begin > head.capacity) return;  // No owner wrote these numbers.
  } else {
    const std::uint64_t after = count_now(file, offsetof(StepFileHead, count)) + 1;  // One may be half written.
    begin = after > head.capacity ? after - head.capacity : 0;
    if (lane->written > kLastSteps) begin = std::max(begin, lane->written - kLastSteps);
  }
  for (std::uint64_t i = begin; i < lane->written; ++i) {
    if (ring[i % head.capacity].ticks <= until_ticks) lane->steps.push_back(ring[i % head.capacity]);
  }
}

/// @return nullptr, or why it is no file of steps of this version
const char* read_head(const File& file, StepFileHead* head) {
  if (file.fd() < 0 || !file.read(0, head, sizeof *head)) return ": cannot be read";
  const std::uint64_t room =
      (std::max(file.bytes(), std::uint64_t{kStepHeadBytes}) - kStepHeadBytes) / sizeof(StepRecord);
  const bool is_one = head->magic == kStepFileMagic && head->version == kStepFileVersion &&
                      head->record_bytes == sizeof(StepRecord) && head->capacity != 0 && head->capacity <= room;
  return is_one ? nullptr : ": no file of steps of this version";
}

/// What is late is as if the lane had not been looked at since.
void leave_out_late(std::uint64_t until_ticks, LaneSteps* lane) {
  const std::uint64_t since = until_ticks - lane->first.ticks;
  const std::uint64_t ticks = lane->last.ticks - lane->first.ticks;
  if (lane->last.ticks <= until_ticks || until_ticks < lane->first.ticks) return;
  const double share = static_cast<double>(since) / static_cast<double>(ticks);
  const auto ns = static_cast<double>(lane->last.ns - lane->first.ns) * share;
  lane->last = {until_ticks, lane->first.ns + static_cast<std::uint64_t>(ns)};
}

}  // namespace

std::optional<LaneSteps> read_steps(const std::string& path, std::string* why, std::uint64_t until_ticks) {
  const File file(path);
  StepFileHead head{};
  if (const char* const reason = read_head(file, &head)) {
    *why = path + reason;
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
  if (until_ticks == 0) return lane;
  read_records(file, head, until_ticks, &lane);
  if (until_ticks != kAllSteps) {
    lane.left_out = lane.written - std::min<std::uint64_t>(lane.written, lane.steps.size());
    leave_out_late(until_ticks, &lane);
  }
  std::erase_if(lane.steps, [](const StepRecord& record) {
    return record.step == Step::kNone || record.step >= Step::kCountOfSteps;
  });
  return lane;
}

std::vector<std::uint64_t> sample_ticks(const std::string& path) {
  std::vector<std::uint64_t> ticks;
  const File file(path);
  StepFileHead head{};
  if (read_head(file, &head) != nullptr || head.log_offset == 0) return ticks;
  LogStream log(file, head.log_offset);
  StepRecord record{};
  for (std::uint64_t i = 0; log.read(&record); ++i) {
    if (i % kSampled == 0) ticks.push_back(record.ticks);
  }
  return ticks;
}

std::vector<LaneSteps> read_all_steps(const std::string& directory, const std::string& prefix, std::uint64_t most,
                                      std::vector<std::string>* complaints) {
  std::vector<LaneSteps> lanes;
  std::vector<std::string> paths;
  std::error_code error;
  std::uint64_t written = 0;
  bool is_long = false;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (!entry.path().filename().string().starts_with(prefix)) continue;
    std::string why;
    if (auto lane = read_steps(entry.path(), &why, 0)) {
      is_long = is_long || lane->written > most || (written += lane->written) > most;
      lanes.push_back(std::move(*lane));
      paths.push_back(entry.path());
    } else {
      complaints->push_back(why);
    }
  }
  std::vector<std::uint64_t> until(lanes.size(), kAllSteps);
  if (is_long) until = late_steps_begin(lanes, paths, most);
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    std::string why;
    if (auto lane = read_steps(paths[i], &why, until[i])) lanes[i] = std::move(*lane);
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
