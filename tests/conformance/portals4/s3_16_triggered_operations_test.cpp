// Portals 4.3, 3.16.1 to 3.16.7: each triggered operation does what its plain form does; cancelling (3.14.4), freeing
// the counter (3.14.3), the limit of operations, and arguments.
#include <algorithm>

#include "../harness/fixture.h"

using namespace conformance;

PORTALS_SUITE(TriggeredOperations);

namespace {

alignas(64) std::int64_t target_values[16];

struct Values {
  explicit Values(const Ni& ni) : eq(alloc_eq(ni)), ct(alloc_ct(ni)), md(bind_quiet(ni, numbers, sizeof numbers, eq)) {}
  ptl_handle_eq_t eq;
  ptl_handle_ct_t ct;
  std::int64_t numbers[16] = {};
  ptl_handle_md_t md;
};

void accept(Process& self, const Ni& ni) {
  self.target([&] { append(ni, me_of(ni, target_values, sizeof target_values), PTL_PRIORITY_LIST, tag(9)); });
}

}  // namespace

// 3.16.1: the parameters of PtlPut arrive as those of PtlPut do.
TEST_BOTH_WAYS(TriggeredOperations, Section3_16_1__put) {
  const Ni ni(self);
  const Ends ends(ni);
  Values values(ni);
  self.target([&] {
    ptl_me_t me = me_of(ni, target_values, sizeof target_values);
    me.match_bits = 0x77;
    append(ni, me);
  });
  self.initiator([&] {
    REQUIRE_OK(PtlTriggeredPut(values.md, 8, 24, PTL_ACK_REQ, ni.target(), kPt, 0x77, 16, tag(5), 66, values.ct, 2));
    for (std::int64_t i = 0; i < 16; ++i) values.numbers[i] = 100 + i;
    REQUIRE_OK(PtlCTInc(values.ct, {2, 0}));
    const ptl_event_t ack = next_event(values.eq, PTL_EVENT_ACK);
    EXPECT_EQ(ack.user_ptr, tag(5));
    EXPECT_EQ(ack.mlength, 24u);
    EXPECT_EQ(ack.remote_offset, 16u);
  });
  self.target([&] {
    const ptl_event_t event = next_event(ends.target_eq, PTL_EVENT_PUT);
    EXPECT_EQ(event.hdr_data, 66u);
    EXPECT_EQ(event.match_bits, 0x77u);
    EXPECT_EQ(event.rlength, 24u);
    EXPECT_EQ(event.remote_offset, 16u);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(target_values[2 + i], 101 + i);
    EXPECT_EQ(target_values[5], 0);
  });
}

// 3.16.2: PtlTriggeredGet "will not leave the initiator until the threshold is reached".
TEST_BOTH_WAYS(TriggeredOperations, Section3_16_2__get) {
  const Ni ni(self);
  const Ends ends(ni);
  Values values(ni);
  accept(self, ni);
  self.initiator([&] { REQUIRE_OK(PtlTriggeredGet(values.md, 8, 16, ni.target(), kPt, 0, 24, tag(5), values.ct, 1)); });
  self.target([&] {
    expect_empty(ends.target_eq);
    target_values[3] = 33;
    target_values[4] = 44;
  });
  self.initiator([&] {
    REQUIRE_OK(PtlCTInc(values.ct, {1, 0}));
    EXPECT_EQ(next_event(values.eq, PTL_EVENT_REPLY).user_ptr, tag(5));
    EXPECT_EQ(values.numbers[1], 33);
    EXPECT_EQ(values.numbers[2], 44);
    EXPECT_EQ(values.numbers[3], 0);
  });
}

