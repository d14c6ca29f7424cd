// Generates the kernels of the atomic unit and their table.

#include "engine/atomic/atomic_kernels.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "engine/atomic/atomic_access.h"
#include "engine/atomic/atomic_rules.h"
#include "engine/atomic/atomic_value.h"
#include "engine/atomic/atomic_word.h"

namespace portofu {

namespace {

/// Whether an operation reads AtomicRequest::operand.
constexpr bool has_operand(AtomicOperation operation) {
  return operation >= AtomicOperation::kCswap && operation <= AtomicOperation::kMswap;
}

/// One word of the target: an item, or the smaller items that share it.
template <AtomicOperation kOperation, class Value, class Access, class Word>
void run_word(const AtomicRequest& request, std::size_t offset) {
  Word source{};
  Word operand{};
  if constexpr (kOperation != AtomicOperation::kAtomicRead) {
    std::memcpy(&source, request.source + offset, sizeof source);
  }
  if constexpr (has_operand(kOperation)) std::memcpy(&operand, request.operand + offset, sizeof operand);
  const Word old = Access::template update<kOperation, Value>(request.target + offset, source, operand);
  if (request.fetched != nullptr) std::memcpy(request.fetched + offset, &old, sizeof old);
}

/// The kernel: all items in ascending order. Small items go by the word where they fill one at its natural alignment;
/// the few before and behind go one by one, so that nothing outside the vector is written.
template <AtomicOperation kOperation, class Value, class Access>
void run_items(const AtomicRequest& request) {
  using Item = WordOfBytes<sizeof(Value)>;
  const std::size_t bytes = request.item_count * sizeof(Item);
  std::size_t offset = 0;
  if constexpr (std::is_same_v<Access, CpuAccess> && sizeof(Item) < sizeof(std::uint64_t)) {
    using Group = std::uint64_t;
    for (; offset < bytes && !is_aligned_for<Group>(request.target + offset); offset += sizeof(Item)) {
      run_word<kOperation, Value, Access, Item>(request, offset);
    }
    for (; bytes - offset >= sizeof(Group); offset += sizeof(Group)) {
      run_word<kOperation, Value, Access, Group>(request, offset);
    }
  }
  for (; offset < bytes; offset += sizeof(Item)) run_word<kOperation, Value, Access, Item>(request, offset);
}

/// Kernel of one place in the table; nullptr where there is none.
template <AtomicOperation kOperation, AtomicType kType, AtomicAccess kAccess>
constexpr AtomicKernel make_kernel() {
  using Value = atomic_value::OfType<kType>;
  constexpr std::size_t kBytes = sizeof(Value);
  constexpr bool kDivisible = kType == AtomicType::kFloatComplex || kBytes > 8;
  static_assert(kBytes == kAtomicTypeRules[atomic_index(kType)].bytes);
  if constexpr (!unit_has(kOperation, kType)) {
    return nullptr;
  } else if constexpr (kAccess == AtomicAccess::kCpu && kBytes <= 16) {
    return run_items<kOperation, Value, CpuAccess>;
  } else if constexpr (kAccess == AtomicAccess::kLockedHalves && kDivisible) {
    return run_items<kOperation, Value, LockedAccess<WordOfBytes<kBytes / 2>>>;
  } else if constexpr (kAccess == AtomicAccess::kLockedQuarters && kBytes == 32) {
    return run_items<kOperation, Value, LockedAccess<WordOfBytes<kBytes / 4>>>;
  } else {
    return nullptr;
  }
}

using KernelsOfType = std::array<AtomicKernel, kAtomicAccessCount>;
using KernelsOfOperation = std::array<KernelsOfType, kAtomicTypeCount>;
using KernelTable = std::array<KernelsOfOperation, kAtomicOperationCount>;

template <AtomicOperation kOperation, AtomicType kType, std::size_t... kAccess>
constexpr KernelsOfType make_kernels(std::index_sequence<kAccess...>) {
  return {make_kernel<kOperation, kType, static_cast<AtomicAccess>(kAccess)>()...};
}

template <AtomicOperation kOperation, std::size_t... kTypeIndex>
constexpr KernelsOfOperation make_kernels_of_operation(std::index_sequence<kTypeIndex...>) {
  return {make_kernels<kOperation, atomic_type_at(kTypeIndex)>(std::make_index_sequence<kAtomicAccessCount>())...};
}

template <std::size_t... kOperationIndex>
constexpr KernelTable make_table(std::index_sequence<kOperationIndex...>) {
  return {
      make_kernels_of_operation<atomic_operation_at(kOperationIndex)>(std::make_index_sequence<kAtomicTypeCount>())...};
}

constexpr KernelTable kKernels = make_table(std::make_index_sequence<kAtomicOperationCount>());

}  // namespace

AtomicAccess choose_atomic_access(AtomicType type, const std::byte* target, bool has_word16) {
  const std::size_t bytes = kAtomicTypeRules[atomic_index(type)].bytes;
  if (bytes == 32) return has_word16 ? AtomicAccess::kLockedHalves : AtomicAccess::kLockedQuarters;
  const bool aligned = (reinterpret_cast<std::uintptr_t>(target) & (bytes - 1)) == 0;
  return aligned && (bytes <= 8 || has_word16) ? AtomicAccess::kCpu : AtomicAccess::kLockedHalves;
}

AtomicKernel find_atomic_kernel(AtomicOperation operation, AtomicType type, AtomicAccess access) {
  return kKernels[atomic_index(operation)][atomic_index(type)][static_cast<std::size_t>(access)];
}

}  // namespace portofu
