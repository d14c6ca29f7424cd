// Portals 4.3, 3.4: return codes for calls that are wrong. The spec leaves it to the implementation which arguments it
// checks; Portofu checks all of them, so these tests are for what the spec suggests: PTL_ARG_INVALID for a
// handle of a wrong kind, a freed one, NULL, an unknown option bit; PTL_NO_INIT before PtlInit.
#include <functional>
#include <utility>

#include "../harness/fixture.h"

using namespace conformance;

namespace {

// One call of each function. The handles and pointers are members, so that a test can spoil one of them.
struct Calls {
  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  ptl_handle_md_t md = PTL_INVALID_HANDLE;
  ptl_handle_eq_t eq = PTL_INVALID_HANDLE;
  ptl_handle_ct_t ct = PTL_INVALID_HANDLE;
  ptl_handle_me_t entry = PTL_INVALID_HANDLE;
  ptl_process_t id{};
  ptl_event_t event{};
  ptl_ct_event_t count{};
  unsigned int which = 0;
  ptl_size_t size = 1;
  ptl_pt_index_t pt = kPt;
  ptl_handle_any_t out = 0;
  ptl_uid_t uid = 0;
  ptl_sr_value_t status = 0;
  char memory[64] = {};
  ptl_md_t md_value = md_of(memory, sizeof memory);
  ptl_le_t le_value = le_of(memory, sizeof memory);
  ptl_me_t me_value{};

