// libportofu_clock.so: the program's clocks show virtual time, and its sleeps take virtual time. ptl_sim preloads it.
// The engine, once it is there, tells by what functions (engine/run/program_time.h). Until then time is real, as it is
// for whatever has no engine.
//
// The engine and the C libraries over it read clocks, too, and sleep: theirs are real. They are known by where they
// call from.

#include <dlfcn.h>
#include <errno.h>
#include <features.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/select.h>
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

#include "engine/door/program_time.h"
#include "lib/clock/shown_clock.h"

using namespace portofu;

extern "C" {
int __poll_chk(pollfd* descriptors, nfds_t count, int timeout_ms, std::size_t bytes);
int __ppoll_chk(pollfd* descriptors, nfds_t count, const timespec* timeout, const sigset_t* mask, std::size_t bytes);
}

namespace {

constexpr std::uint64_t kNsPerSecond = 1'000'000'000;
constexpr std::uint64_t kNsPerUs = 1000;
/// 292 years: what is longer lasts for ever, and sums of two of them do not overflow.
constexpr std::uint64_t kLongestNs = UINT64_MAX / 2;

std::atomic<const ProgramClock*> engine_clock{nullptr};
std::atomic<const void*> engine_object{nullptr};  ///< That has the engine.

/// next_NAME: the function NAME behind ours. Whoever asks first looks it up, or several, to the same effect.
#define NEXT(name)                                 \
  static std::atomic<void*> found_##name{nullptr}; \
  if (found_##name.load() == nullptr) {            \
    found_##name.store(dlsym(RTLD_NEXT, #name));   \
  }                                                \
  auto* const next_##name = reinterpret_cast<decltype(&::name)>(found_##name.load())

int real_clock(clockid_t clock, timespec* time) {
  NEXT(clock_gettime);
  return next_clock_gettime(clock, time);
}

std::uint64_t ns_of(const timespec& time) {
  const auto seconds = static_cast<std::uint64_t>(time.tv_sec);
  if (seconds >= kLongestNs / kNsPerSecond) return kLongestNs;
  return seconds * kNsPerSecond + static_cast<std::uint64_t>(time.tv_nsec);
}

timespec time_of(std::uint64_t ns) {
  return {static_cast<time_t>(ns / kNsPerSecond), static_cast<long>(ns % kNsPerSecond)};
}

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

/// Whether code is the engine's, or of a library over it.
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

bool can_be_shown(clockid_t clock) {
  return clock >= 0 && clock <= CLOCK_TAI && clock != CLOCK_PROCESS_CPUTIME_ID && clock != CLOCK_THREAD_CPUTIME_ID;
}

clockid_t fine_clock(clockid_t clock) {
  if (clock == CLOCK_REALTIME_COARSE) return CLOCK_REALTIME;
  return clock == CLOCK_MONOTONIC_COARSE ? CLOCK_MONOTONIC : clock;
}

int show(const void* caller, clockid_t clock, timespec* time) {
  if (!can_be_shown(clock) || is_ours(caller)) return real_clock(clock, time);
  clock = fine_clock(clock);
  const int status = real_clock(clock, time);
  if (status != 0) return status;
  const std::uint64_t real_ns = ns_of(*time);
  const ProgramClock* const engine = engine_clock.load(std::memory_order_acquire);
  const ProgramTime now = engine != nullptr ? engine->now() : ProgramTime{};
  const bool is_virtual = now.era % 2 != 0;
  ShownClock& shown = shown_clocks[static_cast<std::size_t>(clock)];
  *time = time_of(shown.show(now.era, is_virtual ? now.ns : real_ns, real_ns, now.stands) + ahead_ns(now));
  return 0;
}

// ---- Sleeping -------------------------------------------------------------------------------------------------------

bool is_length(const timespec* length) {
  return length->tv_sec >= 0 && length->tv_nsec >= 0 && length->tv_nsec < static_cast<long>(kNsPerSecond);
}

/// @return false: it shall sleep really
bool has_slept(const void* caller, std::uint64_t length_ns) {
  const ProgramClock* const engine = engine_clock.load(std::memory_order_acquire);
  if (engine == nullptr || is_ours(caller)) return false;
  pthread_testcancel();
  return engine->sleep(length_ns);
}

/// A thread has really slept, or waited in vain: so much time passes for it.
void let_pass(const void* caller, std::uint64_t length_ns) {
  if (length_ns == 0 || has_slept(caller, length_ns)) return;
  const ProgramClock* const engine = engine_clock.load(std::memory_order_acquire);
  if (engine == nullptr || is_ours(caller)) return;
  const ProgramTime now = engine->now();
  if (now.era % 2 != 0) ahead = {now.era, now.ns + ahead_ns(now) + length_ns};
}

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
  timespec shown{};
  if (is_ours(caller) || !is_length(until) || show(caller, clock, &shown) != 0)
    return next_clock_nanosleep(clock, TIMER_ABSTIME, until, nullptr);
  const std::uint64_t shown_ns = ns_of(shown);
  if (ns_of(*until) <= shown_ns) return 0;
  const std::uint64_t length_ns = ns_of(*until) - shown_ns;
  return sleep_for(caller, length_ns, [&] {
    timespec real{};
    real_clock(clock, &real);
    const timespec real_until = time_of(ns_of(real) + length_ns);
    return next_clock_nanosleep(clock, TIMER_ABSTIME, &real_until, nullptr);
  });
}

