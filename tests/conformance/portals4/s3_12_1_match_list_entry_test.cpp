// Portals 4.3, 3.12 and 3.12.1: what a match list entry matches, where it puts the data, when it unlinks itself.
// Options for events and counts, and permissions: s3_12_1_entry_options_test.cpp.
#include <cstring>

#include "../harness/fixture.h"

using namespace conformance;

PORTALS_SUITE(MatchListEntry);

namespace {

alignas(64) unsigned char target_memory[256];

std::uintptr_t number(const ptl_event_t& event) { return reinterpret_cast<std::uintptr_t>(event.user_ptr); }

ptl_me_t matching(const Ni& ni, ptl_match_bits_t bits, ptl_match_bits_t ignore = 0, unsigned int options = 0) {
  ptl_me_t me = me_of(ni, target_memory, sizeof target_memory, options);
  me.match_bits = bits;
  me.ignore_bits = ignore;
  return me;
}

constexpr unsigned int kOnceQuiet = PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE;

}  // namespace

// 3.12: "((incoming_bits ^ match_bits) & ~ignore_bits) == 0", over all 64 bits.
TEST_BOTH_WAYS(MatchListEntry, Section3_12__match_bits_under_ignore_bits) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_match_bits_t top = ptl_match_bits_t{1} << 63;
  self.target([&] {
    append(ni, matching(ni, 0x1234), PTL_PRIORITY_LIST, tag(1));
    append(ni, matching(ni, 0xff00, 0xff), PTL_PRIORITY_LIST, tag(2));
    append(ni, matching(ni, top), PTL_PRIORITY_LIST, tag(3));
    append(ni, matching(ni, 0xabcd0000, 0xffff), PTL_PRIORITY_LIST, tag(4));
    append(ni, matching(ni, 0, ~ptl_match_bits_t{0}), PTL_PRIORITY_LIST, tag(5));
  });
  const struct {
    ptl_match_bits_t bits;
    std::uintptr_t entry;
  } cases[] = {{0x1234, 1},  {0xff00, 2},     {0xffff, 2},     {0xff5a, 2}, {top, 3},
               {top | 1, 5}, {0xabcd1234, 4}, {0xabce1234, 5}, {0, 5},      {0x1235, 5}};
  self.initiator([&] {
    for (const auto& one : cases) put_and_wait(ends, ni.target(), {.length = 1, .match_bits = one.bits});
  });
  self.target([&] {
    for (const auto& one : cases) {
      const ptl_event_t event = next_event(ends.target_eq, PTL_EVENT_PUT);
      EXPECT_EQ(number(event), one.entry);
      EXPECT_EQ(event.match_bits, one.bits) << "the bits of the initiator, not of the entry";
    }
  });
}

// 3.7: messages "traverse list entries or match list entries in the order they were appended", wildcards among them.
TEST_BOTH_WAYS(MatchListEntry, Section3_7__entries_are_tried_in_the_order_of_their_appending) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_match_bits_t any = ~ptl_match_bits_t{0};
  self.target([&] {
    append(ni, matching(ni, 5, 0, kOnceQuiet), PTL_PRIORITY_LIST, tag(1));
    append(ni, matching(ni, 0, any, kOnceQuiet), PTL_PRIORITY_LIST, tag(2));
    append(ni, matching(ni, 5, 0, kOnceQuiet), PTL_PRIORITY_LIST, tag(3));
    append(ni, matching(ni, 4, 3, kOnceQuiet), PTL_PRIORITY_LIST, tag(4));
    append(ni, matching(ni, 5, 0, kOnceQuiet), PTL_PRIORITY_LIST, tag(5));
    append(ni, matching(ni, 0, any, kOnceQuiet), PTL_PRIORITY_LIST, tag(6));
    append(ni, matching(ni, 5, 0, kOnceQuiet), PTL_PRIORITY_LIST, tag(7));
  });
  const struct {
    ptl_match_bits_t bits;
    std::uintptr_t entry;
  } cases[] = {{9, 2}, {5, 1}, {7, 4}, {5, 3}, {5, 5}, {5, 6}, {5, 7}};
  self.initiator([&] {
    for (const auto& one : cases) put_and_wait(ends, ni.target(), {.length = 1, .match_bits = one.bits});
  });
  self.target([&] {
    for (const auto& one : cases) EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_PUT)), one.entry);
  });
}

