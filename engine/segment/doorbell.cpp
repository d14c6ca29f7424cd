// The system calls behind the doorbell: futex and membarrier.

#include "engine/segment/doorbell.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

namespace portofu {
namespace {

long membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0); }

}  // namespace

WakeBarrier register_wake_barrier() {
  const long commands = membarrier(MEMBARRIER_CMD_QUERY);
  if (commands < 0 || (commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0) return WakeBarrier::kFence;
  const bool registered = membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0;
  return registered ? WakeBarrier::kMembarrier : WakeBarrier::kFence;
}

std::uint32_t Doorbell::announce() {
  // Read before the announcement: a ring that answers it then always differs from `seen`.
  const std::uint32_t seen = shared_.bell.load(std::memory_order_acquire);
  shared_.sleepers.fetch_add(kGenerationStep + 1, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (membarrier_works_.load(std::memory_order_relaxed) && membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED) != 0) {
    membarrier_works_.store(false, std::memory_order_relaxed);
  }
  return seen;
}

bool Doorbell::wait(std::uint32_t seen, std::int64_t timeout_ns) {
  const std::int64_t longest = membarrier_works_.load(std::memory_order_relaxed) ? kLongestSleepNs : kBlindSleepNs;
  const std::int64_t sleep_ns = timeout_ns < 0 ? longest : std::min(timeout_ns, longest);
  timespec relative{};
  relative.tv_sec = sleep_ns / 1'000'000'000;
  relative.tv_nsec = sleep_ns % 1'000'000'000;
  // Every outcome (rung, not equal, signal, time over) means the same to the caller: look again.
  syscall(SYS_futex, &shared_.bell, FUTEX_WAIT, seen, &relative, nullptr, 0);
  return shared_.bell.load(std::memory_order_acquire) != seen;
}

void Doorbell::withdraw() { shared_.sleepers.fetch_sub(1, std::memory_order_seq_cst); }

void Doorbell::ring() { portofu::ring(shared_); }

void ring(DoorbellShared& doorbell) {
  doorbell.bell.fetch_add(1, std::memory_order_seq_cst);
  syscall(SYS_futex, &doorbell.bell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

bool ring_sleepers(DoorbellShared& doorbell, std::uint64_t sleepers, std::uint64_t* rung_generation) {
  const std::uint64_t generation = sleepers / kGenerationStep;
  if (generation == *rung_generation) return false;
  *rung_generation = generation;
  ring(doorbell);
  return true;
}

}  // namespace portofu
