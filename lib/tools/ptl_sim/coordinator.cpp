#include "lib/tools/ptl_sim/coordinator.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "engine/door/inspection.h"

namespace portofu::tools {
namespace {

/// In virtual time, while ranks do nothing but look: the job hangs.
constexpr std::uint64_t kIdlePs = 3600'000'000'000'000;

}  // namespace

/// Arrivals before departures, and those who have left between, so that what leaves because of an arrival meets the
/// network as it is then.
bool Coordinator::Happening::operator>(const Happening& other) const {
  return std::tie(time_ps, what, rank, report.number) >
         std::tie(other.time_ps, other.what, other.rank, other.report.number);
}

Coordinator::Coordinator(CoordinatorOptions options, const SharedTime& time, sim::Network& network)
    : options_(options),
      time_(time),
      network_(network),
      seats_(options.rank_count),
      times_(options.rank_count),
      complaint_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  history_.ranks.resize(options.rank_count);
  for (std::uint32_t rank = 0; rank < options.rank_count; ++rank) outsiders_.insert(rank);
}

Coordinator::~Coordinator() {
  end();
  if (complaint_fd_ >= 0) close(complaint_fd_);
}

// ---- What the job tells ---------------------------------------------------------------------------------------------

void Coordinator::begin() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Coordinator::rank_ended(int rank) {
  if (options_.has_launcher) {
    launcher_ended_.store(true);
    for (Seat& seat : seats_) seat.ended.store(true);
  } else {
    seats_[static_cast<std::size_t>(rank)].ended.store(true);
  }
  time_.header().bell.fetch_add(1);
  futex_wake(time_.header().bell);
}

void Coordinator::rank_meets(int rank, bool waits) {
  if (!options_.has_launcher) seats_[static_cast<std::size_t>(rank)].meets.store(waits);
}

std::string Coordinator::complaint() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return complaint_;
}

void Coordinator::end() {
  if (!thread_.joinable()) return;
  stopping_.store(true);
  time_.header().bell.fetch_add(1);
  futex_wake(time_.header().bell);
  thread_.join();
}

std::uint64_t Coordinator::end_ps() const {
  std::uint64_t end_ps = now_ps_;
  for (const RankTimes& one : times_) end_ps = std::max(end_ps, one.clock_ps);
  return end_ps;
}

std::vector<ProcessId> Coordinator::ids() const {
  std::vector<ProcessId> ids;
  for (std::uint32_t rank = 0; rank < seats_.size(); ++rank)
    ids.push_back({time_.page(rank).nid.load(), time_.page(rank).pid.load()});
  return ids;
}

void Coordinator::fail(const std::string& why) {
  if (failed_) return;
  failed_ = true;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    complaint_ = why;
  }
  const std::uint64_t one = 1;
  if (write(complaint_fd_, &one, sizeof one) < 0) return;  // It counts already.
}

// ---- The loop -------------------------------------------------------------------------------------------------------

VirtualState Coordinator::state(std::uint32_t rank) const {
  return static_cast<VirtualState>(time_.page(rank).state.load(std::memory_order_acquire));
}

bool Coordinator::has_begun() const {
  std::uint32_t rank = 0;
  while (rank < seats_.size() && time_.page(rank).process.load() == 0) ++rank;
  return rank < seats_.size();
}

bool Coordinator::has_all_ended() const {
  return std::all_of(seats_.begin(), seats_.end(), [](const Seat& seat) { return seat.ended.load(); });
}

/// @return false if nothing has come within that time
bool Coordinator::wait_for_news(std::uint64_t timeout_ns) {
  auto& bell = time_.header().bell;
  if (bell.load() == seen_bell_) futex_wait(bell, seen_bell_, timeout_ns);
  if (std::exchange(seen_bell_, bell.load()) != seen_bell_) return true;
  if (options_.has_launcher) look_for_ended();
  return false;
}

/// Nobody tells of the ends of ranks whose parent is somebody else.
void Coordinator::look_for_ended() {
  const std::uint64_t now_ns = monotonic_ns();
  if (now_ns - looked_for_ended_ns_ < kPauseNs) return;
  looked_for_ended_ns_ = now_ns;
  for (std::uint32_t rank = 0; rank < seats_.size(); ++rank) look_for_end_of(rank);
}

