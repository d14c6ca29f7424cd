// Portals 4.3, 3.11: list entries of non-matching interfaces. What they share with match list entries is tested in the
// files of 3.12; here is what differs, and that the shared rules hold at all.
#include <cstring>

#include "../harness/fixture.h"

using namespace conformance;

PORTALS_SUITE(ListEntry);

namespace {

alignas(64) unsigned char target_memory[64];

std::uintptr_t number(const ptl_event_t& event) { return reinterpret_cast<std::uintptr_t>(event.user_ptr); }

}  // namespace

// 2.5.1: "The first list entry (LE) in a list always matches"; 3.13.4: match_bits is 0 for a non-matching entry.
TEST_BOTH_WAYS(ListEntry, Section2_5_1__first_entry_always_matches) {
  const Ni ni(self, kNonMatching);
  Ends ends(ni);
  self.target([&] {
    append(ni, le_of(target_memory, 64), PTL_PRIORITY_LIST, tag(1));
    append(ni, le_of(target_memory, 64), PTL_PRIORITY_LIST, tag(2));
  });
  self.initiator([&] {
    for (ptl_match_bits_t bits : {ptl_match_bits_t{0}, ptl_match_bits_t{77}, ~ptl_match_bits_t{0}})
      put_and_wait(ends, ni.target(), {.length = 8, .remote_offset = 3, .match_bits = bits, .hdr_data = 9});
    get(ends.md, ni.target(), {.length = 8, .local_offset = 100, .remote_offset = 3});
    EXPECT_EQ(next_event(ends.source_eq, PTL_EVENT_REPLY).mlength, 8u);
    EXPECT_EQ(std::memcmp(&ends.data[100], pattern(8).data(), 8), 0);
  });
  self.target([&] {
    for (int i = 0; i < 3; ++i) {
      const ptl_event_t event = next_event(ends.target_eq, PTL_EVENT_PUT);
      EXPECT_EQ(number(event), 1u);
      EXPECT_EQ(event.match_bits, 0u);
      EXPECT_EQ(event.hdr_data, 9u);
      EXPECT_EQ(event.start, target_memory + 3);
    }
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_GET)), 1u);
  });
}

// 3.11: "Messages that are outside the bounds of the LE are truncated to zero bytes"; 2.5.1: one that does not fit
// "will be truncated".
TEST_BOTH_WAYS(ListEntry, Section3_11__truncation) {
  const Ni ni(self, kNonMatching);
  const Ends ends(ni);
  self.target([&] { append(ni, le_of(target_memory, 10)); });
  self.initiator([&] {
    EXPECT_EQ(put_and_wait(ends, ni.target(), {.length = 20}).mlength, 10u);
    EXPECT_EQ(put_and_wait(ends, ni.target(), {.length = 8, .remote_offset = 6}).mlength, 4u);
    EXPECT_EQ(put_and_wait(ends, ni.target(), {.length = 8, .remote_offset = 10}).mlength, 0u);
    EXPECT_EQ(put_and_wait(ends, ni.target(), {.length = 8, .remote_offset = PTL_SIZE_MAX}).mlength, 0u);
  });
  self.target([&] {
    for (ptl_size_t mlength : {10u, 4u, 0u, 0u}) EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT).mlength, mlength);
    for (int i = 10; i < 64; ++i) EXPECT_EQ(target_memory[i], 0);
  });
}

// 3.11.1: PTL_LE_USE_ONCE: "will only be used once and then unlinked"; 2.1: the overflow list comes after the priority
// list.
TEST_BOTH_WAYS(ListEntry, Section3_11_1__use_once_entries_are_used_in_order_then_the_overflow_list) {
  const Ni ni(self, kNonMatching);
  const Ends ends(ni);
  self.target([&] {
    append(ni, le_of(target_memory, 64, PTL_LE_EVENT_UNLINK_DISABLE), PTL_OVERFLOW_LIST, tag(9));
    for (std::uintptr_t i = 1; i <= 3; ++i)
      append(ni, le_of(target_memory, 64, PTL_LE_USE_ONCE), PTL_PRIORITY_LIST, tag(i));
  });
  self.initiator([&] {
    for (int i = 0; i < 3; ++i) EXPECT_EQ(put_and_wait(ends, ni.target(), {.length = 1}).ptl_list, PTL_PRIORITY_LIST);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(put_and_wait(ends, ni.target(), {.length = 1}).ptl_list, PTL_OVERFLOW_LIST);
  });
  self.target([&] {
    for (std::uintptr_t i = 1; i <= 3; ++i) {
      EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_PUT)), i);
      EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_AUTO_UNLINK)), i);
    }
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_PUT)), 9u);
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_PUT)), 9u);
    expect_empty(ends.target_eq);
  });
}

