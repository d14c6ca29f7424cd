// The rare ways through the duty: somebody else wants it, and how a thread becomes the favourite.

#include "engine/duty.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/queue/cpu.h"
#include "engine/queue/membarrier.h"

namespace portofu {

DutyLock::DutyLock() : may_favour_(register_private_barrier()) {}

void DutyLock::wait_while(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

void DutyLock::wake(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void DutyLock::take_unfavoured(std::uintptr_t self) {
  take_word();
  if (favourite_.load(std::memory_order_relaxed) != 0) end_favour();
  favoured_ = false;
  if (former_ == self) former_ = 0;
  takes_ = last_ == self ? takes_ + 1 : 0;
  last_ = self;
  if (takes_ < kTakesToFavour || self == 0 || former_ != 0 || !may_favour_) return;
  // From now on this thread is inside as the favourite, and the word is free for whoever wants to end that.
  takes_ = 0;
  favoured_ = true;
  inside_.store(1, std::memory_order_relaxed);
  favourite_.store(self, std::memory_order_relaxed);
  if (word_.exchange(kFree, std::memory_order_seq_cst) == kHeldAndWanted) wake(word_);
}

void DutyLock::take_word() {
  for (int i = 0; i <= kSpins; ++i) {
    std::uint32_t expected = kFree;
    if (word_.load(std::memory_order_relaxed) == kFree &&
        word_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire, std::memory_order_relaxed)) {
      return;
    }
    pause_cpu();
  }
  while (word_.exchange(kHeldAndWanted, std::memory_order_acquire) != kFree) wait_while(word_, kHeldAndWanted);
}

/// The word is ours. Bounded by one call or one cycle of the favourite.
void DutyLock::end_favour() {
  former_ = favourite_.load(std::memory_order_relaxed);
  favourite_.store(0, std::memory_order_seq_cst);
  pass_private_barrier();
  // Acquire: partner is leave_favoured.
  for (int i = 0; inside_.load(std::memory_order_acquire) != 0; ++i) {
    if (i < kSpins) {
      pause_cpu();
    } else {
      wait_while(inside_, 1);
    }
  }
}

}  // namespace portofu
