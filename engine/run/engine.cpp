// Step 2 of a Put, and every wait of the library.

#include "engine/run/engine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <memory>

#include "engine/initiator/send.h"
#include "engine/initiator/tofu_direct.h"
#include "engine/initiator/tofu_owner.h"
#include "engine/mailbox/outbox.h"
#include "engine/memory/guarded_copy.h"
#include "engine/observe/log.h"
#include "engine/observe/system_failure.h"
#include "engine/queue/clock.h"
#include "engine/queue/cpu.h"
#include "engine/run/death.h"
#include "engine/run/engine_node.h"
#include "engine/run/loop.h"
#include "engine/run/progress_thread.h"
#include "engine/run/unwinding.h"
#include "engine/segment/signpost.h"
#include "engine/segment/user_key.h"
#include "engine/topology/launcher.h"
#include "engine/topology/local_place.h"
#include "engine/wire/other_nodes.h"

namespace portofu {
namespace {

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

std::uint64_t node_clock(void*) { return monotonic_ns(); }

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

std::unique_ptr<Engine> Engine::open(const Settings& settings, std::uint32_t pid, OpenError* error, std::string* why,
                                     NodeReach reach) {
  set_log_level(static_cast<LogLevel>(settings.log_level));
  Settings known = settings;
  const auto get_variable = [](const char* name) -> const char* { return std::getenv(name); };
  if (known.job_key == 0) known.job_key = job_key_of_launcher(get_variable);
  const bool is_users = known.job_key == 0;
  if (is_users) known.job_key = find_user_key(SegmentOptions().directory, why);
  if (is_check_wanted(known.check)) known.direct = 0;  // What packets bring is seen.
  *error = OpenError::kSystem;
  if (known.job_key == 0) return nullptr;
  std::unique_ptr<EngineNode> node = open_node(known, pid, error, why, reach);
  if (node == nullptr) return nullptr;
  if (is_users && node->fabric != nullptr && node->fabric->is_open())
    log_warning("no launcher and no PORTOFU_JOB_KEY says the key of the job: processes of other machines are refused");
  install_fault_guard();
  prepare_unwinding();
  std::unique_ptr<Engine> engine(new Engine(known, std::move(node)));
  if (engine->node_->clock != nullptr) {
    EngineNode& own = *engine->node_;
    own.nic = VirtualNic::start(*engine, *own.clock, *own.virtual_loopback, *own.virtual_shm);
    if (own.nic != nullptr) return engine;
    *why = "there is no thread for the NIC of virtual time";
    return nullptr;
  }
  if (settings.progress_thread == 0) return engine;
  engine->progress_ = ProgressThread::start(*engine, find_local_place(settings, get_variable).size);
  return engine;
}

Engine::Engine(const Settings& settings, std::unique_ptr<EngineNode> node)
    : node_(std::move(node)),
      core_(settings, node_->segment->id(), geteuid(), Counters(node_->segment->counters())),
      doorbell_(node_->segment->doorbell(), node_->segment->node_guard()),
      policy_(settings.spin_count, settings.sleep_after_us, stall_ns_of(settings)) {
  core_.wires = node_->wires();
  if (core_.wires.front() == node_->loopback.get()) own_wire_ = node_->loopback.get();
  core_.fabric = node_->to_other_nodes();
  if (node_->keeper() != nullptr && node_->keeper()->is_open()) core_.wires.push_back(core_.fabric);
  has_due_times_ = node_->datagrams != nullptr;
  core_.directory = node_->directory.get();
  core_.directory->when_ended = [this](ProcessId process, std::uint64_t life) {
    if (core_.fabric != nullptr) core_.fabric->other_nodes()->end_life(process, life);
  };
  core_.clock = node_clock;
  core_.receive_arrived = receive_arrived_on_duty;
  core_.lose_peer = lose_peer;
  core_.outstanding.tell_apart(node_->segment->incarnation());
  if (is_check_wanted(settings.check)) {
    node_->checker = std::make_unique<Checker>(settings.check, rank_of_launcher());
  }
  node_->observers = {node_->recorder.get(), node_->checker.get()};
  // In virtual time, because what is found takes some: see record_found.
  if (node_->recorder != nullptr || node_->checker != nullptr || node_->clock != nullptr)
    core_.observers = &node_->observers;
  node_->root = {layout_stamp(), &core_, &application_calls_};
  node_->segment->control().inspection_root.store(std::bit_cast<std::uint64_t>(&node_->root),
                                                  std::memory_order_relaxed);
}

Engine::Engine(const Settings& settings, ProcessId self, std::uint32_t uid, World world)
    : in_place_(new InPlaceOfSegment),
      core_(settings, self, uid, Counters(in_place_->counters)),
      doorbell_(in_place_->doorbell, NodeGuard::kFence),
      policy_(settings.spin_count, settings.sleep_after_us) {
  core_.wires = std::move(world.wires);
  core_.clock = world.clock;
  core_.clock_context = world.clock_context;
  core_.receive_arrived = receive_arrived_on_duty;
  core_.lose_peer = lose_peer;
  core_.outstanding.tell_apart(core_.now_ns());
}

NodeReach Engine::reach_of_further() {
  const Duty duty(*this);
  const SocketKeeper* const keeper = node_->keeper();
  if (keeper == nullptr) return NodeReach::kNone;
  return keeper->is_open() ? NodeReach::kRequired : NodeReach::kAsSet;
}

/// An application thread looks for packets: runs a cycle.
int Engine::look_on_duty() {
  application_calls_.store(application_calls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (progress_ != nullptr) progress_->stand_back();
  policy_.note_look();
  const int work = cycle_on_duty();
  if (work > 0 && unattended_) [[unlikely]]
    set_unattended_on_duty(false);
  return work;
}

void Engine::leave_to_progress_thread() {
  const Duty duty(*this);
  if (progress_ != nullptr && policy_.is_sleeper(core_.now_ns())) progress_->stand_in();
}

void Engine::set_unattended_on_duty(bool unattended) {
  unattended_ = unattended;
  if (node_ != nullptr) node_->segment->control().unattended.store(unattended ? 1 : 0, std::memory_order_relaxed);
}

void Engine::show_endpoint_on_duty(std::uint32_t number, bool takes_messages) {
  if (node_ == nullptr) return;
  std::atomic<std::uint64_t>& shown = node_->segment->control().endpoints;
  const std::uint64_t bit = std::uint64_t{1} << number;
  const std::uint64_t others = shown.load(std::memory_order_relaxed) & ~bit;
  shown.store(takes_messages ? others | bit : others, std::memory_order_relaxed);
}

/// @return how long the caller, who has announced it, may sleep so that the wires get what they need in time
std::uint64_t Engine::bound_sleep_on_duty(std::uint64_t longest_ns) {
  if (is_asking_on_duty(core_)) longest_ns = std::min(longest_ns, kAskPauseNs);
  if (!has_due_times_) return longest_ns;
  const std::uint64_t due_ns = next_due_on_duty(core_);
  heard_due_ns_ = std::max(heard_due_ns_, due_ns);
  if (due_ns == UINT64_MAX) return longest_ns;
  const std::uint64_t now = core_.now_ns();
  return std::min(longest_ns, due_ns > now ? due_ns - now : 0);
}

/// Whether some wire has to be looked at before those who sleep wake, so that they have to be rung. Then they sleep
/// anew, until that time.
bool Engine::is_due_sooner_on_duty() {
  const std::uint64_t due_ns = next_due_on_duty(core_);
  if (due_ns >= heard_due_ns_) return false;
  heard_due_ns_ = due_ns;
  return true;
}

/// @return 0 if nothing has happened that a thread may wait for. That a peer is gone, which the timers find, or a cycle
/// that wants to reach it, is no packet. Whoever runs a cycle has not asked for what it finds, so memory that runs out
/// there fails no call: what has not been done is due again in the next one.
int Engine::cycle_on_duty() {
  const std::uint64_t seen_activity = core_.activity;
  if (++cycles_ % kCyclesPerClock == 0) look_after_timers_on_duty(core_.now_ns());
  int work = 0;
  endure([&] { work = run_cycle_on_duty(core_); });
  if (work == 0 && core_.activity != seen_activity) work = 1;
  if (Checker* const checker = core_.checker()) [[unlikely]]
    checker->look(core_);
  if (work > 0) policy_.note_work();
  return work;
}

/// Whoever uses memory of peers itself finds each time what it waits for, and so never looks.
void Engine::look_after_direct_on_duty() {
  core_.direct_uses = 0;
  pause_due_ = true;
  cycle_on_duty();
}

void Engine::pause() { yield(); }

/// What is only lent goes its way without us, but what has come back is told.
void Engine::settle_waiting_on_duty() {
  const auto waits_for_room = [](const Peer* peer) {
    return !peer->requests.waiting.empty() || !peer->answers.waiting.empty();
  };
  const auto& waiting = core_.waiting_peers;
  if (!core_.fired.empty() || std::any_of(waiting.begin(), waiting.end(), waits_for_room)) {
    // In virtual time there is room at once, and what is sent later would leave at another time.
    while (cycle_on_duty() > 0 && virtual_clock() != nullptr) {
    }
    return;
  }
  endure([&] {
    for (Peer* peer : waiting) finish_taken(core_, *peer);
  });
  if (!core_.fired.empty()) cycle_on_duty();  // By SEND of what came back; see run_cycle_on_duty.
}

/// Whoever sends to itself receives, too, and nobody rings for it: a caller that calls no more would wait for the
/// progress thread's next look. What takes longer, as messages that fire messages without end, is left to that.
void Engine::settle_own_on_duty() {
  for (int rounds = 0; rounds < kMostOwnRounds && !own_wire_->is_silent(); ++rounds) {
    endure([&] {
      if (receive_own_packets_on_duty(core_, *own_wire_) > 0) policy_.note_work();
    });
    if (!core_.fired.empty()) cycle_on_duty();
  }
}

void Engine::look_after_timers_on_duty(std::uint64_t now_ns) {
  if (now_ns < next_timers_ns_) return;
  next_timers_ns_ = now_ns + std::uint64_t{core_.settings.peer_check_ms} * 1'000'000;
  endure([&] { run_timers_on_duty(core_); });
  if (node_ == nullptr || now_ns < next_names_ns_) return;
  next_names_ns_ = now_ns + kNamesPauseNs;
  look_after_names(*node_->segment);
}

void Engine::post(const Descriptor& posted) {
  Descriptor descriptor = posted;
  const Duty duty(*this);
  post_on_duty(descriptor);
}

void Engine::post_on_duty(Descriptor& descriptor) {
  start_descriptor(core_, descriptor);
  settle_on_duty();
}

int Engine::step() {
  const Duty duty(*this);
  return look_on_duty();
}

void Engine::abort() {
  aborted_.store(true, std::memory_order_seq_cst);
  doorbell_.ring();
}

WaitResult Engine::wait(Condition condition, std::uint64_t timeout_ns, OnAbort on_abort, OnSignal on_signal) {
  CancellationPlace place;
  // Waits inside another call are nobody's to cancel either.
  Sleeper sleeper{on_abort == OnAbort::kReturn ? &place : nullptr, condition, on_signal};
  const WaitResult result = wait_until(condition, timeout_ns, on_abort, sleeper);
  if (sleeper.recorded) [[unlikely]]
    record_wait_end(sleeper);
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
    if (work > 0) {
      streak.reset();
      continue;
    }
    std::uint64_t longest_sleep_ns = kForever;
    if (timeout_ns != kForever) {
      const std::uint64_t now = core_.now_ns();
      if (deadline_ns == 0) deadline_ns = timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + timeout_ns;
      if (now >= deadline_ns) return look_at_last(condition);
      longest_sleep_ns = deadline_ns - now;
    }
    if (shared && !streak.is_yielding()) {
      streak.note_stay_away();
      DutyLock::stay_away();
    }
    idle(streak, seen_activity, longest_sleep_ns, sleeper);
    if (sleeper.signaled && sleeper.on_signal == OnSignal::kReturn) return look_at_last(condition);
  }
}

/// @return nullptr: time is real
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
  sleeper.recorded = true;
  WaitSubject subject;
  sleeper.condition.describe(subject);
  core_.recorder()->end_looks();
  core_.recorder()->add_of_thread(Step::kWait, static_cast<std::uint8_t>(subject.kind));
}

void Engine::record_wait_end(const Sleeper& sleeper) {
  WaitSubject subject;
  sleeper.condition.describe(subject);
  const Duty duty(*this);
  core_.recorder()->add_of_thread(Step::kWaitEnd, static_cast<std::uint8_t>(subject.kind));
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
  if (advice == IdleAdvice::kSpin) return pause_cpu();
  if (sleeper.place != nullptr) sleeper.place->pass();
  if (advice == IdleAdvice::kYield) {
    yield();
  } else {
    sleep(seen_activity, longest_sleep_ns, &sleeper);
  }
  if (sleeper.place != nullptr) sleeper.place->pass();
}

void Engine::yield() {
  const std::uint64_t before_ns = core_.now_ns();
  sched_yield();
  const std::uint64_t after_ns = core_.now_ns();
  const Duty duty(*this);
  policy_.note_yield(after_ns - before_ns);
  look_after_timers_on_duty(after_ns);
}

/// Takes the call back that was shown, also where a handler ends the thread while it sleeps (pthread_exit).
class Engine::ShownSleep {
 public:
  explicit ShownSleep(Engine& engine) : engine_(engine) {}
  ~ShownSleep() {
    if (call.since_ns != 0) engine_.unshow_sleep(call);
  }
  ShownSleep(const ShownSleep&) = delete;
  ShownSleep& operator=(const ShownSleep&) = delete;