/// Another program may be the rank then.
void Coordinator::look_for_end_of(std::uint32_t rank) {
  const auto process = static_cast<pid_t>(time_.page(rank).process.load());
  if (process == 0 || !may_others_follow()) return;
  Seat& seat = seats_[rank];
  if (kill(process, 0) != 0 && errno == ESRCH) {
    seat.ended_process = process;
    seat.ended.store(true);
  } else if (seat.ended.load() && process != seat.ended_process) {
    seat.ended.store(false);
    note_outsider(rank, true);
  }
}

void Coordinator::run() {
  while (wait_for_start()) {
    order();
    while (has_all_ended() && may_others_follow() && !stopping_.load() && !failed_) wait_for_news(kPauseNs);
    if (failed_ || stopping_.load() || !may_others_follow()) break;
    follows_ = true;
  }
  for (std::uint32_t rank = 0; rank < seats_.size(); ++rank) {
    drain(rank);
    look_at(rank);
    count_last_look(rank);
  }
}

/// A rank that has seen in its memory what it waited for, and has called nothing since, has not counted that wait.
void Coordinator::count_last_look(std::uint32_t rank) {
  RankTimes& times = times_[rank];
  const std::uint64_t granted_ps = time_.page(rank).granted_ps.load(std::memory_order_relaxed);
  if (granted_ps <= times.clock_ps) return;
  const auto memory = static_cast<std::size_t>(VirtualSpent::kMemory);
  auto& spans = history_.ranks[rank].spans;
  if (options_.keeps_history && history_.has_room()) {
    const std::uint64_t from_ps = spans.empty() ? 0 : spans.back().to_ps;
    if (from_ps < granted_ps) spans.push_back({from_ps, granted_ps, static_cast<std::uint8_t>(memory), 0, 0, 0});
  }
  times.spent_ps[memory] += granted_ps - times.clock_ps;
  ++times.count[memory];
  times.clock_ps = granted_ps;
}

void Coordinator::order() {
  std::uint64_t idle_since_ns = 0;
  bool has_looked_again = false;
  while (!stopping_.load() && !failed_) {
    look_at_outsiders();
    if (step()) {
      idle_since_ns = 0;
      has_looked_again = false;
      continue;
    }
    if (failed_ || has_all_ended()) return;
    if (look_at_all()) continue;
    if (!may_somebody_come()) {
      // Somebody may have ended since it was looked at: it has sent something before, or it was the last one.
      if (!std::exchange(has_looked_again, true)) continue;
      fail("the program hangs at " + std::to_string(now_ps_ / 1000) + " ns of virtual time: " + who_waits());
      return;
    }
    has_looked_again = false;
    if (wait_for_news(kPauseNs)) idle_since_ns = 0;
    const std::uint64_t now_ns = monotonic_ns();
    if (idle_since_ns == 0) idle_since_ns = now_ns;
    if (now_ns - idle_since_ns < options_.hang_ns) continue;
    fail_after_hang();
  }
}

