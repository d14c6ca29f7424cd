#include "engine/target/complete.h"

#include <algorithm>

#include "engine/core/steps.h"
#include "engine/target/answer_out.h"

namespace portofu {
namespace {

/// A message raises its own event, and AUTO_UNLINK of its entry, which may be due since another message (3.13.3).
constexpr std::uint32_t kMostEventsOfArrival = 2;

/// Raises the overflow event of a header, and counts it.
void report_overflow(Core& core, Interface& ni, const PortalTableEntry& portal, const UnexpectedHeader& header,
                     const OverflowClaim& claim) {
  const bool hidden = (claim.options & kEntryEventOverDisable) != 0 ||
                      (header.ni_fail_type == NiFail::kOk && (claim.options & kEntryEventSuccessDisable) != 0);
  if (!hidden) {
    post_new_event(core, ni, portal.eq_handle, [&](Event& event) {
      fill_overflow_event(header, event);
      event.user_ptr = claim.user_ptr;
    });
  }
  if ((claim.options & kEntryEventCtOverflow) != 0)
    count_outcome(core, ni, claim.ct_handle, header.ni_fail_type, counted_amount(claim.options, header.mlength));
}

/// The message goes into an entry that takes data (kEntryTakesData), and is told as if it had arrived now.
void hand_over(Core& core, Interface& ni, const PortalTableEntry& portal, UnexpectedHeader& header,
               const OverflowClaim& claim) {
  ListEntry& taker = *claim.entry;
  const std::uint64_t bytes = std::min(claim.room, header.mlength);
  if (bytes != 0 && !taker.segment.write(claim.offset, header.start, bytes)) header.ni_fail_type = NiFail::kSegv;
  const NiFail fail = outcome_of(taker, header.ni_fail_type, bytes, header.rlength);
  const bool quiet = fail == NiFail::kOk && ni.is_quiet(taker.options, header.pt_index) && !header.has_data;
  if ((taker.options & kEntryEventCommDisable) == 0 && !quiet) {
    post_new_event(core, ni, ni.eq_for(portal.eq_handle, header.pt_index), [&](Event& event) {
      fill_overflow_event(header, event);
      event.type = told_as_new(header.type);
      event.ptl_list = ListKind::kPriority;
      event.ni_fail_type = fail;
      event.start = taker.segment.address(claim.offset);
      event.mlength = bytes;
      event.user_ptr = taker.user_ptr;
    });
  }
  if ((taker.options & kEntryEventCtComm) != 0)
    count_outcome(core, ni, ni.ct_for(taker.ct_handle, header.pt_index), fail, counted_amount(taker.options, bytes));
}

/// What was promised to AUTO_UNLINK of an entry is there once the last message that is under way to it is complete.
/// @param queue  of its events; nullptr: it is gone
/// @return whether it is there
bool withdraw_unlink_promise(EventQueue* queue, ListEntry& entry) {
  if (!entry.is_unlink_promised || !unlinks_now(entry)) return false;
  entry.is_unlink_promised = false;
  if (queue != nullptr) queue->withdraw_promise_on_duty(1);
  return queue != nullptr;
}

/// The message of a header that an entry has claimed is complete: tells so, and goes on with the entry.
void settle_entry(Core& core, Interface& ni, const PortalTableEntry& portal, UnexpectedHeader& header,
                  const OverflowClaim& claim) {
  if ((claim.options & kEntryTakesData) != 0) {
    hand_over(core, ni, portal, header, claim);
  } else {
    report_overflow(core, ni, portal, header, claim);
  }
  --claim.entry->pending;
  ++core.activity;
  if (claim.entry->state == EntryState::kLinked) return;
  EventQueue* const queue = claim.entry->is_unlink_promised ? ni.eqs.find(portal.eq_handle) : nullptr;
  const bool held = withdraw_unlink_promise(queue, *claim.entry) && queue->hold_on_duty(1);
  advance_unlink(core, ni, *claim.entry, header.pt_index);
  if (held) queue->let_go_on_duty();
}

/// The message of a header that somebody has claimed is complete.
[[gnu::always_inline]] inline void settle(Core& core, Interface& ni, const PortalTableEntry& portal,
                                          UnexpectedHeader& header, const OverflowClaim& claim) {
  if (claim.by == ClaimedBy::kEntry) return settle_entry(core, ni, portal, header, claim);
  report_overflow(core, ni, portal, header, claim);
  const EntryNews news{claim.user_ptr, claim.options, header.entry->pt_index};
  if (claim.by == ClaimedBy::kUseOnce) return report_auto_unlink(core, ni, portal.eq_handle, news);
  count_success(core, ni, claim.ct_handle, 1);
  if (claim.by == ClaimedBy::kPersistentSearch && header.leave_search())
    end_search(core, ni, portal, news, claim.ct_handle);
}

/// The message of an unexpected header is complete.
void complete_header(Core& core, Interface& ni, const PortalTableEntry& portal, UnexpectedHeader* header,
                     const Arrival& arrival) {
  header->ni_fail_type = arrival.fail;
  header->mlength = arrival.mlength;
  header->complete = true;
  if (!header->claimed || header->claim.by == ClaimedBy::kNobody) return;
  settle(core, ni, portal, *header, header->claim);
  release_header(core, ni, header);
}

/// A message that has passed flow control is about to raise its events: what was promised to them is there. AUTO_UNLINK
/// of its entry is among them if it is the last that is under way to it.
/// @return the queue that holds it until they are raised; nullptr: there is room anyway
[[gnu::noinline]] EventQueue* hold_promised(Interface& ni, const PortalTableEntry& portal, const Arrival& arrival) {
  EventQueue* const queue = ni.eqs.find(portal.eq_handle);
  if (queue == nullptr) return nullptr;
  queue->withdraw_promise_on_duty(arrival.promised_events);
  withdraw_unlink_promise(queue, *arrival.entry);
  return queue->hold_on_duty(kMostEventsOfArrival) ? queue : nullptr;
}

}  // namespace

void release_header(Core& core, Interface& ni, UnexpectedHeader* header) {
  ListEntry& entry = *header->entry;
  if ((entry.options & kEntryOwnMemory) != 0 && header->start != nullptr) {
    ni.message_memory.give(header->start, header->rlength);
  }
  ni.spare_headers.give(header);
  --ni.unexpected_count;
  --entry.unexpected_count;
  if (!ni.late_answers.empty()) [[unlikely]]
    give_late_answers(core, ni);
  // Asked here, because nearly always it has nothing to do.
  if (entry.state != EntryState::kLinked) advance_unlink(core, ni, entry, entry.pt_index);
}

void give_late_answers(Core& core, Interface& ni, bool all) {
  const auto has_memory = [&] { return ni.unexpected_bytes() >> 20 < core.settings.unexpected_mib; };
  if (has_memory()) ni.is_awaited = false;
  while (!ni.late_answers.empty() && (all || ni.is_awaited || ni.is_slept_at || has_memory())) {
    const LateAnswer due = ni.late_answers.front();
    ni.late_answers.pop_front();
    AnswerContent content;
    content.operation_id = due.operation_id;
    send_answer(core, core.peer(due.peer), content);
  }
}

bool waits_for_message(const Interface& ni) {
  return std::ranges::any_of(ni.portal_table, [](const std::shared_ptr<PortalTableEntry>& portal) {
    if (portal == nullptr || portal->priority.empty() || portal->overflow.empty()) return false;
    return (static_cast<const ListEntry*>(portal->overflow.first())->options & kEntryOwnMemory) != 0;
  });
}

bool answer_if_awaited(Core& core, Interface& ni) {
  if (ni.late_answers.empty() || !waits_for_message(ni)) return false;
  ni.is_awaited = true;
  give_late_answers(core, ni);
  return true;
}

void report_auto_unlink(Core& core, Interface& ni, Handle eq_handle, EntryNews news) {
  if ((news.options & kEntryEventUnlinkDisable) != 0) return;
  post_entry_event(core, ni, ni.eq_for(eq_handle, news.pt_index), EventKind::kAutoUnlink, news);
}

void complete_arrival(Core& core, Interface& ni, Peer& peer, Arrival& arrival) {
  ListEntry& entry = *arrival.entry;
  PortalTableEntry& portal = *ni.portal(entry.pt_index);
  --entry.pending;
  EventQueue* held = nullptr;
  if (portal.flow_control) [[unlikely]]
    held = hold_promised(ni, portal, arrival);
  --portal.in_progress;
  ++core.activity;
  record_arrival(core, peer, arrival);
  report_communication(core, ni, portal.eq_handle, arrival.header, arrival.header.type, arrival);
  // An entry that is unlinked tells so after all its communication events, and before its headers can be used up.
  UnexpectedHeader* header = arrival.unexpected;
  arrival.unexpected = nullptr;
  if (entry.state != EntryState::kLinked) advance_unlink(core, ni, entry, arrival.header.pt_index);
  if (held != nullptr) [[unlikely]]
    held->let_go_on_duty();
  if (header != nullptr) complete_header(core, ni, portal, header, arrival);
}

void claim_header(Core& core, Interface& ni, PortalTableEntry& portal, UnexpectedHeader& header,
                  const OverflowClaim& claim) {
  UnexpectedList& list = header.claimed ? portal.held : portal.unexpected;
  if (!header.complete) {
    list.remove(header);
    header.claimed = true;
    header.claim = claim;
    return;
  }
  settle(core, ni, portal, header, claim);
  list.remove(header);  // Last, because its neighbours may be on their way into the cache.
  release_header(core, ni, &header);
}

void end_search(Core& core, Interface& ni, const PortalTableEntry& portal, EntryNews search, Handle ct_handle) {
  if ((search.options & kEntryEventCommDisable) == 0) {
    post_new_event(core, ni, portal.eq_handle, [search](Event& event) {
      event.type = EventKind::kSearch;
      event.user_ptr = search.user_ptr;
      event.pt_index = search.pt_index;
      event.ni_fail_type = NiFail::kNoMatch;
    });
  }
  count_failure(core, ni, ct_handle);
}

void tell_unlinked(Core& core, Interface& ni, const ListEntry& entry, std::uint16_t pt_index) {
  EntryNews news = news_of(entry);
  if (!entry.canceled) news.pt_index = pt_index;
  report_auto_unlink(core, ni, ni.portal(entry.pt_index)->eq_handle, news);
}

void tell_freed(Core& core, Interface& ni, const ListEntry& entry) {
  if ((entry.options & (kEntryEventUnlinkDisable | kEntryUnexpectedHdrDisable)) != 0) return;
  post_entry_event(core, ni, ni.portal(entry.pt_index)->eq_handle, EventKind::kAutoFree, news_of(entry));
}

}  // namespace portofu
