#pragma once
// What a process holds, as its kernel tells.

#include <dirent.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace portofu {

/// libfabric (ofi_rxm) takes memory for 1024 of its buffers at once.
inline constexpr long kFabricPoolBytes = 17'305'600;

/// A process may need so much twice more at any time: for the first message that it cannot send at once, and for
/// connections of the dead beside those of the living.
inline constexpr long kFabricPoolsBytes = 2 * kFabricPoolBytes;

/// Open files of a process.
/// @param but  what is not counted, as /proc names it
/// @return -1 if the process is not there
inline int descriptor_count(pid_t pid, const std::string& but = "") {
  const std::string path = "/proc/" + std::to_string(pid) + "/fd";
  DIR* directory = opendir(path.c_str());
  if (directory == nullptr) return -1;
  int count = 0;
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] == '.') continue;
    char name[256];
    const ssize_t length = readlink((path + "/" + entry->d_name).c_str(), name, sizeof name);
    count += length < 0 || but != std::string(name, static_cast<std::size_t>(length)) ? 1 : 0;
  }
  closedir(directory);
  return count;
}

/// One number of /proc/PID/statm, in bytes; -1 if the process is not there.
inline long memory_number(pid_t pid, int which) {
  std::FILE* file = std::fopen(("/proc/" + std::to_string(pid) + "/statm").c_str(), "r");
  if (file == nullptr) return -1;
  long pages = -1;
  for (int i = 0; i <= which; ++i) {
    if (std::fscanf(file, "%ld", &pages) != 1) pages = -1;
  }
  std::fclose(file);
  return pages < 0 ? -1 : pages * sysconf(_SC_PAGESIZE);
}

/// Memory of the process alone that is in use.
inline long private_bytes(pid_t pid) { return memory_number(pid, 1) - memory_number(pid, 2); }

/// Memory of the process alone, whether it was touched or not: what libraries have set aside is no growth when they
/// come to use it.
inline long data_bytes(pid_t pid) { return memory_number(pid, 5); }

/// A clock that goes on only while its owner gets to run: what a machine that is busy with others, or stands still,
/// takes from all processes of a test is not counted as theirs.
class FairClock {
 public:
  /// Rests a moment. @return seconds since the start
  double tick() {
    usleep(1000);
    const auto now = std::chrono::steady_clock::now();
    const double passed = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    return seconds_ += passed < kLongestTickS ? passed : kLongestTickS;
  }
  double seconds() const { return seconds_; }

 private:
  static constexpr double kLongestTickS = 0.01;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  double seconds_ = 0;
};

/// For how long each thread of a process has been ready to run while the machine ran others, in nanoseconds.
/// @return by thread; empty if the process is not there. A number may shrink a little, as clocks of cores differ
inline std::map<pid_t, std::int64_t> kept_waiting_ns(pid_t pid) {
  std::map<pid_t, std::int64_t> waits;
  const std::string path = "/proc/" + std::to_string(pid) + "/task/";
  DIR* directory = opendir(path.c_str());
  if (directory == nullptr) return waits;
  while (const dirent* entry = readdir(directory)) {
    std::FILE* file = std::fopen((path + entry->d_name + "/schedstat").c_str(), "r");
    if (file == nullptr) continue;
    long long waited_ns = 0;
    if (std::fscanf(file, "%*u %lld", &waited_ns) == 1) waits[std::atoi(entry->d_name)] = waited_ns;
    std::fclose(file);
  }
  closedir(directory);
  return waits;
}

/// How long processes have taken for what they do together: without the time for which that of their threads had to
/// wait for a core which waited longest. A process that is read must not have been waited for.
class FairStopwatch {
 public:
  explicit FairStopwatch(std::vector<pid_t> of = {getpid()}) : of_(std::move(of)) {
    for (const pid_t pid : of_) at_start_.merge(kept_waiting_ns(pid));
  }

  /// @return seconds since the start
  double seconds() const {
    const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - begin_;
    std::int64_t longest_ns = 0;
    for (const pid_t pid : of_) {
      for (const auto& [thread, waited_ns] : kept_waiting_ns(pid)) {
        const auto before = at_start_.find(thread);
        longest_ns = std::max(longest_ns, waited_ns - (before != at_start_.end() ? before->second : 0));
      }
    }
    return whole.count() - static_cast<double>(longest_ns) * 1e-9;
  }

 private:
  std::vector<pid_t> of_;
  std::map<pid_t, std::int64_t> at_start_;  ///< By thread.
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// Times the calling thread has slept: sched_yield does not count, nor does waiting for a core.
inline long sleeps_of_thread() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

/// A number from the environment: how long or how often a test does what it does.
inline int test_amount(const char* variable, int otherwise) {
  const char* given = std::getenv(variable);
  return given != nullptr ? std::atoi(given) : otherwise;
}

}  // namespace portofu
