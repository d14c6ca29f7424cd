// Portals 4.3, 3.12.2, 3.12 and 2.5: appending to the lists, unexpected headers, life of an overflow entry.
#include <cstring>

#include "../harness/fixture.h"

using namespace conformance;

PORTALS_SUITE(Append);

namespace {

alignas(64) unsigned char overflow_memory[256];
alignas(64) unsigned char target_memory[256];

std::uintptr_t number(const ptl_event_t& event) { return reinterpret_cast<std::uintptr_t>(event.user_ptr); }

constexpr unsigned int kOnceQuiet = PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE;
constexpr ptl_match_bits_t kAnyBits = ~ptl_match_bits_t{0};

// An overflow entry that takes everything and packs it.
ptl_me_t packing(const Ni& ni, unsigned int options = 0) {
  ptl_me_t me = me_of(ni, overflow_memory, sizeof overflow_memory, PTL_ME_MANAGE_LOCAL | options);
  me.ignore_bits = kAnyBits;
  return me;
}

ptl_me_t matching(const Ni& ni, ptl_match_bits_t bits, unsigned int options = 0) {
  ptl_me_t me = me_of(ni, target_memory, sizeof target_memory, options);
  me.match_bits = bits;
  return me;
}

}  // namespace

// 3.12.2: "When the list entry has been linked (inserted) into the specified list, a PTL_EVENT_LINK event is
// generated."
TEST_PROCESSES(1, Append, Section3_12_2__link_event) {
  const Ni ni(self);
  const Ends ends(ni);
  for (ptl_list_t list : {PTL_PRIORITY_LIST, PTL_OVERFLOW_LIST}) {
    append(ni, matching(ni, 0, kLink), list, tag(3));
    const ptl_event_t event = next_event(ends.target_eq, PTL_EVENT_LINK);
    EXPECT_EQ(event.pt_index, kPt);
    EXPECT_EQ(number(event), 3u);
  }
}

// 3.12.2: "there is no linkage between this structure and the match list entry".
TEST_BOTH_WAYS(Append, Section3_12_2__structure_is_copied) {
  const Ni ni(self);
  const Ends ends(ni);
  self.target([&] {
    ptl_me_t me = matching(ni, 1);
    append(ni, me);
    me = ptl_me_t{};
  });
  self.initiator([&] { EXPECT_EQ(put_and_wait(ends, ni.target(), {.length = 8, .match_bits = 1}).mlength, 8u); });
}

// 3.12.2: a matching header makes "an appropriate overflow event", "is removed", and a use-once entry "is not inserted
// into the priority list"; 3.13.1: AUTO_UNLINK "even if ... found a corresponding unexpected message before".
TEST_BOTH_WAYS(Append, Section3_12_2__use_once_entry_takes_one_unexpected_header) {
  const Ni ni(self);
  const Ends ends(ni);
  self.target([&] { append(ni, packing(ni), PTL_OVERFLOW_LIST, tag(9)); });
  self.initiator([&] {
    put_and_wait(ends, ni.target(), {.length = 10, .remote_offset = 77, .match_bits = 5, .hdr_data = 55});
    put_and_wait(ends, ni.target(), {.length = 20, .local_offset = 10, .match_bits = 5, .hdr_data = 56});
  });
  self.target([&] {
    // The delivery into the overflow entry is a PUT of that entry.
    for (ptl_hdr_data_t data : {55u, 56u}) {
      const ptl_event_t arrived = next_event(ends.target_eq, PTL_EVENT_PUT);
      EXPECT_EQ(number(arrived), 9u);
      EXPECT_EQ(arrived.hdr_data, data);
    }
    append(ni, matching(ni, 5, PTL_ME_USE_ONCE | kLink), PTL_PRIORITY_LIST, tag(1));
    ptl_event_t event = next_event(ends.target_eq);
    // The spec does not order AUTO_UNLINK against an overflow event of the same append.
    const bool unlink_first = event.type == PTL_EVENT_AUTO_UNLINK;
    if (unlink_first) event = next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW);
    EXPECT_EQ(event.type, PTL_EVENT_PUT_OVERFLOW);
    EXPECT_EQ(number(event), 1u);
    EXPECT_EQ(event.hdr_data, 55u);
    EXPECT_EQ(event.match_bits, 5u);
    EXPECT_EQ(event.rlength, 10u);
    EXPECT_EQ(event.mlength, 10u);
    EXPECT_EQ(event.remote_offset, 77u);
    EXPECT_EQ(event.start, overflow_memory);
    EXPECT_EQ(std::memcmp(event.start, &ends.data[0], 10), 0) << "the data is in the overflow entry";
    if (!unlink_first) {
      EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_AUTO_UNLINK)), 1u);
    }
    expect_empty(ends.target_eq);  // No LINK.
    EXPECT_EQ(target_memory[0], 0) << "nobody copies the data";
  });
  self.initiator([&] {
    EXPECT_EQ(put_and_wait(ends, ni.target(), {.length = 1, .match_bits = 5}).ptl_list, PTL_OVERFLOW_LIST)
        << "the entry was not inserted";
  });
}

