// What the coordinator finds out of ranks that do not tell it: whether all are there and time may begin, whether the
// one that has the turn polls its memory, or sleeps for a reason of its own.

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "engine/door/inspection.h"
#include "lib/tools/ptl_sim/coordinator.h"

namespace portofu::tools {
namespace {

/// Answers in a row by which a rank shows that it polls its memory; between two it uses that part of the patience.
constexpr int kAnswers = 3;
/// A thread that has been asleep for so long sleeps for a reason of its own, and not because it waits for another one
/// of its process, which waits for a core.
constexpr std::uint64_t kNapNs = 100'000'000;
/// The same though others of its process, or who has started it, run: it need not wait for them.
constexpr std::uint64_t kLongNapNs = 1'000'000'000;
/// Before the first turn: nothing new has been seen of anybody for so long, but for CPU time.
constexpr std::uint64_t kStillNs = 500'000'000;
/// And so much CPU time has been used by each that does not sleep.
constexpr std::uint64_t kStartPatienceNs = 10'000'000;
/// Of many ranks each has its part of what so many use, but a tenth of that at least.
constexpr std::size_t kFewRanks = 64;
/// So late the first turn is given without those who have not used the library.
constexpr std::uint64_t kStartNs = 10'000'000'000;
/// The same, after which a line says so.
constexpr std::uint64_t kTellStartNs = 1'000'000'000;
/// Before the first turn, with a launcher: all threads of the job have slept for so long, or time begins without that.
constexpr std::uint64_t kRestNs = 10'000'000;
constexpr std::uint64_t kMostRestNs = 2'000'000'000;
/// A thread that is asked whether it polls its memory, and runs or sleeps, answers within this time, or it takes no
/// signals.
constexpr std::uint64_t kAnswerNs = 2'000'000'000;
/// Between looks at a rank that has the turn and uses no CPU, at most, but for a longer patience.
constexpr std::uint64_t kMostTurnPauseNs = 1'000'000;
/// Turns of each that wants one in which nothing is sent, after which those who are frozen are given time, at first.
constexpr std::uint64_t kVainTurns = 64;
constexpr std::uint64_t kMostVainFactor = 1 << 20;
/// CPU time without a call after which a rank is taken to poll its memory though nobody else can go on: somebody who
/// seems to poll may compute.
constexpr std::uint64_t kLastPatienceNs = 20'000'000;

}  // namespace

// ---- The start ------------------------------------------------------------------------------------------------------

/// What is to be seen of the ranks before the first turn.
struct Coordinator::Roll {
  std::uint32_t present = 0;      ///< Have opened the library.
  std::uint32_t waiting = 0;      ///< For their first turn.
  std::uint64_t cpu_ns = 0;       ///< Of those who do not.
  bool all_wait = true;           ///< All who have not ended.
  bool rest_sleeps = true;        ///< Who does not wait sleeps, or is not here and need not come.
  bool rest_polls = true;         ///< Or polls its memory.
  bool has_sent = false;          ///< Something is under way.
  bool somebody_missing = false;  ///< Who may still come.
  bool has_news = false;          ///< Something was sent.
};

/// Whether a rank has not come yet.
bool Coordinator::is_missing(std::uint32_t rank) const {
  return seats_[rank].ended.load() ? follows_ : time_.page(rank).process.load() == 0;
}

Coordinator::Roll Coordinator::call_roll(bool is_late) {
  Roll roll;
  for (std::uint32_t rank = 0; rank < seats_.size() && !roll.somebody_missing; ++rank)
    roll.somebody_missing = is_missing(rank);
  // The system is asked only for what can matter: many ranks tell of themselves one after the other.
  if (roll.somebody_missing && !is_late) roll.rest_sleeps = roll.rest_polls = false;
  for (std::uint32_t rank = 0; rank < seats_.size(); ++rank) {
    const VirtualPage& page = time_.page(rank);
    const auto process = static_cast<pid_t>(page.process.load());
    if (process != 0) ++roll.present;
    const bool has_ended = seats_[rank].ended.load();
    if (drain(rank)) roll.has_news = true;
    roll.has_sent = roll.has_sent || seats_[rank].under_way != 0;
    if (has_ended && follows_) roll.all_wait = false;
    if (has_ended) continue;
    const bool polls = frozen_.contains(rank);
    if (process != 0 && state(rank) != VirtualState::kAway && !polls) {
      ++roll.waiting;
      continue;
    }
    roll.all_wait = false;
    if (process == 0 || (!roll.rest_sleeps && !roll.rest_polls)) continue;
    const bool sleeps = is_asleep(process, static_cast<pid_t>(page.thread.load()));
    roll.rest_sleeps = roll.rest_sleeps && sleeps;
    roll.rest_polls = roll.rest_polls && (sleeps || polls);
    roll.cpu_ns += used_cpu_ns(process);
  }
  return roll;
}

/// Until each rank waits for its first turn, polls its memory, sleeps for a reason of its own, or has ended. @return
/// false: all is over
bool Coordinator::wait_for_start() {
  const std::uint64_t began_ns = monotonic_ns();
  const std::uint64_t still_ns = std::max(kStillNs, 500 * options_.patience_ns);
  Lasting nap(kMostOfLookNs);
  Lasting long_nap(kMostOfLookNs);
  Lasting stillness(kMostOfLookNs);
  Lasting hang(kMostOfLookNs);
  Roll before;
  bool has_told = options_.is_quiet;
  while (!stopping_.load()) {
    const std::uint64_t now_ns = monotonic_ns();
    const bool is_late = now_ns - began_ns > kStartNs;
    const Roll roll = call_roll(is_late);
    if (has_all_ended()) return may_others_follow();
    if (roll.all_wait) {
      if (options_.has_launcher) wait_for_rest();
      return true;
    }
    const bool has_news = roll.has_news || roll.present != before.present || roll.waiting != before.waiting;
    if (has_news) {
      thaw();
      for (Seat& seat : seats_) seat.evidence = {};
    }
    // A server of the job that is about to answer does not sleep, and who has slept and run between two looks has used
    // CPU time.
    const bool rest_sleeps = roll.waiting != 0 && roll.rest_sleeps;
    const bool all_sleep = rest_sleeps && roll.cpu_ns == before.cpu_ns && is_asleep(getpid(), getpid());
    before = roll;
    if (nap.look(all_sleep, now_ns) > kNapNs || long_nap.look(rest_sleeps, now_ns) > kLongNapNs) return true;
    const bool is_still = !has_news && (is_late || !roll.somebody_missing);
    if (stillness.look(is_still, now_ns) > still_ns && (roll.waiting != 0 || roll.has_sent)) {
      if (roll.rest_polls) return true;
      ask_who_polls(still_ns);
    }
    if (roll.waiting != 0 && roll.somebody_missing && now_ns - began_ns > kTellStartNs &&
        !std::exchange(has_told, true))
      tell_of_missing();
    if (hang.look(roll.present != 0 && !has_news, now_ns) > options_.hang_ns) {
      fail_after_hang();
      return false;
    }
    wait_for_news(kPauseNs);
  }
  return false;
}

/// Freezes those who have shown that they poll their memory, by one answer, since nobody does anything else before the
/// first turn. All are asked before the first answer is awaited: each waits for a core until it can answer, and those
/// that poll until they are asked have the cores.
void Coordinator::ask_who_polls(std::uint64_t still_ns) {
  // Many share the cores: they would poll for long until each has shown as much.
  const std::uint64_t alone_ns = std::max(kStartPatienceNs, still_ns / 50);
  const std::uint64_t cpu_between_ns =
      std::max(alone_ns * kFewRanks / std::max(seats_.size(), kFewRanks), alone_ns / 10);
  std::vector<std::uint32_t> asked;
  for (std::uint32_t rank = 0; rank < seats_.size(); ++rank) {
    const VirtualPage& page = time_.page(rank);
    const auto process = static_cast<pid_t>(page.process.load());
    if (seats_[rank].ended.load() || process == 0 || state(rank) != VirtualState::kAway) continue;
    if (is_asleep(process, static_cast<pid_t>(page.thread.load())) || !may_poll(rank, cpu_between_ns)) continue;
    if (!has_failed_as_poller(rank) && ask(rank, VirtualState::kAway)) {
      asked.push_back(rank);
    } else {
      seats_[rank].evidence = {};
    }
  }
  for (const std::uint32_t rank : asked) {
    if (!await_answer(rank, VirtualState::kAway)) seats_[rank].evidence = {};
  }
}

/// Others wait, and nothing shows why.
void Coordinator::tell_of_missing() const {
  constexpr int kMost = 8;
  std::string names;
  int count = 0;
  for (std::uint32_t rank = 0; rank < seats_.size(); ++rank) {
    if (!is_missing(rank)) continue;
    if (++count <= kMost) names += (names.empty() ? "" : ", ") + std::to_string(rank);
  }
  if (count > kMost) names += " and " + std::to_string(count - kMost) + " more";
  std::fprintf(stderr, "ptl_sim: %s %s not used the library yet; time begins without %s %d s after the start\n",
               ((count == 1 ? "rank " : "ranks ") + names).c_str(), count == 1 ? "has" : "have",
               count == 1 ? "it" : "them", static_cast<int>(kStartNs / 1'000'000'000));
}

/// Ranks of a launcher may have met by a service of its own, whose answer threads of theirs still have to take: how
/// often they look until then would be a matter of luck.
void Coordinator::wait_for_rest() {
  const std::uint64_t began_ns = monotonic_ns();
  constexpr std::uint64_t kLookNs = kPauseNs / 5;
  Lasting rest(2 * kLookNs);
  bool all_sleep = false;
  while (!stopping_.load() && rest.look(all_sleep, monotonic_ns()) < kRestNs &&
         monotonic_ns() - began_ns < kMostRestNs) {
    wait_for_news(kLookNs);
    all_sleep = true;
    for (std::uint32_t rank = 0; rank < seats_.size() && all_sleep; ++rank)
      all_sleep = is_family_asleep(static_cast<pid_t>(time_.page(rank).process.load()));
  }
}

// ---- Turns ----------------------------------------------------------------------------------------------------------

void Coordinator::wait_for_turn_end(std::uint32_t rank) {
  const std::uint64_t began_ns = monotonic_ns();
  const auto process = static_cast<pid_t>(time_.page(rank).process.load());
  Lasting nap(kMostOfLookNs);
  std::uint64_t pause_ns = 0;
  std::uint64_t cpu_ns = 0;
  seats_[rank].evidence = {};
  while (!stopping_.load() && !failed_) {
    if (seats_[rank].ended.load() || state(rank) != VirtualState::kRunning) return;
    const std::uint64_t least_ns = std::min(patience_of(rank) / (can_others_go_on() ? kAnswers : 1), kPauseNs);
    pause_ns = std::clamp(pause_ns, least_ns, std::max(least_ns, kMostTurnPauseNs));
    if (wait_for_news(pause_ns)) {
      drain(rank);
      continue;
    }
    drain(rank);
    look_at_outsiders();  // Who comes back wants a turn.
    // Whoever uses no CPU waits for a core, or sleeps: looks at it would only keep the core busy.
    const std::uint64_t used_ns = used_cpu_ns(process);
    const bool is_still = std::exchange(cpu_ns, used_ns) == used_ns;
    const bool is_soon = is_still && pause_ns < kMostTurnPauseNs && !seats_[rank].meets.load();
    pause_ns = is_still ? 2 * pause_ns : least_ns;
    if (!is_soon && leave_alone(rank, nap)) return;
    if (monotonic_ns() - began_ns < options_.hang_ns) continue;
    fail_without_call(rank);
  }
}

void Coordinator::fail_without_call(std::uint32_t rank) {
  fail("rank " + std::to_string(rank) + " has not called the library for " +
       std::to_string(options_.hang_ns / 1'000'000'000) + " s, and nobody else can go on: " + who_waits());
}

/// Whether a rank that has the turn and does not give it back is left to itself.
bool Coordinator::leave_alone(std::uint32_t rank, Lasting& nap) {
  VirtualPage& page = time_.page(rank);
  const auto process = static_cast<pid_t>(page.process.load());
  const bool sleeps = is_asleep(process, static_cast<pid_t>(page.thread.load()));
  const std::uint64_t slept_ns = nap.look(sleeps, monotonic_ns());
  if (sleeps) {
    const bool may_go_on = slept_ns < kNapNs || (slept_ns < kLongNapNs && !is_family_asleep(process));
    if (may_go_on && !seats_[rank].meets.load()) return false;  // Whoever meets others waits for those.
    auto running = static_cast<std::uint32_t>(VirtualState::kRunning);
    return page.state.compare_exchange_strong(running, static_cast<std::uint32_t>(VirtualState::kAway));
  }
  if (can_others_go_on() || shares_time_) return polls_memory(rank, patience_of(rank) / kAnswers);
  const std::uint64_t patience_ns = std::max(patience_of(rank), kLastPatienceNs);
  if (frozen_.empty() || !polls_memory(rank, patience_ns / kAnswers)) return false;
  last_ = {rank, patience_ns, monotonic_ns()};
  return true;
}

std::uint64_t Coordinator::calls_of(std::uint32_t rank) const {
  const VirtualPage& page = time_.page(rank);
  std::uint64_t calls = page.reports_given.load(std::memory_order_relaxed);
  for (const auto& count : page.count) calls += count.load(std::memory_order_relaxed);
  return calls;
}

std::uint64_t Coordinator::patience_of(std::uint32_t rank) const {
  if (seats_[rank].patience_ns != 0) return seats_[rank].patience_ns;
  const bool is_mpi = time_.page(rank).is_mpi.load(std::memory_order_relaxed) != 0;
  return is_mpi && !some_poll_ ? options_.mpi_patience_ns : options_.patience_ns;
}

/// Something has come for a rank that was taken to poll its memory. If it calls soon, it has waited for that.
void Coordinator::try_as_poller(std::uint32_t rank) {
  Seat& seat = seats_[rank];
  const std::uint64_t patience_ns = patience_of(rank);
  if (patience_ns == options_.patience_ns) return;
  seat.untried_ns = patience_ns;
  seat.calls = calls_of(rank);
  seat.patience_ns = options_.patience_ns;
}

/// @return true if it has gone on without a call, and has its patience back
bool Coordinator::has_failed_as_poller(std::uint32_t rank) {
  Seat& seat = seats_[rank];
  const std::uint64_t untried_ns = std::exchange(seat.untried_ns, 0);
  if (untried_ns == 0) return false;
  if (calls_of(rank) != seat.calls) {
    some_poll_ = true;
    return false;
  }
  seat.patience_ns = untried_ns;
  return true;
}

/// Others have looked, slept, or read clocks many times, and nothing was under way: whoever seems to poll its memory
/// may compute after all, and they wait for it. It gets more time each time, and so do they.
/// @return false if that is not so
bool Coordinator::let_frozen_compute() {
  if (!happenings_.empty() || frozen_.empty() || ++vain_turns_ <= kVainTurns * vain_factor_ * places_.size())
    return false;
  vain_turns_ = 0;
  vain_factor_ = std::min(4 * vain_factor_, kMostVainFactor);
  for (const std::uint32_t rank : std::set<std::uint32_t>(frozen_)) {
    if (seats_[rank].place_ps == kNeverPs) give_time(rank, options_.patience_ns * vain_factor_);
  }
  return true;
}

/// Somebody frozen goes on for so long, unless it calls.
void Coordinator::give_time(std::uint32_t rank, std::uint64_t cpu_ns) {
  if (!let_go_on(rank, VirtualState::kRunning)) return;
  Seat& seat = seats_[rank];
  const std::uint64_t before_ns = patience_of(rank);
  seat.patience_ns = cpu_ns;
  wait_for_turn_end(rank);
  seat.patience_ns = frozen_.contains(rank) ? before_ns : std::max(seat.patience_ns, 2 * before_ns);
  drain(rank);
  look_at(rank);
}

/// All seem to poll their memory, and nothing is under way: one of them computes. It may be the one that had the turn
/// last, so the others together get as much time as it has had, and then it gets as much again, and more each time.
/// @return false if there is none
bool Coordinator::share_time() {
  if (last_.cpu_ns == 0 || !frozen_.contains(last_.rank)) return false;
  if (monotonic_ns() - last_.since_ns > options_.hang_ns) {
    fail_without_call(last_.rank);
    return false;
  }
  std::set<std::uint32_t> others = frozen_;
  others.erase(last_.rank);
  shares_time_ = true;
  for (auto at = others.begin(); at != others.end() && !can_others_go_on() && !failed_; ++at)
    give_time(*at, std::max(options_.patience_ns, last_.cpu_ns / others.size()));
  if (!can_others_go_on() && !failed_) give_time(last_.rank, last_.cpu_ns);
  last_.cpu_ns *= 2;
  shares_time_ = false;
  return true;
}

// ---- Polling --------------------------------------------------------------------------------------------------------

/// Whether a rank has used so much CPU time without a call that it is worth asking.
bool Coordinator::may_poll(std::uint32_t rank, std::uint64_t cpu_between_ns) {
  PollingEvidence& evidence = seats_[rank].evidence;
  const std::uint64_t cpu_ns = used_cpu_ns(static_cast<pid_t>(time_.page(rank).process.load()));
  const std::uint64_t calls = calls_of(rank);
  if (evidence.cpu_ns == 0 || calls != evidence.calls) {
    evidence = {cpu_ns, 0, calls, 0};
    return false;
  }
  if (cpu_ns < evidence.cpu_ns + cpu_between_ns) return false;
  evidence.cpu_ns = cpu_ns;
  return true;
}

/// Whether a rank that has the turn has shown that it polls its memory. If so, it is frozen now. @param cpu_between_ns
/// that it uses before it is asked
bool Coordinator::polls_memory(std::uint32_t rank, std::uint64_t cpu_between_ns) {
  constexpr auto kFrom = VirtualState::kRunning;
  if (!may_poll(rank, cpu_between_ns)) return false;
  PollingEvidence& evidence = seats_[rank].evidence;
  if (has_failed_as_poller(rank) || !ask(rank, kFrom) || !await_answer(rank, kFrom)) {
    evidence = {};
    return false;
  }
  if (seats_[rank].is_deaf) return true;
  // Another thread of the process may have used the CPU.
  const std::uint64_t polled_ns = time_.page(rank).polled_cpu_ns.load(std::memory_order_relaxed);
  const bool is_first = evidence.polled_ns == 0;
  const bool counts = !is_first && polled_ns >= evidence.polled_ns + cpu_between_ns;
  if (counts && ++evidence.answers == kAnswers) return true;
  if (counts || is_first) evidence.polled_ns = polled_ns;
  let_go_on(rank, kFrom);
  return false;
}

/// Asks a rank whether it is in a call. If it is not, it stands still from now on. @return false if there is nobody
/// to ask
bool Coordinator::ask(std::uint32_t rank, VirtualState from) {
  VirtualPage& page = time_.page(rank);
  const auto process = static_cast<pid_t>(page.process.load());
  const auto thread = static_cast<pid_t>(page.thread.load());
  const auto state_to_be = seats_[rank].is_deaf ? VirtualState::kFrozen : VirtualState::kAsked;
  auto before = static_cast<std::uint32_t>(from);
  if (!page.state.compare_exchange_strong(before, static_cast<std::uint32_t>(state_to_be))) return false;
  if (seats_[rank].is_deaf || syscall(SYS_tgkill, process, thread, kFreezeSignal) == 0) return true;
  // The thread has ended, and no other one has called since.
  auto asked = static_cast<std::uint32_t>(VirtualState::kAsked);
  page.state.compare_exchange_strong(asked, static_cast<std::uint32_t>(VirtualState::kAway));
  return false;
}

/// @return whether a rank that was asked stands still
bool Coordinator::await_answer(std::uint32_t rank, VirtualState from) {
  VirtualPage& page = time_.page(rank);
  const auto process = static_cast<pid_t>(page.process.load());
  const auto thread = static_cast<pid_t>(page.thread.load());
  const std::uint64_t began_ns = monotonic_ns();
  std::uint64_t cpu_ns = used_cpu_ns(process);
  Lasting silence(kMostOfLookNs);
  bool is_silent = false;
  while (!is_silent && state(rank) == VirtualState::kAsked && !seats_[rank].ended.load() && !stopping_.load() &&
         monotonic_ns() - began_ns < options_.hang_ns) {
    wait_for_news(kPauseNs);
    // Whoever has neither slept nor run meanwhile has had no core to answer.
    const bool had_a_chance = std::exchange(cpu_ns, used_cpu_ns(process)) != cpu_ns || is_asleep(process, thread);
    is_silent = had_a_chance && silence.look(true, monotonic_ns()) > kAnswerNs;
  }
  // One that takes no signals goes on, beside the others.
  auto asked = static_cast<std::uint32_t>(VirtualState::kAsked);
  if (page.state.compare_exchange_strong(asked, static_cast<std::uint32_t>(VirtualState::kFrozen)) && is_silent) {
    seats_[rank].is_deaf = true;
    if (!options_.is_quiet) {
      std::fprintf(stderr,
                   "ptl_sim: rank %u has a handler of its own for SIGURG, or blocks it, and cannot be stopped while it "
                   "polls its memory: its times are a matter of luck\n",
                   rank);
    }
  }
  if (state(rank) != VirtualState::kFrozen) {
    // In the middle of a call before its first turn it has no turn either.
    auto running = static_cast<std::uint32_t>(VirtualState::kRunning);
    if (from == VirtualState::kAway)
      page.state.compare_exchange_strong(running, static_cast<std::uint32_t>(VirtualState::kAway));
    return false;
  }
  note_outsider(rank, false);
  frozen_.insert(rank);
  return true;
}

/// @return false if it has ended meanwhile
bool Coordinator::let_go_on(std::uint32_t rank, VirtualState as) {
  VirtualPage& page = time_.page(rank);
  frozen_.erase(rank);
  auto frozen = static_cast<std::uint32_t>(VirtualState::kFrozen);
  if (!page.state.compare_exchange_strong(frozen, static_cast<std::uint32_t>(as))) return false;
  futex_wake(page.state);
  note_outsider(rank, as == VirtualState::kAway);
  return true;
}

/// Nothing is left that those who seem to poll their memory could wait for: they may compute after all.
bool Coordinator::thaw() {
  bool thawed = false;
  for (const std::uint32_t rank : std::set<std::uint32_t>(frozen_)) {
    if (let_go_on(rank, VirtualState::kAway)) thawed = true;
  }
  return thawed;
}

}  // namespace portofu::tools
