#pragma once
// What the parts of this library share: what a caller is shown of clocks, and what becomes of its waits. Functions of
// the C library that read clocks and sleep are in clock.cpp, those that wait with a timeout in waits.cpp.

#include <dlfcn.h>
#include <errno.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "engine/door/program_time.h"

namespace portofu {

constexpr std::uint64_t kNsPerSecond = 1'000'000'000;
constexpr std::uint64_t kNsPerUs = 1000;
/// 292 years: what is longer lasts for ever, and sums of two of them do not overflow.
constexpr std::uint64_t kLongestNs = UINT64_MAX / 2;

/// next_NAME: the function NAME behind ours. Whoever asks first looks it up, or several, to the same effect.
#define NEXT(name)                                 \
  static std::atomic<void*> found_##name{nullptr}; \
  if (found_##name.load() == nullptr) {            \
    found_##name.store(dlsym(RTLD_NEXT, #name));   \
  }                                                \
  auto* const next_##name = reinterpret_cast<decltype(&::name)>(found_##name.load())

inline std::uint64_t ns_of(const timespec& time) {
  const auto seconds = static_cast<std::uint64_t>(time.tv_sec);
  if (seconds >= kLongestNs / kNsPerSecond) return kLongestNs;
  return seconds * kNsPerSecond + static_cast<std::uint64_t>(time.tv_nsec);
}

inline timespec time_of(std::uint64_t ns) {
  return {static_cast<time_t>(ns / kNsPerSecond), static_cast<long>(ns % kNsPerSecond)};
}

inline bool is_length(const timespec* length) {
  return length->tv_sec >= 0 && length->tv_nsec >= 0 && length->tv_nsec < static_cast<long>(kNsPerSecond);
}

/// Those of CPU time are real.
inline bool can_be_shown(clockid_t clock) {
  return clock >= 0 && clock <= CLOCK_TAI && clock != CLOCK_PROCESS_CPUTIME_ID && clock != CLOCK_THREAD_CPUTIME_ID;
}

/// The engine's functions; nullptr: there is none yet.
const ProgramClock* engine_of_program();

/// Whether code is the engine's, or of a library over it.
bool is_ours(const void* code);

int real_clock(clockid_t clock, timespec* time);

/// What a caller sees of a clock, as clock_gettime says it.
int show(const void* caller, clockid_t clock, timespec* time);

/// Lets virtual time pass. @return false if the caller has to sleep in real time
bool has_slept(const void* caller, std::uint64_t length_ns);

/// A thread has really slept, or waited in vain: so much time passes for it.
void let_pass(const void* caller, std::uint64_t length_ns);

/// How far away a moment of a clock is for a caller: nothing, if it has come.
/// @return false if that clock is real for the caller, or the moment is not valid
bool distance_to(const void* caller, clockid_t clock, const timespec* moment, std::uint64_t* length_ns);

/// The moment of the same clock, real, that is so far away.
timespec real_moment(clockid_t clock, std::uint64_t length_ns);

/// Such waits are real, whoever makes them. A moment of a clock that was shown is as far away in real time, and when it
/// has come, as much time has passed.
/// @param wait  for something until a moment of real time. @return what it does
template <typename Wait>
auto wait_until(const void* caller, clockid_t clock, const timespec* moment, Wait wait) {
  std::uint64_t length_ns = 0;
  if (!distance_to(caller, clock, moment, &length_ns)) return wait(moment);
  const timespec real = real_moment(clock, length_ns);
  const auto status = wait(&real);
  const int error = errno;
  const bool is_late = status == ETIMEDOUT || (status == -1 && error == ETIMEDOUT);
  if (is_late && distance_to(caller, clock, moment, &length_ns)) let_pass(caller, length_ns);
  errno = error;
  return status;
}

}  // namespace portofu
