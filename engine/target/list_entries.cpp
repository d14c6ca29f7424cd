#include "engine/target/list_entries.h"

#include <algorithm>
#include <utility>

#include "engine/queue/fresh_line.h"
#include "engine/target/complete.h"
#include "engine/target/published_entry.h"

namespace portofu {
namespace {

/// What became of the unexpected headers that an entry matches when it is appended.
enum class Taken : std::uint8_t {
  kLinkIt,  ///< The entry goes on to its list.
  kUsed,    ///< A use-once entry found its message: it is not linked; AUTO_UNLINK is told or promised.
  kFull,    ///< Its locally managed space is used up by headers: it is not linked; AUTO_UNLINK is still to be told.
};

bool counts_uh_rlength(const EntryRequest& request) {
  const std::uint32_t wanted = kEntryManageLocal | kEntryLocalIncUhRlength;
  return (request.options & wanted) == wanted && (request.options & kEntryUseOnce) == 0;
}

/// 3.12.1, PTL_ME_LOCAL_INC_UH_RLENGTH: moves the offset past the header's message.
/// @return false once less than min_free is left
bool move_past(const EntryRequest& request, std::uint64_t rlength, std::uint64_t* local_offset) {
  const std::uint64_t length = request.segment.length();
  *local_offset = rlength > length - *local_offset ? length : *local_offset + rlength;
  return length - *local_offset >= request.min_free;
}

Taken take_unexpected(Core& core, Interface& ni, PortalTableEntry& portal, const EntryRequest& request,
                      std::uint64_t* local_offset) {
  const bool use_once = (request.options & kEntryUseOnce) != 0;
  const OverflowClaim claim{request.user_ptr, request.options, request.ct_handle, use_once};
  UnexpectedEntry* found = portal.unexpected.find_first(request.criteria);
  while (found != nullptr) {
    UnexpectedEntry* following = use_once ? nullptr : portal.unexpected.find_next(request.criteria, *found);
    auto& header = static_cast<UnexpectedHeader&>(*found);
    const std::uint64_t rlength = header.rlength;
    claim_header(core, ni, portal, header, claim);
    if (use_once) return Taken::kUsed;
    if (counts_uh_rlength(request) && !move_past(request, rlength, local_offset)) return Taken::kFull;
    found = following;
  }
  return Taken::kLinkIt;
}

void fill(const Interface& ni, ListEntry& entry, EntryRequest&& request, Handle handle, std::uint64_t local_offset) {
  const MatchCriteria& criteria = request.criteria;
  entry.publication = may_be_published(ni, request) ? Publication::kPossible : Publication::kNever;
  entry.criteria = {fresh(criteria.match_bits),
                    fresh(criteria.ignore_bits),
                    {fresh(criteria.match_id.nid), fresh(criteria.match_id.pid)},
                    fresh(criteria.any_nid),
                    fresh(criteria.any_pid)};
  entry.segment = std::move(request.segment);
  entry.local_offset = local_offset;
  entry.origin = request.origin;
  entry.min_free = (request.options & kEntryManageLocal) != 0 ? request.min_free : 0;
  entry.user_ptr = request.user_ptr;
  entry.options = request.options;
  entry.uid = request.uid;
  entry.handle = handle;
  entry.ct_handle = request.ct_handle;
  entry.read_ct_handle = request.counts_reads_apart ? request.read_ct_handle : request.ct_handle;
  entry.pending = 0;
  entry.unexpected_count = 0;
  entry.pt_index = request.pt_index;
  entry.list = request.list;
  entry.state = EntryState::kLinked;
}

void report_link(Core& core, Interface& ni, Handle eq_handle, const ListEntry& entry) {
  if ((entry.options & kEntryEventLinkDisable) != 0) return;
  post_entry_event(core, ni, eq_handle, EventKind::kLink, news_of(entry));
}

/// The next place in an entry that takes data, for a message of `rlength` bytes.
/// @return whether the entry is used up with it
bool reserve_place(ListEntry& entry, std::uint64_t rlength, OverflowClaim* claim) {
  const bool moves = (entry.options & kEntryManageLocal) != 0;
  const std::uint64_t room = entry.segment.length() - entry.local_offset;
  claim->taker = &entry;
  claim->taker_offset = entry.local_offset;
  claim->taker_room = std::min(room, rlength);
  if (moves) entry.local_offset += claim->taker_room;
  ++entry.pending;
  return (entry.options & kEntryUseOnce) != 0 || (moves && room - claim->taker_room < entry.min_free);
}

/// A header that is in no list: its message goes to the entry now, or when it is whole.
void give_message(Core& core, Interface& ni, PortalTableEntry& portal, UnexpectedHeader& header,
                  const OverflowClaim& claim) {
  if (header.complete) return hand_over(core, ni, portal, header, claim);
  header.claimed = true;
  header.claim = claim;
}

/// An entry that takes data gets the messages that it matches.
/// @return false: it is used up, and not to be linked
bool give_unexpected(Core& core, Interface& ni, PortalTableEntry& portal, ListEntry& entry) {
  while (UnexpectedEntry* found = portal.unexpected.find_first(entry.criteria)) {
    auto& header = static_cast<UnexpectedHeader&>(*found);
    OverflowClaim claim;
    const bool used_up = reserve_place(entry, header.rlength, &claim);
    portal.unexpected.remove(header);
    give_message(core, ni, portal, header, claim);
    if (used_up) return false;
  }
  return true;
}

/// An entry that was never linked ends when the messages that it has been given are whole.
void end_unlinked(Core& core, Interface& ni, ListEntry& entry) {
  entry.state = EntryState::kUnlinking;
  advance_unlink(core, ni, entry);
}

/// The handle of an entry that was never linked is stale from the start, and recognised (3.11.3).
void retire(Interface& ni, ListEntry& entry, Handle handle) {
  entry.state = EntryState::kGone;
  ni.entries.free(handle);
}

/// Raises the SEARCH event of a match, or of the end of the search.
/// @param fill  void(Event&), writes what it says of that
template <class Fill>
void report_search(Core& core, Interface& ni, const EntryRequest& request, NiFail fail, Fill&& fill) {
  const bool hidden = (request.options & kEntryEventCommDisable) != 0 ||
                      (fail == NiFail::kOk && (request.options & kEntryEventSuccessDisable) != 0);
  if (hidden) return;
  post_new_event(core, ni, ni.portal(request.pt_index)->eq_handle, [&](Event& event) {
    fill(event);
    event.type = EventKind::kSearch;
    event.user_ptr = request.user_ptr;
    event.ni_fail_type = fail;
  });
}

}  // namespace

Status append_entry(Core& core, Interface& ni, EntryRequest&& request, Handle* handle) {
  PortalTableEntry& portal = *ni.portal(request.pt_index);
  if (portal.entry_count >= ni.limits.max_list_size) return Status::kListTooLong;
  ListEntry* entry = ni.entries.allocate(handle);
  if (entry == nullptr) return Status::kNoSpace;
  std::uint64_t local_offset = 0;
  const bool takes_data = (request.options & kEntryTakesData) != 0;
  const bool searches = request.list == ListKind::kPriority && !portal.unexpected.empty() && !takes_data;
  const Taken taken = searches ? take_unexpected(core, ni, portal, request, &local_offset) : Taken::kLinkIt;
  if (taken != Taken::kLinkIt) {
    if (taken == Taken::kFull) {
      report_auto_unlink(core, ni, portal.eq_handle, {request.user_ptr, request.options, request.pt_index});
    }
    retire(ni, *entry, *handle);
    return Status::kOk;
  }
  fill(ni, *entry, std::move(request), *handle, local_offset);
  if (takes_data && !portal.unexpected.empty() && !give_unexpected(core, ni, portal, *entry)) {
    end_unlinked(core, ni, *entry);
    return Status::kOk;
  }
  (entry->list == ListKind::kPriority ? portal.priority : portal.overflow).append(*entry);
  ++portal.entry_count;
  report_link(core, ni, portal.eq_handle, *entry);
  return Status::kOk;
}

UnexpectedHeader* find_header(Interface& ni, std::uint16_t pt_index, const MatchCriteria& criteria) {
  return static_cast<UnexpectedHeader*>(ni.portal(pt_index)->unexpected.find_first(criteria));
}

void hold_header(Interface& ni, std::uint16_t pt_index, UnexpectedHeader& header) {
  PortalTableEntry& portal = *ni.portal(pt_index);
  portal.unexpected.remove(header);
  portal.held.append(header);
  header.claimed = true;
  header.claim = {};
  header.claim.held = true;
}

Status take_held(Core& core, Interface& ni, UnexpectedHeader& header, EntryRequest&& request, Handle* handle) {
  ListEntry* entry = ni.entries.allocate(handle);
  if (entry == nullptr) return Status::kNoSpace;
  PortalTableEntry& portal = *ni.portal(request.pt_index);
  fill(ni, *entry, std::move(request), *handle, 0);
  portal.held.remove(header);
  OverflowClaim claim;
  reserve_place(*entry, header.rlength, &claim);
  give_message(core, ni, portal, header, claim);
  end_unlinked(core, ni, *entry);
  return Status::kOk;
}

void drop_held(Core& core, Interface& ni, UnexpectedHeader& header) {
  ni.portal(header.entry->pt_index)->held.remove(header);
  if (header.complete) return release_header(core, ni, &header);
  header.claim = {};
  header.claim.options = kEntryEventCommDisable | kEntryEventOverDisable;
}

Status unlink_entry(Core& core, Interface& ni, Handle handle) {
  ListEntry* entry = ni.entries.find(handle);
  if (entry == nullptr) {
    const ListEntry* stale = ni.entries.find_stale(handle);
    return stale != nullptr && stale->state == EntryState::kGone ? Status::kInUse : Status::kArgInvalid;
  }
  if (entry->state != EntryState::kLinked || entry->pending != 0 || entry->unexpected_count != 0) return Status::kInUse;
  PortalTableEntry& portal = *ni.portal(entry->pt_index);
  if (portal.publications != 0 && !take_back(core, ni, portal, *entry)) return Status::kInUse;
  (entry->list == ListKind::kPriority ? portal.priority : portal.overflow).remove(*entry);
  --portal.entry_count;
  portal.answers_to_refusal = 0;
  entry->segment.clear();
  ni.entries.free(handle);  // The state stays kLinked: the stale handle is a mistake of the caller from now on.
  return Status::kOk;
}

bool search_entries(Core& core, Interface& ni, const EntryRequest& request, SearchOperation operation) {
  PortalTableEntry& portal = *ni.portal(request.pt_index);
  const bool use_once = (request.options & kEntryUseOnce) != 0;
  // Counted when found (3.11.4); the overflow event of a deleted header must not count again.
  const OverflowClaim claim{request.user_ptr, request.options, 0, false};
  bool found_any = false;
  UnexpectedEntry* found = portal.unexpected.find_first(request.criteria);
  while (found != nullptr) {
    UnexpectedEntry* following = use_once ? nullptr : portal.unexpected.find_next(request.criteria, *found);
    auto& header = static_cast<UnexpectedHeader&>(*found);
    if (operation == SearchOperation::kDelete) {
      claim_header(core, ni, portal, header, claim);
    } else {
      report_search(core, ni, request, header.ni_fail_type,
                    [&header](Event& event) { fill_overflow_event(header, event); });
    }
    count_success(core, ni, request.ct_handle, 1);
    if (use_once) return true;
    found_any = true;
    found = following;
  }
  if (!found_any) portal.miss(request.criteria);
  report_search(core, ni, request, NiFail::kNoMatch, [&request](Event& event) { event.pt_index = request.pt_index; });
  count_failure(core, ni, request.ct_handle);
  return found_any;
}

}  // namespace portofu
