#pragma once
// How a process sleeps until a peer has something for it, and how a peer finds out, for the price of one relaxed load,
// that nobody sleeps. Before it: a packet was published, or room was given back. After it: the sleeper looks again.
//
// The race. A producer publishes and then looks for a sleeper; a sleeper announces itself and then looks for work. They
// are the two sides of an asymmetric guard (queue/asymmetric_guard.h): the sleeper alone pays. Processes register when
// their segment is created. A producer that could not register fences itself. A sleeper that has no membarrier cannot
// know whether all its producers fence, and so never sleeps longer than kBlindSleepNs.
//
// The generation. A sleeper takes microseconds to wake. A producer remembers, in private memory, for which announcement
// it has rung and does not ring for the same one again; another producer still does, so a producer that dies between
// publishing and ringing, or while it rings, delays nobody but itself.
//
// Beside a file descriptor. A process with a fabric has to wake for what comes from there, too. A futex cannot be
// polled, so one of its sleeping threads, the watcher, waits in poll(2) for the fabric and for a socket
// (bell_socket.h), and ringers wake both, the futex and the socket. The others sleep at the futex; a watcher that
// leaves rings for them.

#include <atomic>
#include <cstdint>
#include <type_traits>

#include "engine/queue/asymmetric_guard.h"
#include "engine/segment/bell_socket.h"

namespace portofu {

/// Nobody sleeps longer at a stretch: bounds the delay of a packet whose sender was killed before it could ring.
inline constexpr std::int64_t kLongestSleepNs = 1'000'000'000;

/// Longest sleep of a process that has no membarrier.
inline constexpr std::int64_t kBlindSleepNs = 1'000'000;

/// A doorbell as it lies in the sleeper's segment.
struct DoorbellShared {
  /// Futex word: number of rings, mod 2^32. Writers: ringers of any process (sequentially consistent), only while
  /// somebody sleeps. Reader: sleepers (acquire), the kernel.
  alignas(128) std::atomic<std::uint32_t> bell;
  /// BellSocket::name of the watcher, 0: there is none. Writer: the watcher. Readers: ringers, after they have raised
  /// `bell`; both sequentially consistent, so that either the ringer sees the name or the watcher the new `bell`.
  std::atomic<std::uint32_t> watcher;
  /// Low 16 bits: threads that sleep or are about to; the rest: number of announcements (the generation). Writer:
  /// threads of the owner (sequentially consistent read-modify-write). Readers: ringers (relaxed; the barrier orders
  /// them).
  alignas(128) std::atomic<std::uint64_t> sleepers;
  /// Moves with the names of the segment (names_word.h): here, because whoever sends reads this line anyhow. Writers:
  /// the owner; after its death, who removes its names (N1). Readers: whoever remembers a name of it (acquire, N1).
  std::atomic<std::uint64_t> names;
};

static_assert(sizeof(DoorbellShared) == 256 && std::is_standard_layout_v<DoorbellShared>);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free && std::atomic<std::uint64_t>::is_always_lock_free);

/// Low bits of DoorbellShared::sleepers that count threads.
inline constexpr std::uint64_t kSleeperCountMask = 0xffff;

/// One announcement, in the part of DoorbellShared::sleepers above the count.
inline constexpr std::uint64_t kGenerationStep = kSleeperCountMask + 1;

/// The owner's hand on its doorbell. Any thread of the owner, several at a time.
class Doorbell {
 public:
  Doorbell(DoorbellShared& shared, NodeGuard guard)
      : shared_(shared), membarrier_works_(guard == NodeGuard::kMembarrier) {}

  /// Says that this thread is about to sleep. Look for work afterwards: whatever was published before a producer could
  /// see the announcement is visible then. Costs some microseconds. Ends with withdraw, whether or not wait was called.
  /// @return what to hand to wait
  std::uint32_t announce();

  /// Sleeps until somebody rings, or the time is over, or for no reason; look for work after it. Once it has returned
  /// true the announcement is used up: withdraw, and announce again before the next sleep.
  /// @param seen        from announce
  /// @param timeout_ns  at most kLongestSleepNs is waited; negative means that
  /// @param fd          -1, or what ends the wait, too, when it is readable
  /// @param signaled    set if the sleep ended by a signal that has a handler; nullptr: nobody wants to know
  /// @return true if the bell was rung since announce, or fd is readable
  bool wait(std::uint32_t seen, std::int64_t timeout_ns, int fd = -1, bool* signaled = nullptr);

  /// Takes one announcement back.
  void withdraw();

  /// Wakes every thread that sleeps or has announced; for use inside the owner, always costs a system call.
  void ring();

 private:
  bool watch(std::uint32_t seen, std::int64_t sleep_ns, int fd, bool* signaled);

  DoorbellShared& shared_;
  std::atomic<bool> watched_{false};  ///< One thread is the watcher, and owns socket_.
  BellSocket socket_;
  std::atomic<bool> membarrier_works_;  ///< False from the start or since it failed once; relaxed, guards no data.
};

/// Wakes whoever sleeps at a doorbell of any process.
void ring(DoorbellShared& doorbell);

/// The part of ring_if_asleep that follows when somebody sleeps.
/// @return true if a system call was made
bool ring_sleepers(DoorbellShared& doorbell, std::uint64_t sleepers, std::uint64_t* rung_generation);

/// To be called after publishing: rings if somebody sleeps and has not been rung by this caller for the same sleep.
/// @param guard            of the calling process
/// @param rung_generation  the caller's private memory for this doorbell, 0 at the start
/// @return true if a system call was made
inline bool ring_if_asleep(DoorbellShared& doorbell, NodeGuard guard, std::uint64_t* rung_generation) {
  before_frequent_look(guard);  // Partner: Doorbell::announce.
  const std::uint64_t sleepers = doorbell.sleepers.load(std::memory_order_relaxed);
  if ((sleepers & kSleeperCountMask) == 0) [[likely]]
    return false;
  return ring_sleepers(doorbell, sleepers, rung_generation);
}

}  // namespace portofu