// 3.11.2: an unexpected header makes "an appropriate overflow full event"; a use-once entry "is not inserted"; a
// persistent one takes "every matching entry in the unexpected list".
TEST_BOTH_WAYS(ListEntry, Section3_11_2__append_takes_unexpected_headers) {
  const Ni ni(self, kNonMatching);
  const Ends ends(ni);
  self.target([&] { append(ni, le_of(target_memory, 64, PTL_LE_EVENT_COMM_DISABLE), PTL_OVERFLOW_LIST); });
  self.initiator([&] {
    for (ptl_size_t i = 0; i < 3; ++i)
      put_and_wait(ends, ni.target(), {.length = 8, .local_offset = i, .remote_offset = 8 * i, .hdr_data = i});
  });
  self.target([&] {
    append(ni, le_of(nullptr, 0, PTL_LE_USE_ONCE | PTL_LE_EVENT_UNLINK_DISABLE | kLink), PTL_PRIORITY_LIST, tag(1));
    const ptl_event_t first = next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW);
    EXPECT_EQ(number(first), 1u);
    EXPECT_EQ(first.hdr_data, 0u);
    EXPECT_EQ(first.match_bits, 0u);
    EXPECT_EQ(first.mlength, 8u);
    EXPECT_EQ(first.start, target_memory);
    expect_empty(ends.target_eq);
    append(ni, le_of(nullptr, 0, kLink), PTL_PRIORITY_LIST, tag(2));
    for (ptl_size_t i = 1; i < 3; ++i) {
      const ptl_event_t event = next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW);
      EXPECT_EQ(number(event), 2u);
      EXPECT_EQ(event.hdr_data, i);
      EXPECT_EQ(event.start, target_memory + 8 * i);
    }
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_LINK)), 2u);
    EXPECT_EQ(std::memcmp(target_memory + 8, &ends.data[1], 8), 0);
  });
  self.initiator([&] { EXPECT_EQ(put_and_wait(ends, ni.target(), {.length = 8}).ptl_list, PTL_PRIORITY_LIST); });
  self.target([&] { EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_PUT)), 2u); });
}

// 3.11.3: PTL_IN_USE with unexpected headers, PTL_OK without; then no message finds the entry any more.
TEST_BOTH_WAYS(ListEntry, Section3_11_3__unlink) {
  const Ni ni(self, kNonMatching);
  const Ends ends(ni);
  ptl_handle_le_t overflow = PTL_INVALID_HANDLE;
  self.target([&] { overflow = append(ni, le_of(nullptr, 0), PTL_OVERFLOW_LIST); });
  self.initiator([&] { put_and_wait(ends, ni.target(), {.length = 1}); });
  self.target([&] {
    next_event(ends.target_eq, PTL_EVENT_PUT);
    EXPECT_RC(PtlLEUnlink(overflow), PTL_IN_USE);
    const ptl_handle_le_t priority = append(ni, le_of(nullptr, 0));
    next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW);
    EXPECT_RC(PtlLEUnlink(overflow), PTL_OK);
    EXPECT_RC(PtlLEUnlink(priority), PTL_OK);
    expect_empty(ends.target_eq);
  });
  self.initiator([&] {
    get(ends.md, ni.target(), {.length = 1});
    next_event(ends.source_eq, PTL_EVENT_REPLY, PTL_NI_DROPPED);
  });
  self.target([&] { EXPECT_EQ(ni.status(PTL_SR_DROP_COUNT), 1); });
}

