#include "portals_side.h"

namespace compare {
namespace {

struct Named {
  int value;
  const char* name;
};
#define NAMED(constant) \
  Named { constant, #constant }

template <std::size_t count>
std::string find(const Named (&table)[count], int value) {
  for (const Named& row : table) {
    if (row.value == value) return row.name;
  }
  return std::to_string(value);
}

}  // namespace

std::string text(ptl_event_kind_t kind) {
  static constexpr Named table[] = {
      NAMED(PTL_EVENT_GET),  NAMED(PTL_EVENT_PUT),          NAMED(PTL_EVENT_PUT_OVERFLOW), NAMED(PTL_EVENT_ATOMIC),
      NAMED(PTL_EVENT_LINK), NAMED(PTL_EVENT_FETCH_ATOMIC), NAMED(PTL_EVENT_REPLY),        NAMED(PTL_EVENT_SEND),
      NAMED(PTL_EVENT_ACK),  NAMED(PTL_EVENT_AUTO_UNLINK),  NAMED(PTL_EVENT_AUTO_FREE)};
  return find(table, static_cast<int>(kind));
}

std::string text_of_failure(ptl_ni_fail_t failure) {
  static constexpr Named table[] = {NAMED(PTL_NI_OK),      NAMED(PTL_NI_UNDELIVERABLE),  NAMED(PTL_NI_PT_DISABLED),
                                    NAMED(PTL_NI_DROPPED), NAMED(PTL_NI_PERM_VIOLATION), NAMED(PTL_NI_OP_VIOLATION),
                                    NAMED(PTL_NI_SEGV)};
  return find(table, static_cast<int>(failure));
}

std::string text_of_ptl(int rc) {
  static constexpr Named table[] = {NAMED(PTL_OK),       NAMED(PTL_ARG_INVALID), NAMED(PTL_NO_SPACE),
                                    NAMED(PTL_EQ_EMPTY), NAMED(PTL_EQ_DROPPED),  NAMED(PTL_CT_NONE_REACHED)};
  return find(table, rc);
}

std::string text(const ptl_event_t& event) {
  if (event.ni_fail_type == PTL_NI_OK) return text(event.type);
  return text(event.type) + " with " + text_of_failure(event.ni_fail_type);
}

void must_ptl(int rc, const char* call) {
  if (rc != PTL_OK) fail(std::string(call) + ": " + text_of_ptl(rc));
}

PortalsSide::PortalsSide(Player& self) : memory_(self.memory(self.rank())) {
  MUST_PTL(PtlInit());
  const unsigned int options = PTL_NI_MATCHING | PTL_NI_PHYSICAL;
  MUST_PTL(PtlNIInit(PTL_IFACE_DEFAULT, options, PTL_PID_ANY, nullptr, &limits, &ni));
  ptl_process_t mine{};
  MUST_PTL(PtlGetPhysId(ni, &mine));
  source_eq = alloc_eq(256);
  target_eq = alloc_eq(256);
  md = bind(0, source_eq);
  silent_md = bind(0);
  open_pt(kPt, target_eq);
  append(kPt, entry(memory_, kMemoryBytes, 0));
  ids_ = self.share(mine);
}

PortalsSide::~PortalsSide() {
  PtlNIFini(ni);
  PtlFini();
}

ptl_handle_eq_t PortalsSide::alloc_eq(ptl_size_t count) {
  ptl_handle_eq_t eq = PTL_INVALID_HANDLE;
  MUST_PTL(PtlEQAlloc(ni, count, &eq));
  return eq;
}

ptl_handle_ct_t PortalsSide::alloc_ct() {
  ptl_handle_ct_t ct = PTL_INVALID_HANDLE;
  MUST_PTL(PtlCTAlloc(ni, &ct));
  return ct;
}

void PortalsSide::open_pt(ptl_pt_index_t pt, ptl_handle_eq_t eq) {
  ptl_pt_index_t got = 0;
  MUST_PTL(PtlPTAlloc(ni, 0, eq, pt, &got));
}

ptl_handle_md_t PortalsSide::bind(unsigned int options, ptl_handle_eq_t eq) {
  const ptl_md_t described{memory_, kMemoryBytes, options, eq, PTL_CT_NONE};
  ptl_handle_md_t handle = PTL_INVALID_HANDLE;
  MUST_PTL(PtlMDBind(ni, &described, &handle));
  return handle;
}

ptl_me_t PortalsSide::entry(void* start, ptl_size_t length, unsigned int options, ptl_handle_ct_t ct) {
  ptl_me_t me{};
  me.start = start;
  me.length = length;
  me.ct_handle = ct;
  me.uid = PTL_UID_ANY;
  me.options = options | PTL_ME_EVENT_LINK_DISABLE;
  if ((options & (PTL_ME_OP_PUT | PTL_ME_OP_GET)) == 0) me.options |= PTL_ME_OP_PUT | PTL_ME_OP_GET;
  if (ct != PTL_CT_NONE) me.options |= PTL_ME_EVENT_CT_COMM;
  me.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
  me.ignore_bits = ~ptl_match_bits_t{0};
  return me;
}

ptl_handle_me_t PortalsSide::append(ptl_pt_index_t pt, const ptl_me_t& me, ptl_list_t list) {
  ptl_handle_me_t handle = PTL_INVALID_HANDLE;
  MUST_PTL(PtlMEAppend(ni, pt, &me, list, nullptr, &handle));
  return handle;
}

ptl_event_t PortalsSide::next(ptl_handle_eq_t eq) {
  ptl_event_t event{};
  unsigned int which = 0;
  MUST_PTL(PtlEQPoll(&eq, 1, kPatienceMs, &event, &which));
  return event;
}

std::string PortalsSide::told(ptl_handle_eq_t eq) {
  std::string all;
  ptl_event_t event{};
  while (PtlEQGet(eq, &event) == PTL_OK) all += (all.empty() ? "" : ", ") + text(event);
  return all.empty() ? "nothing" : all;
}

ptl_ct_event_t PortalsSide::wait(ptl_handle_ct_t ct, ptl_size_t count) {
  ptl_ct_event_t value{};
  unsigned int which = 0;
  MUST_PTL(PtlCTPoll(&ct, &count, 1, kPatienceMs, &value, &which));
  return value;
}

ptl_size_t PortalsSide::successes(ptl_handle_ct_t ct) {
  ptl_ct_event_t value{};
  MUST_PTL(PtlCTGet(ct, &value));
  return value.success;
}

ptl_sr_value_t PortalsSide::status(ptl_sr_index_t index) const {
  ptl_sr_value_t value = 0;
  MUST_PTL(PtlNIStatus(ni, index, &value));
  return value;
}

}  // namespace compare
