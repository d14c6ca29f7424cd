// The rare ways through the duty: somebody else wants it, and how a thread becomes the favourite.

#include "engine/run/duty.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "engine/queue/clock.h"
#include "engine/queue/cpu.h"
#include "engine/queue/lost_thread.h"

namespace portofu {
namespace {

/// The lock whose word this thread has, or is about to have. Written before it wants the word and after it has given
/// it, so that a handler that interrupts it in between knows. nullptr: none.
__attribute__((tls_model("initial-exec"))) thread_local const DutyLock* wants_word_of = nullptr;

/// In a signal handler that has interrupted a call in one engine and calls in another one: that of the former.
__attribute__((tls_model("initial-exec"))) thread_local const DutyLock* outer_word_of = nullptr;

void want_word_of(const DutyLock* lock) {
  outer_word_of = wants_word_of;
  wants_word_of = lock;
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

void want_no_word() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  wants_word_of = outer_word_of;
  outer_word_of = nullptr;
}

/// Locks of this process that are there: of its engines, which are few. A simulation has more, in one thread.
constinit std::array<std::atomic<const DutyLock*>, 64> known_locks{};

/// The child of a fork has no engine, and its threads may have the thread pointers of those that were inside one.
[[maybe_unused]] const int fork_handler = pthread_atfork(nullptr, nullptr, [] {
  for (auto& place : known_locks) place.store(nullptr);
});

void pause_for(int pauses) {
  for (int i = 0; i < pauses; ++i) pause_cpu();
}

}  // namespace

DutyLock::DutyLock(std::uint32_t most_takes_to_favour)
    : may_favour_(register_thread_guard()), most_takes_to_favour_(most_takes_to_favour) {
  forget_thread_id();  // In a child of clone(2) it is that of the parent's thread.
  for (auto& place : known_locks) {
    const DutyLock* none = nullptr;
    if (place.compare_exchange_strong(none, this)) break;
  }
}

DutyLock::~DutyLock() {
  for (auto& place : known_locks) {
    const DutyLock* self = this;
    if (place.compare_exchange_strong(self, nullptr)) break;
  }
}

bool DutyLock::has_this_thread_one() {
  const auto thread = static_cast<std::uint32_t>(this_thread_id());
  return std::any_of(known_locks.begin(), known_locks.end(), [thread](const auto& place) {
    const DutyLock* lock = place.load();
    if (lock == nullptr) return false;
    return (lock->word_.load(std::memory_order_relaxed) & ~kWanted) == thread ||
           lock->is_favourite_inside(this_thread());
  });
}

void DutyLock::stay_away() { pause_for(kPausesAway); }

bool DutyLock::wait_while(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  const timespec look{0, kLostThreadLookNs};
  return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, &look, nullptr, 0) == 0 || errno != ETIMEDOUT;
}

void DutyLock::wait_shortly_while(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  const timespec look{0, kDutyLookNs};
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, &look, nullptr, 0);
}