// 3.11.4: SEARCH_ONLY leaves the header, SEARCH_DELETE takes it and makes its overflow event; a persistent search ends
// with PTL_NI_NO_MATCH.
TEST_BOTH_WAYS(ListEntry, Section3_11_4__search) {
  const Ni ni(self, kNonMatching);
  const Ends ends(ni);
  self.target([&] { append(ni, le_of(target_memory, 64, PTL_LE_EVENT_COMM_DISABLE), PTL_OVERFLOW_LIST); });
  self.initiator([&] {
    for (ptl_hdr_data_t i = 1; i <= 3; ++i) put_and_wait(ends, ni.target(), {.length = 4, .hdr_data = i});
  });
  self.target([&] {
    const ptl_le_t once = le_of(nullptr, 0, PTL_LE_USE_ONCE);
    const ptl_le_t all = le_of(nullptr, 0);
    REQUIRE_OK(PtlLESearch(ni, kPt, &once, PTL_SEARCH_ONLY, tag(5)));
    ptl_event_t event = next_event(ends.target_eq, PTL_EVENT_SEARCH);
    EXPECT_EQ(event.hdr_data, 1u);
    EXPECT_EQ(event.user_ptr, tag(5));
    REQUIRE_OK(PtlLESearch(ni, kPt, &once, PTL_SEARCH_DELETE, tag(6)));
    event = next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW);
    EXPECT_EQ(event.hdr_data, 1u);
    EXPECT_EQ(event.user_ptr, tag(6));
    REQUIRE_OK(PtlLESearch(ni, kPt, &all, PTL_SEARCH_ONLY, tag(7)));
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_SEARCH).hdr_data, 2u);
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_SEARCH).hdr_data, 3u);
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_SEARCH, PTL_NI_NO_MATCH).user_ptr, tag(7));
    REQUIRE_OK(PtlLESearch(ni, kPt, &all, PTL_SEARCH_DELETE, tag(8)));
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW).hdr_data, 2u);
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW).hdr_data, 3u);
    next_event(ends.target_eq, PTL_EVENT_SEARCH, PTL_NI_NO_MATCH);
    REQUIRE_OK(PtlLESearch(ni, kPt, &once, PTL_SEARCH_ONLY, tag(9)));
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_SEARCH, PTL_NI_NO_MATCH).user_ptr, tag(9));
    expect_empty(ends.target_eq);
  });
}

// 3.11.4: "the count of succeeding events is incremented by one for the first match found (if it exists) and the search
// terminates. If no matches are found, the count of failing events is incremented by one"; persistent: one "for each
// match found", and one failure "after all of the unexpected headers have been checked".
TEST_BOTH_WAYS(ListEntry, Section3_11_4__searches_are_counted) {
  const Ni ni(self, kNonMatching);
  const Ends ends(ni);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  self.target([&] { append(ni, le_of(nullptr, 0, PTL_LE_EVENT_COMM_DISABLE), PTL_OVERFLOW_LIST); });
  self.initiator([&] {
    for (int i = 0; i < 4; ++i) put_and_wait(ends, ni.target(), {.length = 4});
  });
  self.target([&] {
    const auto search = [&](unsigned int options, ptl_search_op_t op, ptl_size_t success, ptl_size_t failure) {
      ptl_le_t le = le_of(nullptr, 0, options | PTL_LE_EVENT_CT_COMM | PTL_LE_EVENT_CT_OVERFLOW);
      le.ct_handle = ct;
      REQUIRE_OK(PtlCTSet(ct, {0, 0}));
      REQUIRE_OK(PtlLESearch(ni, kPt, &le, op, nullptr));
      wait_for_counts(ct, success, failure);
      EXPECT_EQ(count_of(ct).success, success);
      EXPECT_EQ(count_of(ct).failure, failure);
    };
    search(PTL_LE_USE_ONCE, PTL_SEARCH_ONLY, 1, 0);
    search(PTL_LE_USE_ONCE, PTL_SEARCH_DELETE, 1, 0);
    search(0, PTL_SEARCH_ONLY, 3, 1);
    search(0, PTL_SEARCH_DELETE, 3, 1);
    search(0, PTL_SEARCH_ONLY, 0, 1);
    search(PTL_LE_USE_ONCE, PTL_SEARCH_DELETE, 0, 1);
  });
}