// 3.16.3, 3.16.4, 3.16.5: atomics; the operand of a swap is copied by the call (portals4.h), the data is not.
TEST_BOTH_WAYS(TriggeredOperations, Section3_16_3__atomic_fetch_atomic_and_swap) {
  const Ni ni(self);
  const Ends ends(ni);
  Values values(ni);
  self.target([&] { target_values[0] = 10; });
  accept(self, ni);
  self.initiator([&] {
    std::int64_t operand = 25;
    REQUIRE_OK(PtlTriggeredAtomic(values.md, 0, 8, PTL_ACK_REQ, ni.target(), kPt, 0, 0, tag(1), 11, PTL_SUM,
                                  PTL_INT64_T, values.ct, 1));
    REQUIRE_OK(PtlTriggeredFetchAtomic(values.md, 64, values.md, 8, 8, ni.target(), kPt, 0, 0, tag(2), 12, PTL_PROD,
                                       PTL_INT64_T, values.ct, 2));
    REQUIRE_OK(PtlTriggeredSwap(values.md, 72, values.md, 16, 8, ni.target(), kPt, 0, 0, tag(3), 13, &operand,
                                PTL_CSWAP, PTL_INT64_T, values.ct, 3));
    operand = 0;
    values.numbers[0] = -5;
    values.numbers[1] = 5;
    values.numbers[2] = 99;
    for (const auto& [kind, user_ptr] :
         {std::pair{PTL_EVENT_ACK, tag(1)}, std::pair{PTL_EVENT_REPLY, tag(2)}, std::pair{PTL_EVENT_REPLY, tag(3)}}) {
      REQUIRE_OK(PtlCTInc(values.ct, {1, 0}));
      EXPECT_EQ(next_event(values.eq, kind).user_ptr, user_ptr);
    }
    EXPECT_EQ(values.numbers[8], 5) << "10 - 5";
    EXPECT_EQ(values.numbers[9], 25) << "5 * 5";
  });
  self.target([&] {
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_ATOMIC).hdr_data, 11u);
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_FETCH_ATOMIC).hdr_data, 12u);
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_FETCH_ATOMIC).hdr_data, 13u);
    EXPECT_EQ(target_values[0], 99);
  });
}

// 3.16.6, 3.16.7: increments and sets of other counters; success and failure.
TEST_PROCESSES(1, TriggeredOperations, Section3_16_6__ct_inc_and_ct_set) {
  const Ni ni(self);
  const ptl_handle_ct_t trigger = alloc_ct(ni);
  const ptl_handle_ct_t counter = alloc_ct(ni);
  REQUIRE_OK(PtlTriggeredCTInc(counter, {7, 0}, trigger, 1));
  REQUIRE_OK(PtlTriggeredCTInc(counter, {0, 3}, trigger, 2));
  REQUIRE_OK(PtlTriggeredCTSet(counter, {50, 60}, trigger, 3));
  EXPECT_EQ(count_of(counter).success, 0u);
  REQUIRE_OK(PtlCTInc(trigger, {1, 0}));
  wait_for_counts(counter, 7, 0);
  REQUIRE_OK(PtlCTInc(trigger, {1, 0}));
  wait_for_counts(counter, 7, 3);
  REQUIRE_OK(PtlCTInc(trigger, {1, 0}));
  wait_for_counts(counter, 50, 60);
  EXPECT_EQ(count_of(counter).success, 50u);
  EXPECT_EQ(count_of(counter).failure, 60u);
  EXPECT_EQ(count_of(trigger).success, 3u);
}

