#include "engine/target/match_header.h"

#include "engine/core/steps.h"
#include "engine/target/complete.h"
#include "engine/target/deliver.h"
#include "engine/target/flow_control.h"
#include "engine/target/match_steps.h"
#include "engine/target/permission.h"

namespace portofu {
namespace {

bool keeps_header(const ListEntry& entry, ListKind list) {
  return list == ListKind::kOverflow && (entry.options & kEntryUnexpectedHdrDisable) == 0;
}

/// Keeps the header of a message that goes into the overflow list, from now on visible to appends and searches.
/// `note_placement` says the rest.
bool keep_header(Interface& ni, PortalTableEntry& portal, Arrival& arrival) {
  UnexpectedHeader* kept = ni.spare_headers.take();
  if (kept == nullptr) return false;
  const PacketHeader& header = arrival.header;
  kept->key = {header.match_bits, arrival.initiator};
  kept->entry = arrival.entry;
  kept->has_data = tells_data(header);
  kept->pt_index = header.pt_index;
  arrival.unexpected = kept;
  portal.unexpected.append(*kept);
  ++ni.unexpected_count;
  ++arrival.entry->unexpected_count;
  return true;
}

/// Memory for a message whose entry has none.
/// @return false if there is none
bool give_memory(Interface& ni, const PacketHeader& header, std::byte** memory) {
  *memory = header.length != 0 ? ni.message_memory.take(header.length) : nullptr;
  return *memory != nullptr || header.length == 0;
}

/// What the overflow event will say, once the message has its place.
void note_placement(const Arrival& arrival) {
  Event event;
  const PacketHeader& header = arrival.header;
  const NiFail fail = outcome_of(*arrival.entry, arrival.fail, arrival.mlength, header.length);
  fill_target_event(header, header.type, arrival, fail, event);
  UnexpectedHeader& kept = *arrival.unexpected;
  kept.start = event.start;
  kept.hdr_data = event.hdr_data;
  kept.rlength = event.rlength;
  kept.mlength = event.mlength;
  kept.remote_offset = event.remote_offset;
  kept.uid = event.uid;
  kept.type = overflow_kind(event.type);
  kept.atomic_operation = event.atomic_operation;
  kept.atomic_type = event.atomic_type;
}

/// Takes what a message needs beside the entry that it matched: a place for its header, room for its events, memory.
/// @param memory  for its data, if the entry has none
/// @return false if one of them is used up; then none is taken
bool reserve(Interface& ni, PortalTableEntry& portal, Arrival& arrival, std::byte** memory) {
  ListEntry& entry = *arrival.entry;
  const bool keeps = keeps_header(entry, arrival.list);
  if (keeps && ni.unexpected_count >= ni.limits.max_unexpected_headers) return false;
  EventQueue* queue = portal.flow_control ? ni.eqs.find(portal.eq_handle) : nullptr;
  const PacketHeader& header = arrival.header;
  const std::uint32_t own = queue != nullptr ? events_due(entry, header, header.type) : 0;
  const std::uint32_t unlinks = queue != nullptr ? unlinks_due(entry, arrival.mlength) : 0;
  const std::uint32_t events = own + unlinks;
  if (events > 0 && !queue->has_room_on_duty(events)) return false;
  if ((entry.options & kEntryOwnMemory) != 0 && !give_memory(ni, header, memory)) return false;
  if (keeps && !keep_header(ni, portal, arrival)) {
    if (*memory != nullptr) ni.message_memory.give(*memory, header.length);
    return false;
  }
  if (events > 0) queue->promise_on_duty(events);
  arrival.promised_events = own;
  entry.is_unlink_promised = unlinks != 0;
  return true;
}

}  // namespace

Refusal match_header(Core& core, Interface& ni, const Peer& peer, Arrival& arrival) {
  const PacketHeader& header = arrival.header;
  PortalTableEntry* portal = ni.portal(header.pt_index);
  if (portal == nullptr) return Refusal::kNoPortal;
  if (!portal->enabled) return Refusal::kDisabled;
  arrival.list = ListKind::kPriority;
  arrival.entry = find_entry(portal->priority, ni, header, arrival.initiator);
  if (arrival.entry == nullptr) {
    arrival.list = ListKind::kOverflow;
    arrival.entry = find_entry(portal->overflow, ni, header, arrival.initiator);
  }
  if (arrival.entry == nullptr) return exhausted(core, ni, header.pt_index, nullptr);
  const Refusal verdict = judge(*arrival.entry, header, header.type);
  if (verdict != Refusal::kNone) return verdict;
  find_place(header, header.type, arrival);
  if (executes(arrival) && !holds_items(arrival)) return Refusal::kNotAligned;
  const bool owns = (arrival.entry->options & kEntryOwnMemory) != 0;
  // An atomic needs a receive that waits for it: what it would be done to is not known before (fi_atomic(3),
  // FI_TAGGED).
  if (owns && header.type != PacketType::kPut) return Refusal::kNoMatch;
  std::byte* memory = nullptr;
  if (!reserve(ni, *portal, arrival, &memory)) return exhausted(core, ni, header.pt_index, arrival.entry);
  const bool unexpected = arrival.list == ListKind::kOverflow;
  record_match(core, peer, header, unexpected ? portal->overflow : portal->priority, *arrival.entry);
  take(*portal, arrival);
  if (owns) arrival.offset = reinterpret_cast<std::uintptr_t>(memory);
  ++arrival.entry->pending;
  ++portal->in_progress;
  if (arrival.unexpected != nullptr) note_placement(arrival);
  return Refusal::kNone;
}

}  // namespace portofu