// ---- Waiting until a moment -----------------------------------------------------------------------------------------

/// Such waits are real, whoever makes them. A moment of a clock that was shown is as far away in real time, and when it
/// has come, as much time has passed.
/// @param wait  for something until a moment of real time. @return what it does
template <typename Wait>
int wait_until(const void* caller, clockid_t clock, const timespec* moment, Wait wait) {
  timespec shown{};
  timespec real{};
  const bool is_real = is_ours(caller) || !can_be_shown(clock) || !is_length(moment);
  if (is_real || show(caller, clock, &shown) != 0 || real_clock(clock, &real) != 0) return wait(moment);
  const std::uint64_t until_ns = ns_of(*moment);
  real = time_of(ns_of(real) + until_ns - std::min(until_ns, ns_of(shown)));
  const int status = wait(&real);
  const int error = errno;
  const bool is_late = status == ETIMEDOUT || (status == -1 && error == ETIMEDOUT);
  if (is_late && show(caller, clock, &shown) == 0) let_pass(caller, until_ns - std::min(until_ns, ns_of(shown)));
  errno = error;
  return status;
}

/// The same of functions that say it as those of C11 do.
template <typename Wait>
int wait_as_in_c11(const void* caller, const timespec* moment, Wait wait) {
  const int status = wait_until(caller, CLOCK_REALTIME, moment, [&](const timespec* real) {
    const int waited = wait(real);
    return waited == thrd_timedout ? ETIMEDOUT : waited;
  });
  return status == ETIMEDOUT ? thrd_timedout : status;
}

/// A condition variable does not say which of two clocks it has, but they are decades apart.
clockid_t likely_clock(const timespec* moment) {
  timespec realtime{};
  real_clock(CLOCK_REALTIME, &realtime);
  return moment->tv_sec > realtime.tv_sec / 2 ? CLOCK_REALTIME : CLOCK_MONOTONIC;
}

// ---- Waiting at descriptors, with a timeout -------------------------------------------------------------------------

/// @param has_any  descriptors; else it is a sleep
/// @param wait     really. @return what it does
template <typename Wait>
int wait_for(const void* caller, std::uint64_t length_ns, bool has_any, Wait wait) {
  if (!has_any && length_ns != 0 && has_slept(caller, length_ns)) return 0;
  const int ready = wait();
  if (ready == 0) let_pass(caller, length_ns);
  return ready;
}