// 3.14.4: "all triggered operations waiting on ct_handle are permanently deleted"; "All other state ... unchanged".
TEST_BOTH_WAYS(TriggeredOperations, Section3_14_4__cancel) {
  const Ni ni(self);
  const Ends ends(ni);
  Values values(ni);
  const ptl_handle_ct_t other = alloc_ct(ni);
  accept(self, ni);
  self.initiator([&] {
    REQUIRE_OK(PtlCTSet(values.ct, {1, 2}));
    for (ptl_handle_ct_t ct : {values.ct, other}) {
      REQUIRE_OK(PtlTriggeredPut(values.md, 0, 8, PTL_ACK_REQ, ni.target(), kPt, 0, 0, tag(ct), ct, ct, 5));
      REQUIRE_OK(PtlTriggeredCTInc(ct, {1000, 0}, ct, 6));
    }
    EXPECT_RC(PtlCTCancelTriggered(values.ct), PTL_OK);
    EXPECT_EQ(count_of(values.ct).success, 1u);
    EXPECT_EQ(count_of(values.ct).failure, 2u);
    REQUIRE_OK(PtlCTSet(values.ct, {10, 0}));
    REQUIRE_OK(PtlCTSet(other, {10, 0}));
    EXPECT_EQ(next_event(values.eq, PTL_EVENT_ACK).user_ptr, tag(other));
    wait_for_count(other, 1010);
    EXPECT_EQ(count_of(values.ct).success, 10u);
    // The counter is as good as before.
    REQUIRE_OK(PtlTriggeredPut(values.md, 0, 8, PTL_ACK_REQ, ni.target(), kPt, 0, 0, tag(7), 7, values.ct, 10));
    EXPECT_EQ(next_event(values.eq, PTL_EVENT_ACK).user_ptr, tag(7));
    expect_empty(values.eq);
    EXPECT_RC(PtlCTCancelTriggered(values.ct), PTL_OK) << "nothing is waiting";
  });
}

// 3.14.3: "any triggered operations waiting on the freed counting event whose thresholds have not been met will be
// deleted".
TEST_BOTH_WAYS(TriggeredOperations, Section3_14_3__free_deletes_what_waits) {
  const Ni ni(self);
  const Ends ends(ni);
  Values values(ni);
  accept(self, ni);
  self.initiator([&] {
    for (ptl_hdr_data_t i = 0; i < 20; ++i) {
      const ptl_handle_ct_t ct = alloc_ct(ni);
      REQUIRE_OK(PtlTriggeredPut(values.md, 0, 8, PTL_ACK_REQ, ni.target(), kPt, 0, 0, nullptr, i, ct, 1));
      EXPECT_RC(PtlCTFree(ct), PTL_OK);
    }
    const ptl_handle_ct_t ct = alloc_ct(ni);  // Perhaps in the place of a freed one.
    REQUIRE_OK(PtlCTSet(ct, {5, 0}));
    put(values.md, ni.target(), {.length = 8, .hdr_data = 99});
    next_event(values.eq, PTL_EVENT_ACK);
    expect_empty(values.eq);
  });
  self.target([&] {
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT).hdr_data, 99u);
    expect_empty(ends.target_eq);
  });
}

// openmpi.md C3: an operation whose threshold is reached runs although the counter is freed right after PtlCTWait.
TEST_BOTH_WAYS(TriggeredOperations, Section3_14_3__free_lets_run_what_has_reached_its_threshold) {
  const Ni ni(self);
  const Ends ends(ni);
  Values values(ni);
  accept(self, ni);
  self.initiator([&] {
    for (ptl_hdr_data_t i = 0; i < 100; ++i) {
      const ptl_handle_ct_t ct = alloc_ct(ni);
      REQUIRE_OK(PtlTriggeredPut(values.md, 0, 8, PTL_ACK_REQ, ni.target(), kPt, 0, 0, nullptr, i, ct, 1));
      REQUIRE_OK(PtlCTInc(ct, {1, 0}));
      ptl_ct_event_t value{};
      REQUIRE_OK(PtlCTWait(ct, 1, &value));
      EXPECT_RC(PtlCTFree(ct), PTL_OK);
      next_event(values.eq, PTL_EVENT_ACK);
    }
  });
}

