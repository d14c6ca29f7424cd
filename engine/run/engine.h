#pragma once
// One offload engine: open, post, step, wait, close. No globals: any number of engines may live in one process, which
// is how the simulator runs. Frontends hold a Duty while they look into the core.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/core.h"
#include "engine/core/sleeping_call.h"
#include "engine/queue/cancellation.h"
#include "engine/run/attendance.h"
#include "engine/run/duty.h"
#include "engine/run/loop.h"
#include "engine/run/poll_policy.h"
#include "engine/run/progress_thread.h"
#include "engine/run/sleepers.h"
#include "engine/run/timers.h"
#include "engine/segment/doorbell.h"
#include "engine/segment/process_segment.h"

namespace portofu {

struct EngineNode;

/// Why an engine could not be opened.
enum class OpenError : std::uint8_t { kNone, kPidInUse, kNoSpace, kSystem };

/// Of what other nodes an engine has.
enum class NodeReach : std::uint8_t {
  kAsSet,     ///< What the settings and the job ask for; if that cannot be had, and was not asked for by name, nothing.
  kRequired,  ///< An endpoint, or it is not opened.
  kNone,      ///< Nothing, whatever the settings say.
};

/// Outcome of Engine::arm_on_duty.
enum class Armed : std::uint8_t {
  kYes,
  kNoCounter,  ///< There is no such counter.
  kNoRoom,     ///< As many operations wait as the interface allows.
};

/// Outcome of Engine::wait.
enum class WaitResult : std::uint8_t { kReached, kTimedOut, kAborted };

/// What an abort does to a wait. The waits of an application return; those inside another call are nobody's to abort.
enum class OnAbort : std::uint8_t { kReturn, kGoOn };

/// What a signal with a handler does to a wait that it finds asleep.
enum class OnSignal : std::uint8_t { kGoOn, kReturn };

/// A question to the core, asked on duty: a function and what it is about. Refers to its argument; keep that alive.
class Condition {
 public:
  template <class Ask>
  Condition(Ask& ask)  // NOLINT: meant to be implicit.
      : functions_(&kFunctions<Ask>), context_(&ask) {}
  bool operator()(Core& core) const { return functions_->ask(context_, core); }

  /// What it is about, for onlookers: what a function that has `describe(WaitSubject&)` says there.
  void describe(WaitSubject& subject) const { functions_->describe(context_, subject); }

 private:
  struct Functions {
    bool (*ask)(void* context, Core& core);
    void (*describe)(const void* context, WaitSubject& subject);
  };
  template <class Ask>
  static constexpr Functions kFunctions{
      [](void* context, Core& core) { return static_cast<bool>((*static_cast<Ask*>(context))(core)); },
      []([[maybe_unused]] const void* context, [[maybe_unused]] WaitSubject& subject) {
        if constexpr (requires(const Ask& ask) { ask.describe(subject); })
          static_cast<const Ask*>(context)->describe(subject);
      }};

  const Functions* functions_;
  void* context_;
};

class VirtualClock;

class Engine {
 public:
  /// Opens the engine of this process on its node: claims the PID, maps the segment, starts the progress thread.
  /// @param pid  wanted PID, 1..kMaxPid; 0 for any free one
  /// @param why  a sentence for people on failure
  /// @return nullptr on failure
  static std::unique_ptr<Engine> open(const Settings& settings, std::uint32_t pid, OpenError* error, std::string* why,
                                      NodeReach reach = NodeReach::kAsSet);

  /// What a further engine of the process has to have, so that other nodes reach whatever is on it as they reach this.
  NodeReach reach_of_further();

  /// What an engine lives in that is not on a node.
  struct World {
    std::vector<Wire*> wires;  ///< wires[0] reaches the engine itself; they outlive it.
    Clock clock = nullptr;
    void* clock_context = nullptr;
  };

  /// An engine without progress thread or sleep: for simulations and unit tests.
  Engine(const Settings& settings, ProcessId self, std::uint32_t uid, World world);

