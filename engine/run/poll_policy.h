#pragma once
// What a loop of non-blocking calls does between two of them. Such a loop is a spin loop: it should yield where others
// need the core, and sleep now and then once it has waited long, but not if it does something else in between. In:
// what happened (looked, found, link given, searched, yielded, slept). Out: advice. It has no clock of its own and
// asks the world only through PollSigns, so tests own time. engine/doc/waiting.md has the rules in words.

#include <atomic>
#include <cstdint>

#include "engine/run/idle.h"
#include "engine/run/stall_watch.h"
#include "engine/run/wait_limits.h"

namespace portofu {

/// What the policy may ask of the world, on duty, once a loop has found nothing for a while.
class PollSigns {
 public:
  virtual std::uint64_t now_ns() = 0;
  /// Uses of memory of peers that went past the duty, since ever.
  virtual std::uint64_t lane_uses() = 0;
  /// @return true if something is awaited that the engine would see
  virtual bool awaits_something() = 0;
  /// @return true if peers may write to memory of this process without ringing a bell
  virtual bool is_heap_published() = 0;

 protected:
  ~PollSigns() = default;
};

/// All functions on duty, but shares_core.
class PollPolicy {
 public:
  /// @param spin_count      PORTOFU_SPIN
  /// @param sleep_after_us  PORTOFU_SLEEP_AFTER_US
  /// @param stall_ns        PORTOFU_STALL_S, or StallWatch::kNever
  PollPolicy(std::uint32_t spin_count, std::uint64_t sleep_after_us, std::uint64_t stall_ns = StallWatch::kNever)
      : streak_(spin_count, sleep_after_us * 1000 * kPollPatience, kFewestPolls), stall_watch_(stall_ns) {}

  // ---- What happened

  /// The caller starts something, so it is not one that only waits: what it waits for between its looks may come past
  /// the engine.
  void note_start() {
    ++starts_;
    streak_.reset();
    second_look_.forget();
  }
  /// A wait got what it waited for, or a search found something.
  void note_end() { streak_.reset(); }
  /// A cycle has done something.
  void note_work() { ++work_cycles_; }
  /// A call has what it looked for. What was there before, or is the caller's own doing, like the end of a search, is
  /// no end of waiting.
  void note_found() {
    if (found_cycles_ == work_cycles_) return;
    found_cycles_ = work_cycles_;
    streak_.reset();
  }
  /// A call looks for packets.
  void note_look() { links_ = 0; }
  /// The look of a call is over. @param found  what its caller had asked for
  void note_second_look(bool found) {
    second_look_.learn(found);
    if (found) second_look_.expect();
  }

  // ---- What to do

  /// Asked before a look. @param gave_link  the event before it was LINK, so the caller is posting entries, perhaps a
  /// window of them, and a message that is taken now finds what is still to be posted missing
  /// @return true if the look is left out
  bool skips_look(bool gave_link) {
    if (gave_link && links_ < kMostLinks) {
      ++links_;
      return true;
    }
    return second_look_.skip();
  }
  /// The calls that follow soon are of a loop that waits for something elsewhere, too: it never sleeps.
  void note_other_engines() { search_mark_ = polls_; }
  /// Asked behind the empty look of a call.
  IdleAdvice advise_poll(PollSigns& signs);
  /// The same for a search. A loop of searches never sleeps: as often as one waits, another one is only there so that
  /// messages are taken.
  IdleAdvice advise_search(PollSigns& signs) {
    search_mark_ = polls_;
    return advise_poll(signs);
  }
  /// Behind an empty look, now and then: whether its caller has to look why. What a call finds that was there before,
  /// or is the caller's own doing, like the end of a search, is no end of waiting here either.
  /// @param lasted_ns  what the caller did up to now
  bool is_look_due(PollSigns& signs, std::uint64_t now_ns, std::uint64_t lasted_ns = 0) {
    if (!stall_watch_.is_on()) return false;
    return stall_watch_.is_look_due(now_ns, work_cycles_ + starts_ + signs.lane_uses(), lasted_ns);
  }
  /// A caller leaves to wait at a file descriptor. @return false if it only looks there: it was back at once the last
  /// time, and nothing had happened
  bool is_sleeper(std::uint64_t now_ns) {
    const bool was_away = now_ns - left_ns_ >= kShortestAwayNs;
    only_looks_ = !was_away && (only_looks_ || left_cycles_ == work_cycles_);
    left_ns_ = now_ns;
    left_cycles_ = work_cycles_;
    return !only_looks_;
  }
  StallWatch& stall_watch() { return stall_watch_; }
  /// How long a call sleeps that is advised to.
  std::uint64_t sleep_ns() const { return sleep_ns_; }

  // ---- What came of it

  /// A call that was told to spin stays away from the duty. What it does in that time is nothing else.
  void note_stay_away() {
    streak_.note_stay_away();
    mark_ns_ += kStayAwayNs;
  }
  /// A yield of any thread of the process.
  void note_yield(std::uint64_t took_ns) {
    shares_core_.store(streak_.learn_from_yield(took_ns), std::memory_order_relaxed);
  }
  /// A call has rested as advised.
  void note_rest(IdleAdvice advice, std::uint64_t before_ns, std::uint64_t after_ns);

  /// Empty looks before the first yield, as learned, for other streaks of this process.
  std::uint32_t spins() const { return streak_.spins(); }
  /// Whether somebody else ran when a thread of this process yielded last. Any thread.
  bool shares_core() const { return shares_core_.load(std::memory_order_relaxed); }

 private:
  bool is_away(std::uint64_t gone_ns, bool yielding, bool marked);
  IdleAdvice advise_old_loop(PollSigns& signs, std::uint64_t now_ns);

  IdleStreak streak_;
  SecondLook second_look_;
  std::uint64_t work_cycles_ = 0;     ///< Cycles that did something.
  std::uint64_t starts_ = 0;          ///< Calls that started something.
  std::uint64_t found_cycles_ = 0;    ///< `work_cycles_` when a call last found something.
  std::uint64_t mark_ns_ = 0;         ///< Time of the last empty call that was looked at.
  std::uint64_t rest_ns_ = 0;         ///< How long the last call rested.
  std::uint64_t awake_ns_ = 0;        ///< End of the last sleep, or a later mark of an old loop.
  std::uint64_t sleep_ns_ = 0;        ///< How long one that is advised to sleep does so.
  std::uint64_t seen_lane_uses_ = 0;  ///< PollSigns::lane_uses when last asked.
  std::uint32_t aways_ = 0;           ///< Since the last mark: calls before which the caller was away.
  std::uint32_t polls_ = 0;           ///< Empty calls, mod 2^32.
  std::uint32_t search_mark_ = 0;     ///< `polls_` when a search last found nothing.
  std::uint32_t links_ = 0;           ///< Looks left out behind a LINK, in a row.
  std::uint64_t left_ns_ = 0;         ///< When a caller last left to wait at a file descriptor.
  std::uint64_t left_cycles_ = 0;     ///< `work_cycles_` then.
  bool only_looks_ = false;           ///< See is_sleeper.
  bool awaits_ = false;               ///< PollSigns::awaits_something when last asked.
  std::atomic<bool> shares_core_{false};
  StallWatch stall_watch_;
};

}  // namespace portofu
