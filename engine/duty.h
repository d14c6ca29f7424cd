#pragma once
// The duty: the right to run an engine. Exactly one thread at a time holds it; whoever calls the API takes it for the
// length of the call, and the progress thread takes it when nobody calls. This is the one lock of the short path.

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace portofu {

/// A lock that costs one atomic exchange each way while nobody else wants it, and sleeps in the kernel otherwise. Not
/// recursive. Holders keep it for one call or one cycle of the loop, never while they wait.
class DutyLock {
 public:
  bool try_take() {
    std::uint32_t expected = kFree;
    return word_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire, std::memory_order_relaxed);
  }

  void take() {
    if (!try_take()) [[unlikely]]
      take_contended();
  }

  void give() {
    if (word_.exchange(kFree, std::memory_order_seq_cst) == kHeldAndWanted) [[unlikely]]
      wake_one();
  }

 private:
  static constexpr std::uint32_t kFree = 0;
  static constexpr std::uint32_t kHeld = 1;
  static constexpr std::uint32_t kHeldAndWanted = 2;  ///< Somebody sleeps in the kernel, or is about to.
  static constexpr int kSpins = 200;                  ///< Tries before sleeping; a cycle of the loop is shorter.

  void take_contended() {
    for (int i = 0; i < kSpins; ++i) {
      __builtin_ia32_pause();
      if (word_.load(std::memory_order_relaxed) == kFree && try_take()) return;
    }
    while (word_.exchange(kHeldAndWanted, std::memory_order_acquire) != kFree) {
      syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, kHeldAndWanted, nullptr, nullptr, 0);
    }
  }

  void wake_one() { syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0); }

  alignas(64) std::atomic<std::uint32_t> word_{kFree};
};

}  // namespace portofu
