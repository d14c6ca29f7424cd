#pragma once
// Step 8: a message is complete at the target. Unlinks, posts events, counts (which may fire triggers), frees. The
// answer is the caller's next step. @spec Portals 4.3, 3.13, 3.14

#include "engine/core/core.h"
#include "engine/queue/fresh_line.h"
#include "engine/target/match_steps.h"

namespace portofu {

/// What a successful operation counts at an entry with these options.
constexpr std::uint64_t counted_amount(std::uint32_t options, std::uint64_t mlength) {
  return (options & kEntryEventCtBytes) != 0 ? mlength : 1;
}

/// The event of a message at its target.
constexpr EventKind event_kind_of(PacketType type) {
  switch (type) {
    case PacketType::kGet: return EventKind::kGet;
    case PacketType::kAtomic: return EventKind::kAtomic;
    case PacketType::kFetchAtomic:
    case PacketType::kSwap: return EventKind::kFetchAtomic;
    default: return EventKind::kPut;
  }
}

/// Whether the initiator gets what was in the target's memory.
constexpr bool reads(PacketType type) {
  return type == PacketType::kGet || type == PacketType::kFetchAtomic || type == PacketType::kSwap;
}

/// Whether an operation that fetches may leave other items behind than it found.
inline bool fetches_and_changes(const PacketHeader& header, PacketType type) {
  return is_fetching(type) && !only_reads(header);
}

/// Whether the application wants to be told of the message's data (FI_REMOTE_CQ_DATA).
inline bool tells_data(const PacketHeader& header) {
  return (header.flags & kFlagTellsData) != 0 && header.interface_index == kFabricInterface;
}

/// How a message ended at its target: what takes data does not take less than all.
inline NiFail outcome_of(const ListEntry& entry, NiFail fail, std::uint64_t mlength, std::uint64_t rlength) {
  const bool truncated = (entry.options & kEntryTakesData) != 0 && fail == NiFail::kOk && mlength < rlength;
  return truncated ? NiFail::kTruncated : fail;
}

/// Writes the full event of a message at its target, table 3-3, as far as it is known now: all fields.
/// @param type  of the header
/// @param fail  outcome_of the message
inline void fill_target_event(const PacketHeader& header, PacketType type, const Placement& placement, NiFail fail,
                              Event& event) {
  const bool atomic = type != PacketType::kPut && type != PacketType::kGet;
  event.type = event_kind_of(type);
  event.start = placement.entry->segment.address(placement.offset);
  event.user_ptr = placement.entry->user_ptr;
  event.hdr_data = header.hdr_data;
  event.match_bits = header.match_bits;
  event.rlength = header.length;
  event.mlength = placement.mlength;
  event.remote_offset = header.remote_offset;
  event.uid = header.uid;
  event.initiator = placement.initiator;
  event.ptl_list = placement.list;
  event.ni_fail_type = fail;
  event.pt_index = header.pt_index;
  event.has_data = tells_data(header);
  event.atomic_operation = atomic ? header.atomic_operation : 0;
  event.atomic_type = atomic ? header.atomic_type : 0;
}

/// The overflow event of a message whose header was kept; `user_ptr` is to be set.
inline void fill_overflow_event(const UnexpectedHeader& header, Event& event) {
  event.type = header.type;
  event.start = header.start;
  event.hdr_data = header.hdr_data;
  event.match_bits = header.key.match_bits;
  event.rlength = header.rlength;
  event.mlength = header.mlength;
  event.remote_offset = header.remote_offset;
  event.uid = header.uid;
  event.initiator = header.key.source;
  event.ptl_list = ListKind::kOverflow;
  event.ni_fail_type = header.ni_fail_type;
  event.atomic_operation = header.atomic_operation;
  event.atomic_type = header.atomic_type;
  event.pt_index = header.pt_index;
  event.has_data = header.has_data;
}

/// Raises the event and the count of a message whose data is in place.
/// @param type  of the header
[[gnu::always_inline]] inline void report_communication(Core& core, Interface& ni, Handle eq_handle,
                                                        const PacketHeader& header, PacketType type,
                                                        const Placement& placement) {
  const ListEntry& entry = *placement.entry;
  const NiFail fail = outcome_of(entry, placement.fail, placement.mlength, header.length);
  const bool quiet = fail == NiFail::kOk && ni.is_quiet(entry.options, header.pt_index) && !tells_data(header);
  if ((entry.options & kEntryEventCommDisable) == 0 && !quiet) {
    post_event_with(core, ni, ni.eq_for(eq_handle, header.pt_index),
                    [&](Event& event) { fill_target_event(header, type, placement, fail, event); });
  }
  if ((entry.options & kEntryEventCtComm) != 0) {
    const std::uint64_t amount = counted_amount(entry.options, placement.mlength);
    const Handle ct_handle = reads(type) ? entry.read_ct_handle : entry.ct_handle;
    count_outcome(core, ni, ni.ct_for(ct_handle, header.pt_index), fail, amount);
    if (entry.counts_changes && fetches_and_changes(header, type))
      count_outcome(core, ni, ni.ct_for(entry.ct_handle, header.pt_index), fail, amount);
  }
}

/// Ends an arrival that matched: `arrival.fail` says how. Afterwards `arrival.entry` must not be used.
void complete_arrival(Core& core, Interface& ni, Peer& peer, Arrival& arrival);

/// Gives an unexpected or held header to the append or search that matched it: takes it out of its list. What is due
/// is told now, or when the message is complete. An entry goes on then: its `state` says whether it is used up.
/// @param claim  its entry, if any, counts it already
void claim_header(Core& core, Interface& ni, PortalTableEntry& portal, UnexpectedHeader& header,
                  const OverflowClaim& claim);

/// Tells that a search has nothing more to tell of.
void end_search(Core& core, Interface& ni, const PortalTableEntry& portal, EntryNews search, Handle ct_handle);

/// The header's message has been told, or nobody wants it: nothing is left of it.
void release_header(Core& core, Interface& ni, UnexpectedHeader* header);

/// Gives the answers that are due because unexpected messages take less memory, or because somebody waits.
/// @param all  whatever they take
void give_late_answers(Core& core, Interface& ni, bool all = false);

/// Whether some receive of libfabric has not found its message.
bool waits_for_message(const Interface& ni);

/// Nothing happens, and somebody waits: gives the answers that are due if a receive has not found its message, which
/// may come behind what waits for them. @return whether any were
bool answer_if_awaited(Core& core, Interface& ni);

/// Raises AUTO_UNLINK of an entry that left its list by itself.
void report_auto_unlink(Core& core, Interface& ni, Handle eq_handle, EntryNews news);

/// Whether AUTO_UNLINK is due: the entry left its list by itself, and no message is under way to it.
inline bool unlinks_now(const ListEntry& entry) { return entry.state == EntryState::kUnlinking && entry.pending == 0; }

// What advance_unlink tells, if anybody wants to hear it.
void tell_unlinked(Core& core, Interface& ni, const ListEntry& entry, std::uint16_t pt_index);
void tell_freed(Core& core, Interface& ni, const ListEntry& entry);

/// Goes on with an entry that left its list by itself, as far as what refers to it allows: AUTO_UNLINK, AUTO_FREE,
/// freed.
/// @param pt_index  by which its last message came: there its end is told
[[gnu::always_inline]] inline void advance_unlink(Core& core, Interface& ni, ListEntry& entry, std::uint16_t pt_index) {
  if (unlinks_now(entry)) {
    entry.state = EntryState::kUnlinked;
    if ((entry.options & kEntryEventUnlinkDisable) == 0) tell_unlinked(core, ni, entry, pt_index);
  }
  if (fresh(entry.state) != EntryState::kUnlinked || entry.unexpected_count != 0) return;
  entry.state = EntryState::kGone;
  if (entry.list == ListKind::kOverflow) [[unlikely]]
    tell_freed(core, ni, entry);
  entry.segment.clear();
  ni.entries.free(entry.handle);
}

}  // namespace portofu