// 3.11.4: SEARCH of PTL_SEARCH_ONLY is "filled in as if it were an overflow event" (3.13.1); with PTL_SEARCH_DELETE
// "the event that is generated corresponds to the type of operation that is found", and what is found is deleted.
TEST_BOTH_WAYS(ListEntry, Section3_11_4__searches_tell_what_they_find) {
  const Ni ni(self, kNonMatching);
  const Ends ends(ni);
  ptl_handle_le_t overflow = PTL_INVALID_HANDLE;
  self.target(
      [&] { overflow = append(ni, le_of(target_memory, 64, PTL_LE_EVENT_COMM_DISABLE), PTL_OVERFLOW_LIST, tag(99)); });
  self.initiator([&] {
    put_and_wait(ends, ni.target(), {.length = 100, .remote_offset = 8, .hdr_data = 1});
    get(ends.md, ni.target(), {.length = 4, .local_offset = 2000, .remote_offset = 16});
    next_event(ends.source_eq, PTL_EVENT_REPLY);
    atomic(ends.md, ni.target(), {.length = 8, .hdr_data = 3, .op = PTL_BOR, .type = PTL_UINT64_T});
    next_event(ends.source_eq, PTL_EVENT_ACK);
    fetch_atomic(ends.md, 2000, ends.md, ni.target(), {.length = 8, .hdr_data = 4});
    next_event(ends.source_eq, PTL_EVENT_REPLY);
  });
  self.target([&] {
    const ptl_event_kind_t kinds[] = {PTL_EVENT_PUT_OVERFLOW, PTL_EVENT_GET_OVERFLOW, PTL_EVENT_ATOMIC_OVERFLOW,
                                      PTL_EVENT_FETCH_ATOMIC_OVERFLOW};
    const ptl_le_t all = le_of(nullptr, 0);
    const ptl_le_t once = le_of(nullptr, 0, PTL_LE_USE_ONCE);
    for (ptl_search_op_t op : {PTL_SEARCH_ONLY, PTL_SEARCH_DELETE}) {
      REQUIRE_OK(PtlLESearch(ni, kPt, &all, op, tag(7)));
      for (int i = 0; i < 4; ++i) {
        const ptl_event_t event =
            next_event(ends.target_eq, op == PTL_SEARCH_ONLY ? PTL_EVENT_SEARCH : kinds[static_cast<std::size_t>(i)]);
        EXPECT_EQ(event.user_ptr, tag(7));
        EXPECT_EQ(event.pt_index, kPt);
        EXPECT_EQ(event.ptl_list, PTL_OVERFLOW_LIST);
        EXPECT_TRUE(same_process(ni, event.initiator, ni.id(self.size() - 1)));
        if (i == 0) {
          EXPECT_EQ(event.hdr_data, 1u);
          EXPECT_EQ(event.rlength, 100u);
          EXPECT_EQ(event.mlength, 56u);
          EXPECT_EQ(event.remote_offset, 8u);
          EXPECT_EQ(event.start, target_memory + 8);
        }
        if (i == 2) {
          EXPECT_EQ(event.atomic_operation, PTL_BOR);
          EXPECT_EQ(event.atomic_type, PTL_UINT64_T);
        }
      }
      EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_SEARCH, PTL_NI_NO_MATCH).user_ptr, tag(7));
      EXPECT_RC(PtlLEUnlink(overflow), op == PTL_SEARCH_ONLY ? PTL_IN_USE : PTL_OK) << "3.11.3: unexpected headers";
    }
    REQUIRE_OK(PtlLESearch(ni, kPt, &once, PTL_SEARCH_DELETE, tag(8)));
    next_event(ends.target_eq, PTL_EVENT_SEARCH, PTL_NI_NO_MATCH);
    expect_empty(ends.target_eq);
  });
}

// 3.11.4: "Event generation for the search functions works just as it would for an append function": options turn full
// events off, and the counts stay.
TEST_BOTH_WAYS(ListEntry, Section3_11_4__events_of_searches_can_be_disabled) {
  const Ni ni(self, kNonMatching);
  const Ends ends(ni);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  self.target([&] { append(ni, le_of(nullptr, 0, PTL_LE_EVENT_COMM_DISABLE), PTL_OVERFLOW_LIST); });
  self.initiator([&] {
    for (int i = 0; i < 2; ++i) put_and_wait(ends, ni.target(), {.length = 4});
  });
  self.target([&] {
    for (ptl_search_op_t op : {PTL_SEARCH_ONLY, PTL_SEARCH_DELETE, PTL_SEARCH_DELETE}) {
      ptl_le_t le = le_of(nullptr, 0, PTL_LE_EVENT_COMM_DISABLE | PTL_LE_EVENT_OVER_DISABLE | PTL_LE_EVENT_CT_OVERFLOW);
      le.ct_handle = ct;
      REQUIRE_OK(PtlLESearch(ni, kPt, &le, op, nullptr));
    }
    wait_for_counts(ct, 4, 3);
    EXPECT_EQ(count_of(ct).success, 4u);
    EXPECT_EQ(count_of(ct).failure, 3u);
    expect_empty(ends.target_eq);
    EXPECT_EQ(ni.status(PTL_SR_DROP_COUNT), 0) << "3.11.4: never incremented by a search";
  });
}

