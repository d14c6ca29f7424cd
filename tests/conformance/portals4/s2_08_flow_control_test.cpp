// Portals 4.3, 2.8: flow control: the three cases that must disable the portal table entry, what initiators see
// meanwhile, and recovery. Also what happens in these cases without flow control.
//
// The text says both that "the ni_fail_type of any generated full event must be PTL_NI_PT_DISABLED" (2.8) and that this
// type "should only be returned on initiator events" (3.13.3). Both hold if the first speaks of the events of the
// refused messages, ACK and REPLY, of which the sentence before it speaks: PTL_EVENT_PT_DISABLED itself is an event of
// the target only (table 3-2), and carries PTL_NI_OK.
#include "../harness/fixture.h"

using namespace conformance;

PORTALS_SUITE(FlowControl);

namespace {

alignas(64) unsigned char target_memory[64];

constexpr int kManyPuts = 20000;  // More than any implementation holds for a queue or list of a few.

// Puts numbered messages, one at a time, until one is refused; gives the number of those that were accepted.
ptl_hdr_data_t put_until_refused(const Ni& ni, const Ends& ends) {
  for (ptl_hdr_data_t i = 0; i < kManyPuts; ++i) {
    put(ends.md, ni.target(), {.length = 8, .hdr_data = i});
    const ptl_event_t ack = next_event(ends.source_eq);
    EXPECT_EQ(ack.type, PTL_EVENT_ACK);
    if (ack.ni_fail_type == PTL_NI_OK) continue;
    EXPECT_EQ(ack.ni_fail_type, PTL_NI_PT_DISABLED) << describe(ack);
    return i;
  }
  return kManyPuts;
}

// All operations that the disabled entry now refuses.
void expect_refused(const Ni& ni, const Ends& ends) {
  const Message eight{.length = 8};
  put_and_wait(ends, ni.target(), eight, PTL_NI_PT_DISABLED);
  get(ends.md, ni.target(), {.length = 8, .local_offset = 1000});
  next_event(ends.source_eq, PTL_EVENT_REPLY, PTL_NI_PT_DISABLED);
  atomic(ends.md, ni.target(), eight);
  next_event(ends.source_eq, PTL_EVENT_ACK, PTL_NI_PT_DISABLED);
  fetch_atomic(ends.md, 1000, ends.md, ni.target(), eight);
  next_event(ends.source_eq, PTL_EVENT_REPLY, PTL_NI_PT_DISABLED);
  swap(ends.md, 1000, ends.md, ni.target(), {.length = 8, .op = PTL_SWAP});
  next_event(ends.source_eq, PTL_EVENT_REPLY, PTL_NI_PT_DISABLED);
}

// The queue of the target holds PUTs numbered from 0, then PT_DISABLED, once for each time; nothing has been lost.
void expect_puts_then_disabled(const Ends& ends, ptl_hdr_data_t puts, int times = 1) {
  for (ptl_hdr_data_t i = 0; i < puts; ++i) ASSERT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT).hdr_data, i);
  for (int i = 0; i < times; ++i) {
    const ptl_event_t event = next_event(ends.target_eq);
    EXPECT_EQ(event.type, PTL_EVENT_PT_DISABLED) << describe(event);
    EXPECT_EQ(event.pt_index, kPt);
    EXPECT_EQ(event.ni_fail_type, PTL_NI_OK) << "PTL_NI_PT_DISABLED is for initiators (3.13.3)";
  }
  expect_empty(ends.target_eq);
}

}  // namespace