// 3.12.2: "If a persistent match list entry is posted to the priority list, it may cause multiple overflow events to be
// generated, one for every matching entry in the unexpected list", and is inserted. 2.7.4: headers keep their order.
TEST_BOTH_WAYS(Append, Section3_12_2__persistent_entry_takes_all_unexpected_headers) {
  const Ni ni(self);
  const Ends ends(ni);
  self.target([&] { append(ni, packing(ni, PTL_ME_EVENT_COMM_DISABLE), PTL_OVERFLOW_LIST); });
  self.initiator([&] {
    for (ptl_hdr_data_t i = 0; i < 20; ++i)
      put_and_wait(ends, ni.target(), {.length = i, .match_bits = i % 2, .hdr_data = i});
  });
  self.target([&] {
    append(ni, matching(ni, 1, kLink), PTL_PRIORITY_LIST, tag(1));
    for (ptl_hdr_data_t i = 1; i < 20; i += 2) {
      const ptl_event_t event = next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW);
      EXPECT_EQ(event.hdr_data, i);
      EXPECT_EQ(event.start, overflow_memory + i * (i - 1) / 2);
    }
    next_event(ends.target_eq, PTL_EVENT_LINK);
    expect_empty(ends.target_eq);
  });
  self.initiator(
      [&] { EXPECT_EQ(put_and_wait(ends, ni.target(), {.length = 1, .match_bits = 1}).ptl_list, PTL_PRIORITY_LIST); });
}

// 3.12.2: headers are found by the criteria of the entry: bits, ignore bits and initiator, in the order of arrival.
TEST_BOTH_WAYS(Append, Section3_12_2__unexpected_headers_are_matched_like_messages) {
  const Ni ni(self);
  const Ends ends(ni);
  self.target([&] { append(ni, packing(ni, PTL_ME_EVENT_COMM_DISABLE), PTL_OVERFLOW_LIST); });
  const ptl_match_bits_t bits[] = {0x11, 0x22, 0x12, 0x21, 0x11, 0x31};
  self.initiator([&] {
    for (ptl_hdr_data_t i = 0; i < 6; ++i)
      put_and_wait(ends, ni.target(), {.length = 1, .match_bits = bits[i], .hdr_data = i});
  });
  self.target([&] {
    const auto expect_found = [&](ptl_match_bits_t wanted, ptl_match_bits_t ignore, ptl_hdr_data_t found) {
      ptl_me_t me = matching(ni, wanted, kOnceQuiet);
      me.ignore_bits = ignore;
      append(ni, me);
      EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW).hdr_data, found);
    };
    ptl_me_t stranger = matching(ni, 0, kLink);
    stranger.ignore_bits = kAnyBits;
    stranger.match_id.phys.pid = ni.target().phys.pid + 40000;
    append(ni, stranger);
    next_event(ends.target_eq, PTL_EVENT_LINK);  // Another initiator: finds nothing.
    expect_found(0x21, 0, 3);
    expect_found(0x02, 0xf0, 1);
    expect_found(0x10, 0x0f, 0);
    expect_found(0, kAnyBits, 2);
    expect_found(0x11, 0, 4);
    append(ni, matching(ni, 0x11, kLink));
    next_event(ends.target_eq, PTL_EVENT_LINK);
    expect_found(0x31, 0, 5);
    expect_empty(ends.target_eq);
  });
}

