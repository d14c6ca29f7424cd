// The engine touches memory of the application in its own time, so a wrong address must not become a crash that nobody can
// explain (Portals 4.3, 3.10, 3.11: PTL_NI_SEGV). Each thread keeps a jump buffer while it copies; the handler returns
// through it. Faults from anywhere else go to the handler that was there before.

#include "engine/address/guarded_copy.h"

#include <signal.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>

namespace portofu {
namespace {

using JumpBuffer = void* [5];

// initial-exec: the library must not call into the loader's TLS allocator from a signal handler.
__attribute__((tls_model("initial-exec"))) thread_local JumpBuffer* current_guard = nullptr;

struct sigaction previous_segv;
struct sigaction previous_bus;
std::mutex install_mutex;

void forward(const struct sigaction& previous, int signal_number, siginfo_t* info, void* context) {
  if ((previous.sa_flags & SA_SIGINFO) != 0 && previous.sa_sigaction != nullptr) {
    previous.sa_sigaction(signal_number, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal_number);
  } else {
    signal(signal_number, SIG_DFL);  // The instruction runs again and ends the process the usual way.
  }
}

void on_fault(int signal_number, siginfo_t* info, void* context) {
  JumpBuffer* guard = current_guard;
  if (guard != nullptr) {
    current_guard = nullptr;
    __builtin_longjmp(*guard, 1);
  }
  forward(signal_number == SIGSEGV ? previous_segv : previous_bus, signal_number, info, context);
}

void install(int signal_number, struct sigaction& previous) {
  struct sigaction present {};
  sigaction(signal_number, nullptr, &present);
  if ((present.sa_flags & SA_SIGINFO) != 0 && present.sa_sigaction == on_fault) return;
  struct sigaction ours {};
  ours.sa_sigaction = on_fault;
  ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  previous = present;
  sigaction(signal_number, &ours, nullptr);
}

template <class Word>
void copy_word(std::byte* target, const std::byte* source) {
  Word word;
  if ((reinterpret_cast<std::uintptr_t>(target) | reinterpret_cast<std::uintptr_t>(source)) % sizeof(Word) == 0) {
    word = __atomic_load_n(reinterpret_cast<const Word*>(source), __ATOMIC_RELAXED);
    __atomic_store_n(reinterpret_cast<Word*>(target), word, __ATOMIC_RELAXED);
  } else {
    std::memcpy(&word, source, sizeof(Word));
    std::memcpy(target, &word, sizeof(Word));
  }
}

// memcpy may write a byte twice (overlapping stores); this does not.
__attribute__((optimize("no-tree-loop-distribute-patterns"))) void copy_once(std::byte* target, const std::byte* source,
                                                                             std::size_t bytes) {
  for (; bytes >= 32; bytes -= 32, target += 32, source += 32) {
    std::byte block[32];
    std::memcpy(block, source, 32);
    std::memcpy(target, block, 32);
  }
  for (; bytes >= 8; bytes -= 8, target += 8, source += 8) copy_word<std::uint64_t>(target, source);
  if ((bytes & 4) != 0) {
    copy_word<std::uint32_t>(target, source);
    target += 4, source += 4;
  }
  if ((bytes & 2) != 0) {
    copy_word<std::uint16_t>(target, source);
    target += 2, source += 2;
  }
  if ((bytes & 1) != 0) *target = *source;
}

}  // namespace

void install_fault_guard() {
  const std::lock_guard<std::mutex> lock(install_mutex);
  install(SIGSEGV, previous_segv);
  install(SIGBUS, previous_bus);
}

__attribute__((noinline)) bool guarded_copy(std::byte* target, const std::byte* source, std::size_t bytes) {
  JumpBuffer buffer;
  if (__builtin_setjmp(buffer) != 0) return false;
  current_guard = &buffer;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (bytes <= kWrittenOnceBytes) {
    copy_once(target, source, bytes);
  } else {
    std::memcpy(target, source, bytes);
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
  current_guard = nullptr;
  return true;
}

__attribute__((noinline)) bool guarded_call(void (*run)(void*), void* argument) {
  JumpBuffer buffer;
  if (__builtin_setjmp(buffer) != 0) return false;
  current_guard = &buffer;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  run(argument);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  current_guard = nullptr;
  return true;
}

}  // namespace portofu
