#include "engine/target/deliver.h"

#include "engine/atomic/atomic_rules.h"
#include "engine/atomic/atomic_unit.h"

namespace portofu {
namespace {

AtomicType type_of(const Arrival& arrival) { return static_cast<AtomicType>(arrival.header.atomic_type); }

/// Whether every item lies in one piece of the entry (3.15.4 demands no more), aligned as the atomic unit needs it.
bool pieces_hold_items(const Arrival& arrival) {
  const AtomicTypeRule& rule = kAtomicTypeRules[atomic_index(type_of(arrival))];
  for (std::uint64_t at = 0; at < arrival.mlength;) {
    const MemorySegment::Run run = arrival.entry->segment.run_at(arrival.offset + at, arrival.mlength - at);
    const bool aligned = reinterpret_cast<std::uintptr_t>(run.start) % rule.alignment_bytes == 0;
    if (!aligned || run.bytes % rule.bytes != 0) return false;
    at += run.bytes;
  }
  return true;
}

}  // namespace

bool deliver_atomic(Arrival& arrival, const std::byte* source, const std::byte* operand, std::byte* fetched) {
  const std::uint32_t item_bytes = atomic_type_bytes(type_of(arrival));
  arrival.received = arrival.header.length;
  for (std::uint64_t done = 0; done < arrival.mlength;) {
    const MemorySegment::Run run = arrival.entry->segment.run_at(arrival.offset + done, arrival.mlength - done);
    // The atomic unit judges a single piece before it does anything; of several, no later one may fail.
    if (done == 0 && run.bytes < arrival.mlength && !pieces_hold_items(arrival)) return false;
    const AtomicRequest request{static_cast<AtomicOperation>(arrival.header.atomic_operation),
                                type_of(arrival),
                                run.start,
                                source + done,
                                fetched != nullptr ? fetched + done : nullptr,
                                operand != nullptr ? operand + done : nullptr,
                                run.bytes / item_bytes};
    const AtomicResult result = execute_atomic(request);
    if (result == AtomicResult::kFault) {
      arrival.fail = NiFail::kSegv;
      return true;
    }
    if (result != AtomicResult::kDone) return false;
    done += run.bytes;
  }
  return true;
}

}  // namespace portofu
