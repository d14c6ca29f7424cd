// Asks the CPU once whether it swaps 16 bytes.

#include "engine/target/atomic_word.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace portofu {

bool cpu_has_word16() {
#if defined(__x86_64__)
  static const bool has_word16 = [] {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_CMPXCHG16B) != 0;
  }();
  return has_word16;
#else
  return false;
#endif
}

}  // namespace portofu