// 3.12.2: "No searching of the unexpected list is performed when a match list entry is posted to the overflow list."
TEST_BOTH_WAYS(Append, Section3_12_2__append_to_the_overflow_list_does_not_search) {
  const Ni ni(self);
  const Ends ends(ni);
  self.target([&] { append(ni, packing(ni, PTL_ME_EVENT_COMM_DISABLE), PTL_OVERFLOW_LIST); });
  self.initiator([&] { put_and_wait(ends, ni.target(), {.length = 8}); });
  self.target([&] {
    append(ni, matching(ni, 0, PTL_ME_USE_ONCE | kLink), PTL_OVERFLOW_LIST);
    next_event(ends.target_eq, PTL_EVENT_LINK);
    expect_empty(ends.target_eq);
    append(ni, matching(ni, 0, kOnceQuiet));
    next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW);
  });
}

// 2.5: truncation checks "are not re-performed on checks of posted operations that match in the overflow list"; rlength
// and mlength tell of the first placement.
TEST_BOTH_WAYS(Append, Section2_5__lengths_are_those_of_the_overflow_entry) {
  const Ni ni(self);
  const Ends ends(ni);
  self.target([&] {
    ptl_me_t me = me_of(ni, overflow_memory, 30, PTL_ME_EVENT_COMM_DISABLE);
    append(ni, me, PTL_OVERFLOW_LIST);
  });
  self.initiator([&] {
    EXPECT_EQ(put_and_wait(ends, ni.target(), {.length = 100}).mlength, 30u);
    EXPECT_EQ(put_and_wait(ends, ni.target(), {.length = 20}).mlength, 20u);
  });
  self.target([&] {
    append(ni, me_of(ni, target_memory, 10, kOnceQuiet));
    ptl_event_t event = next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW);
    EXPECT_EQ(event.rlength, 100u);
    EXPECT_EQ(event.mlength, 30u);
    append(ni, me_of(ni, target_memory, 10, kOnceQuiet));
    event = next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW);
    EXPECT_EQ(event.rlength, 20u);
    EXPECT_EQ(event.mlength, 20u);
  });
}

// 3.12.2: "In all cases, no permissions checking is performed on a matching message in the unexpected list."
TEST_BOTH_WAYS(Append, Section3_12_2__no_permission_check_on_unexpected_headers) {
  const Ni ni(self);
  const Ends ends(ni);
  ptl_uid_t uid = 0;
  REQUIRE_OK(PtlGetUid(ni, &uid));
  self.target([&] { append(ni, packing(ni, PTL_ME_EVENT_COMM_DISABLE), PTL_OVERFLOW_LIST); });
  self.initiator([&] { put_and_wait(ends, ni.target(), {.length = 8}); });
  self.target([&] {
    ptl_me_t me = matching(ni, 0, kOnceQuiet);
    me.uid = uid + 1;
    me.options &= ~(PTL_ME_OP_PUT | PTL_ME_OP_GET);
    append(ni, me, PTL_PRIORITY_LIST, tag(1));
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW)), 1u);
    EXPECT_EQ(ni.status(PTL_SR_PERMISSION_VIOLATIONS), 0);
    EXPECT_EQ(ni.status(PTL_SR_OPERATION_VIOLATIONS), 0);
  });
}

