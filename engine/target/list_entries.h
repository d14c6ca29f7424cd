#pragma once
// What an application does to the lists of a portal table entry: append, unlink, search. Each call is one step, atomic
// against the messages that arrive. @spec Portals 4.3, 3.11 and 3.12

#include "engine/core/core.h"
#include "engine/descriptor/status.h"

namespace portofu {

/// An LE or ME as a frontend hands it in. Arguments are checked; `portal` exists.
struct EntryRequest {
  MemorySegment segment;
  MatchCriteria criteria;  ///< Non-matching interface: everything matches.
  std::uint64_t min_free = 0;
  std::uint64_t origin = 0;  ///< As in ListEntry.
  void* user_ptr = nullptr;
  std::uint32_t options = 0;
  std::uint32_t uid = kUidAny;
  Handle ct_handle = 0;  ///< 0 for none.
  bool counts_reads_apart = false;
  Handle read_ct_handle = 0;    ///< With counts_reads_apart: what reads or fetches counts here; 0 for none.
  bool counts_changes = false;  ///< As in ListEntry.
  std::uint16_t pt_index = 0;
  ListKind list = ListKind::kPriority;
};

/// Appends an entry. On the priority list it first takes the unexpected headers that it matches: one if it is use-once
/// (it is not linked then), else all.
/// @return kOk | kNoSpace | kListTooLong: it would be linked, and its list is full
Status append_entry(Core& core, Interface& ni, EntryRequest&& request, Handle* handle);

/// A slot for an entry. Its owner writes criteria, segment, user_ptr, options and pt_index where they stay, and what
/// else is not as in an EntryRequest that asks for nothing. Next: append_new, give_back_new, or take_held.
/// @return nullptr if there is no space
inline ListEntry* new_entry(Interface& ni) {
  Handle handle = 0;
  ListEntry* entry = ni.entries.allocate(&handle);
  if (entry == nullptr) return nullptr;
  entry->local_offset = entry->origin = entry->min_free = 0;
  entry->uid = kUidAny;
  entry->handle = handle;
  entry->ct_handle = entry->read_ct_handle = 0;
  entry->pending = entry->unexpected_count = 0;
  entry->list = ListKind::kPriority;
  entry->state = EntryState::kLinked;
  entry->publication = Publication::kNever;
  entry->canceled = entry->is_unlink_promised = entry->counts_changes = false;
  return entry;
}

/// Its list, which has room, gets an entry.
inline void link_entry(Core& core, Interface& ni, PortalTableEntry& portal, ListEntry& entry) {
  portal.list(entry.list).append(entry);
  if ((entry.options & kEntryEventLinkDisable) == 0)
    post_entry_event(core, ni, portal.eq_handle, EventKind::kLink, news_of(entry));
}

/// Gives the slot of an entry back that was never appended.
inline void give_back_new(Interface& ni, ListEntry& entry) {
  entry.segment.clear();
  ni.entries.free(entry.handle);
}

inline bool is_full(const Interface& ni, PortalTableEntry& portal, ListKind kind) {
  return portal.list(kind).size() >= ni.limits.max_list_size;
}

/// append_new, if unexpected messages have to be searched, or the list is full.
Status append_behind_search(Core& core, Interface& ni, PortalTableEntry& portal, ListEntry& entry);

/// Appends an entry from new_entry, as append_entry does. One that takes data (kEntryTakesData) gets the unexpected
/// messages that it matches as if they arrived now.
/// @return kOk: it may be gone already | kListTooLong: the slot is given back
inline Status append_new(Core& core, Interface& ni, ListEntry& entry) {
  PortalTableEntry& portal = *ni.portal(entry.pt_index);
  if (!portal.unexpected.empty() || is_full(ni, portal, entry.list)) [[unlikely]]
    return append_behind_search(core, ni, portal, entry);
  link_entry(core, ni, portal, entry);
  return Status::kOk;
}

/// A header that is found may leave the list before it is known who takes it: hold_header, and later one of take_held
/// and drop_held. Only on portal table entries whose entries take data (kEntryTakesData).
/// @return the earliest that matches; nullptr if there is none
UnexpectedHeader* find_header(Interface& ni, std::uint16_t pt_index, const MatchCriteria& criteria);
void hold_header(Interface& ni, std::uint16_t pt_index, UnexpectedHeader& header);

/// An entry from new_entry, which is never linked, takes the message of a held header, now or when it is whole.
void take_held(Core& core, Interface& ni, UnexpectedHeader& header, ListEntry& entry);

/// Nobody wants the message of a held header.
void drop_held(Core& core, Interface& ni, UnexpectedHeader& header);

/// Removes an entry that nothing refers to.
/// @return kOk | kInUse | kArgInvalid
Status unlink_entry(Core& core, Interface& ni, Handle handle);

/// Removes an entry that messages are arriving in. When they are whole, it tells that it has unlinked, as canceled.
/// @return kOk | kInUse | kArgInvalid: none is
Status cancel_entry(Core& core, Interface& ni, Handle handle);

/// What a search does with a header that it finds; the values of ptl_search_op_t.
enum class SearchOperation : std::uint8_t { kOnly = 0, kDelete = 1 };

/// Searches the unexpected list with the criteria of an entry that is never linked. What kOnly finds is told at once.
/// What kDelete finds is told and counted when its message is complete, and the end of a persistent search behind all.
/// @return whether there was any
bool search_entries(Core& core, Interface& ni, const EntryRequest& request, SearchOperation operation);

}  // namespace portofu
