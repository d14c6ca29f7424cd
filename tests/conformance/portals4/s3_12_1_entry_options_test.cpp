// Portals 4.3, 3.12.1: options of a match list entry that choose its events and counts, its permissions, and
// PTL_ME_LOCAL_INC_UH_RLENGTH.
#include "../harness/fixture.h"

using namespace conformance;

PORTALS_SUITE(EntryOptions);

namespace {

alignas(64) unsigned char target_memory[256];

std::uintptr_t number(const ptl_event_t& event) { return reinterpret_cast<std::uintptr_t>(event.user_ptr); }

// One of each operation that reaches the target, and the end of it at the initiator.
void do_one_of_each(const Ni& ni, const Ends& ends, ptl_ni_fail_t failure = PTL_NI_OK) {
  const Message eight{.length = 8};
  put_and_wait(ends, ni.target(), eight, failure);
  get(ends.md, ni.target(), {.length = 8, .local_offset = 1000});
  next_event(ends.source_eq, PTL_EVENT_REPLY, failure);
  atomic(ends.md, ni.target(), eight);
  next_event(ends.source_eq, PTL_EVENT_ACK, failure);
  fetch_atomic(ends.md, 1000, ends.md, ni.target(), eight);
  next_event(ends.source_eq, PTL_EVENT_REPLY, failure);
  swap(ends.md, 1000, ends.md, ni.target(), {.length = 8, .op = PTL_SWAP});
  next_event(ends.source_eq, PTL_EVENT_REPLY, failure);
}

ptl_me_t counted(const Ni& ni, ptl_handle_ct_t ct, ptl_size_t length, unsigned int options) {
  ptl_me_t me = me_of(ni, target_memory, length, options);
  me.ct_handle = ct;
  return me;
}

}  // namespace

// 3.12.1: PTL_ME_EVENT_LINK_DISABLE: no LINK.
TEST_PROCESSES(1, EntryOptions, Section3_12_1__link_disable) {
  const Ni ni(self);
  const Ends ends(ni);
  append(ni, me_of(ni, nullptr, 0), PTL_PRIORITY_LIST, tag(1));
  append(ni, me_of(ni, nullptr, 0, kLink), PTL_PRIORITY_LIST, tag(2));
  append(ni, me_of(ni, nullptr, 0), PTL_OVERFLOW_LIST, tag(3));
  append(ni, me_of(ni, nullptr, 0, kLink), PTL_OVERFLOW_LIST, tag(4));
  EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_LINK)), 2u);
  EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_LINK)), 4u);
  expect_empty(ends.target_eq);
}

// 3.12.1: PTL_ME_EVENT_COMM_DISABLE: no GET, PUT, ATOMIC, FETCH_ATOMIC.
TEST_BOTH_WAYS(EntryOptions, Section3_12_1__comm_disable) {
  const Ni ni(self);
  const Ends ends(ni);
  self.target([&] { append(ni, me_of(ni, target_memory, 8, PTL_ME_EVENT_COMM_DISABLE), PTL_PRIORITY_LIST, tag(1)); });
  self.initiator([&] { do_one_of_each(ni, ends); });
  self.target([&] { expect_empty(ends.target_eq); });
}

// 3.12.1: PTL_ME_EVENT_SUCCESS_DISABLE "does not affect counting events"; LINK and AUTO_UNLINK are not success events
// of this kind (3.11.1 lists them).
TEST_BOTH_WAYS(EntryOptions, Section3_12_1__success_disable) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  self.target([&] {
    append(ni, counted(ni, ct, 8, PTL_ME_EVENT_SUCCESS_DISABLE | PTL_ME_EVENT_CT_COMM), PTL_PRIORITY_LIST, tag(1));
    ptl_me_t once = me_of(ni, nullptr, 0, PTL_ME_EVENT_SUCCESS_DISABLE | PTL_ME_USE_ONCE | kLink);
    once.match_bits = 1;
    append(ni, once, PTL_PRIORITY_LIST, tag(2));
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_LINK)), 2u);
  });
  self.initiator([&] {
    do_one_of_each(ni, ends);
    put_and_wait(ends, ni.target(), {.length = 1, .match_bits = 1});
  });
  self.target([&] {
    EXPECT_EQ(wait_for_count(ct, 5).success, 5u);
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_AUTO_UNLINK)), 2u);
    expect_empty(ends.target_eq);
  });
}