// 3.12.1: PTL_ME_UNEXPECTED_HDR_DISABLE: "the header ... should not be added to the unexpected list"; no AUTO_FREE.
TEST_BOTH_WAYS(Append, Section3_12_1__unexpected_hdr_disable) {
  const Ni ni(self);
  const Ends ends(ni);
  self.target(
      [&] { append(ni, matching(ni, 0, PTL_ME_UNEXPECTED_HDR_DISABLE | PTL_ME_USE_ONCE), PTL_OVERFLOW_LIST, tag(9)); });
  self.initiator([&] { put_and_wait(ends, ni.target(), {.length = 8}); });
  self.target([&] {
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_PUT)), 9u);
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_AUTO_UNLINK)), 9u);
    append(ni, matching(ni, 0, PTL_ME_USE_ONCE | kLink));
    next_event(ends.target_eq, PTL_EVENT_LINK);
    expect_empty(ends.target_eq);
  });
}

// 3.12: AUTO_UNLINK "when the buffer space has been consumed", AUTO_FREE "after all other events associated with the
// buffer"; openmpi.md M6: the data stays until then.
TEST_BOTH_WAYS(Append, Section3_12__auto_free_after_the_last_header) {
  const Ni ni(self);
  const Ends ends(ni);
  self.target([&] {
    ptl_me_t me = packing(ni, PTL_ME_EVENT_COMM_DISABLE | kLink);
    me.length = 100;
    me.min_free = 50;
    append(ni, me, PTL_OVERFLOW_LIST, tag(9));
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_LINK)), 9u);
  });
  self.initiator([&] {
    for (ptl_hdr_data_t i = 0; i < 3; ++i)
      put_and_wait(ends, ni.target(), {.length = 20, .local_offset = 20 * i, .match_bits = i});
  });
  self.target([&] {
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_AUTO_UNLINK)), 9u);
    expect_empty(ends.target_eq);
    for (ptl_match_bits_t bits : {2u, 0u}) {
      append(ni, matching(ni, bits, kOnceQuiet));
      next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW);
      expect_empty(ends.target_eq);
    }
    append(ni, matching(ni, 1, kOnceQuiet));
    const ptl_event_t last = next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW);
    EXPECT_EQ(std::memcmp(last.start, &ends.data[20], 20), 0);
    const ptl_event_t free_event = next_event(ends.target_eq, PTL_EVENT_AUTO_FREE);
    EXPECT_EQ(number(free_event), 9u);
    EXPECT_EQ(free_event.pt_index, kPt);
    expect_empty(ends.target_eq);
  });
}

// 3.13.1: AUTO_FREE "also indicates that the unexpected list contains no more items associated with this entry"; with
// the last header found by a search, or by a use-once entry together with AUTO_UNLINK.
TEST_BOTH_WAYS(Append, Section3_13_1__order_of_put_auto_unlink_overflow_auto_free) {
  const Ni ni(self);
  const Ends ends(ni);
  self.target([&] {
    append(ni, matching(ni, 1, PTL_ME_USE_ONCE), PTL_OVERFLOW_LIST, tag(8));
    append(ni, matching(ni, 2, PTL_ME_USE_ONCE), PTL_OVERFLOW_LIST, tag(9));
  });
  self.initiator([&] {
    put_and_wait(ends, ni.target(), {.length = 8, .match_bits = 1});
    put_and_wait(ends, ni.target(), {.length = 8, .match_bits = 2});
  });
  self.target([&] {
    for (std::uintptr_t entry : {8u, 9u}) {
      EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_PUT)), entry);
      EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_AUTO_UNLINK)), entry);
    }
    append(ni, matching(ni, 1, kOnceQuiet), PTL_PRIORITY_LIST, tag(1));
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW)), 1u);
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_AUTO_FREE)), 8u);
    const ptl_me_t search = matching(ni, 2, PTL_ME_USE_ONCE);
    REQUIRE_OK(PtlMESearch(ni, kPt, &search, PTL_SEARCH_DELETE, tag(2)));
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW)), 2u);
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_AUTO_FREE)), 9u);
    expect_empty(ends.target_eq);
  });
}

