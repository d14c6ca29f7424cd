#pragma once
// A mutex that the child of a fork finds free, whoever held it in the parent. For stretches off the data path.

#include <sys/types.h>

#include <atomic>
#include <cstdint>

namespace portofu {

/// Lockable as the standard library means it. What it guards must make sense to a child that was forked in the middle,
/// or the forking thread holds it meanwhile. Any thread; not recursive. Whoever waits for a thread that has ended with
/// it ends the process (lost_thread.h).
class ForkMutex {
 public:
  void lock();
  bool try_lock();
  void unlock();

  /// Whether the calling thread has one, or is about to (run/unwinding.h). Async-signal-safe.
  static bool has_this_thread_one();

 private:
  /// Process and thread that call. One system call.
  static std::uint64_t this_holder();
  bool try_lock_as(std::uint64_t self);
  void lock_later(std::uint64_t self);

  std::atomic<std::uint64_t> holder_{0};  ///< Process (high half) and thread that hold it; 0: nobody.
};

}  // namespace portofu