// Case two: "if a message arrives at a portal table entry and does not find a match in either the priority list or the
// overflow list, flow control must be invoked"; recovery with PtlPTEnable (3.7.4); local operations go on.
TEST_BOTH_WAYS(FlowControl, Section2_8__message_without_match_disables) {
  const Ni ni(self);
  const Ends ends(ni, PTL_PT_FLOWCTRL);
  self.barrier();
  for (int round = 0; round < 3; ++round) {
    self.initiator([&] {
      put_and_wait(ends, ni.target(), {.length = 8}, PTL_NI_PT_DISABLED);
      expect_refused(ni, ends);
    });
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    self.target([&] {
      expect_puts_then_disabled(ends, 0);
      entry = append(ni, me_of(ni, target_memory, 64, kLink));
      next_event(ends.target_eq, PTL_EVENT_LINK);
    });
    self.initiator([&] { expect_refused(ni, ends); });  // Still, although there is an entry now.
    self.target([&] {
      expect_empty(ends.target_eq);
      EXPECT_EQ(target_memory[0], 0) << "refused messages do not touch memory";
      REQUIRE_OK(PtlPTEnable(ni, kPt));
    });
    self.initiator([&] { EXPECT_EQ(put_and_wait(ends, ni.target(), {.length = 8}).mlength, 8u); });
    self.target([&] {
      next_event(ends.target_eq, PTL_EVENT_PUT);
      EXPECT_EQ(target_memory[0], ends.data[0]);
      target_memory[0] = 0;
      REQUIRE_OK(PtlMEUnlink(entry));
    });
  }
}

// The same for a get, and on a non-matching interface.
TEST_BOTH_WAYS(FlowControl, Section2_8__get_without_match_disables) {
  const Ni ni(self, kNonMatching);
  const Ends ends(ni, PTL_PT_FLOWCTRL);
  self.barrier();
  self.initiator([&] {
    get(ends.md, ni.target(), {.length = 8, .local_offset = 1000, .user_ptr = tag(4)});
    EXPECT_EQ(next_event(ends.source_eq, PTL_EVENT_REPLY, PTL_NI_PT_DISABLED).user_ptr, tag(4));
    expect_refused(ni, ends);
  });
  self.target([&] { expect_puts_then_disabled(ends, 0); });
}

// Case one: "if an event queue attached to a portal table entry is full and the message would generate a full event,
// flow control must be invoked"; 3.13.5: such events "will not cause an overflow"; note 13: room for PT_DISABLED is
// reserved.
TEST_BOTH_WAYS(FlowControl, Section2_8__full_event_queue_disables) {
  const Ni ni(self);
  const Ends ends(ni, PTL_PT_FLOWCTRL, 8);
  self.target([&] { append(ni, me_of(ni, target_memory, 64, PTL_ME_MANAGE_LOCAL)); });
  ptl_hdr_data_t accepted = 0;
  for (int round = 0; round < 2; ++round) {
    self.initiator([&] {
      accepted = put_until_refused(ni, ends);
      EXPECT_GE(accepted, 8u) << "the queue has room for what was asked for";
      EXPECT_LT(accepted, static_cast<ptl_hdr_data_t>(kManyPuts)) << "the queue never became full";
      expect_refused(ni, ends);
    });
    accepted = self.share(accepted).back();
    self.target([&] {
      expect_puts_then_disabled(ends, accepted);
      REQUIRE_OK(PtlPTEnable(ni, kPt));
    });
  }
}

// The same with a burst: messages "in flight" behind the one that failed are refused too, and not one of them is
// delivered in between (2.8: "all messages ... must be dropped").
TEST_BOTH_WAYS(FlowControl, Section2_8__messages_in_flight_are_refused) {
  const Ni ni(self);
  const Ends ends(ni, PTL_PT_FLOWCTRL);
  constexpr ptl_hdr_data_t kBurst = 200;
  constexpr ptl_hdr_data_t kAccepted = 50;
  self.target([&] {
    for (ptl_hdr_data_t i = 0; i < kAccepted; ++i)
      append(ni, me_of(ni, target_memory, 64, PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE));
  });
  self.initiator([&] {
    for (ptl_hdr_data_t i = 0; i < kBurst; ++i)
      put(ends.md, ni.target(), {.length = i % 3 == 0 ? 8u : 3000u, .hdr_data = i, .user_ptr = tag(i)});
    for (ptl_hdr_data_t i = 0; i < kBurst; ++i) {
      const ptl_event_t ack = next_event(ends.source_eq);
      const bool first = reinterpret_cast<std::uintptr_t>(ack.user_ptr) < kAccepted;
      EXPECT_EQ(ack.ni_fail_type, first ? PTL_NI_OK : PTL_NI_PT_DISABLED) << describe(ack);
    }
  });
  self.target([&] { expect_puts_then_disabled(ends, kAccepted); });
}

