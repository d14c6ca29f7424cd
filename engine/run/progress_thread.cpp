#include "engine/run/progress_thread.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <numeric>
#include <system_error>
#include <vector>

#include "engine/initiator/tofu_owner.h"
#include "engine/observe/log.h"
#include "engine/observe/system_failure.h"
#include "engine/queue/clock.h"
#include "engine/queue/lost_thread.h"
#include "engine/queue/no_signals.h"
#include "engine/run/engine.h"
#include "engine/run/loop.h"
#include "engine/run/process_threads.h"
#include "engine/run/wait_limits.h"
#include "engine/segment/own_descriptor.h"
#include "engine/target/complete.h"
#include "engine/topology/near_cpus.h"

namespace portofu {
namespace {

/// @return how many of these CPUs the thread may use now: the kernel keeps those that the process may use. 0: it does
///         not tell, or has changed nothing
std::size_t let_run_on(std::thread& thread, const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) {
    if (cpu < CPU_SETSIZE) CPU_SET(cpu, &set);
  }
  if (pthread_setaffinity_np(thread.native_handle(), sizeof set, &set) != 0) return 0;
  if (pthread_getaffinity_np(thread.native_handle(), sizeof set, &set) != 0) return 0;
  return static_cast<std::size_t>(CPU_COUNT(&set));
}

/// mpirun binds a rank to one core, and a thread inherits that; there it would only take turns with the rank. Where
/// some core is free that shares a cache or the memory with those of the rank it stays near, because it touches the
/// lines of the rank; else it may run anywhere. Its starter moves it, because it would wait for its first turn there,
/// too.
void let_run_on_free_core(std::thread& thread, std::size_t processes) {
  const std::vector<int> own = usable_cpus();
  for (const std::vector<int>& near : roomy_neighbourhoods(own, processes)) {
    if (let_run_on(thread, near) > own.size()) return;
  }
  std::vector<int> all(CPU_SETSIZE);
  std::iota(all.begin(), all.end(), 0);
  let_run_on(thread, all);
}

/// The attributes of a thread as the kernel takes them (sched_setattr(2)); glibc 2.36 declares them nowhere.
struct SchedulingAttributes {
  std::uint32_t size;
  std::uint32_t policy;
  std::uint64_t flags;
  std::int32_t nice;
  std::uint32_t priority;
  std::uint64_t runtime;
  std::uint64_t deadline;
  std::uint64_t period;
};

/// This thread works for microseconds at a time. One that asks for short turns gets a busy core at once when it wakes,
/// and not after a turn of whoever computes there (3 to 4 ms). Linux 6.12 and later; earlier ones ignore it.
void ask_for_short_turns() {
  constexpr std::uint64_t kTurnNs = 100'000;
  SchedulingAttributes own{};
  if (syscall(SYS_sched_getattr, 0, &own, sizeof own, 0) != 0 || own.policy != SCHED_OTHER) return;
  own.size = sizeof own;
  own.runtime = kTurnNs;
  syscall(SYS_sched_setattr, 0, &own, 0);
}

/// Nothing has come, and nobody looks. What a receive waits for may be held at its sender.
int look_for_awaited_on_duty(Core& core) {
  const auto& ni = core.interfaces[kFabricInterface];
  bool found = false;
  if (ni != nullptr) endure([&] { found = answer_if_awaited(core, *ni); });
  return found ? 1 : 0;
}

}  // namespace

ProgressThread::ProgressThread(Engine& engine)
    : engine_(engine), sleepers_(engine.sleepers()), attendance_(engine.attendance()) {}

std::unique_ptr<ProgressThread> ProgressThread::start(Engine& engine, std::size_t processes) {
  if (!has_other_threads()) make_room_far_up();  // As long as the process is alone.
  std::unique_ptr<ProgressThread> progress(new ProgressThread(engine));
  int error = 0;
  try {
    const NoSignals inherited;  // Faults in the application's memory reach the guard (memory/guarded_copy).
    progress->thread_ = std::thread([raw = progress.get()] { raw->run(); });
    let_run_on_free_core(progress->thread_, processes);
  } catch (const std::system_error& refused) {
    error = refused.code().value();
  }
  if (error == 0) return progress;
  static constinit ToldOnce told;
  if (told.is_first()) {
    log_warning("%s; messages are handled only while the application calls",
                system_failure("pthread_create", "the thread that handles messages", error).c_str());
  }
  return nullptr;
}

