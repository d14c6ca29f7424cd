// Portals 4.3, 3.12.4: PtlMESearch.
#include <sys/mman.h>

#include "../harness/fixture.h"

using namespace conformance;

PORTALS_SUITE(Search);

namespace {

alignas(64) unsigned char overflow_memory[256];

ptl_me_t pattern_of(const Ni& ni, ptl_match_bits_t bits, unsigned int options = 0, ptl_match_bits_t ignore = 0) {
  ptl_me_t me = me_of(ni, nullptr, 0, options);
  me.match_bits = bits;
  me.ignore_bits = ignore;
  return me;
}

void search(const Ni& ni, const ptl_me_t& me, ptl_search_op_t op, std::uintptr_t number) {
  REQUIRE_OK(PtlMESearch(ni, kPt, &me, op, tag(number)));
}

// Headers with hdr_data 0, 1, ... for the given match bits, each of 10 bytes, packed into an overflow entry (tag 99).
void leave_headers(Process& self, const Ni& ni, const Ends& ends, const std::vector<ptl_match_bits_t>& bits) {
  self.target([&] {
    ptl_me_t me = me_of(ni, overflow_memory, sizeof overflow_memory, PTL_ME_MANAGE_LOCAL | PTL_ME_EVENT_COMM_DISABLE);
    me.ignore_bits = ~ptl_match_bits_t{0};
    append(ni, me, PTL_OVERFLOW_LIST, tag(99));
  });
  self.initiator([&] {
    for (std::size_t i = 0; i < bits.size(); ++i)
      put_and_wait(
          ends, ni.target(),
          {.length = 10, .local_offset = 10 * i, .remote_offset = 500 + i, .match_bits = bits[i], .hdr_data = i});
  });
}

constexpr unsigned int kOnce = PTL_ME_USE_ONCE;

}  // namespace

// 3.12.4: with PTL_SEARCH_ONLY "a PTL_EVENT_SEARCH event with ni_fail_type PTL_NI_OK is generated" and the header is
// left; 3.13.1: "the event queue entries are filled in as if it were an overflow event".
TEST_BOTH_WAYS(Search, Section3_12_4__search_only_leaves_the_header) {
  const Ni ni(self);
  const Ends ends(ni);
  leave_headers(self, ni, ends, {7, 8});
  self.target([&] {
    for (std::uintptr_t i = 1; i <= 3; ++i) {
      search(ni, pattern_of(ni, 8, kOnce), PTL_SEARCH_ONLY, i);
      const ptl_event_t event = next_event(ends.target_eq, PTL_EVENT_SEARCH);
      EXPECT_EQ(event.user_ptr, tag(i));
      EXPECT_EQ(event.pt_index, kPt);
      EXPECT_EQ(event.match_bits, 8u);
      EXPECT_EQ(event.hdr_data, 1u);
      EXPECT_EQ(event.rlength, 10u);
      EXPECT_EQ(event.mlength, 10u);
      EXPECT_EQ(event.remote_offset, 501u);
      EXPECT_EQ(event.start, overflow_memory + 10);
      EXPECT_TRUE(same_process(ni, event.initiator, ni.id(self.size() - 1)));
      expect_empty(ends.target_eq);  // openmpi.md M9: exactly one event.
    }
    append(ni, pattern_of(ni, 8, kOnce | PTL_ME_EVENT_UNLINK_DISABLE));
    next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW);
  });
}

// 3.13.1: "If a matching message was found in the overflow list, PTL_NI_OK is returned in the ni_fail_type field",
// whatever has become of the message.
TEST_BOTH_WAYS(Search, Section3_13_1__a_match_is_no_failure) {
  const Ni ni(self);
  const Ends ends(ni);
  self.target([&] {
    void* const nothing = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ptl_me_t me = me_of(ni, nothing, 4096, PTL_ME_EVENT_COMM_DISABLE);
    me.match_bits = 8;
    append(ni, me, PTL_OVERFLOW_LIST);
  });
  self.initiator([&] { put_and_wait(ends, ni.target(), {.length = 10, .match_bits = 8}, PTL_NI_SEGV); });
  self.target([&] {
    search(ni, pattern_of(ni, 8, kOnce), PTL_SEARCH_ONLY, 1);
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_SEARCH).ni_fail_type, PTL_NI_OK);
    search(ni, pattern_of(ni, 8, kOnce), PTL_SEARCH_DELETE, 2);
    const ptl_event_t taken = next_event(ends.target_eq);
    EXPECT_EQ(taken.type, PTL_EVENT_PUT_OVERFLOW);
    EXPECT_EQ(taken.ni_fail_type, PTL_NI_SEGV);
  });
}

