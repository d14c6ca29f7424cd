// Portals 4.3, 3.4: handles that are no longer, or not here, valid: of a closed interface, of another one,
// of another kind of interface; and handles that are the same number in every process. Handles of another type and
// freed ones: s3_04_arguments_test.cpp.
#include <algorithm>
#include <iterator>

#include "../harness/fixture.h"

using namespace conformance;

namespace {

/// One object of each kind, on one interface.
struct Objects {
  explicit Objects(ptl_handle_ni_t owner, bool is_matching) : ni(owner) {
    REQUIRE_OK(PtlGetPhysId(ni, &id));
    REQUIRE_OK(PtlEQAlloc(ni, 16, &eq));
    REQUIRE_OK(PtlCTAlloc(ni, &ct));
    REQUIRE_OK(PtlPTAlloc(ni, 0, eq, kPt, &pt));
    const ptl_md_t described = md_of(memory, sizeof memory, eq, ct);
    REQUIRE_OK(PtlMDBind(ni, &described, &md));
    le.start = me.start = memory;
    le.length = me.length = sizeof memory;
    le.ct_handle = me.ct_handle = PTL_CT_NONE;
    le.uid = me.uid = PTL_UID_ANY;
    le.options = me.options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE;
    me.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
    if (is_matching) REQUIRE_OK(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, nullptr, &entry));
    if (!is_matching) REQUIRE_OK(PtlLEAppend(ni, pt, &le, PTL_PRIORITY_LIST, nullptr, &entry));
  }

  ptl_handle_ni_t ni;
  ptl_handle_eq_t eq = PTL_INVALID_HANDLE;
  ptl_handle_ct_t ct = PTL_INVALID_HANDLE;
  ptl_handle_md_t md = PTL_INVALID_HANDLE;
  ptl_handle_any_t entry = PTL_INVALID_HANDLE;
  ptl_pt_index_t pt = 0;
  ptl_process_t id{};
  ptl_le_t le{};
  ptl_me_t me{};
  char memory[64] = {};
};

#define EXPECT_INVALID(call) EXPECT_RC(call, PTL_ARG_INVALID)

