// Asks the CPU once whether it swaps 16 bytes.

#include "engine/target/atomic_word.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace portofu {
namespace {

bool ask_cpu() {
#if defined(__x86_64__)
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_CMPXCHG16B) != 0;
#else
  return false;
#endif
}

/// Asked when the library is loaded: a static variable of a function has a lock that a forked child may find taken.
const bool has_word16 = ask_cpu();

}  // namespace

bool cpu_has_word16() { return has_word16; }

}  // namespace portofu