  Calls() {
    me_value.start = memory;
    me_value.length = sizeof memory;
    me_value.ct_handle = PTL_CT_NONE;
    me_value.uid = PTL_UID_ANY;
    me_value.options = PTL_ME_OP_PUT;
    me_value.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
  }
};

using Call = std::pair<const char*, std::function<int(Calls&)>>;

#define CALL(expression)                              \
  Call {                                              \
#expression, [](Calls & c) { return expression; } \
  }

const std::vector<Call> kCallsWithNi = {
    CALL(PtlNIStatus(c.ni, PTL_SR_DROP_COUNT, &c.status)),
    CALL(PtlNIHandle(c.ni, &c.out)),
    CALL(PtlSetMap(c.ni, 1, &c.id)),
    CALL(PtlGetMap(c.ni, 1, &c.id, &c.size)),
    CALL(PtlPTAlloc(c.ni, 0, PTL_EQ_NONE, PTL_PT_ANY, &c.pt)),
    CALL(PtlPTFree(c.ni, kPt)),
    CALL(PtlPTDisable(c.ni, kPt)),
    CALL(PtlPTEnable(c.ni, kPt)),
    CALL(PtlGetUid(c.ni, &c.uid)),
    CALL(PtlGetId(c.ni, &c.id)),
    CALL(PtlGetPhysId(c.ni, &c.id)),
    CALL(PtlMDBind(c.ni, &c.md_value, &c.out)),
    CALL(PtlLEAppend(c.ni, kPt, &c.le_value, PTL_PRIORITY_LIST, nullptr, &c.out)),
    CALL(PtlLESearch(c.ni, kPt, &c.le_value, PTL_SEARCH_ONLY, nullptr)),
    CALL(PtlMEAppend(c.ni, kPt, &c.me_value, PTL_PRIORITY_LIST, nullptr, &c.out)),
    CALL(PtlMESearch(c.ni, kPt, &c.me_value, PTL_SEARCH_ONLY, nullptr)),
    CALL(PtlEQAlloc(c.ni, 16, &c.out)),
    CALL(PtlCTAlloc(c.ni, &c.out)),
    CALL(PtlStartBundle(c.ni)),
    CALL(PtlEndBundle(c.ni)),
    CALL(PtlNIFini(c.ni)),
};
const std::vector<Call> kCallsWithMd = {
    CALL(PtlPut(c.md, 0, 8, PTL_NO_ACK_REQ, c.id, kPt, 0, 0, nullptr, 0)),
    CALL(PtlGet(c.md, 0, 8, c.id, kPt, 0, 0, nullptr)),
    CALL(PtlAtomic(c.md, 0, 8, PTL_NO_ACK_REQ, c.id, kPt, 0, 0, nullptr, 0, PTL_SUM, PTL_INT64_T)),
    CALL(PtlFetchAtomic(c.md, 8, c.md, 0, 8, c.id, kPt, 0, 0, nullptr, 0, PTL_SUM, PTL_INT64_T)),
    CALL(PtlSwap(c.md, 8, c.md, 0, 8, c.id, kPt, 0, 0, nullptr, 0, nullptr, PTL_SWAP, PTL_INT64_T)),
    CALL(PtlTriggeredPut(c.md, 0, 8, PTL_NO_ACK_REQ, c.id, kPt, 0, 0, nullptr, 0, c.ct, 99)),
    CALL(PtlTriggeredGet(c.md, 0, 8, c.id, kPt, 0, 0, nullptr, c.ct, 99)),
    CALL(PtlTriggeredAtomic(c.md, 0, 8, PTL_NO_ACK_REQ, c.id, kPt, 0, 0, nullptr, 0, PTL_SUM, PTL_INT64_T, c.ct, 99)),
    CALL(PtlTriggeredFetchAtomic(c.md, 8, c.md, 0, 8, c.id, kPt, 0, 0, nullptr, 0, PTL_SUM, PTL_INT64_T, c.ct, 99)),
    CALL(PtlTriggeredSwap(c.md, 8, c.md, 0, 8, c.id, kPt, 0, 0, nullptr, 0, nullptr, PTL_SWAP, PTL_INT64_T, c.ct, 99)),
    CALL(PtlMDRelease(c.md)),
};
const std::vector<Call> kCallsWithEq = {
    CALL(PtlEQGet(c.eq, &c.event)),
    CALL(PtlEQPoll(&c.eq, 1, 0, &c.event, &c.which)),
    CALL(PtlEQWait(c.eq, &c.event)),
    CALL(PtlEQFree(c.eq)),
};
const std::vector<Call> kCallsWithCt = {
    CALL(PtlCTGet(c.ct, &c.count)),
    CALL(PtlCTSet(c.ct, (ptl_ct_event_t{1, 0}))),
    CALL(PtlCTInc(c.ct, (ptl_ct_event_t{1, 0}))),
    CALL(PtlCTPoll(&c.ct, &c.size, 1, 0, &c.count, &c.which)),
    CALL(PtlCTWait(c.ct, 0, &c.count)),
    CALL(PtlCTCancelTriggered(c.ct)),
    CALL(PtlTriggeredCTInc(c.ct, (ptl_ct_event_t{1, 0}), c.ct, 99)),
    CALL(PtlTriggeredCTSet(c.ct, (ptl_ct_event_t{1, 0}), c.ct, 99)),
    CALL(PtlCTFree(c.ct)),
};
const std::vector<Call> kCallsWithEntry = {CALL(PtlMEUnlink(c.entry)), CALL(PtlLEUnlink(c.entry))};

void expect_all(const std::vector<Call>& calls, Calls values, int expected) {
  for (const Call& call : calls) EXPECT_EQ(name_of_rc(call.second(values)), name_of_rc(expected)) << call.first;
}

}  // namespace

// 3.4, table 3-7: every call but PtlInit, PtlFini and PtlHandleIsEqual gives PTL_NO_INIT before PtlInit.
TEST_PROCESSES(1, Arguments, Section3_4__before_init_everything_gives_no_init) {
  Calls calls;
  expect_all(kCallsWithNi, calls, PTL_NO_INIT);
  expect_all(kCallsWithMd, calls, PTL_NO_INIT);
  expect_all(kCallsWithEq, calls, PTL_NO_INIT);
  expect_all(kCallsWithCt, calls, PTL_NO_INIT);
  expect_all(kCallsWithEntry, calls, PTL_NO_INIT);
  EXPECT_RC(PtlNIInit(PTL_IFACE_DEFAULT, kMatching, PTL_PID_ANY, nullptr, nullptr, &calls.ni), PTL_NO_INIT);
  EXPECT_RC(PtlAtomicSync(), PTL_NO_INIT);
}