/// Every function that takes a handle, with the handles of `o`: none of them is valid.
void expect_all_invalid(Objects& o) {
  ptl_handle_any_t out = 0;
  ptl_size_t size = 1;
  ptl_uid_t uid = 0;
  ptl_sr_value_t status = 0;
  ptl_event_t event{};
  ptl_ct_event_t count{};
  unsigned int which = 0;
  EXPECT_INVALID(PtlNIStatus(o.ni, PTL_SR_DROP_COUNT, &status));
  for (ptl_handle_any_t handle : {o.ni, o.eq, o.ct, o.md, o.entry}) EXPECT_INVALID(PtlNIHandle(handle, &out)) << handle;
  EXPECT_INVALID(PtlSetMap(o.ni, 1, &o.id));
  EXPECT_INVALID(PtlGetMap(o.ni, 1, &o.id, &size));
  EXPECT_INVALID(PtlPTAlloc(o.ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &o.pt));
  EXPECT_INVALID(PtlPTFree(o.ni, kPt));
  EXPECT_INVALID(PtlPTDisable(o.ni, kPt));
  EXPECT_INVALID(PtlPTEnable(o.ni, kPt));
  EXPECT_INVALID(PtlGetUid(o.ni, &uid));
  EXPECT_INVALID(PtlGetId(o.ni, &o.id));
  EXPECT_INVALID(PtlGetPhysId(o.ni, &o.id));
  const ptl_md_t described = md_of(o.memory, 8);
  EXPECT_INVALID(PtlMDBind(o.ni, &described, &out));
  EXPECT_INVALID(PtlMDRelease(o.md));
  EXPECT_INVALID(PtlLEAppend(o.ni, kPt, &o.le, PTL_PRIORITY_LIST, nullptr, &out));
  EXPECT_INVALID(PtlMEAppend(o.ni, kPt, &o.me, PTL_PRIORITY_LIST, nullptr, &out));
  EXPECT_INVALID(PtlLESearch(o.ni, kPt, &o.le, PTL_SEARCH_ONLY, nullptr));
  EXPECT_INVALID(PtlMESearch(o.ni, kPt, &o.me, PTL_SEARCH_ONLY, nullptr));
  EXPECT_INVALID(PtlLEUnlink(o.entry));
  EXPECT_INVALID(PtlMEUnlink(o.entry));
  EXPECT_INVALID(PtlEQAlloc(o.ni, 8, &out));
  EXPECT_INVALID(PtlEQGet(o.eq, &event));
  EXPECT_INVALID(PtlEQWait(o.eq, &event));
  EXPECT_INVALID(PtlEQPoll(&o.eq, 1, PTL_TIME_FOREVER, &event, &which));
  EXPECT_INVALID(PtlEQFree(o.eq));
  EXPECT_INVALID(PtlCTAlloc(o.ni, &out));
  EXPECT_INVALID(PtlCTGet(o.ct, &count));
  EXPECT_INVALID(PtlCTWait(o.ct, 1, &count));
  EXPECT_INVALID(PtlCTPoll(&o.ct, &size, 1, PTL_TIME_FOREVER, &count, &which));
  EXPECT_INVALID(PtlCTSet(o.ct, {1, 0}));
  EXPECT_INVALID(PtlCTInc(o.ct, {1, 0}));
  EXPECT_INVALID(PtlCTCancelTriggered(o.ct));
  EXPECT_INVALID(PtlCTFree(o.ct));
  const auto type = PTL_INT64_T;
  EXPECT_INVALID(PtlPut(o.md, 0, 8, PTL_NO_ACK_REQ, o.id, kPt, 0, 0, nullptr, 0));
  EXPECT_INVALID(PtlGet(o.md, 0, 8, o.id, kPt, 0, 0, nullptr));
  EXPECT_INVALID(PtlAtomic(o.md, 0, 8, PTL_NO_ACK_REQ, o.id, kPt, 0, 0, nullptr, 0, PTL_SUM, type));
  EXPECT_INVALID(PtlFetchAtomic(o.md, 8, o.md, 0, 8, o.id, kPt, 0, 0, nullptr, 0, PTL_SUM, type));
  EXPECT_INVALID(PtlSwap(o.md, 8, o.md, 0, 8, o.id, kPt, 0, 0, nullptr, 0, nullptr, PTL_SWAP, type));
  EXPECT_INVALID(PtlTriggeredPut(o.md, 0, 8, PTL_NO_ACK_REQ, o.id, kPt, 0, 0, nullptr, 0, o.ct, 9));
  EXPECT_INVALID(PtlTriggeredGet(o.md, 0, 8, o.id, kPt, 0, 0, nullptr, o.ct, 9));
  EXPECT_INVALID(PtlTriggeredAtomic(o.md, 0, 8, PTL_NO_ACK_REQ, o.id, kPt, 0, 0, nullptr, 0, PTL_SUM, type, o.ct, 9));
  EXPECT_INVALID(PtlTriggeredFetchAtomic(o.md, 8, o.md, 0, 8, o.id, kPt, 0, 0, nullptr, 0, PTL_SUM, type, o.ct, 9));
  EXPECT_INVALID(PtlTriggeredSwap(o.md, 8, o.md, 0, 8, o.id, kPt, 0, 0, nullptr, 0, nullptr, PTL_SWAP, type, o.ct, 9));
  EXPECT_INVALID(PtlTriggeredCTInc(o.ct, {1, 0}, o.ct, 9));
  EXPECT_INVALID(PtlTriggeredCTSet(o.ct, {1, 0}, o.ct, 9));
  EXPECT_INVALID(PtlStartBundle(o.ni));
  EXPECT_INVALID(PtlEndBundle(o.ni));
  EXPECT_INVALID(PtlNIFini(o.ni));
}

}  // namespace

// 3.6.3: the end of an interface ends all its handles: when no interface is open any more, when another one is, and the
// interface's own also when it has been opened again. (3.3.2: "An implementation may reuse handle values".)
TEST_PROCESSES(1, Handles, Section3_4__of_a_closed_interface_are_invalid) {
  for (unsigned int options : {kMatching, kNonMatching}) {
    SCOPED_TRACE(options == kMatching ? "matching" : "non-matching");
    const bool is_matching = options == kMatching;
    REQUIRE_OK(PtlInit());
    ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
    REQUIRE_OK(PtlNIInit(PTL_IFACE_DEFAULT, options, PTL_PID_ANY, nullptr, nullptr, &ni));
    Objects objects(ni, is_matching);
    REQUIRE_OK(PtlNIFini(ni));
    expect_all_invalid(objects);
    ptl_handle_ni_t other = PTL_INVALID_HANDLE;
    REQUIRE_OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, nullptr, nullptr, &other));
    expect_all_invalid(objects);
    ptl_handle_ni_t again = PTL_INVALID_HANDLE;
    REQUIRE_OK(PtlNIInit(PTL_IFACE_DEFAULT, options, PTL_PID_ANY, nullptr, nullptr, &again));
    EXPECT_NE(again, ni);
    EXPECT_RC(PtlGetPhysId(ni, &objects.id), PTL_ARG_INVALID);
    EXPECT_RC(PtlNIFini(ni), PTL_ARG_INVALID);
    PtlFini();
  }
}

