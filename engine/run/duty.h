#pragma once
// The duty: the right to run an engine. Exactly one thread at a time holds it; whoever calls the API takes it for the
// length of the call, and the progress thread takes it when nobody calls. This is the one lock of the short path.
//
// A thread that takes it again and again, with nobody in between, becomes its *favourite*: it then says that it is
// inside by a plain store, and looks whether it still is the favourite by a plain load. No atomic exchange, and so no
// waiting until the stores of a packet have reached the peer's cache. Whoever else wants the duty ends the favour: it
// clears `favourite_` and waits until the favourite is outside. The two are the sides of an asymmetric guard
// (queue/asymmetric_guard.h): either the favourite sees the end of the favour, or it was inside before and is seen.
//
// A thread may be stopped between its first look and its store, and then store when the favour has long ended. That
// harms nobody as long as there is no new favourite, so there is none until the former one has come again.
//
// The end of a favour costs whoever ends it some microseconds, and each thread of the process an interrupt. Threads
// that share the duty would pay that again and again. So a favour that ended soon makes the next one dearer, up to a
// bound: they come to use the plain word. One that lasted makes it cheaper again.
//
// Whoever waits for the word looks at it ever more rarely. Each look takes its line away from the holder, and each
// change of holders takes all that the engine touches, some tens of lines, to another core; so it pays that the holder
// makes several calls in a row before the next one gets it. Whoever only looks and finds nothing leaves it to the
// others meanwhile (stay_away).
//
// A thread may end while it holds the duty, in a signal handler. What it had half made stays so. Whoever waits for it
// finds out within half a second, and ends the process (queue/lost_thread.h). One that unwinds does not give it back:
// run/unwinding.h ends the process before.

#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "engine/queue/asymmetric_guard.h"
#include "engine/run/wait_limits.h"

namespace portofu {

/// A lock that costs two stores and two loads for its favourite, one atomic exchange each way for others while nobody
/// else wants it, and sleeps in the kernel otherwise. Not recursive. Holders keep it for one call or one cycle of the
/// loop, never while they wait.
class DutyLock {
 public:
  /// @param most_takes_to_favour  how dear a favour may become; a test that wants many asks for kTakesToFavour
  explicit DutyLock(std::uint32_t most_takes_to_favour = kMostTakesToFavour);
  ~DutyLock();
  DutyLock(const DutyLock&) = delete;
  DutyLock& operator=(const DutyLock&) = delete;

  /// Whether the calling thread has the duty of some engine of this process (run/unwinding.h). Async-signal-safe.
  static bool has_this_thread_one();

  void take() {
    const std::uintptr_t self = this_thread();
    if (favourite_.load(std::memory_order_relaxed) == self) [[likely]] {
      say_before_look(inside_, 1);  // Partner: end_favour.
      if (favourite_.load(std::memory_order_relaxed) == self) [[likely]]
        return;
      leave_favoured();
    }
    take_unfavoured(self);
  }

  /// Takes it for a thread that ends the process or the engine, and so must not wait for who may never come back.
  /// @return false if it was not free before that time of monotonic_ns, or if this very thread holds it
  bool take_until(std::uint64_t deadline_ns);

  /// Whether a signal handler runs in this thread that has interrupted it while it held the duty, or waited for it:
  /// then it must not take the duty. Two loads, if nobody is inside.
  bool is_interrupted() const {
    if (inside_.load(std::memory_order_relaxed) == 0 && word_.load(std::memory_order_relaxed) == kFree) [[likely]]
      return false;
    return is_held_by_this_thread();
  }

  /// For a thread that must not become the favourite, because it may stay away for ever.
  void take_as_guest() { take_unfavoured(0); }

  /// On duty: whether another thread that is no guest had it a short while ago, and so may be waiting for it now.
  bool is_shared() const { return !favoured_ && takes_alone_ < kTakesAlone; }

  /// For a thread that has found nothing to do where others share the duty: waits for so long that one of them which
  /// works finds it free.
  static void stay_away();

  /// What was done on duty is visible to whoever takes it next. Whoever looked into a variable that a thread raised
  /// before that thread took the duty: either the raise is seen after this call, or that thread sees what was done.
  void give() {
    if (favoured_) [[likely]]
      return leave_favoured();
    give_word();
  }

  /// On duty: what it takes to become the favourite now.
  std::uint32_t takes_to_favour() const { return takes_to_favour_; }

 private:
  // The word: the TID of its holder, and whether somebody sleeps in the kernel, or is about to.
  static constexpr std::uint32_t kFree = 0;
  static constexpr std::uint32_t kWanted = 1u << 31;

  /// Tells living threads of this process apart. Never 0.
  static std::uintptr_t this_thread() { return reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer()); }

  /// The favourite goes outside. Whoever waits for that has cleared `favourite_` before.
  void leave_favoured() {
    say_before_look(inside_, 0, std::memory_order_release);
    if (favourite_.load(std::memory_order_relaxed) == 0) [[unlikely]]
      wake(inside_);
  }

  void take_unfavoured(std::uintptr_t self);
  void note_thread(pid_t self);
  void take_word();
  std::uint32_t want_word(std::uint32_t self);
  bool take_word_until(std::uint64_t deadline_ns);
  void give_word();
  void end_favour();
  bool end_favour_until(std::uint64_t deadline_ns);
  void judge_favour();
  bool is_held_by_this_thread() const;
  bool is_favourite_inside(std::uintptr_t self) const;
  /// @return false if that took kLostThreadLookNs
  static bool wait_while(std::atomic<std::uint32_t>& word, std::uint32_t value);
  static void wait_shortly_while(std::atomic<std::uint32_t>& word, std::uint32_t value);
  static void wake(std::atomic<std::uint32_t>& word);

  alignas(64) std::atomic<std::uintptr_t> favourite_{0};  ///< Thread; 0: nobody. Writer: whoever has `word_`.
  std::atomic<std::uint32_t> inside_{0};                  ///< 1: the favourite is inside, or looks whether it may.
  std::atomic<std::uint32_t> word_{kFree};                ///< Held by whoever holds the duty without favour.
  bool favoured_ = false;                   ///< On duty: the holder is the favourite, or was when it came.
  bool may_favour_ = false;                 ///< Constant: the guard works here.
  std::uint8_t takes_alone_ = kTakesAlone;  ///< Guarded by `word_`: takes of `last_thread_` since another one's.
  std::uint32_t takes_ = 0;                 ///< Guarded by `word_`: takes in a row of `last_`.
  const std::uint32_t most_takes_to_favour_;
  std::uint32_t takes_to_favour_ = kTakesToFavour;  ///< Guarded by `word_`: see judge_favour.
  std::uint64_t favoured_ns_ = 0;                   ///< Guarded by `word_`: when the last favour began.
  pid_t last_ = 0;                                  ///< Guarded by `word_`: who took it last; 0: a guest.
  pid_t last_thread_ = 0;                           ///< Guarded by `word_`: as last_, guests left out; 0: nobody yet.
  pid_t favourite_id_ = 0;                          ///< Guarded by `word_`: of the last favourite.
  std::atomic<std::uintptr_t> former_{0};  ///< Guarded by `word_`: the last favourite, until it has come again.
};
static_assert(sizeof(DutyLock) == 64);

}  // namespace portofu