// 3.5.2, table 3-7: the same after the last PtlFini. Between PtlInit and the first PtlNIInit there is no handle that
// could be valid.
TEST_PROCESSES(1, Arguments, Section3_4__without_an_interface_nothing_is_valid) {
  Calls calls;
  calls.me_value.match_id.rank = 0;
  const auto expect_everywhere = [&calls](int expected) {
    for (const auto* list : {&kCallsWithNi, &kCallsWithMd, &kCallsWithEq, &kCallsWithCt, &kCallsWithEntry})
      expect_all(*list, calls, expected);
  };
  for (int round = 0; round < 2; ++round) {
    REQUIRE_OK(PtlInit());
    expect_everywhere(PTL_ARG_INVALID);
    EXPECT_RC(PtlAtomicSync(), PTL_OK);
    const ptl_handle_any_t before = calls.ni;
    REQUIRE_OK(PtlNIInit(PTL_IFACE_DEFAULT, kMatching, PTL_PID_ANY, nullptr, nullptr, &calls.ni));
    PtlFini();
    expect_everywhere(PTL_NO_INIT);
    EXPECT_RC(PtlAtomicSync(), PTL_NO_INIT);
    EXPECT_NE(calls.ni, before);
  }
}

// A handle is invalid if it is a constant, zero, of another kind, or freed.
TEST_PROCESSES(1, Arguments, Section3_4__handle_of_another_kind_is_invalid) {
  const Ni ni(self);
  const Ends ends(ni);
  Calls good;
  good.ni = ni;
  good.md = ends.md;
  good.eq = ends.source_eq;
  good.ct = alloc_ct(ni);
  good.entry = append(ni, me_of(ni, nullptr, 0));
  good.id = ni.target();
  const ptl_handle_any_t kinds[] = {good.ni,     good.md,     good.eq, good.ct,    good.entry, PTL_INVALID_HANDLE,
                                    PTL_EQ_NONE, PTL_CT_NONE, 0,       0xfffffff0u};
  for (ptl_handle_any_t handle : kinds) {
    SCOPED_TRACE("handle " + std::to_string(handle));
    Calls calls = good;
    if (handle != good.ni) {
      calls.ni = handle;
      std::vector<Call> no_handle_call = kCallsWithNi;
      no_handle_call.erase(no_handle_call.begin() + 1);  // PtlNIHandle takes every kind.
      expect_all(no_handle_call, calls, PTL_ARG_INVALID);
      calls = good;
    }
    if (handle != good.md) {
      calls.md = handle;
      expect_all(kCallsWithMd, calls, PTL_ARG_INVALID);
      calls = good;
    }
    if (handle != good.eq) {
      calls.eq = handle;
      expect_all(kCallsWithEq, calls, PTL_ARG_INVALID);
      calls = good;
    }
    if (handle != good.ct) {
      calls.ct = handle;
      expect_all(kCallsWithCt, calls, PTL_ARG_INVALID);
      calls = good;
    }
    if (handle != good.entry) {
      calls.entry = handle;
      expect_all(kCallsWithEntry, calls, PTL_ARG_INVALID);
    }
  }
}

// 3.6.5: the handle of "the object"; there is none behind a constant.
TEST_PROCESSES(1, Arguments, Section3_6_5__ni_handle_of_no_object_is_invalid) {
  const Ni ni(self);
  ptl_handle_ni_t out = PTL_INVALID_HANDLE;
  for (ptl_handle_any_t handle : {PTL_INVALID_HANDLE, PTL_EQ_NONE, PTL_CT_NONE, 0u})
    EXPECT_RC(PtlNIHandle(handle, &out), PTL_ARG_INVALID) << handle;
}

