#include "engine/target/deliver.h"

#include "engine/atomic/atomic_rules.h"
#include "engine/atomic/atomic_unit.h"
#include "engine/queue/assert.h"

namespace portofu {
namespace {

AtomicType type_of(const Arrival& arrival) { return static_cast<AtomicType>(arrival.header.atomic_type); }

}  // namespace

bool holds_items(const Arrival& arrival) {
  const AtomicTypeRule& rule = kAtomicTypeRules[atomic_index(type_of(arrival))];
  for (std::uint64_t at = 0; at < arrival.mlength;) {
    const MemorySegment::Run run = arrival.entry->segment.run_at(arrival.offset + at, arrival.mlength - at);
    // Both are powers of two.
    const bool aligned = (reinterpret_cast<std::uintptr_t>(run.start) & (rule.alignment_bytes - 1u)) == 0;
    if (!aligned || (run.bytes & (rule.bytes - 1u)) != 0) return false;
    at += run.bytes;
  }
  return true;
}

void deliver_atomic(Arrival& arrival, const std::byte* source, const std::byte* operand, std::byte* fetched) {
  const std::uint32_t item_bytes = atomic_type_bytes(type_of(arrival));
  arrival.received = arrival.header.length;
  for (std::uint64_t done = 0; done < arrival.mlength;) {
    const MemorySegment::Run run = arrival.entry->segment.run_at(arrival.offset + done, arrival.mlength - done);
    const AtomicRequest request{static_cast<AtomicOperation>(arrival.header.atomic_operation),
                                type_of(arrival),
                                run.start,
                                source + done,
                                fetched != nullptr ? fetched + done : nullptr,
                                operand != nullptr ? operand + done : nullptr,
                                run.bytes / item_bytes};
    const AtomicResult result = execute_atomic(request);
    PORTOFU_ASSERT(result == AtomicResult::kDone || result == AtomicResult::kFault);
    if (result == AtomicResult::kFault) {
      arrival.fail = NiFail::kSegv;
      return;
    }
    done += run.bytes;
  }
}

}  // namespace portofu