// Case three: "if the space available to buffer unexpected message headers is exhausted".
TEST_BOTH_WAYS(FlowControl, Section2_8__full_unexpected_list_disables) {
  ptl_ni_limits_t small = generous_limits();
  small.max_unexpected_headers = 8;
  const Ni ni(self, kMatching, &small);
  const int limit = self.share(ni.limits().max_unexpected_headers)[0];
  if (limit >= kManyPuts) self.skip("the limit is too high to be reached");
  const Ends ends(ni, PTL_PT_FLOWCTRL, 64);
  self.target([&] { append(ni, me_of(ni, nullptr, 0, PTL_ME_EVENT_COMM_DISABLE), PTL_OVERFLOW_LIST); });
  for (int round = 0; round < 2; ++round) {
    self.initiator([&] {
      EXPECT_EQ(put_until_refused(ni, ends), static_cast<ptl_hdr_data_t>(limit));
      expect_refused(ni, ends);
    });
    self.target([&] {
      expect_puts_then_disabled(ends, 0);
      const ptl_me_t all = me_of(ni, nullptr, 0, PTL_ME_EVENT_OVER_DISABLE | PTL_ME_EVENT_COMM_DISABLE);
      REQUIRE_OK(PtlMESearch(ni, kPt, &all, PTL_SEARCH_DELETE, nullptr));
      REQUIRE_OK(PtlPTEnable(ni, kPt));
    });
  }
}

// Without flow control: "the message would have matched in the overflow list and the unexpected headers list is full,
// the message will be dropped, with the PTL_SR_DROP_COUNT status register incremented"; no acknowledgment.
TEST_BOTH_WAYS(FlowControl, Section2_8__full_unexpected_list_without_flow_control_drops) {
  ptl_ni_limits_t small = generous_limits();
  small.max_unexpected_headers = 8;
  const Ni ni(self, kMatching, &small);
  const int limit = self.share(ni.limits().max_unexpected_headers)[0];
  if (limit >= kManyPuts) self.skip("the limit is too high to be reached");
  const Ends ends(ni);
  alloc_pt(ni, PTL_EQ_NONE, 0, kOtherPt);
  self.target([&] {
    append(ni, me_of(ni, target_memory, 64, PTL_ME_EVENT_COMM_DISABLE), PTL_OVERFLOW_LIST);
    append(ni, me_of(ni, nullptr, 0), PTL_PRIORITY_LIST, nullptr, kOtherPt);
  });
  self.initiator([&] {
    for (int i = 0; i < limit; ++i) put_and_wait(ends, ni.target(), {.length = 8});
    put(ends.md, ni.target(), {.length = 8, .user_ptr = tag(3)});
    put(ends.md, ni.target(), {.length = 0, .user_ptr = tag(4), .pt = kOtherPt});
    EXPECT_EQ(next_event(ends.source_eq, PTL_EVENT_ACK).user_ptr, tag(4));
    expect_empty(ends.source_eq);
  });
  self.target([&] { wait_for_status(ni, PTL_SR_DROP_COUNT, 1); });
}

