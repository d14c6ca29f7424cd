#include "engine/target/complete.h"

namespace portofu {
namespace {

EventKind event_kind_of(PacketType type) {
  switch (type) {
    case PacketType::kGet: return EventKind::kGet;
    case PacketType::kAtomic: return EventKind::kAtomic;
    case PacketType::kFetchAtomic:
    case PacketType::kSwap: return EventKind::kFetchAtomic;
    default: return EventKind::kPut;
  }
}

/// What a count needs to know of an operation.
struct Outcome {
  NiFail fail;
  std::uint64_t mlength;
};

void count(Core& core, Interface& ni, Handle ct_handle, std::uint32_t options, const Outcome& outcome) {
  if (outcome.fail != NiFail::kOk) {
    count_failure(core, ni, ct_handle);
  } else {
    count_success(core, ni, ct_handle, (options & kEntryEventCtBytes) != 0 ? outcome.mlength : 1);
  }
}

void report_communication(Core& core, Interface& ni, Handle eq_handle, const Arrival& arrival) {
  const ListEntry& entry = *arrival.entry;
  const bool hidden = (entry.options & kEntryEventCommDisable) != 0 ||
                      (arrival.fail == NiFail::kOk && (entry.options & kEntryEventSuccessDisable) != 0);
  if (!hidden) post_event_with(core, ni, eq_handle, [&arrival](Event& event) { fill_target_event(arrival, event); });
  if ((entry.options & kEntryEventCtComm) != 0)
    count(core, ni, entry.ct_handle, entry.options, {arrival.fail, arrival.mlength});
}

void report_overflow(Core& core, Interface& ni, const PortalTableEntry& portal, const UnexpectedHeader& header) {
  const OverflowClaim& claim = header.claim;
  Event event = header.event;
  event.user_ptr = claim.user_ptr;
  const bool hidden = (claim.options & kEntryEventOverDisable) != 0 ||
                      (event.ni_fail_type == NiFail::kOk && (claim.options & kEntryEventSuccessDisable) != 0);
  if (!hidden) post_event(core, ni, portal.eq_handle, event);
  if ((claim.options & kEntryEventCtOverflow) != 0)
    count(core, ni, claim.ct_handle, claim.options, {event.ni_fail_type, event.mlength});
  if (claim.unlink_follows) {
    report_auto_unlink(core, ni, portal.eq_handle, event.pt_index, claim.options, claim.user_ptr);
  }
}

/// The header is told and complete: nothing is left of the message.
void release_header(Core& core, Interface& ni, UnexpectedHeader* header) {
  ListEntry& entry = *header->entry;
  delete header;
  --ni.unexpected_count;
  --entry.unexpected_count;
  advance_unlink(core, ni, entry);
}

/// The message of an unexpected header is complete.
void complete_header(Core& core, Interface& ni, PortalTableEntry& portal, UnexpectedHeader* header,
                     const Outcome& outcome) {
  header->event.ni_fail_type = outcome.fail;
  header->event.mlength = outcome.mlength;
  header->complete = true;
  if (!header->claimed) return;
  report_overflow(core, ni, portal, *header);
  release_header(core, ni, header);
}

}  // namespace

void fill_target_event(const Arrival& arrival, Event& event) {
  const PacketHeader& header = arrival.header;
  event.type = event_kind_of(header.type);
  event.start = arrival.entry->segment.address(arrival.offset);
  event.user_ptr = arrival.entry->user_ptr;
  event.hdr_data = header.hdr_data;
  event.match_bits = header.match_bits;
  event.rlength = header.length;
  event.mlength = arrival.mlength;
  event.remote_offset = header.remote_offset;
  event.uid = header.uid;
  event.initiator = arrival.initiator;
  event.ptl_list = arrival.list;
  event.ni_fail_type = arrival.fail;
  event.pt_index = header.pt_index;
  if (header.type == PacketType::kPut || header.type == PacketType::kGet) return;
  event.atomic_operation = header.atomic_operation;
  event.atomic_type = header.atomic_type;
}

void report_auto_unlink(Core& core, Interface& ni, Handle eq_handle, std::uint16_t pt_index, std::uint32_t options,
                        void* user_ptr) {
  if ((options & kEntryEventUnlinkDisable) != 0) return;
  Event event;
  event.type = EventKind::kAutoUnlink;
  event.pt_index = pt_index;
  event.user_ptr = user_ptr;
  post_event(core, ni, eq_handle, event);
}

void complete_arrival(Core& core, Interface& ni, Peer&, Arrival& arrival) {
  ListEntry& entry = *arrival.entry;
  PortalTableEntry& portal = *ni.portal(entry.pt_index);
  if (arrival.promised_events != 0) {
    if (EventQueue* queue = ni.eqs.find(portal.eq_handle)) queue->withdraw_promise_on_duty(arrival.promised_events);
  }
  const Outcome outcome{arrival.fail, arrival.mlength};
  --entry.pending;
  --portal.in_progress;
  ++core.activity;
  report_communication(core, ni, portal.eq_handle, arrival);
  // An entry that is unlinked tells so after all its communication events, and before its headers can be used up.
  UnexpectedHeader* header = arrival.unexpected;
  arrival.unexpected = nullptr;
  if (entry.state != EntryState::kLinked) advance_unlink(core, ni, entry);
  if (header != nullptr) complete_header(core, ni, portal, header, outcome);
}

void claim_header(Core& core, Interface& ni, PortalTableEntry& portal, UnexpectedHeader& header,
                  const OverflowClaim& claim) {
  portal.unexpected.remove(header);
  header.claimed = true;
  header.claim = claim;
  if (!header.complete) return;
  report_overflow(core, ni, portal, header);
  release_header(core, ni, &header);
}

void advance_unlink(Core& core, Interface& ni, ListEntry& entry) {
  const PortalTableEntry& portal = *ni.portal(entry.pt_index);
  if (entry.state == EntryState::kUnlinking && entry.pending == 0) {
    entry.state = EntryState::kUnlinked;
    report_auto_unlink(core, ni, portal.eq_handle, entry.pt_index, entry.options, entry.user_ptr);
  }
  if (entry.state != EntryState::kUnlinked || entry.unexpected_count != 0) return;
  entry.state = EntryState::kGone;
  const bool tells = entry.list == ListKind::kOverflow &&
                     (entry.options & (kEntryEventUnlinkDisable | kEntryUnexpectedHdrDisable)) == 0;
  if (tells) {
    Event event;
    event.type = EventKind::kAutoFree;
    event.pt_index = entry.pt_index;
    event.user_ptr = entry.user_ptr;
    post_event(core, ni, portal.eq_handle, event);
  }
  entry.segment.clear();
  ni.entries.free(entry.handle);
}

}  // namespace portofu