// 3.12.1: PTL_ME_EVENT_OVER_DISABLE: no overflow events, but the header is taken all the same.
TEST_BOTH_WAYS(EntryOptions, Section3_12_1__over_disable) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  self.target([&] { append(ni, me_of(ni, nullptr, 0, PTL_ME_EVENT_COMM_DISABLE), PTL_OVERFLOW_LIST); });
  self.initiator([&] {
    for (int i = 0; i < 2; ++i) put_and_wait(ends, ni.target(), {.length = 8});
  });
  self.target([&] {
    // openmpi.md C5: the overflow match is counted although its event is off.
    append(ni, counted(ni, ct, 8,
                       PTL_ME_EVENT_OVER_DISABLE | PTL_ME_EVENT_CT_OVERFLOW | PTL_ME_USE_ONCE |
                           PTL_ME_EVENT_UNLINK_DISABLE));
    EXPECT_EQ(wait_for_count(ct, 1).success, 1u);
    expect_empty(ends.target_eq);
    append(ni, me_of(ni, nullptr, 0, PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE), PTL_PRIORITY_LIST, tag(2));
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW)), 2u);
  });
}

// 3.12.1: PTL_ME_EVENT_UNLINK_DISABLE: no AUTO_UNLINK and no AUTO_FREE.
TEST_BOTH_WAYS(EntryOptions, Section3_12_1__unlink_disable) {
  const Ni ni(self);
  const Ends ends(ni);
  self.target([&] {
    const unsigned int options = PTL_ME_EVENT_UNLINK_DISABLE | PTL_ME_USE_ONCE;
    append(ni, me_of(ni, target_memory, 8, options), PTL_PRIORITY_LIST, tag(1));
    append(ni, me_of(ni, target_memory, 8, options), PTL_OVERFLOW_LIST, tag(2));
  });
  self.initiator([&] {
    put_and_wait(ends, ni.target(), {.length = 8});
    put_and_wait(ends, ni.target(), {.length = 8});
  });
  self.target([&] {
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_PUT)), 1u);
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_PUT)), 2u);
    append(ni, me_of(ni, nullptr, 0, PTL_ME_EVENT_UNLINK_DISABLE | PTL_ME_USE_ONCE), PTL_PRIORITY_LIST, tag(3));
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW)), 3u);
    expect_empty(ends.target_eq);
  });
}

// 3.12.1: PTL_ME_EVENT_CT_COMM counts communication events; without it nothing is counted (3.14).
TEST_BOTH_WAYS(EntryOptions, Section3_12_1__ct_comm) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  const ptl_handle_ct_t untouched = alloc_ct(ni);
  self.target([&] {
    append(ni, counted(ni, ct, 8, PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE));
    ptl_me_t me = counted(ni, untouched, 8, PTL_ME_EVENT_CT_OVERFLOW);
    me.match_bits = 1;
    append(ni, me, PTL_PRIORITY_LIST, tag(2));
  });
  self.initiator([&] {
    do_one_of_each(ni, ends);
    put_and_wait(ends, ni.target(), {.length = 20, .match_bits = 1});
  });
  self.target([&] {
    EXPECT_EQ(wait_for_count(ct, 5).success, 5u);
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_PUT)), 2u);
    EXPECT_EQ(count_of(untouched).success, 0u);
    EXPECT_EQ(count_of(ct).failure, 0u);
  });
}