// Note 13: "For each PtlPTAlloc() that enables flow control and uses a given EQ, one space should be reserved for a
// PTL_EVENT_PT_DISABLED": a queue that many portal table entries share tells of each of them, and loses nothing.
TEST_BOTH_WAYS(FlowControl, Section2_8__shared_full_event_queue_has_room_for_all) {
  const Ni ni(self);
  constexpr ptl_pt_index_t kEntries = 20;
  const Ends ends(ni, PTL_PT_FLOWCTRL, 4);  // kPt
  for (ptl_pt_index_t i = 1; i < kEntries; ++i) alloc_pt(ni, ends.target_eq, PTL_PT_FLOWCTRL, kPt + i);
  self.target([&] {
    for (ptl_pt_index_t i = 0; i < kEntries; ++i)
      append(ni, me_of(ni, target_memory, 64), PTL_PRIORITY_LIST, nullptr, kPt + i);
  });
  ptl_hdr_data_t accepted = 0;
  self.initiator([&] {
    accepted = put_until_refused(ni, ends);
    for (ptl_pt_index_t i = 1; i < kEntries; ++i)
      put_and_wait(ends, ni.target(), {.length = 8, .pt = kPt + i}, PTL_NI_PT_DISABLED);
  });
  accepted = self.share(accepted).back();
  self.target([&] {
    for (ptl_hdr_data_t i = 0; i < accepted; ++i) EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT).hdr_data, i);
    for (ptl_pt_index_t i = 0; i < kEntries; ++i) {
      const ptl_event_t event = next_event(ends.target_eq);  // Stops at PTL_EQ_DROPPED.
      EXPECT_EQ(event.type, PTL_EVENT_PT_DISABLED) << describe(event);
      EXPECT_EQ(event.pt_index, kPt + i);
    }
    expect_empty(ends.target_eq);
    for (ptl_pt_index_t i = 0; i < kEntries; ++i) REQUIRE_OK(PtlPTEnable(ni, kPt + i));
  });
  self.initiator([&] {
    for (ptl_pt_index_t i = 0; i < 4; ++i) put_and_wait(ends, ni.target(), {.length = 8, .pt = kPt + 4 * i});
  });
  self.target([&] {
    for (int i = 0; i < 4; ++i) next_event(ends.target_eq, PTL_EVENT_PUT);
  });
}

// 3.12.1: PTL_ME_EVENT_FLOWCTRL_DISABLE: no PT_DISABLED event for a message that matched the entry while the queue was
// full; "If ... a message does not match in either the priority or overflow lists, a PTL_EVENT_PT_DISABLED event is
// always generated".
TEST_BOTH_WAYS(FlowControl, Section3_12_1__flowctrl_event_may_be_disabled) {
  const Ni ni(self);
  const Ends ends(ni, PTL_PT_FLOWCTRL, 8);
  ptl_handle_me_t entry = PTL_INVALID_HANDLE;
  self.target([&] { entry = append(ni, me_of(ni, target_memory, 64, PTL_ME_EVENT_FLOWCTRL_DISABLE)); });
  ptl_hdr_data_t accepted = 0;
  self.initiator([&] { accepted = put_until_refused(ni, ends); });
  accepted = self.share(accepted).back();
  self.target([&] {
    for (ptl_hdr_data_t i = 0; i < accepted; ++i) next_event(ends.target_eq, PTL_EVENT_PUT);
    expect_empty(ends.target_eq);
    REQUIRE_OK(PtlPTEnable(ni, kPt));
    REQUIRE_OK(PtlMEUnlink(entry));
  });
  self.initiator([&] { put_and_wait(ends, ni.target(), {.length = 8}, PTL_NI_PT_DISABLED); });
  self.target([&] { expect_puts_then_disabled(ends, 0); });
}