// 3.12.1: match_id: "PTL_PID_ANY and PTL_NID_ANY can be used to wildcard either of the physical identifiers".
TEST_PROCESSES(3, MatchListEntry, Section3_12_1__match_id_selects_the_initiator) {
  const Ni ni(self);
  const Ends ends(ni);
  alloc_pt(ni, ends.target_eq, 0, kOtherPt);
  self.target([&] {
    ptl_me_t me = matching(ni, 0);
    me.match_id.phys = {ni.id(1).phys.nid + 1, PTL_PID_ANY};
    append(ni, me, PTL_PRIORITY_LIST, tag(9));  // Another node: nobody.
    me.match_id = ni.id(2);
    append(ni, me, PTL_PRIORITY_LIST, tag(2));
    me.match_id.phys = {PTL_NID_ANY, ni.id(1).phys.pid};
    append(ni, me, PTL_PRIORITY_LIST, tag(1));
    me.match_id.phys = {ni.id(1).phys.nid, PTL_PID_ANY};
    append(ni, me, PTL_PRIORITY_LIST, tag(3), kOtherPt);
  });
  self.initiator([&] {
    const auto rank = static_cast<ptl_hdr_data_t>(self.rank());
    put_and_wait(ends, ni.target(), {.length = 1, .hdr_data = rank});
    put_and_wait(ends, ni.target(), {.length = 1, .hdr_data = rank, .pt = kOtherPt});
  });
  self.target([&] {
    for (int i = 0; i < 4; ++i) {
      const ptl_event_t event = next_event(ends.target_eq, PTL_EVENT_PUT);
      EXPECT_EQ(number(event), event.pt_index == kPt ? event.hdr_data : 3u);
      EXPECT_TRUE(same_process(ni, event.initiator, ni.id(static_cast<int>(event.hdr_data))));
    }
  });
}

// 2.1: "If a message does not match in the priority list ..., the overflow list is traversed."
TEST_BOTH_WAYS(MatchListEntry, Section2_1__overflow_list_comes_after_the_priority_list) {
  const Ni ni(self);
  const Ends ends(ni);
  self.target([&] {
    append(ni, matching(ni, 0, 7), PTL_OVERFLOW_LIST, tag(9));
    append(ni, matching(ni, 1), PTL_PRIORITY_LIST, tag(1));
    append(ni, matching(ni, 0, 1), PTL_OVERFLOW_LIST, tag(8));  // Behind the other one.
  });
  self.initiator([&] {
    EXPECT_EQ(put_and_wait(ends, ni.target(), {.length = 1, .match_bits = 1}).ptl_list, PTL_PRIORITY_LIST);
    EXPECT_EQ(put_and_wait(ends, ni.target(), {.length = 1, .match_bits = 0}).ptl_list, PTL_OVERFLOW_LIST);
  });
  self.target([&] {
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_PUT)), 1u);
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_PUT)), 9u);
  });
}