void DutyLock::wake(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void DutyLock::take_unfavoured(std::uintptr_t self) {
  want_word_of(this);
  take_word();
  if (favourite_.load(std::memory_order_relaxed) != 0) {
    end_favour();
    // A guest comes when the favourite stays away, which says nothing of others.
    if (self != 0) judge_favour();
  }
  favoured_ = false;
  if (former_.load(std::memory_order_relaxed) == self) former_.store(0, std::memory_order_relaxed);
  const pid_t thread = self != 0 ? this_thread_id() : 0;
  takes_ = last_ == thread ? takes_ + 1 : 0;
  last_ = thread;
  if (self != 0) note_thread(thread);
  if (takes_ < takes_to_favour_ || self == 0 || !may_favour_) return;
  if (former_.load(std::memory_order_relaxed) != 0) return;
  // From now on this thread is inside as the favourite, and the word is free for whoever wants to end that.
  takes_ = 0;
  favoured_ns_ = monotonic_ns();
  favoured_ = true;
  favourite_id_ = thread;
  inside_.store(1, std::memory_order_relaxed);
  favourite_.store(self, std::memory_order_relaxed);
  give_word();
}

/// A thread that is no guest has taken it.
void DutyLock::note_thread(pid_t self) {
  if (last_thread_ == self) {
    if (takes_alone_ < kTakesAlone) ++takes_alone_;
    return;
  }
  if (last_thread_ != 0) takes_alone_ = 0;
  last_thread_ = self;
}

void DutyLock::give_word() {
  if ((word_.exchange(kFree, std::memory_order_seq_cst) & kWanted) != 0) wake(word_);
  want_no_word();
}

bool DutyLock::is_held_by_this_thread() const {
  return wants_word_of == this || outer_word_of == this || is_favourite_inside(this_thread());
}

/// While somebody is inside as the favourite there is no other one, also when the favour has been ended meanwhile.
bool DutyLock::is_favourite_inside(std::uintptr_t self) const {
  if (inside_.load(std::memory_order_relaxed) == 0) return false;
  return favourite_.load(std::memory_order_relaxed) == self || former_.load(std::memory_order_relaxed) == self;
}

bool DutyLock::take_until(std::uint64_t deadline_ns) {
  if (is_interrupted()) return false;
  want_word_of(this);
  if (!take_word_until(deadline_ns)) {
    want_no_word();
    return false;
  }
  if (favourite_.load(std::memory_order_relaxed) != 0 && !end_favour_until(deadline_ns)) {
    give_word();
    return false;
  }
  favoured_ = false;
  takes_ = 0;
  last_ = 0;
  return true;
}

void DutyLock::take_word() {
  const auto self = static_cast<std::uint32_t>(this_thread_id());
  int paused = 0;
  for (int pauses = kFirstPauses; paused <= kPausesToSleep; pauses = std::min(2 * pauses, kMostPauses)) {
    std::uint32_t expected = kFree;
    if (word_.load(std::memory_order_relaxed) == kFree &&
        word_.compare_exchange_strong(expected, self, std::memory_order_acquire, std::memory_order_relaxed)) {
      return;
    }
    pause_for(pauses);
    paused += pauses;
  }
  const auto holder = [this] { return static_cast<pid_t>(word_.load(std::memory_order_relaxed) & ~kWanted); };
  while (const std::uint32_t seen = want_word(self)) {
    if (!wait_while(word_, seen)) expect_living(holder);
  }
}

/// Takes the word if it is free. Others may want it, too, so whoever comes to sleep here gives it as one that is
/// wanted.
/// @return kFree: it is ours; else what it is now, which says that it is wanted
std::uint32_t DutyLock::want_word(std::uint32_t self) {
  std::uint32_t seen = word_.load(std::memory_order_relaxed);
  for (;;) {
    const std::uint32_t wanted = (seen == kFree ? self : seen) | kWanted;
    if (seen == wanted) return seen;
    if (word_.compare_exchange_weak(seen, wanted, std::memory_order_acquire, std::memory_order_relaxed)) {
      return seen == kFree ? kFree : wanted;
    }
  }
}

/// The word is ours. Bounded by one call or one cycle of the favourite.
void DutyLock::end_favour() {
  former_.store(favourite_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  favourite_.store(0, std::memory_order_seq_cst);
  before_rare_look_at_threads();
  // Acquire: partner is leave_favoured.
  for (int i = 0; inside_.load(std::memory_order_acquire) != 0; ++i) {
    if (i < kPausesForFavourite) {
      pause_cpu();
    } else if (!wait_while(inside_, 1)) {
      expect_living([this] { return inside_.load(std::memory_order_acquire) != 0 ? favourite_id_ : 0; });
    }
  }
}

/// Another thread has ended the favour.
void DutyLock::judge_favour() {
  const bool was_short = monotonic_ns() - favoured_ns_ < kShortFavourNs;
  takes_to_favour_ = was_short ? std::min(takes_to_favour_ * 2, most_takes_to_favour_)
                               : std::max(takes_to_favour_ / 2, kTakesToFavour);
}

bool DutyLock::take_word_until(std::uint64_t deadline_ns) {
  const auto self = static_cast<std::uint32_t>(this_thread_id());
  while (const std::uint32_t seen = want_word(self)) {
    if (monotonic_ns() >= deadline_ns) return false;
    wait_shortly_while(word_, seen);
  }
  return true;
}

/// As end_favour. If the favourite does not leave in time, it has its favour back: it may come again.
bool DutyLock::end_favour_until(std::uint64_t deadline_ns) {
  const std::uintptr_t favourite = favourite_.load(std::memory_order_relaxed);
  const std::uintptr_t before = former_.load(std::memory_order_relaxed);
  former_.store(favourite, std::memory_order_relaxed);
  favourite_.store(0, std::memory_order_seq_cst);
  before_rare_look_at_threads();
  while (inside_.load(std::memory_order_acquire) != 0) {  // Acquire: partner is leave_favoured.
    if (monotonic_ns() >= deadline_ns) {
      favourite_.store(favourite, std::memory_order_relaxed);
      former_.store(before, std::memory_order_relaxed);
      return false;
    }
    wait_shortly_while(inside_, 1);
  }
  return true;
}

}  // namespace portofu