// The same for the unexpected headers list: no event for "a message matching a match list entry in the overflow list
// but the unexpected headers list is full"; the portal table entry is disabled all the same.
TEST_BOTH_WAYS(FlowControl, Section3_12_1__flowctrl_event_of_a_full_unexpected_list_may_be_disabled) {
  ptl_ni_limits_t small = generous_limits();
  small.max_unexpected_headers = 8;
  const Ni ni(self, kMatching, &small);
  const int limit = self.share(ni.limits().max_unexpected_headers)[0];
  if (limit >= kManyPuts) self.skip("the limit is too high to be reached");
  const Ends ends(ni, PTL_PT_FLOWCTRL, 64);
  self.target([&] {
    const unsigned int options = PTL_ME_EVENT_FLOWCTRL_DISABLE | PTL_ME_EVENT_COMM_DISABLE;
    append(ni, me_of(ni, nullptr, 0, options), PTL_OVERFLOW_LIST);
  });
  self.initiator([&] {
    EXPECT_EQ(put_until_refused(ni, ends), static_cast<ptl_hdr_data_t>(limit));
    expect_refused(ni, ends);
  });
  self.target([&] {
    expect_empty(ends.target_eq);
    const ptl_me_t all = me_of(ni, nullptr, 0, PTL_ME_EVENT_OVER_DISABLE | PTL_ME_EVENT_COMM_DISABLE);
    REQUIRE_OK(PtlMESearch(ni, kPt, &all, PTL_SEARCH_DELETE, nullptr));
    REQUIRE_OK(PtlPTEnable(ni, kPt));
  });
  self.initiator([&] {
    put_and_wait(ends, ni.target(), {.length = 8});
    put_and_wait(ends, ni.target(), {.length = 8, .match_bits = 1}, PTL_NI_PT_DISABLED);
  });
  self.target([&] { expect_puts_then_disabled(ends, 0); });
}

// 3.13.5: events of an operation "will not cause an overflow, but will instead trigger a flow control event": a failure
// is an event where a success is none (3.12.1, PTL_ME_EVENT_SUCCESS_DISABLE), and takes the place of no other either.
TEST_BOTH_WAYS(FlowControl, Section2_8__full_queue_disables_where_only_failures_raise_events) {
  const Ni ni(self);
  const Ends ends(ni, PTL_PT_FLOWCTRL, 8);
  if ((ni.limits().features & PTL_TARGET_BIND_INACCESSIBLE) == 0) self.skip("not promised by the interface");
  self.target([&] {
    append(ni, me_of(ni, target_memory, 64, PTL_ME_EVENT_FLOWCTRL_DISABLE));
    ptl_me_t nowhere = me_of(ni, tag(4096), 64, PTL_ME_EVENT_SUCCESS_DISABLE);
    nowhere.match_bits = 1;
    append(ni, nowhere);
  });
  ptl_hdr_data_t accepted = 0;
  self.initiator([&] { accepted = put_until_refused(ni, ends); });
  accepted = self.share(accepted).back();
  self.target([&] { REQUIRE_OK(PtlPTEnable(ni, kPt)); });
  self.initiator([&] { put_and_wait(ends, ni.target(), {.length = 8, .match_bits = 1}, PTL_NI_PT_DISABLED); });
  self.target([&] {
    expect_puts_then_disabled(ends, accepted);
    REQUIRE_OK(PtlPTEnable(ni, kPt));
  });
  self.initiator([&] { put_and_wait(ends, ni.target(), {.length = 8, .match_bits = 1}, PTL_NI_SEGV); });
  self.target([&] {
    next_event(ends.target_eq, PTL_EVENT_PUT, PTL_NI_SEGV);
    expect_empty(ends.target_eq);
  });
}

// 3.13.5 and note 13: PT_DISABLED that comes while an earlier one still waits pushes out nothing: of a portal table
// entry that was enabled again, and of one that was freed and allocated again.
TEST_BOTH_WAYS(FlowControl, Section2_8__full_event_queue_has_room_for_the_next_event_of_flow_control) {
  const Ni ni(self);
  const Ends ends(ni, PTL_PT_FLOWCTRL, 1);
  for (const bool frees : {false, true}) {
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    self.target([&] { entry = append(ni, me_of(ni, target_memory, 64)); });
    ptl_hdr_data_t accepted = 0;
    self.initiator([&] { accepted = put_until_refused(ni, ends); });
    accepted = self.share(accepted).back();
    constexpr int kTimes = 5;
    for (int i = 1; i < kTimes; ++i) {
      self.target([&] {
        if (i == 1) REQUIRE_OK(PtlMEUnlink(entry));
        if (!frees) REQUIRE_OK(PtlPTEnable(ni, kPt));
        if (frees) REQUIRE_OK(PtlPTFree(ni, kPt));
        if (frees) alloc_pt(ni, ends.target_eq, PTL_PT_FLOWCTRL);
      });
      self.initiator([&] { put_and_wait(ends, ni.target(), {.length = 8}, PTL_NI_PT_DISABLED); });
    }
    self.target([&] {
      expect_puts_then_disabled(ends, accepted, kTimes);
      REQUIRE_OK(PtlPTEnable(ni, kPt));
    });
  }
}

