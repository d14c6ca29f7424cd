#pragma once
// What a thread does when it has looked for work many times and found none: spin, then yield, then sleep. How long it
// spins is learned: where a yield brings another process onto the core, spinning only keeps that process waiting. And
// whether a look is worth it that comes right behind one that found something.

#include <algorithm>
#include <cstdint>
#include <utility>

#include "engine/run/wait_limits.h"

namespace portofu {

/// What to do before the next look. To stay away is to spin longer, where other threads share the duty. To pass time is
/// to let virtual time go on. To look why is what a loop does that has lasted (stall_watch.h).
enum class IdleAdvice : std::uint8_t { kSpin, kStayAway, kYield, kSleep, kPassTime, kLookWhy };

/// One streak of empty looks. Times in nanoseconds, from any monotonic clock.
class IdleStreak {
 public:
  /// @param spin_count         empty looks before the first yield, where the core is ours alone
  /// @param sleep_after_ns     sleeping is advised in a streak that has been yielding for as long as this,
  /// @param sleep_after_looks  and that has as many empty looks as this
  IdleStreak(std::uint32_t spin_count, std::uint64_t sleep_after_ns, std::uint64_t sleep_after_looks = 0)
      : most_spins_(spin_count),
        spins_(spin_count),
        sleep_after_ns_(sleep_after_ns),
        sleep_after_looks_(sleep_after_looks) {}

  /// Something was found, or the thread did something else meanwhile.
  void reset() {
    empty_looks_ = 0;
    yielding_ = false;
  }

  /// One more empty look.
  /// @param now  called only when the time matters
  template <class Now>
  IdleAdvice next(Now&& now) {
    if (++empty_looks_ <= spins_ && !yielding_) return IdleAdvice::kSpin;
    const std::uint64_t now_ns = now();
    if (!yielding_) began_ns_ = now_ns;
    yielding_ = true;
    const bool is_long = now_ns - began_ns_ >= sleep_after_ns_ && empty_looks_ > sleep_after_looks_;
    return is_long ? IdleAdvice::kSleep : IdleAdvice::kYield;
  }

  /// A look before which the thread stayed away takes as long as several.
  void note_stay_away() { empty_looks_ += kLooksAway; }

  /// Tells how long a yield took: a long one let somebody else run, so the core is shared. A short one says little: the
  /// kernel may go on with whoever yields while others wait, if it owes it time, as to processes that have just begun.
  /// So it takes kShortYields in a row until there is more spinning again.
  /// @return whether it let somebody else run
  bool learn_from_yield(std::uint64_t took_ns) {
    const bool shared = took_ns > kSharedYieldNs;
    if (shared) {
      spins_ = spins_ / 2 < kFewestSpins ? kFewestSpins : spins_ / 2;
      short_yields_ = 0;
    } else if (spins_ < most_spins_ && ++short_yields_ == kShortYields) {
      spins_ = spins_ * 2 > most_spins_ ? most_spins_ : spins_ * 2;
      short_yields_ = 0;
    }
    return shared;
  }

  /// What was learned, to begin another streak with.
  std::uint32_t spins() const { return spins_; }
  void set_spins(std::uint32_t spins) { spins_ = spins; }

  /// Past its spins: the next advice is to yield or to sleep.
  bool is_yielding() const { return yielding_; }

  /// How long this streak has been yielding.
  std::uint64_t yielding_ns(std::uint64_t now_ns) const { return yielding_ ? now_ns - began_ns_ : 0; }

 private:
  std::uint32_t most_spins_;         ///< Setting.
  std::uint32_t spins_;              ///< Learned: empty looks before the first yield of a streak.
  std::uint32_t short_yields_ = 0;   ///< In a row, since `spins_` last changed.
  std::uint64_t empty_looks_ = 0;    ///< In this streak.
  bool yielding_ = false;            ///< This streak is past its spins.
  std::uint64_t sleep_after_ns_;     ///< Setting.
  std::uint64_t sleep_after_looks_;  ///< Setting.
  std::uint64_t began_ns_ = 0;       ///< When yielding began.
};

/// Whether to look once more behind a look that found something. A caller that takes what there is until there is no
/// more has to hear "no more" before it can go on, and the look that says so takes half as long as a message. So once
/// such second looks have been barren for a while, they are left out, until it shows that one would have found
/// something: by the look behind it, or by one second look in kLeftOut + 1, which is made nevertheless.
class SecondLook {
 public:
  /// A look has found what its caller asked for: the next one is a second look.
  void expect() { due_ = true; }

  /// The caller has done something else: no second look is due, and what comes next says nothing about the last one.
  void forget() { due_ = skipped_ = false; }

  /// To be asked before each look. @return whether to leave it out
  bool skip() {
    second_ = std::exchange(due_, false);
    if (!second_ || barren_ < kBarren || left_out_++ % (kLeftOut + 1) == kLeftOut) return false;
    skipped_ = true;
    return true;
  }

  /// Behind a look that was not left out. @param found  what its caller had asked for
  void learn(bool found) {
    if (second_ || skipped_) barren_ = found ? 0 : std::min(barren_ + 1, kBarren);
    skipped_ = false;
  }

 private:
  std::uint32_t barren_ = 0;    ///< Second looks that found nothing, in a row; kBarren or more count as that.
  std::uint32_t left_out_ = 0;  ///< Second looks that were, or were made nevertheless, mod 2^32.
  bool due_ = false;            ///< The next look is a second one.
  bool second_ = false;         ///< This look is.
  bool skipped_ = false;        ///< One was left out, and none has come since.
};

}  // namespace portofu
