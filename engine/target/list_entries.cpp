#include "engine/target/list_entries.h"

#include <algorithm>
#include <utility>

#include "engine/queue/fresh_line.h"
#include "engine/target/complete.h"
#include "engine/target/published_entry.h"

namespace portofu {
namespace {

/// @param entry  from new_entry
void fill(const Interface& ni, ListEntry& entry, EntryRequest&& request) {
  const MatchCriteria& criteria = request.criteria;
  entry.criteria = {fresh(criteria.match_bits),
                    fresh(criteria.ignore_bits),
                    {fresh(criteria.match_id.nid), fresh(criteria.match_id.pid)},
                    fresh(criteria.any_nid),
                    fresh(criteria.any_pid)};
  entry.segment = std::move(request.segment);
  entry.origin = request.origin;
  entry.min_free = (request.options & kEntryManageLocal) != 0 ? request.min_free : 0;
  entry.user_ptr = request.user_ptr;
  entry.options = request.options;
  entry.uid = request.uid;
  entry.ct_handle = request.ct_handle;
  entry.read_ct_handle = request.counts_reads_apart ? request.read_ct_handle : request.ct_handle;
  entry.counts_changes = request.counts_changes;
  entry.pt_index = request.pt_index;
  entry.list = request.list;
  if (may_be_published(ni, entry)) entry.publication = Publication::kPossible;
}

/// Whether an unexpected message moves the local offset of an entry that gets it (3.12.1,
/// PTL_ME_LOCAL_INC_UH_RLENGTH).
bool moves(std::uint32_t options) {
  return (options & kEntryManageLocal) != 0 && (options & (kEntryTakesData | kEntryLocalIncUhRlength)) != 0;
}

/// An entry gets an unexpected message of `rlength` bytes.
/// @param local_offset  its own; moves past the message
/// @return whether it is used up with that
bool use_up(const ListEntry& entry, std::uint64_t rlength, std::uint64_t* local_offset) {
  if (moves(entry.options)) *local_offset += std::min(entry.segment.length() - *local_offset, rlength);
  return (entry.options & kEntryUseOnce) != 0 ||
         (moves(entry.options) && entry.segment.length() - *local_offset < entry.min_free);
}

/// Whether the unexpected messages that an entry matches use it up, so that it comes into no list.
/// @param found  the first of them; nullptr: there are none
[[gnu::noinline]] bool is_used_up_by(PortalTableEntry& portal, const UnexpectedEntry* found, const ListEntry& entry) {
  std::uint64_t local_offset = 0;
  while (found != nullptr && !use_up(entry, static_cast<const UnexpectedHeader*>(found)->rlength, &local_offset))
    found = portal.unexpected.find_next(entry.criteria, *found);
  return found != nullptr;
}

template <class Entry>
OverflowClaim claim_of(const Entry& request, ClaimedBy by) {
  return {.by = by, .options = request.options, .user_ptr = request.user_ptr, .ct_handle = request.ct_handle};
}

/// An entry that is in no list claims a header that it matches.
void give(Core& core, Interface& ni, PortalTableEntry& portal, UnexpectedHeader& header, ListEntry& entry) {
  const std::uint64_t offset = entry.local_offset;
  if (use_up(entry, header.rlength, &entry.local_offset)) entry.state = EntryState::kUnlinking;
  ++entry.pending;
  claim_header(core, ni, portal, header,
               {.by = ClaimedBy::kEntry,
                .options = entry.options,
                .user_ptr = entry.user_ptr,
                .ct_handle = entry.ct_handle,
                .entry = &entry,
                .offset = offset,
                .room = std::min(entry.segment.length() - offset, header.rlength)});
}

/// An entry that is to be linked claims the headers that it matches: one if it is use-once, else all.
/// @param found  the first of them; nullptr: there are none
/// @return false if they use it up
[[gnu::noinline]] bool give_unexpected(Core& core, Interface& ni, PortalTableEntry& portal, UnexpectedEntry* found,
                                       ListEntry& entry) {
  const bool use_once = (entry.options & kEntryUseOnce) != 0;
  while (found != nullptr) {
    auto& header = static_cast<UnexpectedHeader&>(*found);
    found = use_once ? nullptr : portal.unexpected.find_next(entry.criteria, header);
    give(core, ni, portal, header, entry);
    if (entry.state != EntryState::kLinked) return false;
  }
  return true;
}

/// A use-once entry has found a message that is complete. Most that find any are such ones, and nothing of them is
/// kept but the stale handle, which is recognised (3.11.3).
[[gnu::noinline]] void use_at_once(Core& core, Interface& ni, PortalTableEntry& portal, UnexpectedHeader& header,
                                   ListEntry& entry) {
  entry.state = EntryState::kGone;
  claim_header(core, ni, portal, header, claim_of(entry, ClaimedBy::kUseOnce));
  give_back_new(ni, entry);
}

/// Its owner takes a linked entry out of its list. @return false if some peer is using it
bool leave_list(Core& core, Interface& ni, ListEntry& entry) {
  PortalTableEntry& portal = *ni.portal(entry.pt_index);
  if (portal.publications != 0 && !take_back(core, ni, portal, entry)) return false;
  portal.list(entry.list).remove(entry);
  portal.answers_to_refusal = 0;
  return true;
}

/// Raises the SEARCH event of a match, which is found whatever has become of its message.
void report_match(Core& core, Interface& ni, const PortalTableEntry& portal, const EntryRequest& request,
                  const UnexpectedHeader& header) {
  if ((request.options & (kEntryEventCommDisable | kEntryEventSuccessDisable)) != 0) return;
  post_new_event(core, ni, portal.eq_handle, [&](Event& event) {
    fill_overflow_event(header, event);
    event.ni_fail_type = NiFail::kOk;
    event.type = EventKind::kSearch;
    event.user_ptr = request.user_ptr;
  });
}

}  // namespace

Status append_entry(Core& core, Interface& ni, EntryRequest&& request, Handle* handle) {
  ListEntry* entry = new_entry(ni);
  if (entry == nullptr) return Status::kNoSpace;
  const Handle own = entry->handle;  // The entry may be gone when it has been appended.
  fill(ni, *entry, std::move(request));
  const Status status = append_new(core, ni, *entry);
  if (status == Status::kOk) *handle = own;
  return status;
}

Status append_behind_search(Core& core, Interface& ni, PortalTableEntry& portal, ListEntry& entry) {
  const bool searches = entry.list == ListKind::kPriority && !portal.unexpected.empty();
  UnexpectedEntry* found = searches ? portal.unexpected.find_first(entry.criteria) : nullptr;
  if (is_full(ni, portal, entry.list) && !is_used_up_by(portal, found, entry)) {
    give_back_new(ni, entry);
    return Status::kListTooLong;
  }
  const bool is_plain = (entry.options & (kEntryUseOnce | kEntryTakesData)) == kEntryUseOnce;
  if (found != nullptr && is_plain && static_cast<UnexpectedHeader*>(found)->complete) {
    use_at_once(core, ni, portal, static_cast<UnexpectedHeader&>(*found), entry);
    return Status::kOk;
  }
  if (found == nullptr || give_unexpected(core, ni, portal, found, entry)) link_entry(core, ni, portal, entry);
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
  header.claim = {.by = ClaimedBy::kNobody};
}

void take_held(Core& core, Interface& ni, UnexpectedHeader& header, ListEntry& entry) {
  entry.state = EntryState::kUnlinking;
  give(core, ni, *ni.portal(entry.pt_index), header, entry);
}

void drop_held(Core& core, Interface& ni, UnexpectedHeader& header) {
  const OverflowClaim silent{.by = ClaimedBy::kSearch, .options = kEntryEventOverDisable};
  claim_header(core, ni, *ni.portal(header.entry->pt_index), header, silent);
}

Status unlink_entry(Core& core, Interface& ni, Handle handle) {
  ListEntry* entry = ni.entries.find(handle);
  if (entry == nullptr) {
    const ListEntry* stale = ni.entries.find_stale(handle);
    return stale != nullptr && stale->state == EntryState::kGone ? Status::kInUse : Status::kArgInvalid;
  }
  if (entry->state != EntryState::kLinked || entry->pending != 0 || entry->unexpected_count != 0) return Status::kInUse;
  if (!leave_list(core, ni, *entry)) return Status::kInUse;
  entry->segment.clear();
  ni.entries.free(handle);  // The state stays kLinked: the stale handle is a mistake of the caller from now on.
  return Status::kOk;
}

Status cancel_entry(Core& core, Interface& ni, Handle handle) {
  ListEntry* entry = ni.entries.find(handle);
  if (entry == nullptr || entry->state != EntryState::kLinked || entry->pending == 0) return Status::kArgInvalid;
  if (!leave_list(core, ni, *entry)) return Status::kInUse;
  entry->state = EntryState::kUnlinking;
  entry->canceled = true;
  return Status::kOk;
}

bool search_entries(Core& core, Interface& ni, const EntryRequest& request, SearchOperation operation) {
  PortalTableEntry& portal = *ni.portal(request.pt_index);
  const bool use_once = (request.options & kEntryUseOnce) != 0;
  OverflowClaim claim = claim_of(request, ClaimedBy::kSearch);
  claim.options &= ~kEntryEventCtOverflow;  // A match is counted once, as 3.11.4 says.
  UnexpectedHeader* unfinished = nullptr;   // One that this search has claimed, and whose message is not complete.
  bool found_any = false;
  UnexpectedEntry* found = portal.unexpected.find_first(request.criteria);
  while (found != nullptr) {
    UnexpectedEntry* following = use_once ? nullptr : portal.unexpected.find_next(request.criteria, *found);
    auto& header = static_cast<UnexpectedHeader&>(*found);
    found_any = true;
    found = following;
    if (operation == SearchOperation::kOnly) {
      report_match(core, ni, portal, request, header);
      count_success(core, ni, request.ct_handle, 1);
      continue;
    }
    const bool ends_later = !use_once && !header.complete;
    claim.by = ends_later ? ClaimedBy::kPersistentSearch : ClaimedBy::kSearch;
    claim_header(core, ni, portal, header, claim);
    if (!ends_later) continue;
    header.join_search(unfinished);
    unfinished = &header;
  }
  if (!found_any) portal.miss(request.criteria);
  const bool has_ended = unfinished == nullptr && !(use_once && found_any);
  if (has_ended) end_search(core, ni, portal, {request.user_ptr, request.options, request.pt_index}, request.ct_handle);
  return found_any;
}

}  // namespace portofu
