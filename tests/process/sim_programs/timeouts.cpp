// A program whose clocks are far ahead of real time. It waits by C++ for what does not come, and by timers that end at
// a moment of its clocks: each takes as long in real time as the program wishes, and its clocks say so, too.

#include <linux/futex.h>
#include <mqueue.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <semaphore>

#include "tests/process/sim_roles.h"

using namespace portofu;
using namespace std::chrono_literals;

namespace {

constexpr auto kWait = 20ms;

void check(bool right, const char* what) {
  if (right) return;
  std::fprintf(stderr, "wrong: %s\n", what);
  std::_Exit(9);
}

/// The library that is preloaded does not see it.
std::chrono::nanoseconds real_time() {
  timespec now{};
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

timespec moment_of(clockid_t clock) {
  timespec moment{};
  check(clock_gettime(clock, &moment) == 0, "clock_gettime");
  moment.tv_nsec += std::chrono::nanoseconds(kWait).count();
  moment.tv_sec += moment.tv_nsec / 1'000'000'000;
  moment.tv_nsec %= 1'000'000'000;
  return moment;
}

/// @param wait  is in vain. @param shows  its clocks show that
template <typename Wait>
void wait_in_vain(const char* what, Wait wait, bool shows = true) {
  const auto began = std::chrono::steady_clock::now();
  const auto really_began = real_time();
  check(wait(), what);
  const auto took = real_time() - really_began;
  check(took >= kWait && took < 100s, what);
  check(!shows || std::chrono::steady_clock::now() - began >= kWait - 1ns, what);
}

void wait_by_cpp() {
  std::promise<int> promise;
  const auto result = promise.get_future();
  std::counting_semaphore<> none(0);
  const auto is_late = [](std::future_status status) { return status == std::future_status::timeout; };
  wait_in_vain("future", [&] { return is_late(result.wait_for(kWait)); });
  wait_in_vain("future, steady", [&] { return is_late(result.wait_until(std::chrono::steady_clock::now() + kWait)); });
  wait_in_vain("future, system", [&] { return is_late(result.wait_until(std::chrono::system_clock::now() + kWait)); });
  wait_in_vain("semaphore", [&] { return !none.try_acquire_for(kWait); });
}

void wait_at_futex() {
  std::uint32_t word = 7;
  const timespec length{0, std::chrono::nanoseconds(kWait).count()};
  const auto is_late = [](long status) { return status == -1 && errno == ETIMEDOUT; };
  wait_in_vain("futex", [&] { return is_late(syscall(SYS_futex, &word, FUTEX_WAIT, 7, &length, nullptr, 0)); });
  constexpr int kUntilMonotonic = FUTEX_WAIT_BITSET;
  constexpr int kUntilRealtime = FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME;
  for (const int what : {kUntilMonotonic, kUntilRealtime}) {
    const timespec moment = moment_of(what == kUntilRealtime ? CLOCK_REALTIME : CLOCK_MONOTONIC);
    wait_in_vain("futex until",
                 [&] { return is_late(syscall(SYS_futex, &word, what, 7, &moment, nullptr, FUTEX_BITSET_MATCH_ANY)); });
  }
}

void wait_for_message() {
  const std::string name = "/portofu-timeouts-" + std::to_string(getpid());
  mq_attr size{};
  size.mq_maxmsg = 1;
  size.mq_msgsize = ETIMEDOUT;  // Such a length is no error.
  const mqd_t queue = mq_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600, &size);
  if (queue == -1) return;  // Not every system has them.
  mq_unlink(name.c_str());
  std::vector<char> message(ETIMEDOUT);
  timespec moment = moment_of(CLOCK_REALTIME);
  wait_in_vain("mq_timedreceive", [&] {
    return mq_timedreceive(queue, message.data(), message.size(), nullptr, &moment) == -1 && errno == ETIMEDOUT;
  });
  check(mq_timedsend(queue, message.data(), message.size(), 0, &moment) == 0, "mq_timedsend");
  moment = moment_of(CLOCK_REALTIME);
  wait_in_vain("mq_timedsend, full",
               [&] { return mq_timedsend(queue, message.data(), 1, 0, &moment) == -1 && errno == ETIMEDOUT; });
  check(mq_timedreceive(queue, message.data(), message.size(), nullptr, &moment) == ETIMEDOUT, "a message's length");
  mq_close(queue);
}

void wait_for_timers() {
  for (const clockid_t clock : {CLOCK_MONOTONIC, CLOCK_REALTIME}) {
    const int timer = timerfd_create(clock, 0);
    wait_in_vain(
        "timerfd",
        [&] {
          const itimerspec end{{0, 0}, moment_of(clock)};
          std::uint64_t count = 0;
          return timerfd_settime(timer, TFD_TIMER_ABSTIME, &end, nullptr) == 0 &&
                 read(timer, &count, sizeof count) == sizeof count && count == 1;
        },
        false);
    const itimerspec never{};
    itimerspec left{};
    check(timerfd_settime(timer, TFD_TIMER_ABSTIME, &never, nullptr) == 0, "a timer that is stopped");
    check(timerfd_gettime(timer, &left) == 0 && left.it_value.tv_sec == 0 && left.it_value.tv_nsec == 0, "stopped");
    close(timer);

    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    sigprocmask(SIG_BLOCK, &signals, nullptr);
    sigevent tell{};
    tell.sigev_notify = SIGEV_SIGNAL;
    tell.sigev_signo = SIGUSR1;
    timer_t other{};
    check(timer_create(clock, &tell, &other) == 0, "timer_create");
    wait_in_vain(
        "timer",
        [&] {
          const itimerspec end{{0, 0}, moment_of(clock)};
          return timer_settime(other, TIMER_ABSTIME, &end, nullptr) == 0 && sigwaitinfo(&signals, nullptr) == SIGUSR1;
        },
        false);
    timer_delete(other);
  }
}

/// CPU time is real, and so are its moments.
void set_timer_of_cpu_time() {
  sigevent silent{};
  silent.sigev_notify = SIGEV_NONE;
  timer_t timer{};
  itimerspec left{};
  itimerspec end{};
  check(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end.it_value) == 0, "clock_gettime");
  end.it_value.tv_sec += 50;
  check(timer_create(CLOCK_PROCESS_CPUTIME_ID, &silent, &timer) == 0, "timer_create");
  check(timer_settime(timer, TIMER_ABSTIME, &end, nullptr) == 0 && timer_gettime(timer, &left) == 0, "timer_settime");
  check(left.it_value.tv_sec <= 50 && left.it_value.tv_sec >= 40, "a timer of CPU time");
  timer_delete(timer);
}

}  // namespace

int main() {
  TofuPair pair;
  if (!pair.open() || !pair.put(1, 0)) return 1;
  while (sim_memory[0] != 1) usleep(1);
  sleep(100'000);
  wait_by_cpp();
  wait_at_futex();
  wait_for_message();
  wait_for_timers();
  set_timer_of_cpu_time();
  return pair.close();
}