// 3.4: an object's handle belongs to one interface (3.3.2); where a call names two objects, both must be of it.
TEST_PROCESSES(1, Handles, Section3_4__of_another_interface_are_invalid) {
  const Ni matching(self, kMatching);
  const Ni plain(self, kNonMatching);
  Objects mine(matching, true);
  Objects other(plain, false);
  ptl_handle_any_t out = 0;
  const auto bind_rc = [&](ptl_handle_eq_t eq, ptl_handle_ct_t ct) {
    const ptl_md_t described = md_of(mine.memory, 8, eq, ct);
    return PtlMDBind(matching, &described, &out);
  };
  EXPECT_INVALID(bind_rc(other.eq, mine.ct));
  EXPECT_INVALID(bind_rc(mine.eq, other.ct));
  ptl_pt_index_t pt = 0;
  EXPECT_INVALID(PtlPTAlloc(matching, 0, other.eq, kOtherPt, &pt));
  mine.me.ct_handle = other.ct;
  EXPECT_INVALID(PtlMEAppend(matching, kPt, &mine.me, PTL_PRIORITY_LIST, nullptr, &out));
  EXPECT_INVALID(PtlMESearch(matching, kPt, &mine.me, PTL_SEARCH_ONLY, nullptr));
  other.le.ct_handle = mine.ct;
  EXPECT_INVALID(PtlLEAppend(plain, kPt, &other.le, PTL_PRIORITY_LIST, nullptr, &out));
  EXPECT_INVALID(PtlLESearch(plain, kPt, &other.le, PTL_SEARCH_ONLY, nullptr));
  const ptl_process_t id = mine.id;
  EXPECT_INVALID(PtlFetchAtomic(other.md, 8, mine.md, 0, 8, id, kPt, 0, 0, nullptr, 0, PTL_SUM, PTL_INT64_T));
  EXPECT_INVALID(PtlFetchAtomic(mine.md, 8, other.md, 0, 8, id, kPt, 0, 0, nullptr, 0, PTL_SUM, PTL_INT64_T));
  EXPECT_INVALID(PtlTriggeredPut(mine.md, 0, 8, PTL_NO_ACK_REQ, id, kPt, 0, 0, nullptr, 0, other.ct, 9));
  EXPECT_INVALID(PtlTriggeredGet(mine.md, 0, 8, id, kPt, 0, 0, nullptr, other.ct, 9));
  EXPECT_INVALID(PtlTriggeredCTInc(mine.ct, {1, 0}, other.ct, 9));
  EXPECT_INVALID(PtlTriggeredCTSet(mine.ct, {1, 0}, other.ct, 9));
}

// 3.11, 3.12: list entries for non-matching interfaces, match list entries for matching ones.
TEST_PROCESSES(1, Handles, Section3_4__of_the_other_kind_of_interface_are_invalid) {
  const Ni matching(self, kMatching);
  const Ni plain(self, kNonMatching);
  Objects mine(matching, true);
  Objects other(plain, false);
  ptl_handle_any_t out = 0;
  EXPECT_INVALID(PtlLEAppend(matching, kPt, &mine.le, PTL_PRIORITY_LIST, nullptr, &out));
  EXPECT_INVALID(PtlLESearch(matching, kPt, &mine.le, PTL_SEARCH_ONLY, nullptr));
  EXPECT_INVALID(PtlLEUnlink(mine.entry));
  EXPECT_INVALID(PtlMEAppend(plain, kPt, &other.me, PTL_PRIORITY_LIST, nullptr, &out));
  EXPECT_INVALID(PtlMESearch(plain, kPt, &other.me, PTL_SEARCH_ONLY, nullptr));
  EXPECT_INVALID(PtlMEUnlink(other.entry));
  EXPECT_INVALID(PtlSetMap(matching, 1, &mine.id));
  EXPECT_RC(PtlMEUnlink(mine.entry), PTL_OK) << "nothing has happened to it";
  EXPECT_RC(PtlLEUnlink(other.entry), PTL_OK);
}