// A freed handle is invalid from then on.
TEST_PROCESSES(1, Arguments, Section3_4__freed_handle_is_invalid) {
  const Ni ni(self);
  const Ends ends(ni);
  Calls calls;
  calls.ni = ni;
  calls.id = ni.target();
  calls.md = bind_quiet(ni, calls.memory, 64, ends.source_eq);
  calls.eq = alloc_eq(ni);
  calls.ct = alloc_ct(ni);
  REQUIRE_OK(PtlMDRelease(calls.md));
  REQUIRE_OK(PtlEQFree(calls.eq));
  REQUIRE_OK(PtlCTFree(calls.ct));
  expect_all(kCallsWithEq, calls, PTL_ARG_INVALID);
  expect_all(kCallsWithCt, calls, PTL_ARG_INVALID);
  calls.ct = alloc_ct(ni);
  expect_all(kCallsWithMd, calls, PTL_ARG_INVALID);
  calls.entry = append(ni, me_of(ni, nullptr, 0));
  REQUIRE_OK(PtlMEUnlink(calls.entry));
  expect_all(kCallsWithEntry, calls, PTL_ARG_INVALID);
  // New objects may reuse what is behind the old handles, but not make them valid again.
  for (int i = 0; i < 3; ++i) {
    bind_quiet(ni, calls.memory, 64, ends.source_eq);
    alloc_eq(ni);
    append(ni, me_of(ni, nullptr, 0));
  }
  EXPECT_RC(PtlMDRelease(calls.md), PTL_ARG_INVALID);
  expect_all(kCallsWithEq, calls, PTL_ARG_INVALID);
  expect_all(kCallsWithEntry, calls, PTL_ARG_INVALID);
  const ptl_handle_ct_t freed_ct = alloc_ct(ni);
  REQUIRE_OK(PtlCTFree(freed_ct));
  alloc_ct(ni);
  calls.ct = freed_ct;
  expect_all(kCallsWithCt, calls, PTL_ARG_INVALID);
  for (ptl_handle_any_t handle : {calls.md, calls.eq, freed_ct, calls.entry})
    EXPECT_RC(PtlNIHandle(handle, &calls.out), PTL_ARG_INVALID) << handle;
}

// The same where an object is named by a structure or by a further argument.
TEST_PROCESSES(1, Arguments, Section3_4__freed_handle_in_a_structure_is_invalid) {
  const Ni ni(self);
  const Ends ends(ni);
  Calls c;
  const ptl_handle_eq_t eq = alloc_eq(ni);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  REQUIRE_OK(PtlEQFree(eq));
  REQUIRE_OK(PtlCTFree(ct));
  ptl_md_t md = md_of(c.memory, 8, eq);
  EXPECT_RC(PtlMDBind(ni, &md, &c.out), PTL_ARG_INVALID);
  md = md_of(c.memory, 8, PTL_EQ_NONE, ct);
  EXPECT_RC(PtlMDBind(ni, &md, &c.out), PTL_ARG_INVALID);
  for (unsigned int options : {0u, PTL_PT_FLOWCTRL})
    EXPECT_RC(PtlPTAlloc(ni, options, eq, PTL_PT_ANY, &c.pt), PTL_ARG_INVALID);
  c.me_value.ct_handle = ct;
  EXPECT_RC(PtlMEAppend(ni, kPt, &c.me_value, PTL_PRIORITY_LIST, nullptr, &c.out), PTL_ARG_INVALID);
  EXPECT_RC(PtlMESearch(ni, kPt, &c.me_value, PTL_SEARCH_ONLY, nullptr), PTL_ARG_INVALID);
  const ptl_handle_eq_t eqs[2] = {ends.target_eq, eq};
  EXPECT_RC(PtlEQPoll(eqs, 2, PTL_TIME_FOREVER, &c.event, &c.which), PTL_ARG_INVALID);
  const ptl_handle_ct_t cts[2] = {alloc_ct(ni), ct};
  const ptl_size_t tests[2] = {1, 1};
  EXPECT_RC(PtlCTPoll(cts, tests, 2, PTL_TIME_FOREVER, &c.count, &c.which), PTL_ARG_INVALID);
  EXPECT_RC(PtlTriggeredCTInc(cts[0], {1, 0}, ct, 9), PTL_ARG_INVALID);
  EXPECT_RC(PtlTriggeredCTSet(ct, {1, 0}, cts[0], 9), PTL_ARG_INVALID);
}