  /// Lets what is on its way out leave (kLingerNs at most, or its share of that), then closes.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// The duty, held. Any thread. While it is held the core may be used, and nothing else of the engine may be called.
  class Duty {
   public:
    explicit Duty(Engine& engine) : engine_(engine) { engine_.take_duty(); }
    ~Duty() noexcept(false) { engine_.end_call(); }  // A thread may be cancelled there (run/unwinding.h).
    Duty(const Duty&) = delete;
    Duty& operator=(const Duty&) = delete;
    Core& core() const { return engine_.core_; }

   private:
    Engine& engine_;
  };

  /// The duty, held by a thread of the library, which runs the engine where no call of the application does. It never
  /// becomes the favourite.
  class GuestDuty {
   public:
    explicit GuestDuty(Engine& engine) : engine_(engine) { engine_.duty_.take_as_guest(); }
    ~GuestDuty() { engine_.give_duty(); }
    GuestDuty(const GuestDuty&) = delete;
    GuestDuty& operator=(const GuestDuty&) = delete;
    Core& core() const { return engine_.core_; }

    /// Runs one cycle. @return things done
    int run_cycle() const { return engine_.cycle_on_duty(); }
    void run_all_cycles() const {
      while (run_cycle() > 0) {
      }
    }
    void look_after_timers() const { engine_.look_after_timers_on_duty(engine_.core_.now_ns()); }
    std::uint64_t check_ns() const { return engine_.timers_.check_ns(); }  ///< Timers::check_ns.

   private:
    Engine& engine_;
  };

  /// Starts a descriptor, on duty. Returns when it is on its way, or waits in order for room.
  void post_on_duty(Descriptor& descriptor);

  /// Lets a descriptor wait for a counter of its interface, or starts it if its threshold is reached.
  /// @param descriptor  its interface is open
  Armed arm_on_duty(const Descriptor& descriptor, const Trigger& trigger, const Claim& claim = {});

  /// Starts what the caller's change on duty has set free: triggered operations, waiting packets. A caller that starts
  /// something is not one that only waits: what it waits for between its calls that look may come past the engine.
  void settle_on_duty() {
    policy_.note_start();
    start_freed_on_duty();
  }
  /// The same for a caller that may do nothing but wait.
  void start_freed_on_duty() {
    // What had to wait is a sign that answers should be taken in; what fired, and what the caller has sent to itself,
    // should not wait for the next call.
    if (!core_.waiting_peers.empty() || !core_.fired.empty()) [[unlikely]]
      settle_waiting_on_duty();
    if (own_wire_ != nullptr && !own_wire_->is_silent()) [[unlikely]]
      settle_own_on_duty();
    if (core_.direct_uses >= kMostDirectUses) [[unlikely]]
      look_after_direct_on_duty();
  }

  /// Whether a caller that has given the duty back should pause: it has used memory of peers so often without a wait
  /// that somebody else may need the core. Asked on duty, once.
  bool take_pause_on_duty() { return std::exchange(pause_due_, false); }
  void pause();  ///< Lets whoever needs the core have it once. Without the duty.

  /// On duty: tells tools that the endpoint of libfabric with this number takes messages, or that it does so no more.
  /// @param number  less than 64
  void show_endpoint_on_duty(std::uint32_t number, bool takes_messages);

  /// Runs one cycle. Any thread.
  /// @return things done
  int step();

  /// Runs cycles until the condition holds, with bounded spinning, then sleep. Any thread, several at a time.
  /// @param timeout_ns  kForever or nanoseconds; 0 looks once
  /// @param on_abort    whether abort() ends this wait
  /// @return kAborted also if abort() was called before; kTimedOut also if a signal ended it
  WaitResult wait(Condition condition, std::uint64_t timeout_ns, OnAbort on_abort = OnAbort::kReturn,
                  OnSignal on_signal = OnSignal::kGoOn);
  static constexpr std::uint64_t kForever = UINT64_MAX;

