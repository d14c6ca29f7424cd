// What the programs of the comparison are asked for, how they give up, and where their buffers lie.
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

namespace bench {

inline constexpr int kMostProcesses = 64;
inline constexpr int kNotApplicable = 77;  ///< Exit status of a program that cannot measure what was asked for.

[[noreturn]] inline void fail(const std::string& why, int status = 1) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::fflush(nullptr);
  std::_Exit(status);
}

inline double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

inline double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Of the lower nine tenths: what interrupts and other processes do is in the rest.
inline double mean_of_most(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  values.resize(std::max<std::size_t>(1, values.size() * 9 / 10));
  return mean(values);
}

struct Options {
  std::string group;           ///< What is measured.
  std::vector<double> points;  ///< Where: bytes, windows, depths or processes; empty takes the program's own.
  double budget_s = 0.03;      ///< Measuring time of one point.
  int processes = 2;
  std::string memory = "malloc";  ///< Where buffers lie; see Buffer.
  unsigned limit_s = 60;          ///< The program ends with an error after it.
  std::vector<int> cpus;          ///< For rank 0 and rank 1; by default the first two that the process may use.
  std::vector<int> allowed;       ///< All that the process may use.

  Options(int argc, char** argv) {
    if (argc % 2 != 0) fail(std::string("usage: PROGRAM ") + kUsage, 2);
    group = argv[1];
    for (int i = 2; i < argc; i += 2) set(argv[i], argv[i + 1]);
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) allowed.push_back(cpu);
    }
    if (cpus.empty()) cpus.assign(allowed.begin(), allowed.begin() + std::min<long>(2, std::ssize(allowed)));
  }

  /// As a test a program only has to run, on a machine whose cores have much else to do.
  bool is_test() const { return budget_s < 0.002; }

  std::vector<double> points_or(const std::vector<double>& own) const {
    if (!points.empty()) return points;
    return is_test() && own.size() > 2 ? std::vector<double>{own.front(), own.back()} : own;
  }

 private:
  static constexpr const char* kUsage =
      "GROUP [--points A,B] [--ms N] [--processes N] [--memory malloc|shared] [--limit SECONDS] [--cpus A,B]";

  void set(const std::string& name, const std::string& value) {
    const std::vector<double> numbers = numbers_in(value);
    const bool is_name = std::strstr(kUsage, ("[" + name + " ").c_str()) != nullptr;
    if (!is_name || (numbers.empty() && name != "--memory")) fail("not possible: " + name + " " + value, 2);
    if (name == "--points") points = numbers;
    if (name == "--ms") budget_s = numbers[0] / 1e3;
    if (name == "--processes") processes = static_cast<int>(std::clamp(numbers[0], 1.0, 1.0 * kMostProcesses));
    if (name == "--memory") memory = value;
    if (name == "--limit") limit_s = static_cast<unsigned>(numbers[0]);
    if (name == "--cpus") cpus.assign(numbers.begin(), numbers.end());
  }

  static std::vector<double> numbers_in(const std::string& text) {
    std::vector<double> numbers;
    for (const char* at = text.c_str(); *at != 0;) {
      char* end = nullptr;
      numbers.push_back(std::strtod(at, &end));
      if (end == at || (*end != ',' && *end != 0)) return {};
      at = *end == ',' ? end + 1 : end;
    }
    return numbers;
  }
};

/// Memory of a buffer, touched, from malloc just as it comes: on some machines the kernel copies between pages at half
/// the speed when both sides begin at a page boundary. It is ordinary memory, or, for --memory shared, what a preloaded
/// allocator gives.
class Buffer {
 public:
  Buffer(const Options& options, std::size_t bytes) : size(bytes) {
    if (options.memory == "shared" && std::getenv("LD_PRELOAD") == nullptr) {
      fail("--memory shared needs an allocator of memory that both sides map in LD_PRELOAD", kNotApplicable);
    }
    data = static_cast<char*>(std::malloc(bytes));
    if (data == nullptr) fail("out of memory");
    std::memset(data, 1, bytes);  // Not 0: that would be calloc, whose pages all read as one.
  }
  ~Buffer() { std::free(data); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  char* data;
  std::size_t size;
};

// Conversions from the seconds of one step.
inline auto half_us() {
  return [](double s) { return s * 1e6 / 2; };
}
inline auto us() {
  return [](double s) { return s * 1e6; };
}
inline auto rate(double messages) {
  return [messages](double s) { return messages / s / 1e6; };
}
inline auto bandwidth(double bytes) {
  return [bytes](double s) { return bytes / s / 1e9; };
}

// What is measured, unless somebody asks for other points.
inline const std::vector<double> kLatencyBytes = {0, 8, 64, 1024, 8192, 65536, 1 << 20, 4 << 20};
inline const std::vector<double> kWindows = {1, 4, 16, 64, 256};
inline const std::vector<double> kBandwidthBytes = {4096, 16384, 65536, 262144, 1 << 20, 4 << 20, 16 << 20, 64 << 20};
inline const std::vector<double> kFlaggedBytes = {8, 64, 512, 4096, 16384, 65536, 262144, 1 << 20, 4 << 20};
inline const std::vector<double> kDepths = {1, 10, 100, 1000, 10000};
inline constexpr double kOverlapBytes = 1 << 20;

/// Messages of a window of long ones.
inline int window_of(double bytes) { return static_cast<int>(std::clamp(16e6 / bytes, 2.0, 64.0)); }

}  // namespace bench
