#pragma once
// A mutex that the child of a fork finds free, whoever held it in the parent. For short stretches off the data path.

#include <sched.h>
#include <unistd.h>

#include <atomic>

namespace portofu {

/// Lockable as the standard library means it. What it guards must make sense to a child that was forked in the middle.
/// Any thread; not recursive.
class ForkMutex {
 public:
  void lock() {
    const pid_t self = getpid();
    pid_t holder = 0;
    while (!holder_.compare_exchange_weak(holder, self, std::memory_order_acquire)) {
      // A holder of another process is the parent's thread, which a child does not have.
      if (holder != self) continue;
      holder = 0;
      sched_yield();
    }
  }
  void unlock() { holder_.store(0, std::memory_order_release); }

 private:
  std::atomic<pid_t> holder_{0};  ///< Process of the thread that holds it; 0: nobody.
};

}  // namespace portofu
