// libportofu_clock.so: the program's clocks show virtual time, and its sleeps take virtual time. ptl_sim preloads it.
// The engine, once it is there, tells by what functions (engine/run/program_time.h). Until then time is real, as it is
// for whatever has no engine.
//
// The engine and the C libraries over it read clocks, too, and sleep: theirs are real. They are known by where they
// call from.

#include <dlfcn.h>
#include <features.h>
#include <link.h>
#include <pthread.h>
#include <sys/time.h>
#include <sys/times.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "lib/clock/program_start.h"
#include "lib/clock/seen_time.h"
#include "lib/clock/shown_clock.h"

namespace portofu {
namespace {

std::atomic<const ProgramClock*> engine_clock{nullptr};
std::atomic<const void*> engine_object{nullptr};  ///< That has the engine.

// ---- Who asks -------------------------------------------------------------------------------------------------------

/// The object that code is of: where it is known by, and its file.
struct Object {
  const void* mark = nullptr;
  const char* file = "";
};

Object object_of(const void* code) {
#if __GLIBC_PREREQ(2, 35)
  dl_find_object found;
  if (_dl_find_object(const_cast<void*>(code), &found) != 0) return {};
  return {found.dlfo_link_map, found.dlfo_link_map->l_name};
#else
  Dl_info found;
  if (dladdr(code, &found) == 0) return {};
  return {found.dli_fbase, found.dli_fname};
#endif
}

// ---- Clocks ---------------------------------------------------------------------------------------------------------

/// By the number of the clock. Those of CPU time are as they are, and coarse ones are shown like the fine ones.
std::array<ShownClock, CLOCK_TAI + 1> shown_clocks;

[[maybe_unused]] const int kFollowsForks = pthread_atfork(nullptr, nullptr, [] {
  for (ShownClock& clock : shown_clocks) clock.reopen();
});

/// Until when a thread that does not call has really slept, or waited: virtual time stands still for it.
struct Ahead {
  std::uint32_t era;
  std::uint64_t ns;
};
__attribute__((tls_model("initial-exec"))) thread_local Ahead ahead{0, 0};

std::uint64_t ahead_ns(const ProgramTime& now) {
  return now.era % 2 != 0 && ahead.era == now.era && ahead.ns > now.ns ? ahead.ns - now.ns : 0;
}

clockid_t fine_clock(clockid_t clock) {
  if (clock == CLOCK_REALTIME_COARSE) return CLOCK_REALTIME;
  return clock == CLOCK_MONOTONIC_COARSE ? CLOCK_MONOTONIC : clock;
}

}  // namespace

const ProgramClock* engine_of_program() { return engine_clock.load(std::memory_order_acquire); }

bool is_ours(const void* code) {
  const Object object = object_of(code);
  if (object.mark != nullptr && object.mark == engine_object.load(std::memory_order_relaxed)) return true;
  const char* const slash = std::strrchr(object.file, '/');
  const char* const name = slash != nullptr ? slash + 1 : object.file;
  for (const char* ours : {"libportofu", "libportals.so", "libtofucom.so", "libfuni.so", "libuct_utofu.so"}) {
    if (std::strncmp(name, ours, std::strlen(ours)) == 0) return true;
  }
  return false;
}

int real_clock(clockid_t clock, timespec* time) {
  NEXT(clock_gettime);
  return next_clock_gettime(clock, time);
}

int show(const void* caller, clockid_t clock, timespec* time) {
  if (!can_be_shown(clock) || is_ours(caller)) return real_clock(clock, time);
  clock = fine_clock(clock);
  const int status = real_clock(clock, time);
  if (status != 0) return status;
  const std::uint64_t real_ns = ns_of(*time);
  const ProgramClock* const engine = engine_of_program();
  const ProgramTime now = engine != nullptr ? engine->now() : ProgramTime{};
  const bool is_virtual = now.era % 2 != 0;
  ShownClock& shown = shown_clocks[static_cast<std::size_t>(clock)];
  *time = time_of(shown.show(now.era, is_virtual ? now.ns : real_ns, real_ns, now.stands) + ahead_ns(now));
  return 0;
}

// ---- Sleeping -------------------------------------------------------------------------------------------------------

bool has_slept(const void* caller, std::uint64_t length_ns) {
  const ProgramClock* const engine = engine_of_program();
  if (engine == nullptr || is_ours(caller)) return false;
  pthread_testcancel();
  return engine->sleep(length_ns);
}

void let_pass(const void* caller, std::uint64_t length_ns) {
  if (length_ns == 0 || has_slept(caller, length_ns)) return;
  const ProgramClock* const engine = engine_of_program();
  if (engine == nullptr || is_ours(caller)) return;
  const ProgramTime now = engine->now();
  if (now.era % 2 != 0) ahead = {now.era, now.ns + ahead_ns(now) + length_ns};
}

bool distance_to(const void* caller, clockid_t clock, const timespec* moment, std::uint64_t* length_ns) {
  timespec shown{};
  if (is_ours(caller) || !can_be_shown(clock) || !is_length(moment) || show(caller, clock, &shown) != 0) return false;
  const std::uint64_t until_ns = ns_of(*moment);
  *length_ns = until_ns - std::min(until_ns, ns_of(shown));
  return true;
}

timespec real_moment(clockid_t clock, std::uint64_t length_ns) {
  timespec real{};
  real_clock(clock, &real);
  return time_of(ns_of(real) + length_ns);
}

namespace {

/// @param really  sleeps for that length. @return what it does, or 0
template <typename Sleep>
auto sleep_for(const void* caller, std::uint64_t length_ns, Sleep really) {
  if (has_slept(caller, length_ns)) return decltype(really()){0};
  const auto status = really();
  if (status == 0) let_pass(caller, length_ns);
  return status;
}

/// @return errno
int sleep_until(const void* caller, clockid_t clock, const timespec* until) {
  NEXT(clock_nanosleep);
  std::uint64_t length_ns = 0;
  if (!distance_to(caller, clock, until, &length_ns)) return next_clock_nanosleep(clock, TIMER_ABSTIME, until, nullptr);
  if (length_ns == 0) return 0;
  return sleep_for(caller, length_ns, [&] {
    const timespec real_until = real_moment(clock, length_ns);
    return next_clock_nanosleep(clock, TIMER_ABSTIME, &real_until, nullptr);
  });
}

}  // namespace
}  // namespace portofu