// 3.12.1: "By default, if the length in the incoming operation is greater than the amount of memory available, the
// operation is truncated"; 3.12: "an offset beyond the length of the ME" leaves zero bytes.
TEST_BOTH_WAYS(MatchListEntry, Section3_12_1__truncation) {
  const Ni ni(self);
  Ends ends(ni);
  self.target([&] { append(ni, me_of(ni, target_memory, 10)); });
  const struct {
    ptl_size_t length, offset, moved;
  } cases[] = {
      {20, 0, 10}, {10, 0, 10}, {8, 6, 4}, {8, 10, 0}, {8, 11, 0}, {8, PTL_SIZE_MAX, 0}, {8, PTL_SIZE_MAX - 7, 0}};
  self.initiator([&] {
    for (const auto& one : cases) {
      const ptl_event_t ack = put_and_wait(ends, ni.target(), {.length = one.length, .remote_offset = one.offset});
      EXPECT_EQ(ack.mlength, one.moved) << one.length << " at " << one.offset;
      std::vector<unsigned char> back(one.length, 0xee);
      const ptl_handle_md_t md = bind_quiet(ni, back.data(), back.size(), ends.source_eq);
      get(md, ni.target(), {.length = one.length, .remote_offset = one.offset});
      EXPECT_EQ(next_event(ends.source_eq, PTL_EVENT_REPLY).mlength, one.moved);
      for (ptl_size_t i = one.moved; i < one.length; ++i) EXPECT_EQ(back[i], 0xee) << "behind the truncated reply";
      REQUIRE_OK(PtlMDRelease(md));
    }
  });
  self.target([&] {
    for (const auto& one : cases)
      for (ptl_event_kind_t kind : {PTL_EVENT_PUT, PTL_EVENT_GET}) {
        const ptl_event_t event = next_event(ends.target_eq, kind);
        EXPECT_EQ(event.rlength, one.length);
        EXPECT_EQ(event.mlength, one.moved);
      }
    for (int i = 10; i < 256; ++i) EXPECT_EQ(target_memory[i], 0) << "behind the entry, at " << i;
  });
}

// 3.12.1: PTL_ME_NO_TRUNCATE: "the matching to fail ... and continue with the next entry"; the available memory is "the
// length of the memory region" minus the offset.
TEST_BOTH_WAYS(MatchListEntry, Section3_12_1__no_truncate_passes_on_what_does_not_fit) {
  const Ni ni(self);
  const Ends ends(ni);
  self.target([&] {
    append(ni, me_of(ni, target_memory, 10, PTL_ME_NO_TRUNCATE), PTL_PRIORITY_LIST, tag(1));
    append(ni, me_of(ni, target_memory, 20, PTL_ME_NO_TRUNCATE), PTL_PRIORITY_LIST, tag(2));
    append(ni, me_of(ni, target_memory, 5), PTL_PRIORITY_LIST, tag(3));
  });
  const struct {
    ptl_size_t length, offset;
    std::uintptr_t entry;
  } cases[] = {{10, 0, 1}, {11, 0, 2}, {21, 0, 3}, {10, 1, 2}, {5, 16, 3}, {1, PTL_SIZE_MAX, 3}};
  self.initiator([&] {
    for (const auto& one : cases) put_and_wait(ends, ni.target(), {.length = one.length, .remote_offset = one.offset});
    get(ends.md, ni.target(), {.length = 11});
    next_event(ends.source_eq, PTL_EVENT_REPLY);
  });
  self.target([&] {
    for (const auto& one : cases) EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_PUT)), one.entry);
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_GET)), 2u);
  });
}

// 3.12.1: "zero length messages are not checked for truncation", whatever their offset; 3.12: nor for addresses.
TEST_BOTH_WAYS(MatchListEntry, Section3_12_1__zero_bytes_never_fail_to_match) {
  const Ni ni(self);
  const Ends ends(ni);
  self.target([&] {
    append(ni, me_of(ni, target_memory, 10, PTL_ME_NO_TRUNCATE | kOnceQuiet), PTL_PRIORITY_LIST, tag(1));
    append(ni, me_of(ni, nullptr, 0, PTL_ME_NO_TRUNCATE), PTL_PRIORITY_LIST, tag(2));
  });
  self.initiator([&] {
    put_and_wait(ends, ni.target(), {.length = 0, .remote_offset = 11});
    put_and_wait(ends, ni.target(), {.length = 0, .remote_offset = PTL_SIZE_MAX});
    get(ends.md, ni.target(), {.length = 0, .remote_offset = 1000});
    next_event(ends.source_eq, PTL_EVENT_REPLY);
  });
  self.target([&] {
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_PUT)), 1u);
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_PUT)), 2u);
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_GET)), 2u);
  });
}