// 3.13.1: if the headers were consumed before the entry unlinks itself, AUTO_FREE comes with the last one of it.
TEST_BOTH_WAYS(Append, Section3_13_1__auto_free_when_headers_were_consumed_before_the_unlink) {
  const Ni ni(self);
  const Ends ends(ni);
  self.target([&] {
    ptl_me_t me = packing(ni, PTL_ME_EVENT_COMM_DISABLE);
    me.length = 100;
    me.min_free = 50;
    append(ni, me, PTL_OVERFLOW_LIST, tag(9));
  });
  for (int round = 0; round < 2; ++round) {
    self.initiator([&] { put_and_wait(ends, ni.target(), {.length = 40}); });
    self.target([&] {
      if (round == 1) next_event(ends.target_eq, PTL_EVENT_AUTO_UNLINK);
      append(ni, matching(ni, 0, kOnceQuiet));
      next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW);
      if (round == 1) next_event(ends.target_eq, PTL_EVENT_AUTO_FREE);
      expect_empty(ends.target_eq);
    });
  }
}

// 3.15.3: a get "can also match in the overflow list", GET now and GET_OVERFLOW later; the data comes from there.
TEST_BOTH_WAYS(Append, Section3_15_3__unexpected_get) {
  const Ni ni(self);
  Ends ends(ni);
  self.target([&] {
    std::memset(overflow_memory, 0x5a, sizeof overflow_memory);
    append(ni, me_of(ni, overflow_memory, 100), PTL_OVERFLOW_LIST, tag(9));
  });
  self.initiator([&] {
    get(ends.md, ni.target(), {.length = 8, .remote_offset = 40});
    const ptl_event_t reply = next_event(ends.source_eq, PTL_EVENT_REPLY);
    EXPECT_EQ(reply.ptl_list, PTL_OVERFLOW_LIST);
    EXPECT_EQ(reply.mlength, 8u);
    EXPECT_EQ(ends.data[7], 0x5a);
  });
  self.target([&] {
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_GET)), 9u);
    append(ni, me_of(ni, target_memory, 100, kOnceQuiet), PTL_PRIORITY_LIST, tag(1));
    const ptl_event_t event = next_event(ends.target_eq, PTL_EVENT_GET_OVERFLOW);
    EXPECT_EQ(number(event), 1u);
    EXPECT_EQ(event.start, overflow_memory + 40);
    EXPECT_EQ(event.mlength, 8u);
  });
}

// C.2: "atomics operations that match on the overflow list do not perform atomic operations on the overflow buffer";
// the host applies them, so it must find the operand there, and operation and type in the event.
TEST_BOTH_WAYS(Append, Section3_15_4__unexpected_atomic_is_not_applied) {
  const Ni ni(self);
  Ends ends(ni);
  std::int64_t overflow_value = 100;
  self.target([&] { append(ni, me_of(ni, &overflow_value, 8), PTL_OVERFLOW_LIST, tag(9)); });
  self.initiator([&] {
    const std::int64_t operand = 5;
    std::memcpy(ends.data.data(), &operand, 8);
    atomic(ends.md, ni.target(), {.length = 8, .hdr_data = 7, .op = PTL_SUM, .type = PTL_INT64_T});
    EXPECT_EQ(next_event(ends.source_eq, PTL_EVENT_ACK).ptl_list, PTL_OVERFLOW_LIST);
  });
  self.target([&] {
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_ATOMIC)), 9u);
    append(ni, me_of(ni, target_memory, 8, kOnceQuiet), PTL_PRIORITY_LIST, tag(1));
    const ptl_event_t event = next_event(ends.target_eq, PTL_EVENT_ATOMIC_OVERFLOW);
    EXPECT_EQ(number(event), 1u);
    EXPECT_EQ(event.hdr_data, 7u);
    EXPECT_EQ(event.atomic_operation, PTL_SUM);
    EXPECT_EQ(event.atomic_type, PTL_INT64_T);
    EXPECT_EQ(event.start, &overflow_value);
    EXPECT_EQ(overflow_value, 5) << "the operand, neither summed nor lost";
  });
}

