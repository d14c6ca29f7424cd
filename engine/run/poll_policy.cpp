#include "engine/run/poll_policy.h"

#include <algorithm>
#include <utility>

namespace portofu {

/// Whether the caller of an empty call has done something else since the one before.
/// @param gone_ns  time between the two, or, if it does not yield, since the last marked one
bool PollPolicy::is_away(std::uint64_t gone_ns, bool yielding, bool marked) {
  if (!yielding) return gone_ns > kTightLoopNs;
  if (gone_ns > std::max(kTightCallNs, rest_ns_ / 8)) ++aways_;
  const bool away = aways_ > kMostAways || gone_ns > std::max(kAwayNs, rest_ns_ / 8);
  if (marked || away) aways_ = 0;
  return away;
}

IdleAdvice PollPolicy::advise_poll(PollSigns& signs) {
  const bool yielding = streak_.is_yielding();
  const bool marked = ++polls_ % kPollsPerMark == 0;
  std::uint64_t now = 0;  // Not asked yet.
  if (marked || yielding) {
    now = signs.now_ns();
    // Threads that stay away at the same time push the mark beyond now.
    if (is_away(now > mark_ns_ ? now - mark_ns_ : 0, yielding, marked)) streak_.reset();
    mark_ns_ = now;
    if (marked && is_look_due(signs, now)) [[unlikely]]
      return IdleAdvice::kLookWhy;
  }
  IdleAdvice advice = streak_.next([&] { return now != 0 ? now : signs.now_ns(); });
  if (advice == IdleAdvice::kSpin) [[likely]]
    return advice;
  // What went at once, past the duty, was no idle time.
  const std::uint64_t uses = signs.lane_uses();
  if (uses != seen_lane_uses_) {
    seen_lane_uses_ = uses;
    streak_.reset();
    return IdleAdvice::kSpin;
  }
  if (advice == IdleAdvice::kSleep) advice = advise_old_loop(signs, now);
  if (marked || !yielding || (awaits_ && advice == IdleAdvice::kSleep)) awaits_ = signs.awaits_something();
  if (awaits_ && polls_ - search_mark_ > kPollsPerMark) return advice;
  // Perhaps another library's messages are what the loop is for, and ours is only asked, too.
  return marked || shares_core() ? IdleAdvice::kYield : IdleAdvice::kSpin;
}

/// A loop has found nothing for so long that it may sleep. What looks like a loop that waits may work for less than a
/// microsecond between two calls: its calls must not all rest.
IdleAdvice PollPolicy::advise_old_loop(PollSigns& signs, std::uint64_t now_ns) {
  // What a peer writes into mapped memory rings no bell: whoever waits for that and calls in between must not sleep.
  if (signs.is_heap_published()) return IdleAdvice::kYield;
  const std::uint64_t age_ns = streak_.yielding_ns(now_ns);
  sleep_ns_ = std::clamp(age_ns / 8, kShortestPollSleepNs, kLongestPollSleepNs);
  if (age_ns < kYoungLoopNs) return now_ns - awake_ns_ < sleep_ns_ ? IdleAdvice::kYield : IdleAdvice::kSleep;
  if (polls_ % kPollsPerMark != 0) return IdleAdvice::kSpin;
  const bool is_tight = now_ns - std::exchange(awake_ns_, now_ns) <= kTightLoopNs;
  return is_tight ? IdleAdvice::kSleep : IdleAdvice::kYield;
}

void PollPolicy::note_rest(IdleAdvice advice, std::uint64_t before_ns, std::uint64_t after_ns) {
  if (advice == IdleAdvice::kYield) {
    note_yield(after_ns - before_ns);
  } else {
    awake_ns_ = after_ns;
  }
  mark_ns_ = after_ns;
  rest_ns_ = std::min(after_ns - before_ns, kLongestPollSleepNs);  // Longer only where others had the core.
}

}  // namespace portofu