  /// Asks once; runs a cycle and asks again if the answer was no. A caller that does nothing but call this in a loop is
  /// spinning: its calls yield when they have found nothing many times in a row, and sleep a little where it has
  /// something to wait for.
  /// @param ask  bool(Core&), asked on duty
  template <class Ask>
  bool poll(Ask&& ask) {
    Rest due;
    {
      const Duty duty(*this);
      if (ask(core_)) return found_on_duty();
      if (look_once_on_duty(&due)) {
        const bool found = ask(core_);
        policy_.note_second_look(found);
        return found;
      }
    }
    if (due.advice != IdleAdvice::kSpin) [[unlikely]] {
      if (have_others_caught_up(due)) {
        const Duty duty(*this);
        if (ask(core_)) return found_on_duty();
      }
      rest(due);
    }
    return false;
  }

  /// The same for a search, which leaves something behind: runs a cycle, then asks, once. Never sleeps.
  template <class Ask>
  bool search(Ask&& ask) {
    Rest due;
    bool found = false;
    {
      const Duty duty(*this);
      const int work = look_on_duty();
      found = ask(core_);
      start_freed_on_duty();
      if (work > 0 || found) {
        policy_.note_end();
      } else {
        due = advise_search_on_duty();
      }
    }
    if (due.advice != IdleAdvice::kSpin) [[unlikely]]
      rest(due);
    return found;
  }

  /// On duty, by who looks into other engines of the process in turns with this one: its calls here must not sleep.
  void note_other_engines_on_duty() { policy_.note_other_engines(); }

  /// Makes every wait return kAborted, now and in future. Async-signal-safe.
  void abort();
  /// Waits block again.
  void forget_abort() { aborted_.store(false, std::memory_order_release); }
  bool is_aborted() const { return aborted_.load(std::memory_order_acquire); }

  /// Whether this is a signal handler in the middle of a call of this very thread that holds the duty, or waits for it:
  /// then nothing may be called that takes it. Two loads, of lines that a call needs anyway, if nobody has the duty.
  bool is_interrupted() const { return duty_.is_interrupted(); }

  /// For one of several engines of a process, which end one after another: how long each lets what is on its way out
  /// leave, so that all together take no longer than one alone.
  void share_linger(std::uint32_t engines);

  /// Whether a thread of its own looks after it while no thread of the application does.
  bool has_progress_thread() const { return progress_ != nullptr; }

  /// The calling thread is about to sleep outside of the library, until something is told at a file descriptor, or only
  /// looks at that. Then it comes back at once.
  void leave_to_progress_thread();

  /// What closing does for others, while threads may be inside, for which all memory stays in place: lets what is on
  /// its way out leave, gives peers and names back. The interfaces are closed.
  void retire();

  /// The process ends in the middle of calls, perhaps of this thread's own: what can be done for others in a bounded
  /// time. Interfaces stay as they are, so that no wait of another thread ends with an error meanwhile.
  void end_with_process();

  /// Lets what waits to go out leave, bounded by `timeout_ns`.
  void flush(std::uint64_t timeout_ns);

  /// The same, but does not wait for a thread that has the duty and may never come back.
  void flush_until(std::uint64_t deadline_ns);

  // What a thread of the library has to know that stands in for the application.
  Sleepers& sleepers() { return sleepers_; }
  Attendance& attendance() { return attendance_; }
  /// Whether somebody else ran when a thread of this process yielded last. Any thread.
  bool shares_core() const { return policy_.shares_core(); }

  const Settings& settings() const { return core_.settings; }
  ProcessId self() const { return core_.self; }
  std::uint32_t uid() const { return core_.uid; }

  static constexpr std::uint64_t kLingerNs = 1'000'000'000;

 private:
  Engine(const Settings& settings, std::unique_ptr<EngineNode> node);

  class Signs;  ///< What the policy sees of this engine.

  /// What lies in the segment of a process, for an engine that has none.
  struct InPlaceOfSegment {
    DoorbellShared doorbell{};  ///< Nobody rings.
    CountersShared counters{};
  };

  void take_duty() { duty_.take(); }

  /// What a non-blocking call has to do when it has given the duty back.
  struct Rest {
    IdleAdvice advice = IdleAdvice::kSpin;
    std::uint64_t seen_activity = 0;  ///< Core::activity when it found nothing.
    std::uint64_t sleep_ns = 0;       ///< How long it sleeps, if that is advised.
  };