/// Of a timeout; 0: there is none, or it is not one.
std::uint64_t length_of(const timespec* timeout) {
  return timeout != nullptr && is_length(timeout) ? ns_of(*timeout) : 0;
}
std::uint64_t length_of(int timeout_ms) {
  return timeout_ms > 0 ? static_cast<std::uint64_t>(timeout_ms) * 1'000'000 : 0;
}
/// Microseconds may be more than a second.
std::uint64_t length_of(const timeval* timeout) {
  if (timeout == nullptr || timeout->tv_sec < 0 || timeout->tv_usec < 0) return 0;
  const std::uint64_t us = static_cast<std::uint64_t>(timeout->tv_usec);
  const std::uint64_t ns = us < kLongestNs / kNsPerUs ? us * kNsPerUs : kLongestNs;
  return std::min(ns_of({timeout->tv_sec, 0}) + ns, kLongestNs);
}

// ---- The start of MPI
// ------------------------------------------------------------------------------------------------

using MpiInit = int(int*, char***);
using MpiInitThread = int(int*, char***, int, int*);
using MpiFinalize = int();

std::atomic<bool> starts_mpi{false};

/// A function of MPI, also if a part of the program has loaded MPI for itself.
void* find_in_mpi(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  for (const char* file : {"libmpi.so.40", "libmpi.so.12", "libmpich.so.12"}) {
    if (found != nullptr) return found;
    void* const library = dlopen(file, RTLD_LAZY | RTLD_NOLOAD);
    if (library != nullptr) found = dlsym(library, name);
  }
  return found;
}

template <typename Function, typename... Arguments>
int start_mpi(const char* name, Arguments... arguments) {
  auto* const real = reinterpret_cast<Function*>(find_in_mpi(name));
  constexpr int kErrorOfAnyMpi = 1;
  if (real == nullptr) return kErrorOfAnyMpi;
  // MPI's own call of the other name begins nothing.
  const bool is_outer = !starts_mpi.exchange(true);
  const int status = real(arguments...);
  if (!is_outer) return status;
  starts_mpi.store(false);
  const ProgramClock* const engine = engine_clock.load(std::memory_order_acquire);
  if (engine != nullptr) engine->start_up(false);
  return status;
}

int end_mpi(const char* name) {
  auto* const real = reinterpret_cast<MpiFinalize*>(find_in_mpi(name));
  constexpr int kErrorOfAnyMpi = 1;
  if (real == nullptr) return kErrorOfAnyMpi;
  const ProgramClock* const engine = engine_clock.load(std::memory_order_acquire);
  if (engine != nullptr) engine->retire();
  return real();
}

}  // namespace