// 3.6.1: max_triggered_ops is "outstanding": what has run makes room. (The limit itself: s3_06.)
TEST_PROCESSES(1, TriggeredOperations, Section3_6_1__operations_that_have_run_make_room) {
  ptl_ni_limits_t small = generous_limits();
  small.max_triggered_ops = 4;
  const Ni ni(self, kMatching, &small);
  const int limit = ni.limits().max_triggered_ops;
  if (limit > 10000) self.skip("the limit is too high to be reached");
  const ptl_handle_ct_t trigger = alloc_ct(ni);
  const ptl_handle_ct_t counter = alloc_ct(ni);
  ptl_size_t expected = 0;
  for (ptl_size_t round = 1; round <= 3; ++round) {
    for (int i = 0; i < limit; ++i) REQUIRE_OK(PtlTriggeredCTInc(counter, {1, 0}, trigger, round));
    EXPECT_RC(PtlTriggeredCTInc(counter, {1, 0}, trigger, round), PTL_NO_SPACE);
    EXPECT_RC(PtlTriggeredCTSet(counter, {1, 0}, trigger, round), PTL_NO_SPACE);
    REQUIRE_OK(PtlCTInc(trigger, {1, 0}));
    expected += static_cast<ptl_size_t>(limit);
    EXPECT_EQ(wait_for_count(counter, expected).success, expected);
  }
}

// 3.16.1 and following: PTL_ARG_INVALID when the operation is posted, for what its plain form would refuse and for the
// counter.
TEST_PROCESSES(1, TriggeredOperations, Section3_16_1__illegal_arguments) {
  const Ni ni(self);
  const Ni other(self, kNonMatching);
  Values values(ni);
  const ptl_process_t to = ni.target();
  for (ptl_handle_ct_t ct :
       {ptl_handle_ct_t{PTL_CT_NONE}, ptl_handle_ct_t{PTL_INVALID_HANDLE}, values.eq, alloc_ct(other)}) {
    EXPECT_RC(PtlTriggeredPut(values.md, 0, 8, PTL_ACK_REQ, to, kPt, 0, 0, nullptr, 0, ct, 9), PTL_ARG_INVALID) << ct;
    EXPECT_RC(PtlTriggeredGet(values.md, 0, 8, to, kPt, 0, 0, nullptr, ct, 9), PTL_ARG_INVALID) << ct;
    EXPECT_RC(PtlTriggeredCTInc(values.ct, {1, 0}, ct, 9), PTL_ARG_INVALID) << ct;
    EXPECT_RC(PtlTriggeredCTInc(ct, {1, 0}, values.ct, 9), PTL_ARG_INVALID) << ct;
    EXPECT_RC(PtlTriggeredCTSet(values.ct, {1, 0}, ct, 9), PTL_ARG_INVALID) << ct;
    EXPECT_RC(PtlTriggeredCTSet(ct, {1, 0}, values.ct, 9), PTL_ARG_INVALID) << ct;
  }
  const ptl_handle_ct_t ct = values.ct;
  EXPECT_RC(PtlTriggeredPut(values.md, 121, 8, PTL_ACK_REQ, to, kPt, 0, 0, nullptr, 0, ct, 9), PTL_ARG_INVALID);
  EXPECT_RC(PtlTriggeredGet(values.md, 121, 8, to, kPt, 0, 0, nullptr, ct, 9), PTL_ARG_INVALID);
  EXPECT_RC(PtlTriggeredAtomic(values.md, 0, 8, PTL_ACK_REQ, to, kPt, 0, 0, nullptr, 0, PTL_CSWAP, PTL_INT64_T, ct, 9),
            PTL_ARG_INVALID);
  EXPECT_RC(
      PtlTriggeredFetchAtomic(values.md, 64, values.md, 0, 8, to, kPt, 0, 0, nullptr, 0, PTL_LOR, PTL_DOUBLE, ct, 9),
      PTL_ARG_INVALID);
  EXPECT_RC(
      PtlTriggeredSwap(values.md, 64, values.md, 0, 8, to, kPt, 0, 0, nullptr, 0, nullptr, PTL_SUM, PTL_INT64_T, ct, 9),
      PTL_ARG_INVALID);
}

