// 3.11 List entries, and what 3.12 shares with it.

#include "lib/portals4/list_entry.h"

#include "engine/door/process.h"
#include "lib/portals4/region.h"

using namespace portofu;
using namespace portofu::portals;

static_assert(PTL_LE_OP_PUT == kEntryOpPut && PTL_LE_OP_GET == kEntryOpGet && PTL_LE_USE_ONCE == kEntryUseOnce);
static_assert(PTL_LE_ACK_DISABLE == kEntryAckDisable && PTL_LE_UNEXPECTED_HDR_DISABLE == kEntryUnexpectedHdrDisable);
static_assert(PTL_LE_EVENT_LINK_DISABLE == kEntryEventLinkDisable &&
              PTL_LE_EVENT_COMM_DISABLE == kEntryEventCommDisable);
static_assert(PTL_LE_EVENT_FLOWCTRL_DISABLE == kEntryEventFlowctrlDisable);
static_assert(PTL_LE_EVENT_SUCCESS_DISABLE == kEntryEventSuccessDisable &&
              PTL_LE_EVENT_OVER_DISABLE == kEntryEventOverDisable);
static_assert(PTL_LE_EVENT_UNLINK_DISABLE == kEntryEventUnlinkDisable && PTL_LE_EVENT_CT_COMM == kEntryEventCtComm);
static_assert(PTL_LE_EVENT_CT_OVERFLOW == kEntryEventCtOverflow && PTL_LE_EVENT_CT_BYTES == kEntryEventCtBytes);
static_assert(PTL_ME_MANAGE_LOCAL == kEntryManageLocal && PTL_ME_NO_TRUNCATE == kEntryNoTruncate);
static_assert(PTL_ME_MAY_ALIGN == kEntryMayAlign && PTL_ME_LOCAL_INC_UH_RLENGTH == kEntryLocalIncUhRlength);
static_assert(PTL_UID_ANY == kUidAny);