// Every bit that is no option of the call is refused, also where it is an option of another one.
TEST_PROCESSES(1, Arguments, Section3_4__every_bit_that_is_no_option_is_invalid) {
  const Ni ni(self);
  const Ni plain(self, kNonMatching);
  const Ends ends(ni);
  alloc_pt(plain, PTL_EQ_NONE);
  for (unsigned int bit = 1; bit != 0; bit <<= 1) {
    SCOPED_TRACE("bit " + std::to_string(bit));
    Calls c;
    if ((bit & PTL_NI_INIT_OPTIONS_MASK) == 0) {
      EXPECT_RC(PtlNIInit(PTL_IFACE_DEFAULT, kMatching | bit, PTL_PID_ANY, nullptr, nullptr, &c.out), PTL_ARG_INVALID);
    }
    if ((bit & PTL_PT_ALLOC_OPTIONS_MASK) == 0) {
      EXPECT_RC(PtlPTAlloc(ni, bit, ends.target_eq, PTL_PT_ANY, &c.pt), PTL_ARG_INVALID);
    }
    c.md_value.options = bit;
    if ((bit & PTL_MD_OPTIONS_MASK) == 0) {
      EXPECT_RC(PtlMDBind(ni, &c.md_value, &c.out), PTL_ARG_INVALID);
    }
    c.me_value.options = PTL_ME_OP_PUT | bit;
    if ((bit & PTL_ME_APPEND_OPTIONS_MASK) == 0) {
      EXPECT_RC(PtlMEAppend(ni, kPt, &c.me_value, PTL_OVERFLOW_LIST, nullptr, &c.out), PTL_ARG_INVALID);
      EXPECT_RC(PtlMESearch(ni, kPt, &c.me_value, PTL_SEARCH_DELETE, nullptr), PTL_ARG_INVALID);
    }
    c.le_value.options = PTL_LE_OP_PUT | bit;
    if ((bit & PTL_LE_APPEND_OPTIONS_MASK) == 0) {
      EXPECT_RC(PtlLEAppend(plain, kPt, &c.le_value, PTL_OVERFLOW_LIST, nullptr, &c.out), PTL_ARG_INVALID);
      EXPECT_RC(PtlLESearch(plain, kPt, &c.le_value, PTL_SEARCH_DELETE, nullptr), PTL_ARG_INVALID);
    }
  }
}

// The masks are all legal options or'ed: each single one is taken, and all of a call together.
TEST_PROCESSES(1, Arguments, Section3_4__every_option_is_legal) {
  const Ni ni(self);
  const Ni plain(self, kNonMatching);
  const Ends ends(ni);
  alloc_pt(plain, PTL_EQ_NONE);
  ptl_iovec_t piece{};
  const auto expect_legal = [&](unsigned int options) {
    SCOPED_TRACE("options " + std::to_string(options));
    Calls c;
    piece = {c.memory, sizeof c.memory};
    const auto describe = [&](auto& value, unsigned int mask) {
      value.options = options & mask;
      const bool scattered = (value.options & PTL_IOVEC) != 0;
      value.start = scattered ? static_cast<void*>(&piece) : c.memory;
      value.length = scattered ? 1 : sizeof c.memory;
    };
    describe(c.md_value, PTL_MD_OPTIONS_MASK);
    EXPECT_RC(PtlMDBind(ni, &c.md_value, &c.md), PTL_OK);
    EXPECT_RC(PtlMDRelease(c.md), PTL_OK);
    describe(c.me_value, PTL_ME_APPEND_OPTIONS_MASK);
    EXPECT_RC(PtlMEAppend(ni, kPt, &c.me_value, PTL_PRIORITY_LIST, nullptr, &c.entry), PTL_OK);
    EXPECT_RC(PtlMEUnlink(c.entry), PTL_OK);
    describe(c.le_value, PTL_LE_APPEND_OPTIONS_MASK);
    EXPECT_RC(PtlLEAppend(plain, kPt, &c.le_value, PTL_PRIORITY_LIST, nullptr, &c.entry), PTL_OK);
    EXPECT_RC(PtlLEUnlink(c.entry), PTL_OK);
    EXPECT_RC(PtlPTAlloc(ni, options & PTL_PT_ALLOC_OPTIONS_MASK, ends.target_eq, PTL_PT_ANY, &c.pt), PTL_OK);
    EXPECT_RC(PtlPTFree(ni, c.pt), PTL_OK);
  };
  for (unsigned int bit = 1; bit != 0; bit <<= 1) expect_legal(bit);
  expect_legal(~0u);
}