// 3.12: "A zero-length list entry may be created by setting start to NULL and length to 0", useful to record events.
TEST_BOTH_WAYS(MatchListEntry, Section3_12__zero_length_entry_records_events) {
  const Ni ni(self);
  const Ends ends(ni);
  self.target([&] { append(ni, me_of(ni, nullptr, 0)); });
  self.initiator([&] { EXPECT_EQ(put_and_wait(ends, ni.target(), {.length = 4000, .hdr_data = 3}).mlength, 0u); });
  self.target([&] {
    const ptl_event_t event = next_event(ends.target_eq, PTL_EVENT_PUT);
    EXPECT_EQ(event.rlength, 4000u);
    EXPECT_EQ(event.mlength, 0u);
    EXPECT_EQ(event.hdr_data, 3u);
  });
}

// 3.12.1: PTL_ME_MANAGE_LOCAL: "the offset is incremented by the length of the request so that the next operation (put
// and/or get) will access the next part"; one offset for both. 3.13.4: start, and both meanings of remote_offset.
TEST_BOTH_WAYS(MatchListEntry, Section3_12_1__manage_local_packs_messages) {
  const Ni ni(self);
  Ends ends(ni);
  self.target([&] {
    for (int i = 0; i < 256; ++i) target_memory[i] = static_cast<unsigned char>(255 - i);
    append(ni, me_of(ni, target_memory, 100, PTL_ME_MANAGE_LOCAL));
  });
  self.initiator([&] {
    EXPECT_EQ(put_and_wait(ends, ni.target(), {.length = 10, .remote_offset = 50}).remote_offset, 0u);
    EXPECT_EQ(put_and_wait(ends, ni.target(), {.length = 7, .local_offset = 10, .remote_offset = 0}).remote_offset,
              10u);
    get(ends.md, ni.target(), {.length = 20, .local_offset = 1000, .remote_offset = 99});
    EXPECT_EQ(next_event(ends.source_eq, PTL_EVENT_REPLY).remote_offset, 17u);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(ends.data[1000 + i], 255 - (17 + i));
    EXPECT_EQ(put_and_wait(ends, ni.target(), {.length = 0}).remote_offset, 37u);
    EXPECT_EQ(put_and_wait(ends, ni.target(), {.length = 60, .local_offset = 37}).mlength, 60u);
    EXPECT_EQ(put_and_wait(ends, ni.target(), {.length = 60}).mlength, 3u);  // Only three bytes are left.
    EXPECT_EQ(put_and_wait(ends, ni.target(), {.length = 60}).mlength, 0u);
  });
  self.target([&] {
    const struct {
      ptl_event_kind_t kind;
      int start;
      ptl_size_t asked;
    } cases[] = {{PTL_EVENT_PUT, 0, 50}, {PTL_EVENT_PUT, 10, 0}, {PTL_EVENT_GET, 17, 99},
                 {PTL_EVENT_PUT, 37, 0}, {PTL_EVENT_PUT, 37, 0}, {PTL_EVENT_PUT, 97, 0}};
    for (const auto& one : cases) {
      const ptl_event_t event = next_event(ends.target_eq, one.kind);
      EXPECT_EQ(event.start, target_memory + one.start);
      EXPECT_EQ(event.remote_offset, one.asked) << "the offset that the initiator asked for";
    }
    next_event(ends.target_eq, PTL_EVENT_PUT);
    EXPECT_EQ(std::memcmp(target_memory, &ends.data[0], 17), 0);
    EXPECT_EQ(std::memcmp(target_memory + 37, &ends.data[37], 60), 0);
    EXPECT_EQ(target_memory[100], 155) << "behind the entry";
    expect_empty(ends.target_eq);  // min_free is 0: it never unlinks itself.
  });
}