  SleepingCall call;

 private:
  Engine& engine_;
};

/// A thread is counted among those that sleep, and is not any more also where a handler ends it there (pthread_exit).
class Engine::CountedSleep {
 public:
  explicit CountedSleep(Engine& engine) : engine_(engine) {
    engine_.sleeping_threads_.fetch_add(1, std::memory_order_seq_cst);
    seen = engine_.doorbell_.announce();
  }
  ~CountedSleep() {
    engine_.doorbell_.withdraw();
    engine_.sleeping_threads_.fetch_sub(1, std::memory_order_seq_cst);
    if (engine_.progress_ != nullptr) engine_.progress_->rearm();
  }
  CountedSleep(const CountedSleep&) = delete;
  CountedSleep& operator=(const CountedSleep&) = delete;

  std::uint32_t seen = 0;  ///< What the doorbell said.

 private:
  Engine& engine_;
};

/// @param sleeper  nullptr: a call that does not wait
void Engine::sleep(std::uint64_t seen_activity, std::uint64_t longest_ns, Sleeper* sleeper) {
  ShownSleep shown(*this);
  sleep_shown(seen_activity, longest_ns, sleeper, shown.call);
  if (shown.call.since_ns != 0) tell_if_stalled(*sleeper);
}

void Engine::sleep_shown(std::uint64_t seen_activity, std::uint64_t longest_ns, Sleeper* sleeper, SleepingCall& call) {
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
      longest_ns = std::min(longest_ns, std::uint64_t{core_.settings.peer_check_ms} * 1'000'000);
    }
    if (!found) longest_ns = bound_sleep_on_duty(longest_ns);
    if (!found) core_.counters.add(Counter::kSleeps);
    if (!found && core_.recorder() != nullptr) [[unlikely]]
      core_.recorder()->add_of_thread(Step::kSleep, 0);
    fd = wait_fd_on_duty(core_);
    if (!found && sleeper != nullptr) longest_ns = std::min(longest_ns, show_sleep_on_duty(*sleeper, call));
  }
  const bool whole = longest_ns > static_cast<std::uint64_t>(kLongestSleepNs);
  if (!found) doorbell_.wait(counted.seen, whole ? -1 : static_cast<std::int64_t>(longest_ns), fd, signaled);
  if (!found && core_.recorder() != nullptr) [[unlikely]]
    record_wake();
}

/// Writes down for onlookers what the thread is about to sleep for.
/// @return how long it may sleep at most, because it has to say then that it does
std::uint64_t Engine::show_sleep_on_duty(Sleeper& sleeper, SleepingCall& call) {
  const std::uint64_t now_ns = core_.now_ns();
  if (sleeper.since_ns == 0) sleeper.since_ns = now_ns;
  sleeper.condition.describe(call.subject);
  call.since_ns = sleeper.since_ns;
  call.thread = gettid();
  core_.sleeping_calls.link(call);
  const std::uint64_t stall_ns = stall_ns_of(core_.settings);
  if (stall_ns == StallWatch::kNever || sleeper.told) return kForever;
  const std::uint64_t due_ns = sleeper.since_ns + stall_ns;
  return due_ns > now_ns ? due_ns - now_ns : 0;
}

void Engine::unshow_sleep(const SleepingCall& call) {
  const Duty duty(*this);
  core_.sleeping_calls.unlink(call);
}

void Engine::flush(std::uint64_t timeout_ns) {
  auto delivered = [](Core& core) { return has_delivered_on_duty(core); };
  wait(delivered, timeout_ns, OnAbort::kGoOn);
}

}  // namespace portofu
