#pragma once
// The clock that everything in a process is timed with.

#include <time.h>

#include <cstdint>

namespace portofu {

/// Nanoseconds since some moment before the process began. Any thread; async-signal-safe.
inline std::uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace portofu