// 3.16.4: PtlTriggeredFetchAtomic: nothing leaves before the threshold; then operand and result lie where the two
// descriptors say.
TEST_BOTH_WAYS(TriggeredOperations, Section3_16_4__fetch_atomic) {
  const Ni ni(self);
  const Ends ends(ni);
  Values values(ni);
  std::int64_t result[2] = {};
  const ptl_handle_md_t get_md = bind_quiet(ni, result, sizeof result, values.eq);
  self.target([&] { target_values[2] = 30; });
  accept(self, ni);
  self.initiator([&] {
    REQUIRE_OK(PtlTriggeredFetchAtomic(get_md, 8, values.md, 40, 8, ni.target(), kPt, 0, 16, tag(4), 44, PTL_MIN,
                                       PTL_INT64_T, values.ct, 2));
    values.numbers[5] = 20;
    REQUIRE_OK(PtlCTInc(values.ct, {1, 0}));
  });
  self.target([&] { expect_empty(ends.target_eq); });
  self.initiator([&] {
    REQUIRE_OK(PtlCTInc(values.ct, {1, 0}));
    EXPECT_EQ(next_event(values.eq, PTL_EVENT_REPLY).user_ptr, tag(4));
    EXPECT_EQ(result[1], 30);
    EXPECT_EQ(result[0], 0);
  });
  self.target([&] {
    const ptl_event_t event = next_event(ends.target_eq, PTL_EVENT_FETCH_ATOMIC);
    EXPECT_EQ(event.hdr_data, 44u);
    EXPECT_EQ(event.remote_offset, 16u);
    EXPECT_EQ(target_values[2], 20);
  });
}

// 3.16.5: PtlTriggeredSwap: the same for a swap of several items, and for conditional ones, of which the second finds
// what the first has left.
TEST_BOTH_WAYS(TriggeredOperations, Section3_16_5__swap) {
  const Ni ni(self);
  const Ends ends(ni);
  Values values(ni);
  self.target([&] {
    for (int i = 0; i < 4; ++i) target_values[i] = 10 + i;
  });
  accept(self, ni);
  self.initiator([&] {
    const std::int64_t expected = 51;
    const std::int64_t mask = 0xf0;
    const ptl_process_t to = ni.target();
    const auto type = PTL_INT64_T;
    REQUIRE_OK(PtlTriggeredSwap(values.md, 64, values.md, 0, 32, to, kPt, 0, 0, tag(1), 0, nullptr, PTL_SWAP, type,
                                values.ct, 1));
    REQUIRE_OK(PtlTriggeredSwap(values.md, 96, values.md, 32, 8, to, kPt, 0, 8, tag(2), 0, &expected, PTL_CSWAP, type,
                                values.ct, 2));
    REQUIRE_OK(PtlTriggeredSwap(values.md, 104, values.md, 40, 8, to, kPt, 0, 8, tag(3), 0, &mask, PTL_MSWAP, type,
                                values.ct, 3));
    for (int i = 0; i < 4; ++i) values.numbers[i] = 50 + i;
    values.numbers[4] = 0x77;
    values.numbers[5] = 0x11;
    REQUIRE_OK(PtlCTSet(values.ct, {3, 0}));
    std::vector<void*> user_ptrs;
    for (int i = 0; i < 3; ++i) user_ptrs.push_back(next_event(values.eq, PTL_EVENT_REPLY).user_ptr);
    std::sort(user_ptrs.begin(), user_ptrs.end());  // Replies "are never required to be ordered" (3.10.1).
    EXPECT_EQ(user_ptrs, (std::vector<void*>{tag(1), tag(2), tag(3)}));
    for (int i = 0; i < 4; ++i) EXPECT_EQ(values.numbers[8 + i], 10 + i);
    EXPECT_EQ(values.numbers[12], 51);
    EXPECT_EQ(values.numbers[13], 0x77);
  });
  self.target([&] {
    EXPECT_EQ(target_values[0], 50);
    EXPECT_EQ(target_values[1], 0x17);
  });
}