// 2.8: "the message would generate a full event": an entry whose events are off needs no room in the queue, nor does a
// put that succeeds in silence and cannot fail (3.12: zero bytes).
TEST_BOTH_WAYS(FlowControl, Section2_8__full_queue_does_not_matter_without_events) {
  const Ni ni(self);
  const Ends ends(ni, PTL_PT_FLOWCTRL, 8);
  self.target([&] {
    append(ni, me_of(ni, target_memory, 64, PTL_ME_EVENT_FLOWCTRL_DISABLE));
    ptl_me_t silent = me_of(ni, target_memory, 64, PTL_ME_EVENT_COMM_DISABLE);
    silent.match_bits = 1;
    append(ni, silent);
    silent.options ^= PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_SUCCESS_DISABLE;
    silent.match_bits = 2;
    append(ni, silent);
  });
  ptl_hdr_data_t accepted = 0;
  self.initiator([&] { accepted = put_until_refused(ni, ends); });
  accepted = self.share(accepted).back();
  self.target([&] { REQUIRE_OK(PtlPTEnable(ni, kPt)); });
  self.initiator([&] {
    for (int i = 0; i < 1000; ++i) put_and_wait(ends, ni.target(), {.length = 8, .match_bits = 1});
    for (int i = 0; i < 1000; ++i) put_and_wait(ends, ni.target(), {.match_bits = 2});
  });
  self.target([&] {
    for (ptl_hdr_data_t i = 0; i < accepted; ++i) next_event(ends.target_eq, PTL_EVENT_PUT);
    expect_empty(ends.target_eq);
  });
}

// 3.7: "Resource exhaustion (Section 2.8) is handled independently on different portal table entries."
TEST_BOTH_WAYS(FlowControl, Section3_7__entries_are_independent) {
  const Ni ni(self);
  const Ends ends(ni, PTL_PT_FLOWCTRL);
  alloc_pt(ni, ends.target_eq, PTL_PT_FLOWCTRL, kOtherPt);
  self.target([&] { append(ni, me_of(ni, nullptr, 0), PTL_PRIORITY_LIST, tag(1), kOtherPt); });
  self.initiator([&] {
    put_and_wait(ends, ni.target(), {.length = 8}, PTL_NI_PT_DISABLED);
    put_and_wait(ends, ni.target(), {.length = 8, .pt = kOtherPt});
  });
  self.target([&] {
    const ptl_event_t disabled = next_event(ends.target_eq);
    EXPECT_EQ(disabled.type, PTL_EVENT_PT_DISABLED) << describe(disabled);
    EXPECT_EQ(disabled.pt_index, kPt);
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT).pt_index, kOtherPt);
    expect_empty(ends.target_eq);
  });
}

// 2.8, discussion: without an acknowledgment the initiator does not learn of it; SEND comes all the same.
TEST_BOTH_WAYS(FlowControl, Section2_8__put_without_ack_is_dropped_silently) {
  const Ni ni(self);
  Ends ends(ni, PTL_PT_FLOWCTRL);
  const ptl_handle_eq_t eq = alloc_eq(ni);
  const ptl_handle_md_t md = bind_md(ni, md_of(ends.data.data(), 64, eq));
  self.barrier();
  self.initiator([&] {
    for (int i = 0; i < 3; ++i) {
      put(md, ni.target(), {.length = 8, .ack = PTL_NO_ACK_REQ});
      EXPECT_EQ(next_event(eq).type, PTL_EVENT_SEND);
    }
    put_and_wait(ends, ni.target(), {.length = 8}, PTL_NI_PT_DISABLED);
    expect_empty(eq);
  });
  self.target([&] { expect_puts_then_disabled(ends, 0); });
}