// 3.12.4: with PTL_SEARCH_DELETE "the event that is generated corresponds to the type of operation that is found", and
// the header is gone.
TEST_BOTH_WAYS(Search, Section3_12_4__search_delete_takes_the_header) {
  const Ni ni(self);
  const Ends ends(ni);
  leave_headers(self, ni, ends, {7, 8, 8});
  self.target([&] {
    for (ptl_hdr_data_t i : {1u, 2u}) {
      search(ni, pattern_of(ni, 8, kOnce), PTL_SEARCH_DELETE, 4);
      const ptl_event_t event = next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW);
      EXPECT_EQ(event.user_ptr, tag(4));
      EXPECT_EQ(event.hdr_data, i);
      EXPECT_EQ(event.start, overflow_memory + 10 * i);
    }
    search(ni, pattern_of(ni, 8, kOnce), PTL_SEARCH_DELETE, 5);
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_SEARCH, PTL_NI_NO_MATCH).user_ptr, tag(5));
    expect_empty(ends.target_eq);
  });
}

// 3.12.4: the overflow event of each kind of operation.
TEST_BOTH_WAYS(Search, Section3_12_4__search_delete_names_the_operation) {
  const Ni ni(self);
  const Ends ends(ni);
  self.target([&] { append(ni, me_of(ni, overflow_memory, 64, PTL_ME_EVENT_COMM_DISABLE), PTL_OVERFLOW_LIST); });
  self.initiator([&] {
    atomic(ends.md, ni.target(), {.length = 8, .op = PTL_BOR, .type = PTL_UINT64_T});
    next_event(ends.source_eq, PTL_EVENT_ACK);
    get(ends.md, ni.target(), {.length = 8, .local_offset = 1000});
    next_event(ends.source_eq, PTL_EVENT_REPLY);
    fetch_atomic(ends.md, 1000, ends.md, ni.target(), {.length = 8});
    next_event(ends.source_eq, PTL_EVENT_REPLY);
    put_and_wait(ends, ni.target(), {.length = 8});
  });
  self.target([&] {
    search(ni, pattern_of(ni, 0), PTL_SEARCH_ONLY, 1);
    ptl_event_t event = next_event(ends.target_eq, PTL_EVENT_SEARCH);
    EXPECT_EQ(event.atomic_operation, PTL_BOR);  // Table 3-3: defined for SEARCH too.
    EXPECT_EQ(event.atomic_type, PTL_UINT64_T);
    for (int i = 0; i < 3; ++i) next_event(ends.target_eq, PTL_EVENT_SEARCH);
    next_event(ends.target_eq, PTL_EVENT_SEARCH, PTL_NI_NO_MATCH);
    search(ni, pattern_of(ni, 0), PTL_SEARCH_DELETE, 1);
    event = next_event(ends.target_eq, PTL_EVENT_ATOMIC_OVERFLOW);
    EXPECT_EQ(event.atomic_operation, PTL_BOR);
    next_event(ends.target_eq, PTL_EVENT_GET_OVERFLOW);
    next_event(ends.target_eq, PTL_EVENT_FETCH_ATOMIC_OVERFLOW);
    next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW);
    next_event(ends.target_eq, PTL_EVENT_SEARCH, PTL_NI_NO_MATCH);
  });
}

// 3.12.4: persistent: "for each match found, an event is generated ..., and, at the end of the search, a
// PTL_EVENT_SEARCH event ... PTL_NI_NO_MATCH".
TEST_BOTH_WAYS(Search, Section3_12_4__persistent_search_reports_all_and_ends) {
  const Ni ni(self);
  const Ends ends(ni);
  leave_headers(self, ni, ends, {7, 8, 7, 9, 7});
  self.target([&] {
    for (ptl_search_op_t op : {PTL_SEARCH_ONLY, PTL_SEARCH_DELETE}) {
      search(ni, pattern_of(ni, 7), op, 4);
      for (ptl_hdr_data_t i : {0u, 2u, 4u}) {
        const ptl_event_t event =
            next_event(ends.target_eq, op == PTL_SEARCH_ONLY ? PTL_EVENT_SEARCH : PTL_EVENT_PUT_OVERFLOW);
        EXPECT_EQ(event.hdr_data, i);
        EXPECT_EQ(event.user_ptr, tag(4));
      }
      EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_SEARCH, PTL_NI_NO_MATCH).user_ptr, tag(4));
      expect_empty(ends.target_eq);
    }
    search(ni, pattern_of(ni, 0, 0, ~ptl_match_bits_t{0}), PTL_SEARCH_ONLY, 5);
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_SEARCH).hdr_data, 1u);
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_SEARCH).hdr_data, 3u);
    next_event(ends.target_eq, PTL_EVENT_SEARCH, PTL_NI_NO_MATCH);
  });
}