void Coordinator::fail_after_hang() {
  fail("nothing has happened for " + std::to_string(options_.hang_ns / 1'000'000'000) + " s: " + who_waits());
}

/// Of several threads of a rank one may have said what it waits for when nobody looked. @return whether some rank wants
/// to go on at a time
bool Coordinator::look_at_all() {
  for (std::uint32_t rank = 0; rank < seats_.size(); ++rank) look_at(rank);
  return !places_.empty();
}

/// Lets the earliest thing happen. @return false if there is none
bool Coordinator::step() {
  const bool has_rank = !places_.empty();
  if (!happenings_.empty() && (!has_rank || happenings_.top().time_ps <= places_.begin()->first)) {
    quiet_since_ns_ = 0;
    vain_turns_ = 0;
    vain_factor_ = 1;
    last_ = {};
    const Happening next = happenings_.top();
    happenings_.pop();
    now_ps_ = std::max(now_ps_, next.time_ps);
    if (next.what == What::kDeparture) depart(next);
    if (next.what == What::kLeft) leave(next);
    if (next.what == What::kLost) lose(next);
    if (next.what == What::kArrival) arrive(next);
    return true;
  }
  if (!has_rank) return share_time() || thaw();
  last_ = {};
  const auto [time_ps, rank] = *places_.begin();
  if (state(rank) == VirtualState::kPolling && is_quiet()) {
    if (thaw()) return true;
    const bool somebody_away = may_somebody_come();
    if (somebody_away && !wait_for_news(kPauseNs)) look_at_outsiders();
    if (time_ps > last_event_ps_ + kIdlePs && !somebody_away) {
      look_at_outsiders();  // Somebody may have ended since, and has sent something before.
      if (!is_quiet()) return true;
      fail("the program hangs: nothing has been under way for an hour of virtual time: " + who_waits());
      return false;
    }
    if (quiet_since_ns_ == 0) quiet_since_ns_ = monotonic_ns();
    if (monotonic_ns() - quiet_since_ns_ > options_.hang_ns) {
      fail_after_hang();
      return false;
    }
  } else {
    quiet_since_ns_ = 0;
  }
  if (let_frozen_compute()) return true;
  grant(rank, time_ps);
  return true;
}

/// Whether somebody is away, who may still come and send something; or has died under a launcher, which is about to end
/// the others.
bool Coordinator::may_somebody_come() const {
  if (std::any_of(outsiders_.begin(), outsiders_.end(), [this](auto rank) { return !seats_[rank].ended.load(); }))
    return true;
  for (std::uint32_t rank = 0; rank < seats_.size() && options_.has_launcher; ++rank) {
    if (!seats_[rank].ended.load() || time_.page(rank).process.load() == 0) continue;
    if (state(rank) != VirtualState::kGone && state(rank) != VirtualState::kRetired) return true;
  }
  return false;
}

/// Whether nothing is under way, and all that want to go on only look again: nothing has arrived for them.
bool Coordinator::is_quiet() const { return happenings_.empty() && busy_places_ == 0; }

void Coordinator::set_place(std::uint32_t rank, std::uint64_t time_ps, std::uint32_t waker) {
  Seat& seat = seats_[rank];
  seat.waker = waker;
  if (seat.place_ps != kNeverPs) places_.erase({seat.place_ps, rank});
  if (seat.is_busy) --busy_places_;
  seat.place_ps = time_ps;
  seat.is_busy = time_ps != kNeverPs && (seat.told || state(rank) != VirtualState::kPolling);
  if (seat.is_busy) ++busy_places_;
  if (time_ps != kNeverPs) places_.insert({time_ps, rank});
}

/// Finds out when a rank that does not run wants to go on.
void Coordinator::look_at(std::uint32_t rank) {
  Seat& seat = seats_[rank];
  const VirtualPage& page = time_.page(rank);
  const VirtualState now = state(rank);
  const std::uint64_t clock_ps = std::min(page.clock_ps.load(), kLatestPs);
  note_outsider(rank, now == VirtualState::kAway || now == VirtualState::kGone || now == VirtualState::kRunning ||
                          now == VirtualState::kRetired);
  RankTimes& times = times_[rank];
  times.clock_ps = std::max(times.clock_ps, clock_ps);
  for (std::size_t i = 0; i < kVirtualSpentCount; ++i) {
    times.spent_ps[i] = page.spent_ps[i].load(std::memory_order_relaxed);
    times.count[i] = page.count[i].load(std::memory_order_relaxed);
  }
  if (seat.ended.load()) return set_place(rank, kNeverPs);
  switch (now) {
    case VirtualState::kReady: return set_place(rank, clock_ps);
    case VirtualState::kWaiting:
    case VirtualState::kPolling: {
      const std::uint64_t until_ps = page.until_ps.load();
      return set_place(rank, until_ps == kNeverPs ? kNeverPs : std::clamp(until_ps, clock_ps, kLatestPs));
    }
    // When what it has sent has arrived, whatever time it is: who meets others past the library may say so late.
    case VirtualState::kLeaving:
      return set_place(rank, seat.under_way == 0 ? std::max(clock_ps, seat.arrived_ps) : kNeverPs);
    default: return set_place(rank, kNeverPs);
  }
}

/// Those who were away come back at the time that it is, and what they have sent leaves then. So does what one has sent
/// that has ended since.
void Coordinator::look_at_outsiders() {
  for (auto at = outsiders_.begin(); at != outsiders_.end();) {
    const std::uint32_t rank = *at++;  // Whoever has come back is none any more.
    if (time_.page(rank).process.load() == 0) continue;
    const bool has_ended = seats_[rank].ended.load();  // Asked first: it sends nothing after that.
    drain(rank);
    look_at(rank);
    if (has_ended) note_outsider(rank, false);
  }
}

void Coordinator::note_outsider(std::uint32_t rank, bool is_one) {
  if (is_one) {
    outsiders_.insert(rank);
  } else {
    outsiders_.erase(rank);
  }
}

std::string Coordinator::who_waits() const {
  std::string text;
  int told = 0;
  for (std::uint32_t rank = 0; rank < seats_.size(); ++rank) {
    if (seats_[rank].ended.load()) continue;
    if (++told > 8) {
      text += ", and others";
      break;
    }
    const auto says = [this, rank] {
      if (time_.page(rank).process.load() == 0) return "has not used the library";
      switch (state(rank)) {
        case VirtualState::kAway: return "is not in a call of the library";
        case VirtualState::kRunning: return "computes, or polls its memory";
        case VirtualState::kReady: return "wants to go on";
        case VirtualState::kWaiting: return "waits in a call";
        case VirtualState::kPolling: return "looks again and again";
        case VirtualState::kLeaving: return "has closed the library, and waits for what it has sent";
        case VirtualState::kAsked:
        case VirtualState::kFrozen: return "polls its memory";
        case VirtualState::kGone: return "has closed the library";
        case VirtualState::kRetired: return "is in MPI_Finalize";
      }
      return "is in no known state";
    };
    text += (text.empty() ? "rank " : ", rank ") + std::to_string(rank) + ' ' + says();
  }
  // Somebody may wait for what one of these has not done. Under a launcher nobody knows why they have ended.
  const auto ended = std::count_if(seats_.begin(), seats_.end(), [](const Seat& seat) { return seat.ended.load(); });
  if (ended == 0 || options_.has_launcher) return text;
  return text + "; " + std::to_string(ended) + (ended == 1 ? " rank has" : " ranks have") + " ended";
}

// ---- Turns ----------------------------------------------------------------------------------------------------------

void Coordinator::grant(std::uint32_t rank, std::uint64_t time_ps) {
  VirtualPage& page = time_.page(rank);
  const std::uint32_t waker = seats_[rank].waker;
  set_place(rank, kNeverPs);
  const bool is_frozen = frozen_.erase(rank) != 0;
  seats_[rank].told = false;
  if (is_frozen) try_as_poller(rank);
  // Whoever leaves may do so at an earlier time: it does nothing any more.
  const std::uint64_t from_ps = state(rank) == VirtualState::kLeaving ? time_ps : std::max(time_ps, now_ps_);
  if (time_ps < from_ps) ++times_[rank].late_calls;
  if (waker != kNoMessage && history_.has_room()) history_.ranks[rank].wakes.push_back({from_ps, waker});
  now_ps_ = std::max(now_ps_, from_ps);
  std::uint64_t horizon_ps = happenings_.empty() ? kNeverPs : happenings_.top().time_ps;
  if (!places_.empty()) horizon_ps = std::min(horizon_ps, places_.begin()->first);
  page.granted_ps.store(from_ps, std::memory_order_relaxed);
  page.horizon_ps.store(horizon_ps, std::memory_order_relaxed);
  page.is_quiet.store(is_quiet() && frozen_.empty() ? 1 : 0, std::memory_order_relaxed);
  page.state.store(static_cast<std::uint32_t>(VirtualState::kRunning), std::memory_order_release);
  page.turn.fetch_add(1, std::memory_order_seq_cst);
  futex_wake(page.turn);
  if (is_frozen) futex_wake(page.state);
  wait_for_turn_end(rank);
  drain(rank);
  look_at(rank);
}

}  // namespace portofu::tools
