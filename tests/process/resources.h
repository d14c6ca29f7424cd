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

/// @return -1 if the process is not there
inline int descriptor_count(pid_t pid) {
  DIR* directory = opendir(("/proc/" + std::to_string(pid) + "/fd").c_str());
  if (directory == nullptr) return -1;
  int count = 0;
  while (const dirent* entry = readdir(directory)) count += entry->d_name[0] != '.' ? 1 : 0;
  closedir(directory);
  return count;
}

/// Memory of the process alone, without what it shares; -1 if it is not there.
inline long private_bytes(pid_t pid) {
  std::FILE* file = std::fopen(("/proc/" + std::to_string(pid) + "/statm").c_str(), "r");
  if (file == nullptr) return -1;
  long size = 0;
  long resident = 0;
  long shared = 0;
  const int got = std::fscanf(file, "%ld %ld %ld", &size, &resident, &shared);
  std::fclose(file);
  return got == 3 ? (resident - shared) * sysconf(_SC_PAGESIZE) : -1;
}

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