// 3.12.1: min_free: "When the unused portion of a match list entry (length - local offset) falls below this value, the
// match list entry automatically unlinks".
TEST_BOTH_WAYS(MatchListEntry, Section3_12_1__min_free_unlinks) {
  const Ni ni(self);
  const Ends ends(ni);
  self.target([&] {
    ptl_me_t me = me_of(ni, target_memory, 100, PTL_ME_MANAGE_LOCAL);
    me.min_free = 30;
    append(ni, me, PTL_PRIORITY_LIST, tag(1));
    append(ni, me_of(ni, nullptr, 0), PTL_PRIORITY_LIST, tag(2));
  });
  self.initiator([&] {
    put_and_wait(ends, ni.target(), {.length = 60});
    put_and_wait(ends, ni.target(), {.length = 10});  // 30 bytes are left: not below.
    put_and_wait(ends, ni.target(), {.length = 1});   // 29.
    put_and_wait(ends, ni.target(), {.length = 1});
  });
  self.target([&] {
    for (int i = 0; i < 3; ++i) EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_PUT)), 1u);
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_AUTO_UNLINK)), 1u);
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_PUT)), 2u);
    expect_empty(ends.target_eq);
  });
}

// The same on the overflow list.
TEST_BOTH_WAYS(MatchListEntry, Section3_12__min_free_unlinks_on_the_overflow_list) {
  const Ni ni(self);
  const Ends ends(ni);
  self.target([&] {
    ptl_me_t me = me_of(ni, target_memory, 100, PTL_ME_MANAGE_LOCAL | PTL_ME_UNEXPECTED_HDR_DISABLE);
    me.min_free = 30;
    append(ni, me, PTL_OVERFLOW_LIST, tag(1));
    append(ni, me_of(ni, nullptr, 0, PTL_ME_UNEXPECTED_HDR_DISABLE), PTL_OVERFLOW_LIST, tag(2));
  });
  self.initiator([&] {
    put_and_wait(ends, ni.target(), {.length = 70});
    put_and_wait(ends, ni.target(), {.length = 31});
    put_and_wait(ends, ni.target(), {.length = 1});
  });
  self.target([&] {
    for (int i = 0; i < 2; ++i) EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_PUT)), 1u);
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_AUTO_UNLINK)), 1u);
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_PUT)), 2u);
    expect_empty(ends.target_eq);  // Headers are disabled: no AUTO_FREE.
  });
}

// 3.12.1: min_free "is only used if PTL_ME_MANAGE_LOCAL is set"; Open MPI leaves it uninitialized otherwise.
TEST_BOTH_WAYS(MatchListEntry, Section3_12_1__min_free_without_manage_local_means_nothing) {
  const Ni ni(self);
  const Ends ends(ni);
  self.target([&] {
    ptl_me_t me = me_of(ni, target_memory, 100);
    me.min_free = PTL_SIZE_MAX;
    append(ni, me, PTL_PRIORITY_LIST, tag(1));
  });
  self.initiator([&] {
    for (int i = 0; i < 3; ++i) put_and_wait(ends, ni.target(), {.length = 100});
  });
  self.target([&] {
    for (int i = 0; i < 3; ++i) EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_PUT)), 1u);
    expect_empty(ends.target_eq);
  });
}

// 3.12.1: PTL_ME_NO_TRUNCATE with PTL_ME_MANAGE_LOCAL: the available memory is what the local offset leaves.
TEST_BOTH_WAYS(MatchListEntry, Section3_12_1__no_truncate_with_manage_local) {
  const Ni ni(self);
  const Ends ends(ni);
  self.target([&] {
    append(ni, me_of(ni, target_memory, 100, PTL_ME_MANAGE_LOCAL | PTL_ME_NO_TRUNCATE), PTL_PRIORITY_LIST, tag(1));
    append(ni, me_of(ni, target_memory + 100, 100), PTL_PRIORITY_LIST, tag(2));
  });
  self.initiator([&] {
    for (ptl_size_t length : {60u, 41u, 40u, 1u, 0u})
      put_and_wait(ends, ni.target(), {.length = length, .remote_offset = 77});
  });
  self.target([&] {
    for (std::uintptr_t entry : {1u, 2u, 1u, 2u, 1u})
      EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_PUT)), entry);
  });
}

