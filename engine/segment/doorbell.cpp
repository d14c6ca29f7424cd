// The system calls behind the doorbell.

#include "engine/segment/doorbell.h"

#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "engine/queue/cancellation.h"

namespace portofu {

std::uint32_t Doorbell::announce() {
  // Read before the announcement: a ring that answers it then always differs from `seen`.
  const std::uint32_t seen = shared_.bell.load(std::memory_order_acquire);
  shared_.sleepers.fetch_add(kGenerationStep + 1, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (membarrier_works_.load(std::memory_order_relaxed) && !before_rare_look_at_processes()) {
    membarrier_works_.store(false, std::memory_order_relaxed);
  }
  return seen;
}

namespace {

/// @param result  of a system call that slept
void note_signal(long result, bool* signaled) {
  if (signaled != nullptr && result < 0 && errno == EINTR) *signaled = true;
}

}  // namespace

/// The part of wait that also listens to fd. Called by one thread at a time.
bool Doorbell::watch(std::uint32_t seen, std::int64_t sleep_ns, int fd, bool* signaled) {
  shared_.watcher.store(socket_.name(), std::memory_order_seq_cst);
  pollfd waited[] = {{socket_.fd(), POLLIN, 0}, {fd, POLLIN, 0}};
  const timespec relative{sleep_ns / 1'000'000'000, sleep_ns % 1'000'000'000};
  if (shared_.bell.load(std::memory_order_seq_cst) == seen) note_signal(ppoll(waited, 2, &relative, nullptr), signaled);
  shared_.watcher.store(0, std::memory_order_seq_cst);
  socket_.drain();
  return waited[1].revents != 0;
}

bool Doorbell::wait(std::uint32_t seen, std::int64_t timeout_ns, int fd, bool* signaled) {
  const std::int64_t longest = membarrier_works_.load(std::memory_order_relaxed) ? kLongestSleepNs : kBlindSleepNs;
  const std::int64_t sleep_ns = timeout_ns < 0 ? longest : std::min(timeout_ns, longest);
  const NoCancellation whole;
  if (fd >= 0 && !watched_.exchange(true, std::memory_order_acquire)) {
    // Without a socket: nobody could ring, so the sleep is a nap.
    const bool readable = watch(seen, socket_.open() ? sleep_ns : std::min(sleep_ns, kBlindSleepNs), fd, signaled);
    watched_.store(false, std::memory_order_release);
    // Somebody else has to watch now.
    if ((shared_.sleepers.load(std::memory_order_seq_cst) & kSleeperCountMask) > 1) ring();
    return readable || shared_.bell.load(std::memory_order_acquire) != seen;
  }
  timespec relative{};
  relative.tv_sec = sleep_ns / 1'000'000'000;
  relative.tv_nsec = sleep_ns % 1'000'000'000;
  // Every outcome (rung, not equal, signal, time over) means the same to the caller, unless it asks: look again.
  note_signal(syscall(SYS_futex, &shared_.bell, FUTEX_WAIT, seen, &relative, nullptr, 0), signaled);
  return shared_.bell.load(std::memory_order_acquire) != seen;
}

void Doorbell::withdraw() { shared_.sleepers.fetch_sub(1, std::memory_order_seq_cst); }

void Doorbell::ring() { portofu::ring(shared_); }

void ring(DoorbellShared& doorbell) {
  doorbell.bell.fetch_add(1, std::memory_order_seq_cst);
  syscall(SYS_futex, &doorbell.bell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  if (const std::uint32_t name = doorbell.watcher.load(std::memory_order_seq_cst); name != 0) ring_socket(name);
}

bool ring_sleepers(DoorbellShared& doorbell, std::uint64_t sleepers, std::uint64_t* rung_generation) {
  const std::uint64_t generation = sleepers / kGenerationStep;
  if (generation == *rung_generation) return false;
  *rung_generation = generation;
  ring(doorbell);
  return true;
}

}  // namespace portofu
