#pragma once
// The clock that everything in a process is timed with.

#include <time.h>

#include <chrono>
#include <cstdint>

namespace portofu {

/// Nanoseconds since some moment before the process began. Any thread; async-signal-safe.
inline std::uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

/// The same for std::chrono, whose own clocks are read inside the C++ library: there libportofu_clock.so, by which
/// programs see virtual time, could not know that it is us who ask.
struct MonotonicClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<MonotonicClock>;
  static constexpr bool is_steady = true;
  static time_point now() noexcept { return time_point(duration(static_cast<rep>(monotonic_ns()))); }
};

}  // namespace portofu