// C.1: PTL_LE_ACK_DISABLE is deprecated; it is still defined and honoured.
TEST_BOTH_WAYS(ListEntry, SectionC_1__ack_disable_is_still_honoured) {
  const Ni ni(self, kNonMatching);
  Ends ends(ni);
  const ptl_handle_eq_t eq = alloc_eq(ni);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  const ptl_handle_md_t md = bind_md(ni, md_of(ends.data.data(), 8, eq, ct, PTL_MD_EVENT_CT_ACK));
  alloc_pt(ni, PTL_EQ_NONE, 0, kOtherPt);
  self.target([&] {
    append(ni, le_of(target_memory, 8, PTL_LE_ACK_DISABLE));
    append(ni, le_of(target_memory, 8), PTL_PRIORITY_LIST, nullptr, kOtherPt);
  });
  self.initiator([&] {
    // PTL_OC_ACK_REQ is left out: it tells of the end of an operation, whatever has become of it (3.15.1).
    for (ptl_ack_req_t ack : {PTL_ACK_REQ, PTL_CT_ACK_REQ}) {
      put(md, ni.target(), {.length = 8, .ack = ack});
      next_event(eq, PTL_EVENT_SEND);
    }
    put_and_wait(ends, ni.target(), {.length = 8, .pt = kOtherPt});
    expect_empty(eq);
    EXPECT_EQ(count_of(ct).success, 0u);
    EXPECT_EQ(count_of(ct).failure, 0u);
  });
  self.target([&] {
    for (int i = 0; i < 2; ++i) next_event(ends.target_eq, PTL_EVENT_PUT);
  });
}

// 3.11.1: "If a put operation targets a list entry where PTL_LE_OP_PUT is not set, it is treated as an operations
// failure"; a wrong uid as "a permissions failure".
TEST_BOTH_WAYS(ListEntry, Section3_11_1__permissions) {
  const Ni ni(self, kNonMatching);
  const Ends ends(ni);
  ptl_uid_t uid = 0;
  REQUIRE_OK(PtlGetUid(ni, &uid));
  alloc_pt(ni, PTL_EQ_NONE, 0, kOtherPt);
  self.target([&] {
    ptl_le_t reading = le_of(target_memory, 64);
    reading.options &= ~PTL_LE_OP_PUT;
    append(ni, reading);
    ptl_le_t foreign = le_of(target_memory, 64);
    foreign.uid = uid + 1;
    append(ni, foreign, PTL_PRIORITY_LIST, nullptr, kOtherPt);
  });
  self.initiator([&] {
    put_and_wait(ends, ni.target(), {.length = 8}, PTL_NI_OP_VIOLATION);
    put_and_wait(ends, ni.target(), {.length = 8, .pt = kOtherPt}, PTL_NI_PERM_VIOLATION);
    get(ends.md, ni.target(), {.length = 8});
    next_event(ends.source_eq, PTL_EVENT_REPLY);
  });
  self.target([&] {
    wait_for_status(ni, PTL_SR_OPERATION_VIOLATIONS, 1);
    wait_for_status(ni, PTL_SR_PERMISSION_VIOLATIONS, 1);
    EXPECT_EQ(ni.status(PTL_SR_DROP_COUNT), 0);
  });
}

