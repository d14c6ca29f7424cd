// Functions of the C library that wait with a timeout, or until a moment. They wait really. The moment is one of a
// clock that was shown, and as far away in real time; what has passed in vain has passed for the caller's clocks, too.

#include <errno.h>
#include <features.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdint>

#include "lib/clock/seen_time.h"

extern "C" {
int __poll_chk(pollfd* descriptors, nfds_t count, int timeout_ms, std::size_t bytes);
int __ppoll_chk(pollfd* descriptors, nfds_t count, const timespec* timeout, const sigset_t* mask, std::size_t bytes);
}

namespace portofu {
namespace {

// ---- Waiting until a moment -----------------------------------------------------------------------------------------

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

// ---- Waiting at a futex ---------------------------------------------------------------------------------------------

/// What system calls have at most.
using Words = std::array<long, 6>;

/// std::future and the semaphores of C++ wait so. @return as the system call
template <typename Call>
long wait_at_futex(const void* caller, const Words& words, Call call) {
  const long what = words[1] & FUTEX_CMD_MASK;
  const auto* const timeout = reinterpret_cast<const timespec*>(words[3]);
  if (timeout == nullptr || (what != FUTEX_WAIT && what != FUTEX_WAIT_BITSET)) return call(words);
  const clockid_t clock = (words[1] & FUTEX_CLOCK_REALTIME) != 0 ? CLOCK_REALTIME : CLOCK_MONOTONIC;
  if (what == FUTEX_WAIT_BITSET) {
    return wait_until(caller, clock, timeout, [&](const timespec* real) {
      Words really = words;
      really[3] = reinterpret_cast<long>(real);
      return call(really);
    });
  }
  const std::uint64_t length_ns = length_of(timeout);
  const long status = call(words);
  const int error = errno;
  if (status == -1 && error == ETIMEDOUT) let_pass(caller, length_ns);
  errno = error;
  return status;
}

}  // namespace
}  // namespace portofu

using namespace portofu;

extern "C" {

long syscall(long number, ...) noexcept {
  NEXT(syscall);
  Words words{};
  va_list list;
  va_start(list, number);
  for (long& word : words) word = va_arg(list, long);
  va_end(list);
  const auto call = [&](const Words& w) { return next_syscall(number, w[0], w[1], w[2], w[3], w[4], w[5]); };
  return number == SYS_futex ? wait_at_futex(__builtin_return_address(0), words, call) : call(words);
}

/// Looks the function behind it up before a signal's handler may be the first to call it.
[[maybe_unused]] static const long kLookedUp = syscall(SYS_gettid);

ssize_t mq_timedreceive(mqd_t queue, char* __restrict message, size_t bytes, unsigned* __restrict priority,
                        const timespec* __restrict moment) {
  NEXT(mq_timedreceive);
  ssize_t got = -1;
  wait_until(__builtin_return_address(0), CLOCK_REALTIME, moment, [&](const timespec* real) {
    got = next_mq_timedreceive(queue, message, bytes, priority, real);
    return got < 0 ? -1 : 0;  // A length may be the number of an error, too.
  });
  return got;
}

int mq_timedsend(mqd_t queue, const char* message, size_t bytes, unsigned priority, const timespec* moment) {
  NEXT(mq_timedsend);
  return wait_until(__builtin_return_address(0), CLOCK_REALTIME, moment,
                    [&](const timespec* real) { return next_mq_timedsend(queue, message, bytes, priority, real); });
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

}  // extern "C"
