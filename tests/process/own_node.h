#pragma once
// A node of the test's own: its processes have a NID that no other test uses at the same time, so they meet nobody
// else, and what they leave behind is known to be theirs.

#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <random>
#include <string>

#include "tests/support/eventually.h"

namespace portofu {

/// Make it before anything is forked. Used by the gtest process, which itself never calls Portals.
class OwnNode {
 public:
  OwnNode() {
    static std::uint32_t count = 0;
    nid_ = 0x0a000000u | (static_cast<std::uint32_t>(getpid()) & 0xffff) << 8 | (count++ & 0xff);
    setenv("PORTOFU_NID", std::to_string(nid_).c_str(), 1);
  }
  ~OwnNode() {
    // A process of another test that starts may be in the middle of removing a dead one's, and first tells who knows
    // it.
    EXPECT_TRUE(eventually([this] { return segment_count() == 0; })) << "segments are left in /dev/shm";
    unsetenv("PORTOFU_NID");
  }
  OwnNode(const OwnNode&) = delete;
  OwnNode& operator=(const OwnNode&) = delete;

  std::uint32_t nid() const { return nid_; }

  /// Segments of this node's processes that have a name now.
  int segment_count() const {
    char prefix[64];
    std::snprintf(prefix, sizeof prefix, "portofu-%u-%08x-", geteuid(), nid_);
    DIR* directory = opendir("/dev/shm");
    if (directory == nullptr) return -1;
    int count = 0;
    while (const dirent* entry = readdir(directory)) count += std::string(entry->d_name).starts_with(prefix) ? 1 : 0;
    closedir(directory);
    return count;
  }

 private:
  std::uint32_t nid_;
};

/// Memory that forked processes share, zeroed. `Value` is made of atomics and plain data.
template <class Value>
class SharedMemory {
 public:
  SharedMemory()
      : value_(new (mmap(nullptr, sizeof(Value), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Value) {}
  ~SharedMemory() { munmap(value_, sizeof(Value)); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  Value* operator->() const { return value_; }
  Value& operator*() const { return *value_; }

 private:
  Value* value_;
};

/// The same for loops that look at now_s().
inline constexpr double kLongestWaitS = kLongestWait.count();

/// Seconds since some origin.
inline double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// CPU time of all threads of this process.
inline double cpu_s() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

/// Computes until `done`, for `longest_s` at most, without a call into any library but for the time.
/// @return false if the time was over first
inline bool compute_until(const std::atomic<int>& done, double longest_s) {
  const double end = now_s() + longest_s;
  while (done.load(std::memory_order_relaxed) == 0) {
    if (now_s() > end) return false;
  }
  return true;
}

/// PORTOFU_TEST_SEED, or a new one, which is printed.
inline std::uint64_t process_test_seed() {
  const char* given = std::getenv("PORTOFU_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}();
  std::printf("PORTOFU_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  return seed;
}

}  // namespace portofu
