// Timers run in real time. One that is set to a moment of a clock that was shown is set to one as far away.

#include <sys/timerfd.h>
#include <time.h>

#include <cstdint>

#include "lib/clock/seen_time.h"

namespace portofu {
namespace {

/// A timer does not say which clock it has. The clocks of a machine are decades apart, and that of CPU time is behind
/// them.
/// @return that whose time is the nearest
clockid_t nearest_clock(const void* caller, const timespec* moment) {
  clockid_t nearest = CLOCK_PROCESS_CPUTIME_ID;
  std::uint64_t least_ns = UINT64_MAX;
  const std::uint64_t moment_ns = ns_of(*moment);
  for (const clockid_t clock : {CLOCK_PROCESS_CPUTIME_ID, CLOCK_MONOTONIC, CLOCK_REALTIME}) {
    timespec now{};
    show(caller, clock, &now);
    const std::uint64_t apart_ns = moment_ns > ns_of(now) ? moment_ns - ns_of(now) : ns_of(now) - moment_ns;
    if (apart_ns >= least_ns) continue;
    nearest = clock;
    least_ns = apart_ns;
  }
  return nearest;
}

/// What the timer is really set to. @param moment  when it ends first; zero: it does not
void make_real(const void* caller, timespec* moment) {
  std::uint64_t length_ns = 0;
  if (!is_length(moment) || ns_of(*moment) == 0) return;
  const clockid_t clock = nearest_clock(caller, moment);
  if (distance_to(caller, clock, moment, &length_ns)) *moment = real_moment(clock, length_ns);
}

}  // namespace
}  // namespace portofu

using namespace portofu;

extern "C" {

int timerfd_settime(int timer, int flags, const itimerspec* value, itimerspec* old) noexcept {
  NEXT(timerfd_settime);
  if ((flags & TFD_TIMER_ABSTIME) == 0 || value == nullptr) return next_timerfd_settime(timer, flags, value, old);
  itimerspec real = *value;
  make_real(__builtin_return_address(0), &real.it_value);
  return next_timerfd_settime(timer, flags, &real, old);
}

int timer_settime(timer_t timer, int flags, const itimerspec* __restrict value, itimerspec* __restrict old) noexcept {
  NEXT(timer_settime);
  if ((flags & TIMER_ABSTIME) == 0 || value == nullptr) return next_timer_settime(timer, flags, value, old);
  itimerspec real = *value;
  make_real(__builtin_return_address(0), &real.it_value);
  return next_timer_settime(timer, flags, &real, old);
}

}  // extern "C"
