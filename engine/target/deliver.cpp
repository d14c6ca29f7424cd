#include "engine/target/deliver.h"

#include <algorithm>

#include "engine/target/atomic_unit.h"

namespace portofu {

void deliver_payload(Arrival& arrival, const std::byte* payload, std::uint64_t bytes) {
  const std::uint64_t at = arrival.received;
  arrival.received += bytes;
  if (at >= arrival.mlength || arrival.fail != NiFail::kOk) return;
  const std::uint64_t wanted = std::min(bytes, arrival.mlength - at);
  if (wanted == 0) return;
  if (!arrival.entry->segment.write(arrival.offset + at, payload, wanted)) arrival.fail = NiFail::kSegv;
}

bool deliver_atomic(Arrival& arrival, const std::byte* source, const std::byte* operand, std::byte* fetched) {
  const auto type = static_cast<AtomicType>(arrival.header.atomic_type);
  const std::uint32_t item_bytes = atomic_type_bytes(type);
  arrival.received = arrival.header.length;
  for (std::uint64_t done = 0; done < arrival.mlength;) {
    MemorySegment::Run run = arrival.entry->segment.run_at(arrival.offset + done, arrival.mlength - done);
    run.bytes -= run.bytes % item_bytes;
    if (run.bytes == 0) return done != 0;  // An item spans two pieces of an iovec (3.15.4): not supported.
    const AtomicRequest request{static_cast<AtomicOperation>(arrival.header.atomic_operation),
                                type,
                                run.start,
                                source + done,
                                fetched != nullptr ? fetched + done : nullptr,
                                operand,
                                run.bytes / item_bytes};
    const AtomicResult result = execute_atomic(request);
    if (result == AtomicResult::kFault) {
      arrival.fail = NiFail::kSegv;
      return true;
    }
    if (result != AtomicResult::kDone) return done != 0;
    done += run.bytes;
  }
  return true;
}

}  // namespace portofu
