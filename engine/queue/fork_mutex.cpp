#include "engine/queue/fork_mutex.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "engine/queue/cancellation.h"
#include "engine/queue/lost_thread.h"

namespace portofu {
namespace {

/// Yields of who waits before it sleeps.
constexpr int kYields = 1000;
/// Then it looks so often.
constexpr long kNapNs = 500'000;
constexpr int kNapsPerLook = static_cast<int>(kLostThreadLookNs / kNapNs);

constexpr int kProcessShift = 32;

/// Of the last process in which this thread has asked: one that clone(2) has made past the handlers of fork has another
/// thread here.
__attribute__((tls_model("initial-exec"))) constinit thread_local pid_t own_process = 0;

/// What this thread has, or is about to have: more than there are at a time. Those that a child has made anew stay here
/// until their place is needed, and are nobody's.
__attribute__((tls_model("initial-exec"))) constinit thread_local std::array<const ForkMutex*, 8> own_mutexes{};

/// Written before it is taken and after it was given back.
void note(const ForkMutex* mutex) {
  std::rotate(own_mutexes.begin(), own_mutexes.end() - 1, own_mutexes.end());
  own_mutexes.front() = mutex;
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

void forget(const ForkMutex* mutex) {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const auto found = std::find(own_mutexes.begin(), own_mutexes.end(), mutex);
  if (found != own_mutexes.end()) *found = nullptr;
}

}  // namespace

void ForkMutex::lock() {
  note(this);
  const std::uint64_t self = this_holder();
  std::uint64_t holder = 0;
  if (!holder_.compare_exchange_strong(holder, self, std::memory_order_acquire)) [[unlikely]]
    lock_later(self);
}

bool ForkMutex::try_lock() {
  note(this);
  if (try_lock_as(this_holder())) return true;
  forget(this);
  return false;
}

void ForkMutex::unlock() {
  holder_.store(0, std::memory_order_release);
  forget(this);
}

bool ForkMutex::has_this_thread_one() {
  const std::uint64_t self = this_holder();
  return std::any_of(own_mutexes.begin(), own_mutexes.end(), [self](const ForkMutex* mutex) {
    return mutex != nullptr && mutex->holder_.load(std::memory_order_relaxed) == self;
  });
}

std::uint64_t ForkMutex::this_holder() {
  const pid_t process = getpid();
  if (own_process != process) [[unlikely]] {
    forget_thread_id();
    own_process = process;
  }
  return static_cast<std::uint64_t>(process) << kProcessShift | static_cast<std::uint32_t>(this_thread_id());
}

bool ForkMutex::try_lock_as(std::uint64_t self) {
  std::uint64_t holder = 0;
  while (!holder_.compare_exchange_weak(holder, self, std::memory_order_acquire)) {
    // A holder of another process is the parent's thread, which a child does not have.
    if (holder >> kProcessShift == self >> kProcessShift) return false;
  }
  return true;
}

void ForkMutex::lock_later(std::uint64_t self) {
  const NoCancellation whole;
  for (int looks = 1; !try_lock_as(self); ++looks) {
    if (looks < kYields) {
      sched_yield();
      continue;
    }
    const timespec nap{0, kNapNs};
    nanosleep(&nap, nullptr);
    if (looks % kNapsPerLook != 0) continue;
    expect_living([this, self] {
      const std::uint64_t holder = holder_.load(std::memory_order_relaxed);
      return holder >> kProcessShift == self >> kProcessShift ? static_cast<pid_t>(holder & UINT32_MAX) : 0;
    });
  }
}

}  // namespace portofu
