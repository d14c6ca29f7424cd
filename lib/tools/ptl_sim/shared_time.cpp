#include "lib/tools/ptl_sim/shared_time.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace portofu::tools {

SharedTime::SharedTime(std::uint32_t ranks, const TimeCosts& costs) : bytes_(virtual_file_bytes(ranks)) {
  fd_ = memfd_create("portofu-virtual-time", MFD_CLOEXEC);
  void* mapped = MAP_FAILED;
  if (fd_ >= 0 && ftruncate(fd_, static_cast<off_t>(bytes_)) == 0) {
    mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  }
  if (mapped == MAP_FAILED) {
    why_ = std::string("no memory for virtual time: ") + std::strerror(errno);
    return;
  }
  header_ = static_cast<VirtualHeader*>(mapped);
  header_->version = kVirtualVersion;
  header_->page_bytes = sizeof(VirtualPage);
  header_->rank_count = ranks;
  header_->coordinator = static_cast<std::uint32_t>(getpid());
  header_->compute = static_cast<std::uint32_t>(costs.compute);
  header_->compute_word = costs.compute_word;
  std::copy(costs.calls_ps.begin(), costs.calls_ps.end(), header_->call_ps);
  header_->poll_ps = costs.poll_ps;
  header_->empty_poll_ps = costs.empty_poll_ps;
  header_->keeps_spans = costs.keeps_spans ? 1 : 0;
  header_->magic = kVirtualMagic;
}

SharedTime::~SharedTime() {
  if (header_ != nullptr) munmap(header_, bytes_);
  if (fd_ >= 0) close(fd_);
}

std::string SharedTime::path() const { return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fd_); }

namespace {

std::string directory_of(pid_t process) { return "/proc/" + std::to_string(process); }

/// What stands behind the name of a task: "S 1233 ...", its state and the parent of its process. @return "": it has
/// ended
std::string words_of_task(const std::string& directory) {
  std::ifstream file(directory + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t end = text.rfind(") ");  // A name may have brackets of its own.
  return end != std::string::npos ? text.substr(end + 2) : "";
}

bool is_asleep(const std::string& task) {
  const std::string words = words_of_task(task);
  return words.empty() || words.front() == 'S';
}

}  // namespace

bool is_asleep(pid_t process, pid_t thread) {
  return is_asleep(directory_of(process) + "/task/" + std::to_string(thread));
}

bool is_family_asleep(pid_t process) {
  while (process > 1 && process != getpid()) {
    std::error_code error;  // It may end while it is looked at.
    std::filesystem::directory_iterator tasks(directory_of(process) + "/task", error);
    for (const std::filesystem::directory_iterator end; !error && tasks != end; tasks.increment(error)) {
      if (!is_asleep(tasks->path().string())) return false;
    }
    std::istringstream words(words_of_task(directory_of(process)));
    char state = 0;
    if (!(words >> state >> process)) return true;
  }
  return true;
}

std::uint64_t used_cpu_ns(pid_t process) {
  // What clock_getcpuclockid makes, which asks the kernel each time whether there is such a process.
  const auto clock = static_cast<clockid_t>((~static_cast<unsigned>(process) << 3) | 2);
  timespec used{};
  if (clock_gettime(clock, &used) != 0) return 0;
  return static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(used.tv_nsec);
}

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, std::uint64_t timeout_ns) {
  const timespec timeout{static_cast<time_t>(timeout_ns / 1'000'000'000),
                         static_cast<long>(timeout_ns % 1'000'000'000)};
  syscall(SYS_futex, &word, FUTEX_WAIT, seen, &timeout, nullptr, 0);
}

void futex_wake(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace portofu::tools