// 3.11.1: PTL_IOVEC: "behaves exactly as a list entry that describes a single virtually contiguous region".
TEST_BOTH_WAYS(ListEntry, Section3_11_1__iovec) {
  const Ni ni(self, kNonMatching);
  const Ends ends(ni);
  ptl_iovec_t pieces[3] = {{target_memory + 40, 5}, {target_memory, 7}, {target_memory + 20, 9}};
  self.target([&] { append(ni, le_of(pieces, 3, PTL_IOVEC)); });
  self.initiator([&] { EXPECT_EQ(put_and_wait(ends, ni.target(), {.length = 30, .remote_offset = 2}).mlength, 19u); });
  self.target([&] {
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT).start, target_memory + 42);
    EXPECT_EQ(std::memcmp(target_memory + 42, &ends.data[0], 3), 0);
    EXPECT_EQ(std::memcmp(target_memory, &ends.data[3], 7), 0);
    EXPECT_EQ(std::memcmp(target_memory + 20, &ends.data[10], 9), 0);
    EXPECT_EQ(target_memory[41], 0);
    EXPECT_EQ(target_memory[45], 0);
    EXPECT_EQ(target_memory[7], 0);
    EXPECT_EQ(target_memory[29], 0);
  });
}

// 3.11: "List entries can be appended to a network interface with the PTL_NI_NO_MATCHING option set"; 3.12: match list
// entries "may only be appended to a matching network interface".
TEST_PROCESSES(1, ListEntry, Section3_11__entry_of_the_wrong_kind) {
  const Ni matching(self, kMatching);
  const Ni plain(self, kNonMatching);
  alloc_pt(matching, PTL_EQ_NONE);
  alloc_pt(plain, PTL_EQ_NONE);
  const ptl_le_t le = le_of(target_memory, 8);
  const ptl_me_t me = me_of(matching, target_memory, 8);
  ptl_handle_any_t handle = PTL_INVALID_HANDLE;
  EXPECT_RC(PtlLEAppend(matching, kPt, &le, PTL_PRIORITY_LIST, nullptr, &handle), PTL_ARG_INVALID);
  EXPECT_RC(PtlLESearch(matching, kPt, &le, PTL_SEARCH_ONLY, nullptr), PTL_ARG_INVALID);
  EXPECT_RC(PtlMEAppend(plain, kPt, &me, PTL_PRIORITY_LIST, nullptr, &handle), PTL_ARG_INVALID);
  EXPECT_RC(PtlMESearch(plain, kPt, &me, PTL_SEARCH_ONLY, nullptr), PTL_ARG_INVALID);
  EXPECT_RC(PtlLEUnlink(append(matching, me)), PTL_ARG_INVALID);
  EXPECT_RC(PtlMEUnlink(append(plain, le)), PTL_ARG_INVALID);
}

// 3.11: an LE "that covers the entire virtual address range by setting start to NULL and length to PTL_SIZE_MAX": the
// offset is the address (Sandia OpenSHMEM exposes its memory so).
TEST_BOTH_WAYS(ListEntry, Section3_11__whole_address_space) {
  const Ni ni(self, kNonMatching);
  Ends ends(ni);
  if ((ni.limits().features & PTL_TARGET_BIND_INACCESSIBLE) == 0) self.skip("not promised by the interface");
  std::vector<unsigned char> heap(100000);
  self.target([&] { append(ni, le_of(nullptr, PTL_SIZE_MAX)); });
  const std::vector<unsigned char*> addresses = self.share(heap.data());
  const auto offset = reinterpret_cast<ptl_size_t>(addresses[0]);
  self.initiator([&] {
    const std::vector<unsigned char> out = pattern(heap.size(), 8);
    std::vector<unsigned char> in(heap.size());
    const ptl_handle_md_t md = bind_quiet(ni, out.data(), out.size(), ends.source_eq);
    const ptl_handle_md_t in_md = bind_quiet(ni, in.data(), in.size(), ends.source_eq);
    put(md, ni.target(), {.length = out.size(), .remote_offset = offset});
    EXPECT_EQ(next_event(ends.source_eq, PTL_EVENT_ACK).mlength, out.size());
    get(in_md, ni.target(), {.length = in.size(), .remote_offset = offset});
    next_event(ends.source_eq, PTL_EVENT_REPLY);
    EXPECT_EQ(in, out);
    put(md, ni.target(), {.length = 8, .remote_offset = 64});
    next_event(ends.source_eq, PTL_EVENT_ACK, PTL_NI_SEGV);
  });
  self.target([&] {
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT).start, heap.data());
    next_event(ends.target_eq, PTL_EVENT_GET);
    next_event(ends.target_eq, PTL_EVENT_PUT, PTL_NI_SEGV);
    EXPECT_EQ(heap, pattern(heap.size(), 8));
  });
}