ProgressThread::~ProgressThread() {
  if (!thread_.joinable()) return;
  ask_to_stop();
  part();
}

/// It has ended, or does so now.
void ProgressThread::part() {
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();  // The last thread of the process, which runs its destructors.
  } else {
    thread_.join();
  }
}

void ProgressThread::ask_to_stop() {
  stopping_.store(true, std::memory_order_seq_cst);
  nudges_.fetch_add(1, std::memory_order_seq_cst);
  syscall(SYS_futex, &nudges_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  sleepers_.doorbell().ring();
}

bool ProgressThread::stop_until(std::uint64_t deadline_ns) {
  if (!thread_.joinable()) return true;
  ask_to_stop();
  const timespec look{0, kEndLookNs};
  while (ended_.load(std::memory_order_acquire) == 0) {
    if (monotonic_ns() >= deadline_ns) return false;
    syscall(SYS_futex, &ended_, FUTEX_WAIT_PRIVATE, 0, &look, nullptr, 0);
  }
  part();
  return true;
}

/// To be asked now and then, when nothing happens.
bool ProgressThread::is_left_alone() const { return has_main_thread_ended() && !has_other_threads(); }

void ProgressThread::wait_for_nudge(std::uint32_t seen, std::int64_t timeout_ns) {
  timespec timeout{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
  syscall(SYS_futex, &nudges_, FUTEX_WAIT_PRIVATE, seen, timeout_ns < 0 ? nullptr : &timeout, nullptr, 0);
}

bool ProgressThread::application_is_away(std::uint64_t seen_calls) const { return attendance_.looks() == seen_calls; }

void ProgressThread::run() {
  pthread_setname_np(pthread_self(), "portofu");
  const LibraryThread listed;
  ask_for_short_turns();
  while (!stopping_.load(std::memory_order_acquire)) {
    if (watch()) serve();
    park();
  }
  ended_.store(1, std::memory_order_release);
  syscall(SYS_futex, &ended_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

/// @return true if no application thread has looked for anything for a guard period, or one has asked this thread in
bool ProgressThread::watch() {
  const std::uint64_t calls = attendance_.looks();
  const std::uint32_t seen = nudges_.load(std::memory_order_acquire);
  if (stopping_.load(std::memory_order_acquire)) return false;
  const std::int64_t guard_ns = std::int64_t{engine_.settings().guard_period_us} * 1000;
  // Partner: stand_in, which asks first and nudges then.
  bool asked_in = asked_in_.exchange(false, std::memory_order_acq_rel);
  if (!asked_in) {
    wait_for_nudge(seen, std::max(guard_ns, watch_ns_));
    asked_in = asked_in_.exchange(false, std::memory_order_acq_rel);
  }
  const bool away = asked_in || application_is_away(calls);
  // Where many processes share few cores, a look costs a turn of whoever works there.
  const bool is_rare = !away && engine_.shares_core();
  watch_ns_ = is_rare ? std::min(2 * std::max(guard_ns, watch_ns_), kLongestWatchNs) : 0;
  return away && !is_somebody_asleep();
}

/// Those that were lost while they slept are left out.
bool ProgressThread::is_somebody_asleep() {
  const std::uint32_t asleep = sleepers_.application_threads(std::memory_order_seq_cst);
  lost_sleepers_ = std::min(lost_sleepers_, asleep);
  return asleep > lost_sleepers_;
}

/// Waits while an application thread sleeps at the doorbell.
void ProgressThread::park() {
  while (!stopping_.load(std::memory_order_acquire)) {
    const std::uint32_t seen = nudges_.load(std::memory_order_acquire);
    // Partner: rearm. Either it sees parked_ here, or this sees that nobody sleeps any more; both are sequentially
    // consistent.
    parked_.store(true, std::memory_order_seq_cst);
    if (!is_somebody_asleep()) break;
    const std::uint64_t calls = attendance_.looks();
    wait_for_nudge(seen, kLongestParkNs);
    // Each of them looks once a second. So these have ended where they slept, past the destructors that take them back,
    // or are stopped.
    if (nudges_.load(std::memory_order_acquire) == seen && application_is_away(calls))
      lost_sleepers_ = sleepers_.application_threads(std::memory_order_relaxed);
  }
  parked_.store(false, std::memory_order_relaxed);
}

void ProgressThread::stand_in() {
  if (asked_in_.exchange(true, std::memory_order_acq_rel)) return;  // It has not come yet.
  nudges_.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, &nudges_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void ProgressThread::rearm() {
  if (!parked_.load(std::memory_order_seq_cst)) return;
  nudges_.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, &nudges_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void ProgressThread::stop_listening() {
  listening_.store(false, std::memory_order_relaxed);
  sleepers_.doorbell().ring();
}

bool ProgressThread::is_news_on_duty(const Core& core) const {
  if (core.waiting_peers.size() > listening_waiting_) return true;
  if (is_asking_on_duty(core) && !listening_asking_) return true;
  if (has_left_work_on_duty(core)) return true;
  const auto& ni = core.interfaces[kFabricInterface];
  if (ni != nullptr && !ni->late_answers.empty()) return true;  // A receive may wait for what is held.
  return listening_long_ && needs_timers_on_duty(core);
}

/// Runs the loop for an application that is away, until it looks for something itself.
void ProgressThread::serve() {
  const std::uint64_t calls = attendance_.looks();
  while (!stopping_.load(std::memory_order_acquire) && application_is_away(calls)) {
    if (serve_once() == 0) listen(calls);
  }
  listening_.store(false, std::memory_order_relaxed);
}

/// @return things done
int ProgressThread::serve_once() {
  const Engine::GuestDuty duty(engine_);
  int work = duty.run_cycle();
  if (work == 0) work = look_for_awaited_on_duty(duty.core());
  duty.look_after_timers();
  if (work == 0) return 0;
  duty.core().counters.add(Counter::kDutyByProgress);
  attendance_.note_work_on_duty(false);
  return work;
}

/// Sleeps at the doorbell until there is something to do or the application looks itself.
void ProgressThread::listen(std::uint64_t seen_calls) {
  const std::uint32_t seen = sleepers_.doorbell().announce();
  const Listening how = begin_to_listen(seen_calls);
  if (!how.finds_work && !stopping_.load(std::memory_order_acquire)) {
    quiet_ = !sleepers_.doorbell().wait(seen, how.longest_ns, how.fd) && !how.is_asking;
  }
  listening_.store(false, std::memory_order_relaxed);
  sleepers_.doorbell().withdraw();
  if (quiet_ && is_left_alone()) stopping_.store(true, std::memory_order_relaxed);
}

/// On duty, so that an application thread that takes the duty later sees it, and rings if there is news.
ProgressThread::Listening ProgressThread::begin_to_listen(std::uint64_t seen_calls) {
  const Engine::GuestDuty duty(engine_);
  Core& core = duty.core();
  listening_.store(true, std::memory_order_relaxed);
  core.polled.note_next();
  const bool finds_work = has_work_on_duty(core) || !application_is_away(seen_calls);
  const bool timers = needs_timers_on_duty(core);
  listening_long_ = quiet_ && !timers;
  listening_waiting_ = core.waiting_peers.size();
  listening_asking_ = is_asking_on_duty(core);
  const int fd = wait_fd_on_duty(core);
  const auto longest_ns = static_cast<std::uint64_t>(kLongestSleepNs);
  const std::uint64_t sleep_ns = sleepers_.bound_sleep_on_duty(timers || !quiet_ ? duty.check_ns() : longest_ns);
  return {finds_work, listening_asking_, fd, static_cast<std::int64_t>(sleep_ns)};
}

}  // namespace portofu
