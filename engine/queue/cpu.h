#pragma once
// What depends on the processor and is needed in several places: how a loop waits, and what the CPU says of itself.
// Hints on cache lines stand in line_owner.h, copies in engine/memory/guarded_copy.cpp, 16-byte words in
// engine/atomic/atomic_word.h. A repository test compiles all of them for 64-bit Arm, too.

#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace portofu {

/// One turn of a loop that waits for another core: the other thread of this core has the units meanwhile.
inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" : : : "memory");
#else
  asm volatile("" : : : "memory");
#endif
}

/// A counter that all cores of the machine share and that never stands still, if cpu_ticks_are_steady; else 0. Its rate
/// is the machine's own.
inline std::uint64_t cpu_ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t ticks = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return 0;
#endif
}

/// Whether cpu_ticks counts at one rate whatever the cores do ("invariant TSC").
inline bool cpu_ticks_are_steady() {
#if defined(__x86_64__)
  unsigned int a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007u, &a, &b, &c, &d) != 0 && (d & 1u << 8) != 0;
#elif defined(__aarch64__)
  return true;
#else
  return false;
#endif
}

/// Whether short pieces are copied well, forward and no byte twice, by one `rep movsb` ("fast short rep mov").
inline bool cpu_copies_short_strings() {
#if defined(__x86_64__)
  unsigned int a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & 1u << 4) != 0;
#else
  return false;
#endif
}

/// Whether 16 bytes are compared and exchanged by one instruction that the code knows.
inline bool cpu_exchanges_16_bytes() {
#if defined(__x86_64__)
  unsigned int a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_CMPXCHG16B) != 0;
#else
  return false;
#endif
}

}  // namespace portofu
