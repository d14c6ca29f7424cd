// How a call looks for packets, once or until something is there: every poll and every wait of the library. What a wait
// spins, yields and sleeps by is told in engine/doc/waiting.md.

#include "engine/run/engine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "engine/initiator/tofu_direct.h"
#include "engine/initiator/tofu_owner.h"
#include "engine/observe/system_failure.h"
#include "engine/queue/cpu.h"
#include "engine/run/engine_node.h"
#include "engine/run/loop.h"
#include "engine/run/progress_thread.h"
#include "engine/segment/signpost.h"

namespace portofu {
namespace {

/// Turns of a wait, in each of which it has found nothing, after which it is noted that it goes on.
constexpr std::uint32_t kTurnsBetweenNotes = 1024;

/// Whether the application has something coming to it: an operation that is not answered yet, or an entry for one
/// message. Other entries stay for good, so they say nothing. uTofu has no such signs, and counts as waiting.
bool awaits_something_on_duty(const Core& core) {
  if (core.outstanding.open_count() != 0 || core.tofu != nullptr) return true;
  const auto is_awaited_at = [](const std::shared_ptr<PortalTableEntry>& portal) {
    if (portal == nullptr) return false;
    int left = kEntriesLookedAt;
    for (const MatchEntry* entry = portal->priority.first(); entry != nullptr && left > 0; --left) {
      if ((static_cast<const ListEntry*>(entry)->options & kEntryUseOnce) != 0) return true;
      entry = MatchList::next(*entry);
    }
    return false;
  };
  return std::any_of(core.interfaces.begin(), core.interfaces.end(), [&](const auto& ni) {
    return ni != nullptr && std::any_of(ni->portal_table.begin(), ni->portal_table.end(), is_awaited_at);
  });
}

}  // namespace

class Engine::Signs final : public PollSigns {
 public:
  explicit Signs(Engine& engine) : engine_(engine) {}
  std::uint64_t now_ns() override { return engine_.core_.now_ns(); }
  std::uint64_t lane_uses() override { return lane_uses_on_duty(engine_.core_); }
  bool awaits_something() override { return awaits_something_on_duty(engine_.core_); }
  bool is_heap_published() override {
    return engine_.node_->segment->control().heap_id.load(std::memory_order_relaxed) != 0;
  }

 private:
  Engine& engine_;
};

/// @return 0 if nothing has happened that a thread may wait for. That a peer is gone, which the timers find, or a cycle
/// that wants to reach it, is no packet. Whoever runs a cycle has not asked for what it finds, so memory that runs out
/// there fails no call: what has not been done is due again in the next one.
int Engine::cycle_on_duty() {
  const std::uint64_t seen_activity = core_.activity;
  if (timers_.wants_time()) look_after_timers_on_duty(core_.now_ns());
  int work = 0;
  endure([&] { work = run_cycle_on_duty(core_); });
  if (work == 0 && core_.activity != seen_activity) work = 1;
  if (Checker* const checker = core_.checker()) [[unlikely]]
    checker->look(core_);
  if (work > 0) policy_.note_work();
  return work;
}

/// An application thread looks for packets: runs a cycle.
int Engine::look_on_duty() {
  attendance_.note_look_on_duty();
  if (progress_ != nullptr) progress_->stand_back();
  policy_.note_look();
  const int work = cycle_on_duty();
  if (work == 0) return 0;
  core_.counters.add(Counter::kDutyByApplication);
  attendance_.note_work_on_duty(true);
  return work;
}

void Engine::look_after_timers_on_duty(std::uint64_t now_ns) {
  if (!timers_.are_due(now_ns)) return;
  endure([&] { run_timers_on_duty(core_); });
  if (node_ != nullptr && timers_.are_names_due(now_ns)) look_after_names(*node_->segment);
}

int Engine::step() {
  const Duty duty(*this);
  return look_on_duty();
}

void Engine::abort() {
  aborted_.store(true, std::memory_order_seq_cst);
  sleepers_.doorbell().ring();
}

/// Takes back what onlookers were told of a wait, also where a handler ends the thread while it sleeps (pthread_exit).
class Engine::NotedWait {
 public:
  NotedWait(Engine& engine, const Sleeper& sleeper) : engine_(engine), sleeper_(sleeper) {}
  ~NotedWait() {
    if (sleeper_.noted) [[unlikely]]
      engine_.end_notes(sleeper_);
  }
  NotedWait(const NotedWait&) = delete;
  NotedWait& operator=(const NotedWait&) = delete;

