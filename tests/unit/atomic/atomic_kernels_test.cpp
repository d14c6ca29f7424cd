// Tests of engine/atomic/atomic_kernels.cpp: which way leads to an item, and which loops there are. What the loops
// compute is in atomic_unit_test.cpp.

#include "engine/atomic/atomic_kernels.h"

#include <gtest/gtest.h>

#include <array>

#include "engine/atomic/atomic_rules.h"

namespace portofu {
namespace {

TEST(AtomicKernels, Way__is_the_CPU_for_what_it_has_and_the_lock_for_all_else) {
  alignas(64) std::array<std::byte, 64> memory;
  for (const bool has_word16 : {false, true}) {
    for (std::size_t at = 0; at < kAtomicTypeCount; ++at) {
      const AtomicType type = atomic_type_at(at);
      const std::size_t bytes = atomic_type_bytes(type);
      const bool by_cpu = bytes <= 8 || (bytes == 16 && has_word16);
      const AtomicAccess by_lock =
          bytes == 32 && !has_word16 ? AtomicAccess::kLockedQuarters : AtomicAccess::kLockedHalves;
      EXPECT_EQ(choose_atomic_access(type, memory.data(), has_word16), by_cpu ? AtomicAccess::kCpu : by_lock)
          << "type " << at << ", 16-byte atomics: " << has_word16;
    }
  }
}

TEST(AtomicKernels, Way__to_an_item_that_is_not_aligned_is_the_lock) {
  alignas(64) std::array<std::byte, 64> memory;
  EXPECT_EQ(choose_atomic_access(AtomicType::kFloatComplex, memory.data() + 4, true), AtomicAccess::kLockedHalves);
  EXPECT_EQ(choose_atomic_access(AtomicType::kDoubleComplex, memory.data() + 8, true), AtomicAccess::kLockedHalves);
}

TEST(AtomicKernels, Loop__is_there_for_each_combination_that_the_unit_has) {
  alignas(64) std::array<std::byte, 64> memory;
  for (std::size_t operation = 0; operation < kAtomicOperationCount; ++operation) {
    for (std::size_t at = 0; at < kAtomicTypeCount; ++at) {
      const AtomicType type = atomic_type_at(at);
      for (const bool has_word16 : {false, true}) {
        const AtomicAccess access = choose_atomic_access(type, memory.data(), has_word16);
        EXPECT_EQ(find_atomic_kernel(atomic_operation_at(operation), type, access) != nullptr,
                  unit_has(atomic_operation_at(operation), type))
            << "operation " << operation << ", type " << at;
      }
    }
  }
}

}  // namespace
}  // namespace portofu
