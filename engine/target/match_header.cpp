#include "engine/target/match_header.h"

#include <algorithm>
#include <new>

#include "engine/target/atomic_unit.h"
#include "engine/target/complete.h"
#include "engine/target/flow_control.h"
#include "engine/target/permission.h"

namespace portofu {
namespace {

std::uint64_t offset_in(const ListEntry& entry, const PacketHeader& header) {
  return (entry.options & kEntryManageLocal) != 0 ? entry.local_offset : header.remote_offset;
}

/// PTL_ME_NO_TRUNCATE: a message that does not fit does not match; one of zero bytes always fits.
bool accepts(const ListEntry& entry, const PacketHeader& header) {
  if ((entry.options & kEntryNoTruncate) == 0 || header.length == 0) return true;
  return entry.segment.fits(offset_in(entry, header), header.length);
}

/// Bytes that are moved: what fits, for an atomic in whole items.
std::uint64_t manipulated_length(const ListEntry& entry, std::uint64_t offset, const PacketHeader& header) {
  const std::uint64_t room = offset < entry.segment.length() ? entry.segment.length() - offset : 0;
  const std::uint64_t length = std::min(room, header.length);
  if (header.type == PacketType::kPut || header.type == PacketType::kGet) return length;
  const std::uint32_t item = atomic_type_bytes(static_cast<AtomicType>(header.atomic_type));
  return length - length % item;
}

ListEntry* find_in(MatchList& list, const Interface& ni, const Arrival& arrival) {
  if (list.empty()) return nullptr;
  // A non-matching interface takes the first entry, whatever comes (2.5.1).
  if (!ni.is_matching()) return static_cast<ListEntry*>(list.first());
  const MatchKey key{arrival.header.match_bits, arrival.initiator};
  MatchEntry* found =
      list.find(key, [&](MatchEntry& entry) { return accepts(static_cast<ListEntry&>(entry), arrival.header); });
  return static_cast<ListEntry*>(found);
}

bool keeps_header(const ListEntry& entry, ListKind list) {
  return list == ListKind::kOverflow && (entry.options & kEntryUnexpectedHdrDisable) == 0;
}

/// Full events that the message will raise at the target: its own, and that its entry unlinked.
std::uint32_t events_due(const ListEntry& entry) {
  std::uint32_t count = (entry.options & (kEntryEventCommDisable | kEntryEventSuccessDisable)) == 0 ? 1 : 0;
  const bool may_unlink = (entry.options & kEntryUseOnce) != 0 || entry.min_free != 0;
  if (may_unlink && (entry.options & kEntryEventUnlinkDisable) == 0) ++count;
  return count;
}

/// Keeps the header of a message that goes into the overflow list, from now on visible to appends and searches.
bool keep_header(Interface& ni, PortalTableEntry& portal, Arrival& arrival) {
  auto* kept = new (std::nothrow) UnexpectedHeader;
  if (kept == nullptr) return false;
  const PacketHeader& header = arrival.header;
  kept->key = {header.match_bits, arrival.initiator};
  kept->entry = arrival.entry;
  arrival.unexpected = kept;
  portal.unexpected.append(*kept);
  ++ni.unexpected_count;
  ++arrival.entry->unexpected_count;
  return true;
}

/// The entry takes the message: offset, length, use once, min_free.
void take(PortalTableEntry& portal, Arrival& arrival) {
  ListEntry& entry = *arrival.entry;
  arrival.offset = offset_in(entry, arrival.header);
  arrival.mlength = manipulated_length(entry, arrival.offset, arrival.header);
  bool unlink = (entry.options & kEntryUseOnce) != 0;
  if ((entry.options & kEntryManageLocal) != 0) {
    entry.local_offset += arrival.mlength;
    unlink = unlink || entry.segment.length() - entry.local_offset < entry.min_free;
  }
  ++entry.pending;
  ++portal.in_progress;
  if (!unlink) return;
  (arrival.list == ListKind::kPriority ? portal.priority : portal.overflow).remove(entry);
  --portal.entry_count;
  entry.state = EntryState::kUnlinking;
}

}  // namespace

Refusal match_header(Core& core, Interface& ni, Arrival& arrival) {
  const PacketHeader& header = arrival.header;
  PortalTableEntry* portal = ni.portal(header.pt_index);
  if (portal == nullptr) return Refusal::kNoPortal;
  if (!portal->enabled) return Refusal::kDisabled;
  arrival.list = ListKind::kPriority;
  arrival.entry = find_in(portal->priority, ni, arrival);
  if (arrival.entry == nullptr) {
    arrival.list = ListKind::kOverflow;
    arrival.entry = find_in(portal->overflow, ni, arrival);
  }
  if (arrival.entry == nullptr) return exhausted(core, ni, header.pt_index, nullptr);
  const Refusal verdict = judge(*arrival.entry, header);
  if (verdict != Refusal::kNone) return verdict;

  const bool keeps = keeps_header(*arrival.entry, arrival.list);
  if (keeps && ni.unexpected_count >= ni.limits.max_unexpected_headers) {
    return exhausted(core, ni, header.pt_index, arrival.entry);
  }
  EventQueue* queue = ni.eqs.find(portal->eq_handle);
  const std::uint32_t events = queue != nullptr ? events_due(*arrival.entry) : 0;
  if (portal->flow_control && events > 0 && !queue->has_room_on_duty(events)) {
    return exhausted(core, ni, header.pt_index, arrival.entry);
  }
  if (keeps && !keep_header(ni, *portal, arrival)) return exhausted(core, ni, header.pt_index, arrival.entry);
  if (portal->flow_control && events > 0) queue->promise_on_duty(events);
  arrival.promised_events = portal->flow_control ? events : 0;
  take(*portal, arrival);
  if (arrival.unexpected != nullptr) {
    fill_target_event(arrival, arrival.unexpected->event);
    arrival.unexpected->event.type = overflow_kind(arrival.unexpected->event.type);
  }
  return Refusal::kNone;
}

}  // namespace portofu