// 3.12.4: "if no match is found, a PTL_EVENT_SEARCH event is generated with a failure indication of PTL_NI_NO_MATCH";
// the entry "is never linked": what arrives later does not match it; "never causes a status register to be
// incremented".
TEST_BOTH_WAYS(Search, Section3_12_4__nothing_found) {
  const Ni ni(self);
  const Ends ends(ni);
  self.target([&] {
    for (ptl_search_op_t op : {PTL_SEARCH_ONLY, PTL_SEARCH_DELETE})
      for (unsigned int options : {0u, kOnce}) {
        search(ni, pattern_of(ni, 0, options), op, 6);
        EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_SEARCH, PTL_NI_NO_MATCH).user_ptr, tag(6));
        expect_empty(ends.target_eq);
      }
    EXPECT_EQ(ni.status(PTL_SR_DROP_COUNT), 0);
  });
  self.initiator([&] {
    get(ends.md, ni.target(), {.length = 1});
    next_event(ends.source_eq, PTL_EVENT_REPLY, PTL_NI_DROPPED);
  });
}

// 3.12.4: "the count of succeeding events is incremented by one for the first match found ..., and the search
// terminates. If no matches are found, the count of failing events is incremented by one."
TEST_BOTH_WAYS(Search, Section3_12_4__use_once_search_is_counted) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  leave_headers(self, ni, ends, {7, 7});
  self.target([&] {
    // Whether the options must enable the counting is not said; with both of them it is certainly enabled.
    ptl_me_t me = pattern_of(ni, 7, kOnce | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_OVERFLOW);
    me.ct_handle = ct;
    search(ni, me, PTL_SEARCH_ONLY, 1);
    EXPECT_EQ(wait_for_count(ct, 1).success, 1u);
    search(ni, me, PTL_SEARCH_DELETE, 1);
    EXPECT_EQ(wait_for_count(ct, 2).success, 2u);
    EXPECT_EQ(count_of(ct).failure, 0u);
    search(ni, me, PTL_SEARCH_DELETE, 1);
    search(ni, me, PTL_SEARCH_DELETE, 1);
    wait_for_counts(ct, 3, 1);
    EXPECT_EQ(count_of(ct).success, 3u);
    EXPECT_EQ(count_of(ct).failure, 1u);
  });
}

// 3.12.4: persistent: "incremented by one for each match found ..., and the count of failed events is incremented by
// one after all of the unexpected headers have been checked".
TEST_BOTH_WAYS(Search, Section3_12_4__persistent_search_is_counted) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  leave_headers(self, ni, ends, {7, 8, 7, 7});
  self.target([&] {
    ptl_me_t me = pattern_of(
        ni, 7, PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_OVERFLOW | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_OVER_DISABLE);
    me.ct_handle = ct;
    search(ni, me, PTL_SEARCH_ONLY, 1);
    wait_for_counts(ct, 3, 1);
    search(ni, me, PTL_SEARCH_DELETE, 1);
    wait_for_counts(ct, 6, 2);
    search(ni, me, PTL_SEARCH_DELETE, 1);
    wait_for_counts(ct, 6, 3);
    EXPECT_EQ(count_of(ct).success, 6u);
    EXPECT_EQ(count_of(ct).failure, 3u);
    expect_empty(ends.target_eq);  // Both kinds of full events were off.
  });
}