// 3.12.1: PTL_ME_EVENT_CT_OVERFLOW counts overflow events; a persistent entry counts each header that it takes.
TEST_BOTH_WAYS(EntryOptions, Section3_12_1__ct_overflow) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  self.target([&] { append(ni, me_of(ni, target_memory, 100, PTL_ME_EVENT_COMM_DISABLE), PTL_OVERFLOW_LIST); });
  self.initiator([&] {
    put_and_wait(ends, ni.target(), {.length = 8});
    put_and_wait(ends, ni.target(), {.length = 30});
    put_and_wait(ends, ni.target(), {.length = 500});
  });
  self.target([&] {
    append(ni, counted(ni, ct, 8, PTL_ME_EVENT_CT_OVERFLOW));
    EXPECT_EQ(wait_for_count(ct, 3).success, 3u);
    for (int i = 0; i < 3; ++i) next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW);
  });
  self.initiator([&] { put_and_wait(ends, ni.target(), {.length = 8}); });
  self.target([&] {
    next_event(ends.target_eq, PTL_EVENT_PUT);
    EXPECT_EQ(count_of(ct).success, 3u) << "a PUT is not an overflow event";
  });
}

// 3.12.1: PTL_ME_EVENT_CT_BYTES: "The increment is by the number of bytes counted (mlength)".
TEST_BOTH_WAYS(EntryOptions, Section3_12_1__ct_bytes) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  const ptl_handle_ct_t overflow_ct = alloc_ct(ni);
  self.target([&] {
    append(ni, counted(ni, ct, 10, PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_BYTES));
    ptl_me_t me = me_of(ni, target_memory + 100, 50, PTL_ME_EVENT_COMM_DISABLE);
    me.match_bits = 1;
    append(ni, me, PTL_OVERFLOW_LIST);
  });
  self.initiator([&] {
    put_and_wait(ends, ni.target(), {.length = 7});
    put_and_wait(ends, ni.target(), {.length = 0});
    put_and_wait(ends, ni.target(), {.length = 100});  // 10 fit.
    get(ends.md, ni.target(), {.length = 4});
    next_event(ends.source_eq, PTL_EVENT_REPLY);
    put_and_wait(ends, ni.target(), {.length = 60, .match_bits = 1});  // 50 fit.
  });
  self.target([&] {
    for (int i = 0; i < 4; ++i) next_event(ends.target_eq);
    EXPECT_EQ(wait_for_count(ct, 21).success, 21u);
    ptl_me_t me = counted(ni, overflow_ct, 8, PTL_ME_EVENT_CT_OVERFLOW | PTL_ME_EVENT_CT_BYTES | PTL_ME_USE_ONCE);
    me.match_bits = 1;
    append(ni, me);
    EXPECT_EQ(wait_for_count(overflow_ct, 50).success, 50u) << "mlength of the first placement (2.5)";
  });
}

// 3.12.1: "By default, match list entries reject put operations" and gets; each is a failure at the initiator and
// counted in PTL_SR_OPERATION_VIOLATIONS, not in PTL_SR_DROP_COUNT (3.3.7). For a get the text names PTL_EVENT_ACK;
// a get has none, so REPLY is meant (3.13.3).
TEST_BOTH_WAYS(EntryOptions, Section3_12_1__operation_violation) {
  const Ni ni(self);
  const Ends ends(ni);
  self.target([&] {
    ptl_me_t closed = me_of(ni, target_memory, 8, PTL_ME_USE_ONCE);
    closed.options &= ~(PTL_ME_OP_PUT | PTL_ME_OP_GET);
    append(ni, closed, PTL_PRIORITY_LIST, tag(1));
    // 2.5.2: "the matching ceases": this entry is never asked.
    append(ni, me_of(ni, target_memory, 8), PTL_PRIORITY_LIST, tag(2));
  });
  self.initiator([&] { do_one_of_each(ni, ends, PTL_NI_OP_VIOLATION); });
  self.target([&] {
    wait_for_status(ni, PTL_SR_OPERATION_VIOLATIONS, 5);
    EXPECT_EQ(ni.status(PTL_SR_PERMISSION_VIOLATIONS), 0);
    EXPECT_EQ(ni.status(PTL_SR_DROP_COUNT), 0);
    expect_empty(ends.target_eq);  // "does not modify the Portals state in any way" (2.5): not used up either.
    EXPECT_EQ(target_memory[0], 0);
  });
}