// 3.4, 3.9: a target that no process can be: a wildcard, pid 0, a rank beyond the map, any rank without a map.
TEST_PROCESSES(1, Handles, Section3_4__target_that_cannot_be) {
  const Ni ni(self);
  const Ends ends(ni);
  const auto put_rc = [](ptl_handle_md_t md, ptl_process_t target) {
    return PtlPut(md, 0, 8, PTL_NO_ACK_REQ, target, kPt, 0, 0, nullptr, 0);
  };
  ptl_process_t target = ni.target();
  target.phys.pid = PTL_PID_ANY;
  EXPECT_INVALID(put_rc(ends.md, target));
  target.phys.pid = 0;
  EXPECT_INVALID(put_rc(ends.md, target));
  target = ni.target();
  target.phys.nid = PTL_NID_ANY;
  EXPECT_INVALID(put_rc(ends.md, target));
  ptl_handle_ni_t logical = PTL_INVALID_HANDLE;
  REQUIRE_OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, nullptr, nullptr, &logical));
  const ptl_md_t described = md_of(ends.data.data(), 64);
  ptl_handle_md_t md = PTL_INVALID_HANDLE;
  REQUIRE_OK(PtlMDBind(logical, &described, &md));
  target = {};
  EXPECT_INVALID(put_rc(md, target)) << "3.6.6: the map must be set before";
  const ptl_process_t map[2] = {ni.target(), ni.target()};
  REQUIRE_OK(PtlSetMap(logical, 2, map));
  EXPECT_RC(put_rc(md, target), PTL_OK);
  for (ptl_rank_t rank : {ptl_rank_t{2}, ptl_rank_t{PTL_RANK_ANY}}) {
    target.rank = rank;
    EXPECT_INVALID(put_rc(md, target)) << rank;
    EXPECT_INVALID(PtlGet(md, 0, 8, target, kPt, 0, 0, nullptr)) << rank;
  }
}

// Handles are equal in all processes that open their interfaces in the same order; programs send them around.
TEST_PROCESSES(3, Handles, Section3_3_2__are_equal_in_all_processes) {
  REQUIRE_OK(PtlInit());
  struct Numbers {
    ptl_handle_any_t values[2][5];
  } mine{};
  for (int i = 0; i < 2; ++i) {
    const unsigned int options = i == 0 ? kMatching : kNonMatching;
    ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
    REQUIRE_OK(PtlNIInit(PTL_IFACE_DEFAULT, options, PTL_PID_ANY, nullptr, nullptr, &ni));
    const Objects o(ni, i == 0);
    const ptl_handle_any_t all[] = {o.ni, o.eq, o.ct, o.md, o.entry};
    std::copy(std::begin(all), std::end(all), mine.values[i]);
  }
  for (const Numbers& theirs : self.share(mine))
    for (int i = 0; i < 2; ++i)
      for (int k = 0; k < 5; ++k)
        EXPECT_EQ(theirs.values[i][k], mine.values[i][k]) << "interface " << i << ", kind " << k;
  PtlFini();
}

// 3.18: "The only operation defined on them by the Portals API is a comparison function": no two objects that live at
// the same time have equal handles, whatever their kinds and interfaces.
TEST_PROCESSES(1, Handles, Section3_18__differ_for_all_objects) {
  const Ni matching(self, kMatching);
  const Ni plain(self, kNonMatching);
  const Objects mine(matching, true);
  const Objects other(plain, false);
  const ptl_handle_any_t all[] = {mine.ni,     mine.eq,     mine.ct,           mine.md,  mine.entry,
                                  other.ni,    other.eq,    other.ct,          other.md, other.entry,
                                  PTL_EQ_NONE, PTL_CT_NONE, PTL_INVALID_HANDLE};
  for (const ptl_handle_any_t& a : all)
    for (const ptl_handle_any_t& b : all) EXPECT_EQ(PtlHandleIsEqual(a, b) != 0, &a == &b) << a << ' ' << b;
}