// 3.12.4: without an event queue "the search will succeed, but no events will be generated".
TEST_BOTH_WAYS(Search, Section3_12_4__without_event_queue) {
  const Ni ni(self);
  const ptl_handle_eq_t source_eq = alloc_eq(ni);
  const ptl_handle_md_t md = bind_quiet(ni, nullptr, 0, source_eq);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  alloc_pt(ni, PTL_EQ_NONE);
  self.target([&] { append(ni, pattern_of(ni, 7), PTL_OVERFLOW_LIST); });
  self.initiator([&] {
    put(md, ni.target(), {.match_bits = 7});
    next_event(source_eq, PTL_EVENT_ACK);
  });
  self.target([&] {
    search(ni, pattern_of(ni, 7), PTL_SEARCH_ONLY, 1);
    ptl_me_t me = pattern_of(ni, 7, kOnce | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_OVERFLOW);
    me.ct_handle = ct;
    search(ni, me, PTL_SEARCH_DELETE, 1);
    search(ni, me, PTL_SEARCH_DELETE, 1);
    wait_for_counts(ct, 1, 1);
  });
}

// 3.12.4: "Event generation for the search functions works just as it would for an append function": SUCCESS_DISABLE
// leaves only the failure.
TEST_BOTH_WAYS(Search, Section3_12_4__success_events_disabled) {
  const Ni ni(self);
  const Ends ends(ni);
  leave_headers(self, ni, ends, {7});
  self.target([&] {
    search(ni, pattern_of(ni, 7, PTL_ME_EVENT_SUCCESS_DISABLE), PTL_SEARCH_ONLY, 1);
    next_event(ends.target_eq, PTL_EVENT_SEARCH, PTL_NI_NO_MATCH);
    search(ni, pattern_of(ni, 7, PTL_ME_EVENT_SUCCESS_DISABLE | kOnce), PTL_SEARCH_DELETE, 2);
    search(ni, pattern_of(ni, 7, kOnce), PTL_SEARCH_DELETE, 3);
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_SEARCH, PTL_NI_NO_MATCH).user_ptr, tag(3));
    expect_empty(ends.target_eq);
  });
}

// 3.12.4: "No permissions checking is performed during search"; PTL_ME_LOCAL_INC_UH_RLENGTH is ignored.
TEST_BOTH_WAYS(Search, Section3_12_4__neither_permissions_nor_local_inc) {
  const Ni ni(self);
  const Ends ends(ni);
  ptl_uid_t uid = 0;
  REQUIRE_OK(PtlGetUid(ni, &uid));
  leave_headers(self, ni, ends, {7, 7, 7});
  self.target([&] {
    ptl_me_t me = pattern_of(ni, 7, PTL_ME_MANAGE_LOCAL | PTL_ME_LOCAL_INC_UH_RLENGTH);
    me.options &= ~(PTL_ME_OP_PUT | PTL_ME_OP_GET);
    me.uid = uid + 1;
    me.start = overflow_memory;
    me.length = 25;
    me.min_free = 10;  // Would be used up by the second header.
    search(ni, me, PTL_SEARCH_DELETE, 1);
    for (ptl_hdr_data_t i : {0u, 1u, 2u}) EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW).hdr_data, i);
    next_event(ends.target_eq, PTL_EVENT_SEARCH, PTL_NI_NO_MATCH);
    expect_empty(ends.target_eq);
    EXPECT_EQ(ni.status(PTL_SR_PERMISSION_VIOLATIONS), 0);
    EXPECT_EQ(ni.status(PTL_SR_OPERATION_VIOLATIONS), 0);
  });
}

// 3.12.4: the unexpected list of its own portal table entry only.
TEST_BOTH_WAYS(Search, Section3_12_4__other_portal_table_entries_are_not_searched) {
  const Ni ni(self);
  const Ends ends(ni);
  alloc_pt(ni, ends.target_eq, 0, kOtherPt);
  leave_headers(self, ni, ends, {7});
  self.target([&] {
    const ptl_me_t me = pattern_of(ni, 7, kOnce);
    REQUIRE_OK(PtlMESearch(ni, kOtherPt, &me, PTL_SEARCH_DELETE, tag(1)));
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_SEARCH, PTL_NI_NO_MATCH).user_ptr, tag(1));
    search(ni, me, PTL_SEARCH_DELETE, 2);
    next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW);
  });
}

// 3.4: an operation that there is not, an index that is not allocated.
TEST_PROCESSES(1, Search, Section3_12_4__illegal_arguments) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_me_t me = pattern_of(ni, 0, kOnce);
  EXPECT_RC(PtlMESearch(ni, kOtherPt, &me, PTL_SEARCH_ONLY, nullptr), PTL_ARG_INVALID);
  EXPECT_RC(PtlMESearch(ni, kPt, &me, static_cast<ptl_search_op_t>(2), nullptr), PTL_ARG_INVALID);
  expect_empty(ends.target_eq);
}
