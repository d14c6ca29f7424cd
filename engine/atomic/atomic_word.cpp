// Asks the CPU once whether it swaps 16 bytes.

#include "engine/atomic/atomic_word.h"

#include "engine/queue/cpu.h"

namespace portofu {
namespace {

/// Asked when the library is loaded: a static variable of a function has a lock that a forked child may find taken.
const bool has_word16 = cpu_exchanges_16_bytes();

}  // namespace

bool cpu_has_word16() { return has_word16; }

}  // namespace portofu