// 3.12.1: an entry "must be configured to respond to both put and get operations to properly handle a PtlFetchAtomic()
// or PtlSwap()"; 3.15.4: PTL_ME_OP_PUT for an atomic.
TEST_BOTH_WAYS(EntryOptions, Section3_12_1__operations_that_each_option_allows) {
  const Ni ni(self);
  const Ends ends(ni);
  alloc_pt(ni, PTL_EQ_NONE, 0, kOtherPt);
  self.target([&] {
    ptl_me_t me = me_of(ni, target_memory, 8);
    me.options &= ~PTL_ME_OP_GET;
    append(ni, me);
    me.options = (me.options | PTL_ME_OP_GET) & ~PTL_ME_OP_PUT;
    append(ni, me, PTL_PRIORITY_LIST, nullptr, kOtherPt);
  });
  self.initiator([&] {
    const ptl_ni_fail_t bad = PTL_NI_OP_VIOLATION;
    for (bool puts : {true, false}) {
      const Message message{.length = 8, .local_offset = 0, .pt = puts ? kPt : kOtherPt};
      put_and_wait(ends, ni.target(), message, puts ? PTL_NI_OK : bad);
      get(ends.md, ni.target(), message);
      next_event(ends.source_eq, PTL_EVENT_REPLY, puts ? bad : PTL_NI_OK);
      atomic(ends.md, ni.target(), message);
      next_event(ends.source_eq, PTL_EVENT_ACK, puts ? PTL_NI_OK : bad);
      fetch_atomic(ends.md, 1000, ends.md, ni.target(), message);
      next_event(ends.source_eq, PTL_EVENT_REPLY, bad);
    }
  });
  self.target([&] { wait_for_status(ni, PTL_SR_OPERATION_VIOLATIONS, 5); });
}

// 3.12.1: uid: "If the access control check fails, then the message is dropped without modifying Portals state",
// counted in PTL_SR_PERMISSION_VIOLATIONS.
TEST_BOTH_WAYS(EntryOptions, Section3_12_1__permission_violation) {
  const Ni ni(self);
  const Ends ends(ni);
  ptl_uid_t uid = 0;
  REQUIRE_OK(PtlGetUid(ni, &uid));
  const ptl_uid_t initiator_uid = self.share(uid).back();
  self.target([&] {
    ptl_me_t foreign = me_of(ni, target_memory, 8, PTL_ME_USE_ONCE);
    foreign.uid = initiator_uid + 1;
    append(ni, foreign, PTL_PRIORITY_LIST, tag(1));
    append(ni, me_of(ni, target_memory, 8), PTL_PRIORITY_LIST, tag(2));
    ptl_me_t known = me_of(ni, target_memory, 8);
    known.match_bits = 1;
    known.uid = initiator_uid;
    append(ni, known, PTL_PRIORITY_LIST, tag(3));
  });
  self.initiator([&] {
    do_one_of_each(ni, ends, PTL_NI_PERM_VIOLATION);
    put_and_wait(ends, ni.target(), {.length = 8, .match_bits = 1});
  });
  self.target([&] {
    wait_for_status(ni, PTL_SR_PERMISSION_VIOLATIONS, 5);
    EXPECT_EQ(ni.status(PTL_SR_OPERATION_VIOLATIONS), 0);
    EXPECT_EQ(ni.status(PTL_SR_DROP_COUNT), 0);
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_PUT)), 3u);
    expect_empty(ends.target_eq);
  });
}

// Deprecated since 4.3 (C.1), kept by portals4.h for Open MPI: PTL_ME_ACK_DISABLE suppresses the acknowledgment.
TEST_BOTH_WAYS(EntryOptions, SectionC_1__ack_disable_is_still_honoured) {
  const Ni ni(self);
  Ends ends(ni);
  const ptl_handle_eq_t eq = alloc_eq(ni);
  const ptl_handle_md_t md = bind_md(ni, md_of(ends.data.data(), 8, eq));
  self.target([&] {
    append(ni, me_of(ni, target_memory, 8, PTL_ME_ACK_DISABLE));
    ptl_me_t me = me_of(ni, target_memory, 8);
    me.match_bits = 1;
    append(ni, me);
  });
  self.initiator([&] {
    put(md, ni.target(), {.length = 8});
    next_event(eq, PTL_EVENT_SEND);
    put_and_wait(ends, ni.target(), {.length = 8, .match_bits = 1});
    expect_empty(eq);
  });
}