// Silent in the spec, and an error of the program: what an operation needs was freed before its threshold. It does
// nothing then, also not to an object in the place of the freed one, and what comes after it runs.
TEST_PROCESSES(1, TriggeredOperations, Section3_16__objects_freed_before_it_runs) {
  ptl_ni_limits_t wanted = generous_limits();
  wanted.max_triggered_ops = 8;
  const Ni ni(self, kMatching, &wanted);
  const Ends ends(ni);
  append(ni, me_of(ni, target_values, sizeof target_values));
  Values values(ni);
  const ptl_process_t to = ni.target();
  for (ptl_size_t round = 1; round <= 10; ++round) {
    const ptl_handle_ct_t freed_ct = alloc_ct(ni);
    const ptl_handle_md_t freed_md = bind_md(ni, md_of(values.numbers, 64, values.eq));
    const auto sum = PTL_SUM;
    const auto type = PTL_INT64_T;
    REQUIRE_OK(PtlTriggeredCTInc(freed_ct, {1, 0}, values.ct, round));
    REQUIRE_OK(PtlTriggeredCTSet(freed_ct, {7, 7}, values.ct, round));
    REQUIRE_OK(PtlTriggeredPut(freed_md, 0, 8, PTL_ACK_REQ, to, kPt, 0, 0, nullptr, 0, values.ct, round));
    REQUIRE_OK(PtlTriggeredGet(freed_md, 0, 8, to, kPt, 0, 0, nullptr, values.ct, round));
    REQUIRE_OK(
        PtlTriggeredFetchAtomic(freed_md, 8, values.md, 0, 8, to, kPt, 0, 0, nullptr, 0, sum, type, values.ct, round));
    REQUIRE_OK(
        PtlTriggeredFetchAtomic(values.md, 8, freed_md, 0, 8, to, kPt, 0, 0, nullptr, 0, sum, type, values.ct, round));
    REQUIRE_OK(PtlTriggeredPut(values.md, 0, 8, PTL_ACK_REQ, to, kPt, 0, 0, nullptr, round, values.ct, round));
    REQUIRE_OK(PtlCTFree(freed_ct));
    REQUIRE_OK(PtlMDRelease(freed_md));
    const ptl_handle_ct_t new_ct = alloc_ct(ni);
    const ptl_handle_md_t new_md = bind_md(ni, md_of(values.numbers, 64, values.eq));
    REQUIRE_OK(PtlCTInc(values.ct, {1, 0}));
    next_event(values.eq, PTL_EVENT_ACK);
    EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT).hdr_data, round);
    expect_empty(ends.target_eq);
    expect_empty(values.eq);
    EXPECT_EQ(count_of(new_ct).success, 0u);
    EXPECT_EQ(count_of(new_ct).failure, 0u);
    REQUIRE_OK(PtlCTFree(new_ct));
    REQUIRE_OK(PtlMDRelease(new_md));
  }
}

// C.1, 3.10.1: PTL_MD_UNRELIABLE is for puts without acknowledgment, also for triggered ones.
TEST_PROCESSES(1, TriggeredOperations, Section3_16_1__unreliable_descriptor) {
  const Ni ni(self);
  Values values(ni);
  const ptl_handle_md_t md = bind_md(ni, md_of(values.numbers, 64, values.eq, PTL_CT_NONE, PTL_MD_UNRELIABLE));
  const auto rc = [&](ptl_ack_req_t ack) {
    return PtlTriggeredPut(md, 0, 8, ack, ni.target(), kPt, 0, 0, nullptr, 0, values.ct, 9);
  };
  for (ptl_ack_req_t ack : {PTL_ACK_REQ, PTL_CT_ACK_REQ, PTL_OC_ACK_REQ}) EXPECT_RC(rc(ack), PTL_ARG_INVALID) << ack;
  EXPECT_RC(rc(PTL_NO_ACK_REQ), PTL_OK);
}
