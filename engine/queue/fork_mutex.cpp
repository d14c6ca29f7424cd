#include "engine/queue/fork_mutex.h"

#include <sched.h>
#include <time.h>

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

}  // namespace

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