extern "C" {

void portofu_take_program_clock_4(const ProgramClock* clock) {
  engine_object.store(object_of(clock).mark);
  engine_clock.store(clock, std::memory_order_release);
  if (starts_mpi.load()) clock->start_up(true);
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

int pthread_cond_timedwait(pthread_cond_t* __restrict condition, pthread_mutex_t* __restrict mutex,
                           const timespec* __restrict moment) {
  NEXT(pthread_cond_timedwait);
  return wait_until(__builtin_return_address(0), likely_clock(moment), moment,
                    [&](const timespec* real) { return next_pthread_cond_timedwait(condition, mutex, real); });
}

int sem_timedwait(sem_t* __restrict semaphore, const timespec* __restrict moment) {
  NEXT(sem_timedwait);
  return wait_until(__builtin_return_address(0), CLOCK_REALTIME, moment,
                    [&](const timespec* real) { return next_sem_timedwait(semaphore, real); });
}

int pthread_mutex_timedlock(pthread_mutex_t* __restrict mutex, const timespec* __restrict moment) noexcept {
  NEXT(pthread_mutex_timedlock);
  return wait_until(__builtin_return_address(0), CLOCK_REALTIME, moment,
                    [&](const timespec* real) { return next_pthread_mutex_timedlock(mutex, real); });
}

int pthread_rwlock_timedrdlock(pthread_rwlock_t* __restrict lock, const timespec* __restrict moment) noexcept {
  NEXT(pthread_rwlock_timedrdlock);
  return wait_until(__builtin_return_address(0), CLOCK_REALTIME, moment,
                    [&](const timespec* real) { return next_pthread_rwlock_timedrdlock(lock, real); });
}

int pthread_rwlock_timedwrlock(pthread_rwlock_t* __restrict lock, const timespec* __restrict moment) noexcept {
  NEXT(pthread_rwlock_timedwrlock);
  return wait_until(__builtin_return_address(0), CLOCK_REALTIME, moment,
                    [&](const timespec* real) { return next_pthread_rwlock_timedwrlock(lock, real); });
}

int pthread_timedjoin_np(pthread_t thread, void** result, const timespec* moment) {
  NEXT(pthread_timedjoin_np);
  return wait_until(__builtin_return_address(0), CLOCK_REALTIME, moment,
                    [&](const timespec* real) { return next_pthread_timedjoin_np(thread, result, real); });
}

int cnd_timedwait(cnd_t* __restrict condition, mtx_t* __restrict mutex, const timespec* __restrict moment) {
  NEXT(cnd_timedwait);
  return wait_as_in_c11(__builtin_return_address(0), moment,
                        [&](const timespec* real) { return next_cnd_timedwait(condition, mutex, real); });
}

int mtx_timedlock(mtx_t* __restrict mutex, const timespec* __restrict moment) {
  NEXT(mtx_timedlock);
  return wait_as_in_c11(__builtin_return_address(0), moment,
                        [&](const timespec* real) { return next_mtx_timedlock(mutex, real); });
}

#if __GLIBC_PREREQ(2, 30)
int pthread_cond_clockwait(pthread_cond_t* __restrict condition, pthread_mutex_t* __restrict mutex, clockid_t clock,
                           const timespec* __restrict moment) {
  NEXT(pthread_cond_clockwait);
  return wait_until(__builtin_return_address(0), clock, moment,
                    [&](const timespec* real) { return next_pthread_cond_clockwait(condition, mutex, clock, real); });
}

int sem_clockwait(sem_t* __restrict semaphore, clockid_t clock, const timespec* __restrict moment) {
  NEXT(sem_clockwait);
  return wait_until(__builtin_return_address(0), clock, moment,
                    [&](const timespec* real) { return next_sem_clockwait(semaphore, clock, real); });
}

int pthread_mutex_clocklock(pthread_mutex_t* __restrict mutex, clockid_t clock,
                            const timespec* __restrict moment) noexcept {
  NEXT(pthread_mutex_clocklock);
  return wait_until(__builtin_return_address(0), clock, moment,
                    [&](const timespec* real) { return next_pthread_mutex_clocklock(mutex, clock, real); });
}

int pthread_rwlock_clockrdlock(pthread_rwlock_t* __restrict lock, clockid_t clock,
                               const timespec* __restrict moment) noexcept {
  NEXT(pthread_rwlock_clockrdlock);
  return wait_until(__builtin_return_address(0), clock, moment,
                    [&](const timespec* real) { return next_pthread_rwlock_clockrdlock(lock, clock, real); });
}

int pthread_rwlock_clockwrlock(pthread_rwlock_t* __restrict lock, clockid_t clock,
                               const timespec* __restrict moment) noexcept {
  NEXT(pthread_rwlock_clockwrlock);
  return wait_until(__builtin_return_address(0), clock, moment,
                    [&](const timespec* real) { return next_pthread_rwlock_clockwrlock(lock, clock, real); });
}
#endif

#if __GLIBC_PREREQ(2, 31)
int pthread_clockjoin_np(pthread_t thread, void** result, clockid_t clock, const timespec* moment) {
  NEXT(pthread_clockjoin_np);
  return wait_until(__builtin_return_address(0), clock, moment,
                    [&](const timespec* real) { return next_pthread_clockjoin_np(thread, result, clock, real); });
}
#endif

int poll(pollfd* descriptors, nfds_t count, int timeout_ms) {
  NEXT(poll);
  return wait_for(__builtin_return_address(0), length_of(timeout_ms), count != 0,
                  [&] { return next_poll(descriptors, count, timeout_ms); });
}

int ppoll(pollfd* descriptors, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  NEXT(ppoll);
  return wait_for(__builtin_return_address(0), length_of(timeout), count != 0,
                  [&] { return next_ppoll(descriptors, count, timeout, mask); });
}

// What poll and ppoll become in programs that are built with _FORTIFY_SOURCE.

int __poll_chk(pollfd* descriptors, nfds_t count, int timeout_ms, std::size_t bytes) {
  NEXT(__poll_chk);
  return wait_for(__builtin_return_address(0), length_of(timeout_ms), count != 0,
                  [&] { return next___poll_chk(descriptors, count, timeout_ms, bytes); });
}

int __ppoll_chk(pollfd* descriptors, nfds_t count, const timespec* timeout, const sigset_t* mask, std::size_t bytes) {
  NEXT(__ppoll_chk);
  return wait_for(__builtin_return_address(0), length_of(timeout), count != 0,
                  [&] { return next___ppoll_chk(descriptors, count, timeout, mask, bytes); });
}

int select(int count, fd_set* __restrict read, fd_set* __restrict write, fd_set* __restrict except,
           timeval* __restrict timeout) {
  NEXT(select);
  const int ready = wait_for(__builtin_return_address(0), length_of(timeout), count != 0,
                             [&] { return next_select(count, read, write, except, timeout); });
  if (ready == 0 && timeout != nullptr) *timeout = {0, 0};
  return ready;
}

int pselect(int count, fd_set* __restrict read, fd_set* __restrict write, fd_set* __restrict except,
            const timespec* __restrict timeout, const sigset_t* __restrict mask) {
  NEXT(pselect);
  return wait_for(__builtin_return_address(0), length_of(timeout), count != 0,
                  [&] { return next_pselect(count, read, write, except, timeout, mask); });
}

int epoll_wait(int epoll, epoll_event* events, int most, int timeout_ms) {
  NEXT(epoll_wait);
  return wait_for(__builtin_return_address(0), length_of(timeout_ms), true,
                  [&] { return next_epoll_wait(epoll, events, most, timeout_ms); });
}

int epoll_pwait(int epoll, epoll_event* events, int most, int timeout_ms, const sigset_t* mask) {
  NEXT(epoll_pwait);
  return wait_for(__builtin_return_address(0), length_of(timeout_ms), true,
                  [&] { return next_epoll_pwait(epoll, events, most, timeout_ms, mask); });
}

#if __GLIBC_PREREQ(2, 35)
int epoll_pwait2(int epoll, epoll_event* events, int most, const timespec* timeout, const sigset_t* mask) {
  NEXT(epoll_pwait2);
  return wait_for(__builtin_return_address(0), length_of(timeout), true,
                  [&] { return next_epoll_pwait2(epoll, events, most, timeout, mask); });
}
#endif

// What MPI does to start takes no virtual time: its processes talk to their launcher, and wait for that by looking at
// the clock and at the network in turn. C, and Fortran, which calls the names with a P.

int MPI_Init(int* count, char*** words) { return start_mpi<MpiInit>("MPI_Init", count, words); }
int PMPI_Init(int* count, char*** words) { return start_mpi<MpiInit>("PMPI_Init", count, words); }

int MPI_Init_thread(int* count, char*** words, int wanted, int* given) {
  return start_mpi<MpiInitThread>("MPI_Init_thread", count, words, wanted, given);
}
int PMPI_Init_thread(int* count, char*** words, int wanted, int* given) {
  return start_mpi<MpiInitThread>("PMPI_Init_thread", count, words, wanted, given);
}

// Nor does what it does to end, for the same reason.

int MPI_Finalize() { return end_mpi("MPI_Finalize"); }
int PMPI_Finalize() { return end_mpi("PMPI_Finalize"); }

}  // extern "C"
