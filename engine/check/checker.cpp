#include "engine/check/checker.h"

namespace portofu {

void keep_arrival(Checker& checker, const Interface& ni, const EventQueue& queue) {
  checker.portals.posts_event(ni, queue);
}

void note_arrival(Checker& checker, const Arrival& arrival) { checker.portals.takes(arrival); }

void note_start(Checker& checker, const Core& core, const TriggeredOperation& operation) {
  const auto counter_of = [&core](Handle handle) -> const CountingEvent* {
    const std::uint32_t index = handle_interface(handle);
    const Interface* const ni = handle != 0 && index < core.interfaces.size() ? core.interfaces[index].get() : nullptr;
    return ni != nullptr ? ni->cts.find(handle) : nullptr;
  };
  if (const CountingEvent* const counter = counter_of(operation.counter))
    checker.portals.reads_count(counter, operation.threshold, 0);
  const PacketType type = operation.descriptor.type;
  if (type != PacketType::kCountIncrement && type != PacketType::kCountSet) return;
  if (const CountingEvent* const changed = counter_of(operation.descriptor.count.ct_handle))
    checker.portals.changes_count(changed);
}

}  // namespace portofu
