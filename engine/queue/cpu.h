#pragma once
// What depends on the processor and is needed in several places: how a loop waits, and what the CPU says of itself.
// Hints on cache lines stand in line_owner.h, copies in engine/memory/guarded_copy.cpp, 16-byte words in
// engine/atomic/atomic_word.h. A repository test compiles all of them for 64-bit Arm, too.

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
