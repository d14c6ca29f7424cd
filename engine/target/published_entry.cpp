#include "engine/target/published_entry.h"

#include <sched.h>

#include "engine/segment/region_table.h"
#include "engine/segment/shared_heap.h"

namespace portofu {
namespace {

/// Longest wait for a peer that is using an entry.
constexpr std::uint64_t kLongestVisitNs = 1'000'000'000;

/// What makes an entry one of whose messages we must know.
constexpr std::uint32_t kNeedsUs = kEntryUseOnce | kEntryManageLocal | kEntryAckDisable;

}  // namespace

bool may_be_published(const Interface& ni, const EntryRequest& request) {
  if (ni.is_matching() || request.list != ListKind::kPriority || (request.options & kNeedsUs) != 0) return false;
  if ((request.options & kEntryEventCtComm) != 0 && request.ct_handle != 0) return false;
  const bool raises_events = (request.options & (kEntryEventCommDisable | kEntryEventSuccessDisable)) == 0;
  if (raises_events && ni.portal(request.pt_index)->eq_handle != 0) return false;
  const std::uint64_t length = request.segment.length();
  const MemorySegment::Run run = request.segment.run_at(0, length);
  return length != 0 && run.bytes == length && process_heap().holds(run.start, length);
}

bool publish_entry(Core& core, const Interface& ni, ListEntry& entry) {
  PortalTableEntry& portal = *ni.portal(entry.pt_index);
  if (portal.published == &entry) return true;
  if (core.directory == nullptr || !portal.enabled || portal.priority.first() != &entry) return false;
  PublishedRegion region;
  region.key = entry_key(ni.index, entry.pt_index);
  region.start = reinterpret_cast<std::uintptr_t>(entry.segment.address(0));
  region.bytes = entry.segment.length();
  region.user = entry.uid;
  region.writable = (entry.options & kEntryOpPut) != 0;
  region.readable = (entry.options & kEntryOpGet) != 0;
  if (!core.directory->publish(region)) return false;
  portal.published = &entry;
  portal.was_published = true;
  return true;
}

void withdraw_entry(Core& core, const Interface& ni, PortalTableEntry& portal, std::uint32_t pt_index) {
  if (portal.published == nullptr) return;
  core.directory->withdraw(entry_key(ni.index, pt_index));
  portal.published = nullptr;
}

bool is_in_use(Core& core, const Interface& ni, PortalTableEntry& portal, const ListEntry& entry) {
  if (portal.published == &entry) withdraw_entry(core, ni, portal, entry.pt_index);
  return core.directory->is_visited(entry_key(ni.index, entry.pt_index));
}

void end_visits(Core& core, const PortalTableEntry& portal, std::uint64_t key) {
  if (!portal.was_published) return;
  const std::uint64_t deadline_ns = core.now_ns() + kLongestVisitNs;
  while (core.directory->is_visited(key) && core.now_ns() < deadline_ns) sched_yield();
}

void end_visits(Core& core, Interface& ni) {
  for (std::uint32_t index = 0; index < kPortalTableSize; ++index) {
    PortalTableEntry* portal = ni.portal(index);
    if (portal == nullptr) continue;
    withdraw_entry(core, ni, *portal, index);
    end_visits(core, *portal, entry_key(ni.index, index));
  }
}

}  // namespace portofu
