#pragma once
// The asymmetric guard: two sides that must not miss each other, of which one comes with every call, the frequent side,
// and the other one hardly ever, the rare side.
//
// The race. Each side stores a word of its own and then looks at the word of the other side. A CPU may look before its
// store has reached memory, so both sides can miss each other. A full fence on both sides closes the race, but costs
// some 6 ns, which every packet would pay. Therefore the rare side pays alone: between its store and its look
// membarrier(2) passes every running thread of the frequent side through a full barrier. Behind it at least one side
// sees the other. The frequent side only keeps the compiler from moving its look.
//
// doc/memory_orders.md lists the uses. tests/unit/queue/asymmetric_guard_test.cpp enumerates every interleaving of each
// of them, and shows what goes wrong without the barrier.

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <type_traits>

namespace portofu {

/// What stands between store and look where the sides belong to several processes. Decided once per process.
enum class NodeGuard : std::uint8_t {
  kMembarrier,  ///< Registered: the frequent side needs no fence, the rare side calls membarrier.
  kFence,       ///< Not registered: the frequent side fences, the rare side cannot rely on what it sees.
};

/// Frequent side: stores, and keeps the looks that follow behind the store. Threads of one process, or of processes
/// that have registered.
template <class T>
inline void say_before_look(std::atomic<T>& word, std::type_identity_t<T> value,
                            std::memory_order order = std::memory_order_relaxed) {
  word.store(value, order);
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

/// Frequent side: keeps the looks that follow behind what was stored before.
/// @param guard  of the calling process
inline void before_frequent_look(NodeGuard guard) {
  if (guard == NodeGuard::kFence) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  } else {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
}

inline long call_membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0); }

/// Lets the threads of this process be on the frequent side of before_rare_look_at_threads. Costs some microseconds;
/// may be called again. @return false if the kernel has no such call
inline bool register_thread_guard() { return call_membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0; }

/// Rare side, behind its store: every thread of this process sees the store in its next look, or has said before what
/// the caller sees now. Some microseconds. @pre register_thread_guard
inline void before_rare_look_at_threads() { call_membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED); }

/// Lets this process (all its threads) be on the frequent side of before_rare_look_at_processes. May be called again.
inline NodeGuard register_node_guard() {
  const long commands = call_membarrier(MEMBARRIER_CMD_QUERY);
  if (commands < 0 || (commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0) return NodeGuard::kFence;
  const bool registered = call_membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0;
  return registered ? NodeGuard::kMembarrier : NodeGuard::kFence;
}

/// The same as before_rare_look_at_threads for all processes that have registered and all that fence.
/// @return false if the kernel has no such call; then nobody was made to see anything
inline bool before_rare_look_at_processes() { return call_membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0; }

}  // namespace portofu
