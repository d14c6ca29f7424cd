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

MatchCriteria criteria_of(const Interface& ni, const ptl_me_t& me) {
  if (!ni.is_matching()) return kAnyMessage;
  const std::uint64_t match_bits = fresh(me.match_bits), ignore_bits = fresh(me.ignore_bits);
  if (ni.is_logical()) {
    const bool any = me.match_id.rank == PTL_RANK_ANY;
    return {match_bits, ignore_bits, {any ? 0 : me.match_id.rank, 0}, any, true};
  }
  const bool any_nid = me.match_id.phys.nid == PTL_NID_ANY;
  const bool any_pid = me.match_id.phys.pid == PTL_PID_ANY;
  return {match_bits,
          ignore_bits,
          {any_nid ? 0 : me.match_id.phys.nid, any_pid ? 0 : me.match_id.phys.pid},
          any_nid,
          any_pid};
}

/// Checks the arguments and translates them.
int translate(const Interface* ni, const EntryCall& call, EntryRequest* request) {
  const unsigned int known = call.is_matching ? PTL_ME_APPEND_OPTIONS_MASK : PTL_LE_APPEND_OPTIONS_MASK;
  if (ni == nullptr || ni->is_matching() != call.is_matching || call.me == nullptr) return PTL_ARG_INVALID;
  const ptl_me_t& me = *call.me;
  if ((me.options & ~known) != 0 || ni->portal(call.pt_index) == nullptr) return PTL_ARG_INVALID;
  if (!is_ct_or_none(*ni, me.ct_handle)) return PTL_ARG_INVALID;
  request->criteria = criteria_of(*ni, me);
  request->min_free = (me.options & PTL_ME_MANAGE_LOCAL) != 0 ? me.min_free : 0;
  request->user_ptr = call.user_ptr;
  request->options = me.options;
  request->uid = me.uid;
  request->ct_handle = ct_or_zero(me.ct_handle);
  request->pt_index = static_cast<std::uint16_t>(call.pt_index);
  return describe(*ni, {me.start, me.length, (me.options & PTL_IOVEC) != 0}, &request->segment);
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
    Interface* ni = interface_of(duty.core(), call.ni_handle);
    EntryRequest request;
    if (const int rc = translate(ni, call, &request); rc != PTL_OK) return rc;
    request.list = static_cast<ListKind>(ptl_list);
    if (Checker* const checker = duty.core().checker()) [[unlikely]]
      checker->portals.appends(*ni, request.pt_index, (request.options & PTL_IOVEC) != 0, request.ct_handle);
    const int rc = to_rc(append_entry(duty.core(), *ni, std::move(request), handle));
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
      rc = translate(ni, call, &request);
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