namespace {

// Puts three headers of 20, 30 and 40 bytes on the unexpected list of kPt; the data is truncated to 5 bytes each.
void leave_three_headers(Process& self, const Ni& ni, const Ends& ends) {
  self.target([&] { append(ni, me_of(ni, target_memory + 200, 5, PTL_ME_EVENT_COMM_DISABLE), PTL_OVERFLOW_LIST); });
  self.initiator([&] {
    for (ptl_size_t length : {20u, 30u, 40u}) put_and_wait(ends, ni.target(), {.length = length});
  });
}

}  // namespace

// 3.12: "unless the PTL_ME_LOCAL_INC_UH_RLENGTH option is set, ... the match list's local offset will not move based on
// the unexpected headers", and min_free is not tested.
TEST_BOTH_WAYS(EntryOptions, Section3_12__unexpected_headers_do_not_move_the_local_offset) {
  const Ni ni(self);
  const Ends ends(ni);
  leave_three_headers(self, ni, ends);
  self.target([&] {
    ptl_me_t me = me_of(ni, target_memory, 100, PTL_ME_MANAGE_LOCAL | kLink);
    me.min_free = 100;
    append(ni, me);
    for (int i = 0; i < 3; ++i) next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW);
    next_event(ends.target_eq, PTL_EVENT_LINK);
  });
  self.initiator([&] { EXPECT_EQ(put_and_wait(ends, ni.target(), {.length = 4}).remote_offset, 0u); });
  self.target([&] {
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT).start, target_memory);
    next_event(ends.target_eq, PTL_EVENT_AUTO_UNLINK);
  });
}

// 3.12.1: PTL_ME_LOCAL_INC_UH_RLENGTH: "incremented by the requested length of every matching header".
TEST_BOTH_WAYS(EntryOptions, Section3_12_1__local_inc_uh_rlength_moves_the_offset) {
  const Ni ni(self);
  const Ends ends(ni);
  leave_three_headers(self, ni, ends);
  self.target([&] {
    ptl_me_t me = me_of(ni, target_memory, 100, PTL_ME_MANAGE_LOCAL | PTL_ME_LOCAL_INC_UH_RLENGTH | kLink);
    me.min_free = 10;
    append(ni, me);
    for (ptl_size_t length : {20u, 30u, 40u})
      EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW).rlength, length);
    next_event(ends.target_eq, PTL_EVENT_LINK);  // 10 bytes are left: not below min_free.
  });
  self.initiator([&] { EXPECT_EQ(put_and_wait(ends, ni.target(), {.length = 4}).remote_offset, 90u); });
  self.target([&] {
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT).start, target_memory + 90);
    next_event(ends.target_eq, PTL_EVENT_AUTO_UNLINK);
  });
}

// 3.12.1: "If, after moving the local offset, the min_free condition is no longer valid, the match list entry is not
// appended to the priority list and a PTL_EVENT_AUTO_UNLINK event is generated." A header that comes after that is one
// that would not have been delivered into the entry (2.5), and stays.
TEST_BOTH_WAYS(EntryOptions, Section3_12_1__local_inc_uh_rlength_uses_the_entry_up) {
  const Ni ni(self);
  const Ends ends(ni);
  leave_three_headers(self, ni, ends);
  self.target([&] {
    ptl_me_t me = me_of(ni, target_memory, 100, PTL_ME_MANAGE_LOCAL | PTL_ME_LOCAL_INC_UH_RLENGTH | kLink);
    me.min_free = 51;
    append(ni, me, PTL_PRIORITY_LIST, tag(1));
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW).rlength, 20u);
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW).rlength, 30u);
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_AUTO_UNLINK)), 1u);
    expect_empty(ends.target_eq);
    append(ni, me_of(ni, nullptr, 0, PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE), PTL_PRIORITY_LIST, tag(2));
    const ptl_event_t last = next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW);
    EXPECT_EQ(last.rlength, 40u);
    EXPECT_EQ(number(last), 2u);
  });
}
