#pragma once
// The loops of the atomic unit: one function for each operation, datatype and way of access, generated from
// atomic_rules.h and found by table.

#include <cstddef>
#include <cstdint>

#include "engine/atomic/atomic_unit.h"

namespace portofu {

/// How an item of user memory is reached.
enum class AtomicAccess : std::uint8_t {
  kCpu,            ///< One CPU atomic on the whole item. Not for long double complex.
  kLockedHalves,   ///< Under the lock of execute_atomic, half an item at a time. Complex types and long double only.
  kLockedQuarters  ///< Under that lock, a quarter of an item at a time. Long double complex only.
};
inline constexpr std::size_t kAtomicAccessCount = 3;

/// Handles all items of a request whose combination, alignment and access have been checked.
using AtomicKernel = void (*)(const AtomicRequest& request);

/// Way of access for a target.
/// @param target      aligned as atomic_rules.h asks for
/// @param has_word16  whether the CPU has 16-byte atomics; a parameter so that a test can deny it
AtomicAccess choose_atomic_access(AtomicType type, const std::byte* target, bool has_word16);

/// Finds the kernel of a combination; operation and type must be valid.
/// @return nullptr if the unit has none
AtomicKernel find_atomic_kernel(AtomicOperation operation, AtomicType type, AtomicAccess access);

}  // namespace portofu