  int look_on_duty();
  bool look_once_on_duty(Rest* due);
  Rest rest_on_duty(IdleAdvice advice);
  /// @param news  whoever listens has to hear of what was done
  void give_duty(bool news = false) {
    const Sleepers::Wake due = sleepers_.judge_on_duty(core_.activity, news);
    duty_.give();
    sleepers_.wake(due);
  }
  void end_call() {
    const bool listens = progress_ != nullptr && progress_->must_hear(core_);
    // Whoever sleeps has announced it before it last had the duty, so it is seen here.
    const bool sleeps = sleepers_.application_threads(std::memory_order_relaxed) != 0;
    give_duty(listens || (sleeps && has_left_work_on_duty(core_)));
  }
  int cycle_on_duty();
  class NotedWait;
  class CountedSleep;
  /// A wait that has not found at once what it waits for.
  struct Sleeper {
    CancellationPlace* place;  ///< nullptr: nothing may end this wait but its condition and its time.
    const Condition& condition;
    OnSignal on_signal = OnSignal::kGoOn;
    std::uint64_t timeout_ns = kForever;
    bool signaled = false;                ///< A signal has ended its sleep.
    bool told = false;                    ///< It has said that it lasts.
    bool noted = false;                   ///< Recorded or shown, so that its end has to be, too.
    bool recorded = false;                ///< The beginning of the wait was.
    std::uint32_t turns = 0;              ///< In which it has found nothing.
    std::optional<SleepingCall> shown{};  ///< From its first sleep to its end. None before: a short wait writes none.

    OnAbort on_abort() const { return place != nullptr ? OnAbort::kReturn : OnAbort::kGoOn; }
  };

  WaitResult wait_until(Condition condition, std::uint64_t timeout_ns, OnAbort on_abort, Sleeper& sleeper);
  void settle_waiting_on_duty();
  void settle_own_on_duty();
  void look_after_direct_on_duty();
  void leave_other_nodes_on_duty();
  void look_after_timers_on_duty(std::uint64_t now_ns);
  void idle(IdleStreak& streak, std::uint64_t seen_activity, std::uint64_t longest_sleep_ns, Sleeper& sleeper);
  void sleep(std::uint64_t seen_activity, std::uint64_t longest_ns, Sleeper* sleeper);
  void show_on_duty(Sleeper& sleeper);
  std::uint64_t until_told_on_duty(const Sleeper& sleeper);
  void end_notes(const Sleeper& sleeper);
  void tell_if_stalled(Sleeper& sleeper);
  void show_awake(Sleeper& sleeper);
  void note_vain_wait(const Sleeper& sleeper, std::uint64_t timeout_ns);
  void look_why();
  WaitResult look_at_last(Condition condition);
  VirtualClock* virtual_clock() const;
  WaitResult wait_in_virtual_time(Condition condition, std::uint64_t timeout_ns, OnAbort on_abort);
  bool found_on_duty() {
    if (core_.observers != nullptr) [[unlikely]]
      record_found();
    policy_.note_found();
    return true;
  }
  WaitResult reached_on_duty();
  void record_wait_on_duty(Sleeper& sleeper);
  void record_wake();
  [[gnu::cold, gnu::noinline]] void record_found();
  Rest advise_search_on_duty();
  bool have_others_caught_up(const Rest& due);
  void rest(const Rest& due);

  DutyLock duty_;                               ///< Guards core_ and what is marked "on duty".
  std::uint64_t linger_ns_ = kLingerNs;         ///< For its end. Writer: who ends it.
  std::unique_ptr<EngineNode> node_;            ///< Segment and wires; nullptr in a simulation.
  std::unique_ptr<InPlaceOfSegment> in_place_;  ///< In a simulation.
  Wire* own_wire_ = nullptr;                    ///< Packets to oneself; nullptr: not to be hurried. Constant.
  Core core_;
  Sleepers sleepers_;
  Attendance attendance_;
  std::atomic<bool> aborted_{false};
  Timers timers_;
  PollPolicy policy_;       ///< On duty: of non-blocking calls.
  bool pause_due_ = false;  ///< On duty: for take_pause_on_duty.
  std::unique_ptr<ProgressThread> progress_;
};

}  // namespace portofu