namespace portofu::portals {
namespace {

/// Writes the criteria where they stay.
[[gnu::always_inline]] inline void write_criteria(const Interface& ni, const ptl_me_t& me, MatchCriteria& criteria) {
  if (!ni.is_matching()) {
    criteria = kAnyMessage;
    return;
  }
  criteria.match_bits = fresh(me.match_bits);
  criteria.ignore_bits = fresh(me.ignore_bits);
  const bool logical = ni.is_logical();
  const std::uint32_t nid = logical ? me.match_id.rank : me.match_id.phys.nid;
  const std::uint32_t pid = logical ? 0 : me.match_id.phys.pid;
  criteria.any_nid = nid == (logical ? PTL_RANK_ANY : PTL_NID_ANY);
  criteria.any_pid = logical || pid == PTL_PID_ANY;
  criteria.match_id.nid = criteria.any_nid ? 0 : nid;
  criteria.match_id.pid = criteria.any_pid ? 0 : pid;
}

/// Checks all arguments but the memory.
[[gnu::always_inline]] inline int check(const Interface* ni, const EntryCall& call) {
  const unsigned int known = call.is_matching ? PTL_ME_APPEND_OPTIONS_MASK : PTL_LE_APPEND_OPTIONS_MASK;
  if (ni == nullptr || ni->is_matching() != call.is_matching || call.me == nullptr) return PTL_ARG_INVALID;
  if ((call.me->options & ~known) != 0 || ni->portal(call.pt_index) == nullptr) return PTL_ARG_INVALID;
  return is_ct_or_none(*ni, call.me->ct_handle) ? PTL_OK : PTL_ARG_INVALID;
}

/// Checks and describes the memory.
int describe_memory(const Interface& ni, const ptl_me_t& me, MemorySegment* segment) {
  return describe(ni, {me.start, me.length, (me.options & PTL_IOVEC) != 0}, segment);
}

/// Translates the rest of what is known to be right.
/// @param terms  EntryRequest or ListEntry
template <class Terms>
[[gnu::always_inline]] inline void write_terms(const Interface& ni, const EntryCall& call, Terms& terms) {
  const ptl_me_t& me = *call.me;
  write_criteria(ni, me, terms.criteria);
  terms.min_free = (me.options & PTL_ME_MANAGE_LOCAL) != 0 ? me.min_free : 0;
  terms.user_ptr = call.user_ptr;
  terms.options = me.options;
  terms.uid = me.uid;
  terms.ct_handle = ct_or_zero(me.ct_handle);
  terms.pt_index = static_cast<std::uint16_t>(call.pt_index);
}

/// A slot with the memory of an entry. @param call  checked but for that
[[gnu::always_inline]] inline int take_slot(Interface& ni, const ptl_me_t& me, ListEntry** slot) {
  MemorySegment pieces;  // Described before there is a slot, because that may fail.
  const bool has_pieces = (me.options & PTL_IOVEC) != 0;
  if (has_pieces) [[unlikely]] {
    if (const int rc = describe_memory(ni, me, &pieces); rc != PTL_OK) return rc;
  }
  *slot = new_entry(ni);
  if (*slot == nullptr) return PTL_NO_SPACE;
  if (has_pieces) [[unlikely]] {
    (*slot)->segment = std::move(pieces);
  } else {
    (*slot)->segment.describe(fresh(me.start), fresh(me.length));
  }
  return PTL_OK;
}

/// On duty.
[[gnu::always_inline]] inline int append_on_duty(Core& core, const EntryCall& call, ptl_list_t ptl_list,
                                                 ptl_handle_any_t* handle) {
  Interface* ni = interface_of(core, call.ni_handle);
  if (const int rc = check(ni, call); rc != PTL_OK) return rc;
  ListEntry* entry = nullptr;
  if (const int rc = take_slot(*ni, *call.me, &entry); rc != PTL_OK) return rc;
  write_terms(*ni, call, *entry);
  entry->read_ct_handle = entry->ct_handle;
  entry->list = static_cast<ListKind>(ptl_list);
  if (may_be_published(*ni, *entry)) entry->publication = Publication::kPossible;
  if (Checker* const checker = core.checker()) [[unlikely]]
    checker->portals.appends(*ni, entry->pt_index, (entry->options & PTL_IOVEC) != 0, entry->ct_handle);
  const Handle own = entry->handle;  // The entry may be gone when it has been appended.
  const Status status = append_new(core, *ni, *entry);
  if (status != Status::kOk) return to_rc(status);
  *handle = own;
  return PTL_OK;
}

}  // namespace

ptl_me_t as_me(const ptl_le_t& le) {
  ptl_me_t me{};
  me.start = le.start;
  me.length = le.length;
  me.ct_handle = le.ct_handle;
  me.uid = le.uid;
  me.options = le.options;
  return me;
}

int append(const EntryCall& call, ptl_list_t ptl_list, ptl_handle_any_t* handle) {
  return guarded([&] {
    Engine* engine = nullptr;
    if (const int rc = begin(&engine); rc != PTL_OK) return rc;
    if (handle == nullptr || (ptl_list != PTL_PRIORITY_LIST && ptl_list != PTL_OVERFLOW_LIST)) return PTL_ARG_INVALID;
    const Engine::Duty duty(*engine);
    const RecordedCall recorded(duty.core(), ApiCall::kAppend, 0);
    const int rc = append_on_duty(duty.core(), call, ptl_list, handle);
    engine->settle_on_duty();
    return rc;
  });
}

int unlink(ptl_handle_any_t handle, bool is_matching) {
  Engine* engine = nullptr;
  if (const int rc = begin(&engine); rc != PTL_OK) return rc;
  int rc = PTL_ARG_INVALID;
  // An entry that is in use is often asked about until it is not.
  auto try_it = [&](Core& core) {
    Interface* ni = home_of(core, handle);
    if (ni == nullptr || ni->is_matching() != is_matching) return true;
    rc = to_rc(unlink_entry(core, *ni, handle));
    return rc != PTL_IN_USE;
  };
  engine->poll(try_it);
  return rc;
}

int search(const EntryCall& call, ptl_search_op_t operation) {
  return guarded([&] {
    Engine* engine = nullptr;
    if (const int rc = begin(&engine); rc != PTL_OK) return rc;
    if (operation != PTL_SEARCH_ONLY && operation != PTL_SEARCH_DELETE) return PTL_ARG_INVALID;
    int rc = PTL_OK;
    // What has arrived already can be found. Whoever searches in a loop is waiting.
    engine->search([&](Core& core) {
      Interface* ni = interface_of(core, call.ni_handle);
      EntryRequest request;
      rc = check(ni, call);
      if (rc == PTL_OK) rc = describe_memory(*ni, *call.me, &request.segment);
      if (rc == PTL_OK) write_terms(*ni, call, request);
      return rc != PTL_OK || search_entries(core, *ni, request, static_cast<SearchOperation>(operation));
    });
    return rc;
  });
}

}  // namespace portofu::portals

namespace {

/// Hands an LE on as an ME, or the absence of one.
template <class Use>
int with_le(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t* le, void* user_ptr, Use&& use) {
  const ptl_me_t me = le != nullptr ? as_me(*le) : ptl_me_t{};
  return use(EntryCall{ni_handle, pt_index, le != nullptr ? &me : nullptr, false, user_ptr});
}

}  // namespace

int PtlLEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t* le, ptl_list_t ptl_list,
                void* user_ptr, ptl_handle_le_t* le_handle) {
  return with_le(ni_handle, pt_index, le, user_ptr,
                 [&](const EntryCall& call) { return append(call, ptl_list, le_handle); });
}

int PtlLEUnlink(ptl_handle_le_t le_handle) { return portofu::portals::unlink(le_handle, false); }

int PtlLESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t* le, ptl_search_op_t ptl_search_op,
                void* user_ptr) {
  return with_le(ni_handle, pt_index, le, user_ptr, [&](const EntryCall& call) { return search(call, ptl_search_op); });
}