// 3.15.4: fetching atomics in the overflow list: "the fetch operation functions in the same way as a PtlGet() operation
// that matched in the overflow list". What becomes of the overflow buffer is not said.
TEST_BOTH_WAYS(Append, Section3_15_4__unexpected_fetch_atomic_and_swap) {
  const Ni ni(self);
  Ends ends(ni);
  std::int64_t overflow_value = 100;
  self.target([&] { append(ni, me_of(ni, &overflow_value, 8), PTL_OVERFLOW_LIST, tag(9)); });
  self.initiator([&] {
    fetch_atomic(ends.md, 64, ends.md, ni.target(), {.length = 8, .hdr_data = 1});
    const ptl_event_t reply = next_event(ends.source_eq, PTL_EVENT_REPLY);
    EXPECT_EQ(reply.ptl_list, PTL_OVERFLOW_LIST);
    std::int64_t fetched = 0;
    std::memcpy(&fetched, &ends.data[64], 8);
    EXPECT_EQ(fetched, 100) << "as a get";
    swap(ends.md, 64, ends.md, ni.target(), {.length = 8, .hdr_data = 2, .op = PTL_SWAP});
    next_event(ends.source_eq, PTL_EVENT_REPLY);
  });
  self.target([&] {
    for (ptl_hdr_data_t i : {1u, 2u}) EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_FETCH_ATOMIC).hdr_data, i);
    append(ni, me_of(ni, target_memory, 8), PTL_PRIORITY_LIST, tag(1));
    ptl_event_t event = next_event(ends.target_eq, PTL_EVENT_FETCH_ATOMIC_OVERFLOW);
    EXPECT_EQ(number(event), 1u);
    EXPECT_EQ(event.hdr_data, 1u);
    EXPECT_EQ(event.atomic_operation, PTL_SUM);
    event = next_event(ends.target_eq, PTL_EVENT_FETCH_ATOMIC_OVERFLOW);
    EXPECT_EQ(event.hdr_data, 2u);
    EXPECT_EQ(event.atomic_operation, PTL_SWAP);
  });
}

// Open MPI's layout (openmpi.md M3, M6): packed short messages, and a zero-length persistent entry behind for long
// ones. The ACK tells list and mlength, by which the sender knows that it has to wait.
TEST_BOTH_WAYS(Append, Section3_13_4__ack_tells_list_and_length) {
  const Ni ni(self);
  const Ends ends(ni);
  self.target([&] {
    ptl_me_t shorts = packing(ni);
    shorts.match_bits = 1;
    shorts.ignore_bits = ~ptl_match_bits_t{3};
    append(ni, shorts, PTL_OVERFLOW_LIST);
    ptl_me_t longs = me_of(ni, nullptr, 0);
    longs.match_bits = 2;
    longs.ignore_bits = ~ptl_match_bits_t{3};
    append(ni, longs, PTL_OVERFLOW_LIST);
    append(ni, matching(ni, 0x101, kOnceQuiet));
  });
  self.initiator([&] {
    const auto expect_ack = [&](ptl_size_t length, ptl_match_bits_t bits, ptl_list_t list, ptl_size_t mlength) {
      const ptl_event_t ack = put_and_wait(ends, ni.target(), {.length = length, .match_bits = bits});
      EXPECT_EQ(ack.ptl_list, list);
      EXPECT_EQ(ack.mlength, mlength);
    };
    expect_ack(50, 0x101, PTL_PRIORITY_LIST, 50);
    expect_ack(50, 0x101, PTL_OVERFLOW_LIST, 50);
    expect_ack(4000, 0x102, PTL_OVERFLOW_LIST, 0);
    expect_ack(4000, 0x202, PTL_OVERFLOW_LIST, 0);
  });
  self.target([&] {
    for (int i = 0; i < 4; ++i) next_event(ends.target_eq, PTL_EVENT_PUT);
    ptl_me_t receive = matching(ni, 0x100, kOnceQuiet);
    receive.ignore_bits = 3;
    for (ptl_size_t mlength : {50u, 0u}) {
      append(ni, receive);
      EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW).mlength, mlength);
    }
  });
}