using namespace portofu;

extern "C" {

void portofu_take_program_clock_4(const ProgramClock* clock) {
  engine_object.store(object_of(clock).mark);
  engine_clock.store(clock, std::memory_order_release);
  if (is_starting_mpi()) clock->start_up(true);
}

int clock_gettime(clockid_t clock, timespec* time) noexcept { return show(__builtin_return_address(0), clock, time); }

int gettimeofday(timeval* __restrict time, void* __restrict zone) noexcept {
  timespec now{};
  if (zone != nullptr) {
    NEXT(gettimeofday);
    next_gettimeofday(time, zone);
  }
  if (show(__builtin_return_address(0), CLOCK_REALTIME, &now) != 0) return -1;
  *time = {now.tv_sec, static_cast<suseconds_t>(now.tv_nsec / static_cast<long>(kNsPerUs))};
  return 0;
}

time_t time(time_t* result) noexcept {
  timespec now{};
  if (show(__builtin_return_address(0), CLOCK_REALTIME, &now) != 0) return -1;
  if (result != nullptr) *result = now.tv_sec;
  return now.tv_sec;
}

/// Of what it counts, only what passes is virtual; CPU time is real.
clock_t times(tms* used) noexcept {
  NEXT(times);
  const clock_t real = next_times(used);
  timespec now{};
  if (real == -1 || is_ours(__builtin_return_address(0)) ||
      show(__builtin_return_address(0), CLOCK_MONOTONIC, &now) != 0)
    return real;
  const auto ticks = static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
  return static_cast<clock_t>(ns_of(now) / (kNsPerSecond / ticks));
}

int timespec_get(timespec* time, int base) noexcept {
  if (base != TIME_UTC || show(__builtin_return_address(0), CLOCK_REALTIME, time) != 0) return 0;
  return base;
}

int nanosleep(const timespec* length, timespec* rest) {
  NEXT(nanosleep);
  if (!is_length(length)) return next_nanosleep(length, rest);
  return sleep_for(__builtin_return_address(0), ns_of(*length), [&] { return next_nanosleep(length, rest); });
}

int clock_nanosleep(clockid_t clock, int flags, const timespec* length, timespec* rest) {
  NEXT(clock_nanosleep);
  if (!can_be_shown(clock)) return next_clock_nanosleep(clock, flags, length, rest);
  if ((flags & TIMER_ABSTIME) != 0) return sleep_until(__builtin_return_address(0), clock, length);
  if (!is_length(length)) return next_clock_nanosleep(clock, flags, length, rest);
  return sleep_for(__builtin_return_address(0), ns_of(*length),
                   [&] { return next_clock_nanosleep(clock, flags, length, rest); });
}

int thrd_sleep(const timespec* length, timespec* rest) {
  NEXT(thrd_sleep);
  if (!is_length(length)) return next_thrd_sleep(length, rest);
  return sleep_for(__builtin_return_address(0), ns_of(*length), [&] { return next_thrd_sleep(length, rest); });
}

int usleep(useconds_t us) {
  NEXT(usleep);
  return sleep_for(__builtin_return_address(0), us * kNsPerUs, [&] { return next_usleep(us); });
}

unsigned sleep(unsigned seconds) {
  NEXT(sleep);
  return sleep_for(__builtin_return_address(0), seconds * kNsPerSecond, [&] { return next_sleep(seconds); });
}

}  // extern "C"
