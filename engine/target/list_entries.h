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
  void* user_ptr = nullptr;
  std::uint32_t options = 0;
  std::uint32_t uid = kUidAny;
  Handle ct_handle = 0;  ///< 0 for none.
  std::uint16_t pt_index = 0;
  ListKind list = ListKind::kPriority;
};

/// Appends an entry. On the priority list it first takes the unexpected headers that it matches: one if it is use-once
/// (it is not linked then), else all.
/// @return kOk | kNoSpace | kListTooLong
Status append_entry(Core& core, Interface& ni, EntryRequest&& request, Handle* handle);

/// Removes an entry that nothing refers to.
/// @return kOk | kInUse | kArgInvalid
Status unlink_entry(Core& core, Interface& ni, Handle handle);

/// What a search does with a header that it finds; the values of ptl_search_op_t.
enum class SearchOperation : std::uint8_t { kOnly = 0, kDelete = 1 };

/// Searches the unexpected list with the criteria of an entry that is never linked.
/// @return whether there was any
bool search_entries(Core& core, Interface& ni, const EntryRequest& request, SearchOperation operation);

}  // namespace portofu
