#include "engine/initiator/reduction.h"

#include "engine/atomic/atomic_unit.h"

namespace portofu {
namespace {

void combine_pairs(GateValue& into, const GateValue& other) {
  for (std::size_t i = 0; i + 1 < into.item_count; i += 2) {
    const bool better = other.items[i] > into.items[i];
    const bool earlier = other.items[i] == into.items[i] && other.items[i + 1] < into.items[i + 1];
    if (!better && !earlier) continue;
    into.items[i] = other.items[i];
    into.items[i + 1] = other.items[i + 1];
  }
}

AtomicOperation atomic_operation_of(ReduceOperation operation) {
  switch (operation) {
    case ReduceOperation::kBand: return AtomicOperation::kBand;
    case ReduceOperation::kBor: return AtomicOperation::kBor;
    case ReduceOperation::kBxor: return AtomicOperation::kBxor;
    case ReduceOperation::kMax: return AtomicOperation::kMax;
    default: return AtomicOperation::kSum;
  }
}

}  // namespace

void combine(GateValue& into, const GateValue& other) {
  into.mismatch |= other.mismatch;
  if (into.operation != other.operation || into.item_count != other.item_count) into.mismatch = 1;
  if (into.mismatch != 0) return;
  switch (into.operation) {
    case ReduceOperation::kBarrier: return;
    case ReduceOperation::kMaxloc: return combine_pairs(into, other);
    case ReduceOperation::kBfpsum:
      for (std::size_t i = 0; i < into.item_count; ++i) into.sums[i].add(other.sums[i]);
      return;
    default: break;
  }
  execute_atomic({atomic_operation_of(into.operation), AtomicType::kUint64,
                  reinterpret_cast<std::byte*>(into.items.data()),
                  reinterpret_cast<const std::byte*>(other.items.data()), nullptr, nullptr, into.item_count});
}

bool is_possible(const GateValue& value) {
  const auto operation = static_cast<std::uint8_t>(value.operation);
  if (operation < static_cast<std::uint8_t>(ReduceOperation::kBarrier) ||
      operation > static_cast<std::uint8_t>(ReduceOperation::kBfpsum)) {
    return false;
  }
  return value.item_count <= (value.operation == ReduceOperation::kBfpsum ? kMaxReduceSums : kMaxReduceItems);
}

}  // namespace portofu