 private:
  Engine& engine_;
  const Sleeper& sleeper_;
};

WaitResult Engine::wait(Condition condition, std::uint64_t timeout_ns, OnAbort on_abort, OnSignal on_signal) {
  CancellationPlace place;
  // Waits inside another call are nobody's to cancel either.
  Sleeper sleeper{on_abort == OnAbort::kReturn ? &place : nullptr, condition, on_signal, timeout_ns};
  WaitResult result{};
  {
    const NotedWait noted(*this, sleeper);
    result = wait_until(condition, timeout_ns, on_abort, sleeper);
  }
  if (result == WaitResult::kTimedOut && policy_.stall_watch().is_on()) [[unlikely]]
    note_vain_wait(sleeper, timeout_ns);
  place.leave();
  return result;
}

/// A call with a time has waited in vain. Those of a loop of such calls may sleep too short to say so themselves.
void Engine::note_vain_wait(const Sleeper& sleeper, std::uint64_t timeout_ns) {
  if (node_ == nullptr || virtual_clock() != nullptr) return;
  bool due = false;
  {
    const Duty duty(*this);
    Signs signs(*this);
    due = policy_.is_look_due(signs, core_.now_ns(), sleeper.signaled ? 0 : timeout_ns);
    if (sleeper.told) policy_.stall_watch().note_told();
  }
  if (due && !sleeper.told) look_why();
}

WaitResult Engine::wait_until(Condition condition, std::uint64_t timeout_ns, OnAbort on_abort, Sleeper& sleeper) {
  IdleStreak streak(core_.settings.spin_count, std::uint64_t{core_.settings.sleep_after_us} * 1000);
  std::uint64_t deadline_ns = 0;  // 0: not needed yet, or never.
  std::uint64_t seen_activity = 0;
  for (;;) {
    if (is_aborted() && on_abort == OnAbort::kReturn) return WaitResult::kAborted;
    int work = 0;
    bool shared = false;
    {
      const Duty duty(*this);
      if (condition(core_)) return reached_on_duty();
      work = look_on_duty();
      if (core_.recorder() != nullptr && !sleeper.recorded) [[unlikely]]
        record_wait_on_duty(sleeper);
      if (work > 0 && condition(core_)) return reached_on_duty();
      if (work == 0) {
        streak.set_spins(policy_.spins());
        shared = duty_.is_shared();
      }
      seen_activity = core_.activity;
    }
    if (virtual_clock() != nullptr) [[unlikely]]
      return wait_in_virtual_time(condition, timeout_ns, on_abort);
    if (timeout_ns == 0) return WaitResult::kTimedOut;
    std::uint64_t longest_sleep_ns = kForever;
    if (timeout_ns != kForever) {  // Whether something was found or not: a flood of others' packets ends no time.
      const std::uint64_t now = core_.now_ns();
      if (deadline_ns == 0) deadline_ns = timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + timeout_ns;
      if (now >= deadline_ns) return look_at_last(condition);
      longest_sleep_ns = deadline_ns - now;
    }
    if (work > 0) {
      streak.reset();
      continue;
    }
    if (shared && !streak.is_yielding()) {
      streak.note_stay_away();
      DutyLock::stay_away();
    }
    idle(streak, seen_activity, longest_sleep_ns, sleeper);
    if (sleeper.signaled && sleeper.on_signal == OnSignal::kReturn) return look_at_last(condition);
  }
}

/// A wait that does not come to sleep, because other threads have much to do, is shown all the same.
[[gnu::noinline]] void Engine::show_awake(Sleeper& sleeper) {
  {
    const Duty duty(*this);
    show_on_duty(sleeper);
  }
  tell_if_stalled(sleeper);
}

/// @return nullptr if time is real
VirtualClock* Engine::virtual_clock() const { return node_ != nullptr ? node_->clock.get() : nullptr; }

/// The rest of a wait that has found nothing at first.
WaitResult Engine::wait_in_virtual_time(Condition condition, std::uint64_t timeout_ns, OnAbort on_abort) {
  VirtualClock& clock = *virtual_clock();
  if (timeout_ns == 0) {
    clock.pass();
    return WaitResult::kTimedOut;
  }
  constexpr std::uint64_t kPsPerNs = 1000;
  const std::uint64_t deadline_ps =
      timeout_ns < kLatestPs / kPsPerNs ? clock.now_ps() + timeout_ns * kPsPerNs : kNeverPs;
  for (bool in_time = true;;) {
    if (is_aborted() && on_abort == OnAbort::kReturn) return WaitResult::kAborted;
    {
      const Duty duty(*this);
      if (condition(core_)) return reached_on_duty();
      const int work = look_on_duty();
      if (work > 0 && condition(core_)) return reached_on_duty();
    }
    if (!in_time) return WaitResult::kTimedOut;
    in_time = clock.wait(deadline_ps);
  }
}

/// The time of a wait is over. Wires that look rarely after many empty looks look now, so that what came in time, while
/// this thread slept or its process stood still, is not missed.
WaitResult Engine::look_at_last(Condition condition) {
  const Duty duty(*this);
  for (int cycles = 0; cycles < kMostLastCycles && has_work_on_duty(core_); ++cycles) {
    look_on_duty();
    if (condition(core_)) return reached_on_duty();
  }
  return WaitResult::kTimedOut;
}

/// The look of a non-blocking call that has not found what it asked for.
/// @param due  written if nothing was found; not returned, because a copy of it would wait (fresh_line.h)
/// @return whether something was found
bool Engine::look_once_on_duty(Rest* due) {
  if (policy_.skips_look(std::exchange(core_.gave_link, false))) {
    if (virtual_clock() != nullptr) [[unlikely]]
      due->advice = IdleAdvice::kPassTime;
    return false;
  }
  if (look_on_duty() == 0) {
    if (Recorder* const recorder = core_.recorder()) [[unlikely]]
      recorder->note_empty_look();
    policy_.note_second_look(false);
    if (node_ == nullptr) return false;  // A simulation never rests.
    if (virtual_clock() != nullptr) [[unlikely]] {
      due->advice = IdleAdvice::kPassTime;
      return false;
    }
    Signs signs(*this);
    *due = rest_on_duty(policy_.advise_poll(signs));
    return false;
  }
  return found_on_duty();
}

void Engine::record_wait_on_duty(Sleeper& sleeper) {
  sleeper.noted = sleeper.recorded = true;
  WaitSubject subject;
  sleeper.condition.describe(subject);
  core_.recorder()->end_looks();
  core_.recorder()->add_of_thread(Step::kWait, static_cast<std::uint8_t>(subject.kind));
}

void Engine::record_wake() {
  const Duty duty(*this);
  core_.recorder()->add_of_thread(Step::kWake, 0);
  core_.recorder()->note_time();
}

void Engine::record_found() {
  if (Recorder* const recorder = core_.recorder()) recorder->end_looks();
  // Putting an entry into a list costs nothing in virtual time, and so does the event that says so. How many of those
  // of MPI_Init are read later is a matter of luck.
  if (virtual_clock() != nullptr && !std::exchange(core_.gave_link, false)) virtual_clock()->find();
}

WaitResult Engine::reached_on_duty() {
  policy_.note_end();
  return WaitResult::kReached;
}

/// A call that found nothing lets those threads have the duty that share it, and perhaps have something to do.
Engine::Rest Engine::rest_on_duty(IdleAdvice advice) {
  if (advice == IdleAdvice::kSpin && duty_.is_shared()) [[unlikely]] {
    policy_.note_stay_away();
    advice = IdleAdvice::kStayAway;
  }
  return {advice, core_.activity, policy_.sleep_ns()};
}

Engine::Rest Engine::advise_search_on_duty() {
  if (node_ == nullptr) return {};
  if (virtual_clock() != nullptr) [[unlikely]]
    return {.advice = IdleAdvice::kPassTime};
  Signs signs(*this);
  return rest_on_duty(policy_.advise_search(signs));
}

/// In virtual time a call that has found nothing may have been ahead of what happens until then.
/// @return it was, and it has to ask again
bool Engine::have_others_caught_up(const Rest& due) {
  return due.advice == IdleAdvice::kPassTime && virtual_clock()->let_others_catch_up();
}

void Engine::rest(const Rest& due) {
  if (due.advice == IdleAdvice::kStayAway) return DutyLock::stay_away();
  if (due.advice == IdleAdvice::kPassTime) return virtual_clock()->pass();
  const std::uint64_t before_ns = core_.now_ns();
  if (due.advice == IdleAdvice::kYield) {
    sched_yield();
  } else if (due.advice == IdleAdvice::kLookWhy) {
    look_why();
  } else {
    sleep(due.seen_activity, due.sleep_ns, nullptr);
  }
  const std::uint64_t after_ns = core_.now_ns();
  const Duty duty(*this);
  policy_.note_rest(due.advice, before_ns, after_ns);
  if (due.advice == IdleAdvice::kYield) look_after_timers_on_duty(after_ns);
}

void Engine::idle(IdleStreak& streak, std::uint64_t seen_activity, std::uint64_t longest_sleep_ns, Sleeper& sleeper) {
  const IdleAdvice advice = streak.next([this] { return core_.now_ns(); });
  if (++sleeper.turns % kTurnsBetweenNotes == 0) [[unlikely]]
    show_awake(sleeper);
  if (advice == IdleAdvice::kSpin) return pause_cpu();
  if (sleeper.place != nullptr) sleeper.place->pass();
  if (advice == IdleAdvice::kYield) {
    pause();
  } else {
    sleep(seen_activity, longest_sleep_ns, &sleeper);
    tell_if_stalled(sleeper);
  }
  if (sleeper.place != nullptr) sleeper.place->pass();
}

void Engine::pause() {
  const std::uint64_t before_ns = core_.now_ns();
  sched_yield();
  const std::uint64_t after_ns = core_.now_ns();
  const Duty duty(*this);
  policy_.note_yield(after_ns - before_ns);
  look_after_timers_on_duty(after_ns);
}

/// A thread is counted among those that sleep, and is not any more also where a handler ends it there (pthread_exit).
class Engine::CountedSleep {
 public:
  explicit CountedSleep(Engine& engine) : seen(engine.sleepers_.join()), engine_(engine) {}
  ~CountedSleep() {
    engine_.sleepers_.leave();
    if (engine_.progress_ != nullptr) engine_.progress_->rearm();
  }
  CountedSleep(const CountedSleep&) = delete;
  CountedSleep& operator=(const CountedSleep&) = delete;