// An option bit above all legal ones is refused.
TEST_PROCESSES(1, Arguments, Section3_4__bit_above_the_mask_is_invalid) {
  const Ni ni(self);
  const Ends ends(ni);
  const auto above = [](unsigned int mask) {
    unsigned int bit = 1;
    while (bit <= mask && bit != 1u << 31) bit <<= 1;
    return bit;
  };
  Calls c;
  EXPECT_RC(PtlPTAlloc(ni, above(PTL_PT_ALLOC_OPTIONS_MASK), PTL_EQ_NONE, PTL_PT_ANY, &c.pt), PTL_ARG_INVALID);
  c.md_value.options = above(PTL_MD_OPTIONS_MASK);
  EXPECT_RC(PtlMDBind(ni, &c.md_value, &c.out), PTL_ARG_INVALID);
  c.me_value.options = PTL_ME_OP_PUT | above(PTL_ME_APPEND_OPTIONS_MASK);
  EXPECT_RC(PtlMEAppend(ni, kPt, &c.me_value, PTL_PRIORITY_LIST, nullptr, &c.out), PTL_ARG_INVALID);
  EXPECT_RC(PtlMESearch(ni, kPt, &c.me_value, PTL_SEARCH_ONLY, nullptr), PTL_ARG_INVALID);
  EXPECT_RC(
      PtlNIInit(PTL_IFACE_DEFAULT, kMatching | above(PTL_NI_INIT_OPTIONS_MASK), PTL_PID_ANY, nullptr, nullptr, &c.out),
      PTL_ARG_INVALID);
  const Ni plain(self, kNonMatching);
  alloc_pt(plain, PTL_EQ_NONE);
  c.le_value.options = PTL_LE_OP_PUT | above(PTL_LE_APPEND_OPTIONS_MASK);
  EXPECT_RC(PtlLEAppend(plain, kPt, &c.le_value, PTL_PRIORITY_LIST, nullptr, &c.out), PTL_ARG_INVALID);
  EXPECT_RC(PtlLESearch(plain, kPt, &c.le_value, PTL_SEARCH_ONLY, nullptr), PTL_ARG_INVALID);
}