// 3.15.1: CT_ACK and ACK of a refused put count as failures; so does the REPLY of a get.
TEST_BOTH_WAYS(FlowControl, Section2_8__refusals_are_counted_as_failures) {
  const Ni ni(self);
  Ends ends(ni, PTL_PT_FLOWCTRL);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  const ptl_handle_md_t md =
      bind_md(ni, md_of(ends.data.data(), 64, PTL_EQ_NONE, ct, PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY));
  self.barrier();
  self.initiator([&] {
    put(md, ni.target(), {.length = 8});
    put(md, ni.target(), {.length = 8, .ack = PTL_CT_ACK_REQ});
    get(md, ni.target(), {.length = 8});
    wait_for_counts(ct, 0, 3);
    EXPECT_EQ(count_of(ct).success, 0u);
    EXPECT_EQ(count_of(ct).failure, 3u);
  });
}

// 2.8: "if an event queue ... is full and the message would generate a full event": an entry with a local offset raises
// AUTO_UNLINK only with the message that uses it up (3.12.1, min_free).
TEST_BOTH_WAYS(FlowControl, Section2_8__queue_has_room_for_what_a_message_raises) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_handle_eq_t eq = alloc_eq(ni, 1);
  alloc_pt(ni, eq, PTL_PT_FLOWCTRL, kOtherPt);
  self.target([&] {
    ptl_me_t me = me_of(ni, target_memory, 64, PTL_ME_MANAGE_LOCAL | PTL_ME_EVENT_LINK_DISABLE);
    me.min_free = 8;
    append(ni, me, PTL_PRIORITY_LIST, nullptr, kOtherPt);
  });
  for (int i = 0; i < 7; ++i) {
    self.initiator([&] { put_and_wait(ends, ni.target(), {.length = 8, .pt = kOtherPt}); });
    self.target([&] {
      next_event(eq, PTL_EVENT_PUT);
      expect_empty(eq);
    });
  }
  // The last one raises two.
  self.initiator([&] { put_and_wait(ends, ni.target(), {.length = 8, .pt = kOtherPt}, PTL_NI_PT_DISABLED); });
  self.target([&] { next_event(eq, PTL_EVENT_PT_DISABLED); });
}

// Many initiators at once: each message is either accepted or refused, nobody hangs, and one event tells of it.
TEST_PROCESSES(4, FlowControl, Section2_8__many_initiators) {
  const Ni ni(self);
  const Ends ends(ni, PTL_PT_FLOWCTRL);
  constexpr int kEntries = 100;
  self.target([&] {
    for (int i = 0; i < kEntries; ++i)
      append(ni, me_of(ni, target_memory, 64, PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE));
  });
  int accepted = 0;
  self.initiator([&] {
    for (int i = 0; i < kEntries; ++i) put(ends.md, ni.target(), {.length = 8});
    for (int i = 0; i < kEntries; ++i) {
      const ptl_event_t ack = next_event(ends.source_eq);
      EXPECT_TRUE(ack.ni_fail_type == PTL_NI_OK || ack.ni_fail_type == PTL_NI_PT_DISABLED) << describe(ack);
      accepted += ack.ni_fail_type == PTL_NI_OK ? 1 : 0;
    }
  });
  int total = 0;
  for (int one : self.share(accepted)) total += one;
  EXPECT_EQ(total, kEntries);
  self.target([&] {
    for (int i = 0; i < kEntries; ++i) next_event(ends.target_eq, PTL_EVENT_PUT);
    EXPECT_EQ(next_event(ends.target_eq).type, PTL_EVENT_PT_DISABLED);
    expect_empty(ends.target_eq);
  });
}
