#pragma once
// A clock as a program is shown it: real time at first, then virtual time, then real time again. From one to the next
// it goes on where it was, and never back.

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace portofu {

class ShownClock {
 public:
  /// Before time is virtual, clocks are shown in steps of 2^-6 s, which are whole microseconds. So is where virtual
  /// time begins then, and a program that counts seconds in doubles, or microseconds, rounds the same in each run.
  static constexpr std::uint64_t kStepNs = 15'625'000;

  /// @param era   ProgramTime::era of what is read
  /// @param ns    what is read: virtual time since the era began, if that is odd, else this clock, real
  /// @param real  this clock, real
  /// @param stands  ProgramTime::stands
  /// @return nanoseconds; never less than before. Any thread; in a handler of a signal that came within, the last
  std::uint64_t show(std::uint32_t era, std::uint64_t ns, std::uint64_t real, bool stands) {
    static __attribute__((tls_model("initial-exec"))) thread_local bool inside = false;
    if (inside) return last_ns_.load(std::memory_order_relaxed);
    inside = true;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    while (taken_.exchange(true, std::memory_order_acquire)) sched_yield();
    std::uint64_t last = last_ns_.load(std::memory_order_relaxed);
    if (last == 0) last = real - real % kStepNs;
    if (era > era_) {
      era_ = era;
      shift_ = era % 2 != 0 ? last : last - ns;
    }
    if (era == era_ && !stands) last = std::max(last, era == 0 ? ns - ns % kStepNs : ns + shift_);
    last_ns_.store(last, std::memory_order_relaxed);
    taken_.store(false, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    inside = false;
    return last;
  }

  /// In a child process: whoever was in show() is not there.
  void reopen() { taken_.store(false); }

 private:
  std::atomic<bool> taken_{false};
  std::atomic<std::uint64_t> last_ns_{0};  ///< 0: nobody has asked yet.
  std::uint32_t era_ = 0;
  std::uint64_t shift_ = 0;  ///< Modulo 2^64.
};

}  // namespace portofu