// 3.4: "NULL is not generally a valid argument".
TEST_PROCESSES(1, Arguments, Section3_4__null_is_invalid) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  const ptl_size_t test = 0;
  Calls c;
  EXPECT_RC(PtlNIInit(PTL_IFACE_DEFAULT, kMatching, PTL_PID_ANY, nullptr, nullptr, nullptr), PTL_ARG_INVALID);
  EXPECT_RC(PtlNIStatus(ni, PTL_SR_DROP_COUNT, nullptr), PTL_ARG_INVALID);
  EXPECT_RC(PtlNIHandle(ni, nullptr), PTL_ARG_INVALID);
  EXPECT_RC(PtlPTAlloc(ni, 0, PTL_EQ_NONE, PTL_PT_ANY, nullptr), PTL_ARG_INVALID);
  EXPECT_RC(PtlGetUid(ni, nullptr), PTL_ARG_INVALID);
  EXPECT_RC(PtlGetId(ni, nullptr), PTL_ARG_INVALID);
  EXPECT_RC(PtlGetPhysId(ni, nullptr), PTL_ARG_INVALID);
  EXPECT_RC(PtlMDBind(ni, nullptr, &c.out), PTL_ARG_INVALID);
  EXPECT_RC(PtlMDBind(ni, &c.md_value, nullptr), PTL_ARG_INVALID);
  EXPECT_RC(PtlMEAppend(ni, kPt, nullptr, PTL_PRIORITY_LIST, nullptr, &c.out), PTL_ARG_INVALID);
  EXPECT_RC(PtlMEAppend(ni, kPt, &c.me_value, PTL_PRIORITY_LIST, nullptr, nullptr), PTL_ARG_INVALID);
  EXPECT_RC(PtlMESearch(ni, kPt, nullptr, PTL_SEARCH_ONLY, nullptr), PTL_ARG_INVALID);
  const Ni plain(self, PTL_NI_NO_MATCHING | PTL_NI_LOGICAL);
  alloc_pt(plain, PTL_EQ_NONE);
  EXPECT_RC(PtlLEAppend(plain, kPt, nullptr, PTL_PRIORITY_LIST, nullptr, &c.out), PTL_ARG_INVALID);
  EXPECT_RC(PtlLEAppend(plain, kPt, &c.le_value, PTL_PRIORITY_LIST, nullptr, nullptr), PTL_ARG_INVALID);
  EXPECT_RC(PtlLESearch(plain, kPt, nullptr, PTL_SEARCH_ONLY, nullptr), PTL_ARG_INVALID);
  EXPECT_RC(PtlSetMap(plain, 1, nullptr), PTL_ARG_INVALID);
  EXPECT_RC(PtlGetMap(plain, 1, nullptr, &c.size), PTL_ARG_INVALID);
  EXPECT_RC(PtlGetMap(plain, 1, &c.id, nullptr), PTL_ARG_INVALID);
  EXPECT_RC(PtlGetId(plain, nullptr), PTL_ARG_INVALID);
  // An array of pieces that is not there (3.10.2).
  c.md_value = md_of(nullptr, 1, PTL_EQ_NONE, PTL_CT_NONE, PTL_IOVEC);
  EXPECT_RC(PtlMDBind(ni, &c.md_value, &c.out), PTL_ARG_INVALID);
  c.me_value.start = nullptr;
  c.me_value.options = PTL_IOVEC;
  EXPECT_RC(PtlMEAppend(ni, kPt, &c.me_value, PTL_PRIORITY_LIST, nullptr, &c.out), PTL_ARG_INVALID);
  EXPECT_RC(PtlMESearch(ni, kPt, &c.me_value, PTL_SEARCH_ONLY, nullptr), PTL_ARG_INVALID);
  c.le_value = le_of(nullptr, 1, PTL_IOVEC);
  EXPECT_RC(PtlLEAppend(plain, kPt, &c.le_value, PTL_PRIORITY_LIST, nullptr, &c.out), PTL_ARG_INVALID);
  EXPECT_RC(PtlLESearch(plain, kPt, &c.le_value, PTL_SEARCH_ONLY, nullptr), PTL_ARG_INVALID);
  EXPECT_RC(PtlEQAlloc(ni, 16, nullptr), PTL_ARG_INVALID);
  EXPECT_RC(PtlEQGet(ends.target_eq, nullptr), PTL_ARG_INVALID);
  EXPECT_RC(PtlEQWait(ends.target_eq, nullptr), PTL_ARG_INVALID);
  EXPECT_RC(PtlEQPoll(nullptr, 1, 0, &c.event, &c.which), PTL_ARG_INVALID);
  EXPECT_RC(PtlEQPoll(&ends.target_eq, 1, 0, nullptr, &c.which), PTL_ARG_INVALID);
  EXPECT_RC(PtlEQPoll(&ends.target_eq, 1, 0, &c.event, nullptr), PTL_ARG_INVALID);
  EXPECT_RC(PtlCTAlloc(ni, nullptr), PTL_ARG_INVALID);
  EXPECT_RC(PtlCTGet(ct, nullptr), PTL_ARG_INVALID);
  EXPECT_RC(PtlCTWait(ct, 0, nullptr), PTL_ARG_INVALID);
  EXPECT_RC(PtlCTPoll(nullptr, &test, 1, 0, &c.count, &c.which), PTL_ARG_INVALID);
  EXPECT_RC(PtlCTPoll(&ct, nullptr, 1, 0, &c.count, &c.which), PTL_ARG_INVALID);
  EXPECT_RC(PtlCTPoll(&ct, &test, 1, 0, nullptr, &c.which), PTL_ARG_INVALID);
  EXPECT_RC(PtlCTPoll(&ct, &test, 1, 0, &c.count, nullptr), PTL_ARG_INVALID);
  EXPECT_RC(PtlSwap(ends.md, 8, ends.md, 0, 8, ni.target(), kPt, 0, 0, nullptr, 0, nullptr, PTL_CSWAP, PTL_INT64_T),
            PTL_ARG_INVALID);
}

// 3.18.1: "does not check whether the two handles are valid, but only whether they are equal".
TEST_PROCESSES(1, Arguments, Section3_18_1__handles_compare) {
  EXPECT_NE(PtlHandleIsEqual(PTL_INVALID_HANDLE, PTL_INVALID_HANDLE), 0);
  const Ni ni(self);
  const ptl_handle_eq_t eq = alloc_eq(ni);
  const ptl_handle_eq_t other_eq = alloc_eq(ni);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  EXPECT_NE(PtlHandleIsEqual(eq, eq), 0);
  EXPECT_EQ(PtlHandleIsEqual(eq, other_eq), 0);
  EXPECT_EQ(PtlHandleIsEqual(eq, ct), 0);
  EXPECT_EQ(PtlHandleIsEqual(eq, PTL_INVALID_HANDLE), 0);
  EXPECT_EQ(PtlHandleIsEqual(eq, PTL_EQ_NONE), 0);
  REQUIRE_OK(PtlEQFree(eq));
  EXPECT_NE(PtlHandleIsEqual(eq, eq), 0);
}