// 3.12.1: PTL_ME_USE_ONCE: "only be used once and then automatically unlinked"; 3.13.1: AUTO_UNLINK after the PUT.
TEST_BOTH_WAYS(MatchListEntry, Section3_12_1__use_once) {
  const Ni ni(self);
  Ends ends(ni);
  self.target([&] {
    append(ni, me_of(ni, target_memory, 8, PTL_ME_USE_ONCE), PTL_PRIORITY_LIST, tag(1));
    append(ni, me_of(ni, target_memory, 8, PTL_ME_USE_ONCE), PTL_PRIORITY_LIST, tag(2));
    append(ni, me_of(ni, target_memory, 8), PTL_PRIORITY_LIST, tag(3));
  });
  self.initiator([&] {
    put_and_wait(ends, ni.target(), {.length = 8});
    get(ends.md, ni.target(), {.length = 8});
    next_event(ends.source_eq, PTL_EVENT_REPLY);
    put_and_wait(ends, ni.target(), {.length = 8});
    put_and_wait(ends, ni.target(), {.length = 8});
  });
  self.target([&] {
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_PUT)), 1u);
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_AUTO_UNLINK)), 1u);
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_GET)), 2u);
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_AUTO_UNLINK)), 2u);
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_PUT)), 3u);
    EXPECT_EQ(number(next_event(ends.target_eq, PTL_EVENT_PUT)), 3u);
    expect_empty(ends.target_eq);  // No AUTO_FREE: that is for the overflow list.
  });
}

// 3.12.1, 3.13.4: PTL_IOVEC: one region for offsets; "the start is still the first address where the message was
// placed".
TEST_BOTH_WAYS(MatchListEntry, Section3_12_1__iovec) {
  const Ni ni(self);
  Ends ends(ni);
  ptl_iovec_t pieces[4] = {
      {target_memory + 200, 5}, {target_memory, 0}, {target_memory + 10, 7}, {target_memory + 100, 50}};
  self.target([&] { append(ni, me_of(ni, pieces, 4, PTL_IOVEC)); });
  self.initiator([&] {
    EXPECT_EQ(put_and_wait(ends, ni.target(), {.length = 100, .remote_offset = 2}).mlength, 60u);
    put_and_wait(ends, ni.target(), {.length = 1, .local_offset = 99, .remote_offset = 12});
    get(ends.md, ni.target(), {.length = 12, .local_offset = 1000, .remote_offset = 3});
    EXPECT_EQ(next_event(ends.source_eq, PTL_EVENT_REPLY).mlength, 12u);
    std::vector<unsigned char> expected(ends.data.begin() + 1, ends.data.begin() + 13);
    expected[9] = ends.data[99];
    EXPECT_EQ(std::memcmp(&ends.data[1000], expected.data(), 12), 0);
  });
  self.target([&] {
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT).start, target_memory + 202);
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT).start, target_memory + 100);
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_GET).start, target_memory + 203);
    EXPECT_EQ(std::memcmp(target_memory + 202, pattern(3).data(), 3), 0);
    EXPECT_EQ(target_memory[205], 0);
    EXPECT_EQ(target_memory[150], 0);
  });
}

// 3.12: with PTL_TARGET_BIND_INACCESSIBLE "a match list entry that covers the entire virtual address range" (Open MPI's
// dynamic windows); the remote offset is the address.
TEST_BOTH_WAYS(MatchListEntry, Section3_12__whole_address_space) {
  const Ni ni(self);
  Ends ends(ni);
  if ((ni.limits().features & PTL_TARGET_BIND_INACCESSIBLE) == 0) self.skip("not promised by the interface");
  const auto address = self.share(reinterpret_cast<ptl_size_t>(&target_memory[3]))[0];
  self.target([&] { append(ni, me_of(ni, nullptr, PTL_SIZE_MAX)); });
  self.initiator([&] {
    EXPECT_EQ(put_and_wait(ends, ni.target(), {.length = 100, .remote_offset = address}).mlength, 100u);
    get(ends.md, ni.target(), {.length = 100, .local_offset = 2000, .remote_offset = address});
    EXPECT_EQ(next_event(ends.source_eq, PTL_EVENT_REPLY).mlength, 100u);
    EXPECT_EQ(std::memcmp(&ends.data[2000], &ends.data[0], 100), 0);
  });
  self.target([&] {
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT).start, &target_memory[3]);
    EXPECT_EQ(std::memcmp(&target_memory[3], pattern(100).data(), 100), 0);
  });
}