  const std::uint32_t seen;  ///< What the doorbell said.

 private:
  Engine& engine_;
};

/// @param sleeper  nullptr: a call that does not wait
void Engine::sleep(std::uint64_t seen_activity, std::uint64_t longest_ns, Sleeper* sleeper) {
  const bool is_abortable = sleeper == nullptr || sleeper->on_abort() == OnAbort::kReturn;
  const CountedSleep counted(*this);
  bool* const signaled = sleeper != nullptr ? &sleeper->signaled : nullptr;
  bool found = false;
  int fd = -1;
  {
    const Duty duty(*this);
    look_after_timers_on_duty(core_.now_ns());
    const bool aborted = is_aborted() && is_abortable;
    const bool seen = endure([&] { found = has_work_on_duty(core_); });
    found = found || !seen || aborted || core_.activity != seen_activity;
    if (!found && needs_timers_on_duty(core_)) {
      longest_ns = std::min(longest_ns, timers_.check_ns());
    }
    if (!found) longest_ns = sleepers_.bound_sleep_on_duty(longest_ns);
    if (!found) core_.counters.add(Counter::kSleeps);
    if (!found && core_.recorder() != nullptr) [[unlikely]]
      core_.recorder()->add_of_thread(Step::kSleep, 0);
    fd = wait_fd_on_duty(core_);
    if (!found && sleeper != nullptr) {
      show_on_duty(*sleeper);
      longest_ns = std::min(longest_ns, until_told_on_duty(*sleeper));
    }
  }
  const bool whole = longest_ns > static_cast<std::uint64_t>(kLongestSleepNs);
  if (!found) sleepers_.doorbell().wait(counted.seen, whole ? -1 : static_cast<std::int64_t>(longest_ns), fd, signaled);
  if (!found && core_.recorder() != nullptr) [[unlikely]]
    record_wake();
}

/// Writes down for onlookers what the thread waits for, once for the whole wait, because between two of its sleeps it
/// waits, too.
void Engine::show_on_duty(Sleeper& sleeper) {
  if (!sleeper.shown) {
    SleepingCall& call = sleeper.shown.emplace();
    sleeper.condition.describe(call.subject);
    call.since_ns = core_.now_ns();
    call.thread = gettid();
    call.tells_itself = sleeper.timeout_ns >= stall_ns_of(core_.settings);
    core_.sleeping_calls.link(call);
    sleeper.noted = true;
  }
  const WaitSubject& subject = sleeper.shown->subject;
  for (const WaitObject& object : subject.objects()) core_.polled.note_at_once(subject.kind, object.handle);
}

/// How long a wait that is shown may sleep, because it has to say then that it lasts.
std::uint64_t Engine::until_told_on_duty(const Sleeper& sleeper) {
  const std::uint64_t stall_ns = stall_ns_of(core_.settings);
  if (stall_ns == StallWatch::kNever || sleeper.told) return kForever;
  const std::uint64_t due_ns = sleeper.shown->since_ns + stall_ns;
  const std::uint64_t now_ns = core_.now_ns();
  return due_ns > now_ns ? due_ns - now_ns : 0;
}

void Engine::end_notes(const Sleeper& sleeper) {
  WaitSubject subject;
  sleeper.condition.describe(subject);
  const Duty duty(*this);
  if (sleeper.recorded) core_.recorder()->add_of_thread(Step::kWaitEnd, static_cast<std::uint8_t>(subject.kind));
  if (sleeper.shown) core_.sleeping_calls.unlink(*sleeper.shown);
}

void Engine::flush(std::uint64_t timeout_ns) {
  auto delivered = [](Core& core) { return has_delivered_on_duty(core); };
  wait(delivered, timeout_ns, OnAbort::kGoOn);
}

}  // namespace portofu