// Many unexpected headers, consumed from the last to the first: each once, each with its own data (openmpi.md 10, gate
// 3).
TEST_BOTH_WAYS(Append, Section3_12_2__many_unexpected_headers_in_reverse_order) {
  const Ni ni(self);
  constexpr ptl_match_bits_t kHeaders = 5000;
  const Ends ends(ni);
  std::vector<std::uint64_t> buffer(kHeaders);
  self.target([&] {
    ptl_me_t me = me_of(ni, buffer.data(), 8 * kHeaders, PTL_ME_MANAGE_LOCAL | PTL_ME_EVENT_COMM_DISABLE);
    me.ignore_bits = kAnyBits;
    append(ni, me, PTL_OVERFLOW_LIST);
  });
  self.initiator([&] {
    std::uint64_t value = 0;
    const ptl_handle_md_t md = bind_quiet(ni, &value, 8, ends.source_eq);
    for (value = 0; value < kHeaders; ++value) {
      put(md, ni.target(), {.length = 8, .match_bits = value});
      next_event(ends.source_eq, PTL_EVENT_ACK);
    }
  });
  self.target([&] {
    for (ptl_match_bits_t bits = kHeaders; bits-- > 0;) {
      append(ni, matching(ni, bits, kOnceQuiet));
      const ptl_event_t event = next_event(ends.target_eq, PTL_EVENT_PUT_OVERFLOW);
      ASSERT_EQ(event.match_bits, bits);
      ASSERT_EQ(*static_cast<std::uint64_t*>(event.start), bits);
    }
    expect_empty(ends.target_eq);
  });
}

// 3.12.2 and 3.4: what an entry must not contain, and lists that there are not.
TEST_PROCESSES(1, Append, Section3_12_2__illegal_arguments) {
  const Ni ni(self);
  const Ni other(self, kNonMatching);
  const Ends ends(ni);
  ptl_handle_me_t handle = PTL_INVALID_HANDLE;
  const auto rc = [&](const ptl_me_t& me, ptl_pt_index_t pt = kPt, ptl_list_t list = PTL_PRIORITY_LIST) {
    return PtlMEAppend(ni, pt, &me, list, nullptr, &handle);
  };
  ptl_me_t me = matching(ni, 0);
  EXPECT_RC(rc(me), PTL_OK);
  EXPECT_RC(rc(me, kOtherPt), PTL_ARG_INVALID) << "not allocated";
  EXPECT_RC(rc(me, static_cast<ptl_pt_index_t>(ni.limits().max_pt_index) + 1), PTL_ARG_INVALID);
  EXPECT_RC(rc(me, PTL_PT_ANY), PTL_ARG_INVALID);
  EXPECT_RC(rc(me, kPt, static_cast<ptl_list_t>(2)), PTL_ARG_INVALID);
  for (ptl_handle_ct_t ct : {ptl_handle_ct_t{PTL_INVALID_HANDLE}, alloc_eq(ni), alloc_ct(other)}) {
    me.ct_handle = ct;
    EXPECT_RC(rc(me), PTL_ARG_INVALID) << "counting event " << ct;
  }
}
