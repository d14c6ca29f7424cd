#pragma once
// What a process holds, as its kernel tells.

#include <dirent.h>
#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

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

/// A number from the environment: how long or how often a test does what it does.
inline int test_amount(const char* variable, int otherwise) {
  const char* given = std::getenv(variable);
  return given != nullptr ? std::atoi(given) : otherwise;
}

}  // namespace portofu
