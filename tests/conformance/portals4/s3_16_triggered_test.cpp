// Portals 4.3, 3.16: triggered operations: when they run and in which order. Each operation with its parameters, and
// cancelling: s3_16_triggered_operations_test.cpp.
#include <algorithm>

#include "../harness/fixture.h"

using namespace conformance;

PORTALS_SUITE(Triggered);

namespace {

// A triggered put of no data whose hdr_data tells which one it was.
void triggered_put(const Ni& ni, const Ends& ends, ptl_handle_ct_t ct, ptl_size_t threshold, ptl_hdr_data_t number) {
  REQUIRE_OK(PtlTriggeredPut(ends.md, 0, 0, PTL_ACK_REQ, ni.target(), kPt, 0, 0, nullptr, number, ct, threshold));
}

void accept_everything(Process& self, const Ni& ni) {
  self.target([&] { append(ni, me_of(ni, nullptr, 0)); });
}

void expect_puts(const Ends& ends, const std::vector<ptl_hdr_data_t>& numbers) {
  for (ptl_hdr_data_t number : numbers) EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT).hdr_data, number);
  expect_empty(ends.target_eq);
}

// Something that comes later than all that has been triggered so far.
void settle(const Ni& ni, const Ends& ends, ptl_hdr_data_t number, int acks_before) {
  put(ends.md, ni.target(), {.hdr_data = number});
  for (int i = 0; i <= acks_before; ++i) next_event(ends.source_eq, PTL_EVENT_ACK);
}

}  // namespace

// 3.16: "When the success field of the count ... reaches or exceeds the threshold, the operation proceeds".
TEST_BOTH_WAYS(Triggered, Section3_16__runs_when_the_threshold_is_reached) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  accept_everything(self, ni);
  self.initiator([&] {
    triggered_put(ni, ends, ct, 3, 33);
    settle(ni, ends, 1, 0);
    REQUIRE_OK(PtlCTInc(ct, {1, 0}));
    REQUIRE_OK(PtlCTInc(ct, {1, 0}));
    settle(ni, ends, 2, 0);
    REQUIRE_OK(PtlCTInc(ct, {1, 0}));
    settle(ni, ends, 3, 1);
    REQUIRE_OK(PtlCTInc(ct, {1, 0}));
    settle(ni, ends, 4, 0);
  });
  self.target([&] { expect_puts(ends, {1, 2, 33, 3, 4}); });
}

// 3.16: "that operation is immediately processed", however many there are; 2.7: a put that is sent later is matched
// later.
TEST_BOTH_WAYS(Triggered, Section3_16__is_before_what_is_sent_when_the_threshold_is_reached) {
  constexpr ptl_hdr_data_t kMany = 300;
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_handle_ct_t first = alloc_ct(ni);
  const ptl_handle_ct_t second = alloc_ct(ni);
  accept_everything(self, ni);
  self.initiator([&] {
    put_and_wait(ends, ni.target(), {.hdr_data = kMany + 1});  // From now on they know each other.
    REQUIRE_OK(PtlTriggeredCTInc(second, {kMany, 0}, first, 1));
    for (ptl_hdr_data_t number = 0; number < kMany; ++number) triggered_put(ni, ends, second, 1 + number, number);
    REQUIRE_OK(PtlCTInc(first, {1, 0}));
    settle(ni, ends, kMany, kMany);
  });
  self.target([&] {
    std::vector<ptl_hdr_data_t> numbers{kMany + 1};
    for (ptl_hdr_data_t number = 0; number <= kMany; ++number) numbers.push_back(number);
    expect_puts(ends, numbers);
  });
}

// 3.16: "success field of the count (not including failures)".
TEST_BOTH_WAYS(Triggered, Section3_16__failures_do_not_trigger) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  accept_everything(self, ni);
  self.initiator([&] {
    triggered_put(ni, ends, ct, 2, 22);
    REQUIRE_OK(PtlCTInc(ct, {0, 5}));
    REQUIRE_OK(PtlCTInc(ct, {1, 0}));
    REQUIRE_OK(PtlCTSet(ct, {1, 100}));
    settle(ni, ends, 1, 0);
    REQUIRE_OK(PtlCTInc(ct, {1, 0}));
    next_event(ends.source_eq, PTL_EVENT_ACK);
  });
  self.target([&] { expect_puts(ends, {1, 22}); });
}

// 3.16: "If a counting event has already reached the threshold when a triggered operation is created, that operation is
// immediately processed"; so is one with threshold 0 (openmpi.md C1).
TEST_BOTH_WAYS(Triggered, Section3_16__runs_at_once_if_the_threshold_was_reached_before) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  accept_everything(self, ni);
  self.initiator([&] {
    triggered_put(ni, ends, ct, 0, 10);
    next_event(ends.source_eq, PTL_EVENT_ACK);
    REQUIRE_OK(PtlCTSet(ct, {5, 0}));
    for (ptl_size_t threshold : {5u, 3u, 0u}) {
      triggered_put(ni, ends, ct, threshold, 20 + threshold);
      next_event(ends.source_eq, PTL_EVENT_ACK);
    }
  });
  self.target([&] { expect_puts(ends, {10, 25, 23, 20}); });
}

// 3.16: "Triggered operations are processed in order of threshold values, even if the counting event is increased by a
// large amount at once"; note 16: equal thresholds "in the order that they are issued".
TEST_BOTH_WAYS(Triggered, Section3_16__order_of_thresholds_then_order_of_calls) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  accept_everything(self, ni);
  self.initiator([&] {
    const ptl_size_t thresholds[] = {5, 1, 3, 5, 2, 3, 4, 1, 5, 100};
    ptl_hdr_data_t call = 0;
    for (ptl_size_t threshold : thresholds) triggered_put(ni, ends, ct, threshold, 100 * threshold + call++);
    REQUIRE_OK(PtlCTInc(ct, {50, 0}));
    for (int i = 0; i < 9; ++i) next_event(ends.source_eq, PTL_EVENT_ACK);
    settle(ni, ends, 1, 0);
  });
  self.target([&] { expect_puts(ends, {101, 107, 204, 302, 305, 406, 500, 503, 508, 1}); });
}

// The same with many, and with PtlCTSet as the jump (3.14.8: triggers what has then reached its threshold).
TEST_BOTH_WAYS(Triggered, Section3_16__jump_over_many_thresholds) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  accept_everything(self, ni);
  self.initiator([&] {
    for (ptl_size_t i = 0; i < 500; ++i) {
      const ptl_size_t threshold = 1 + (i * 337) % 500;  // A permutation of 1 .. 500.
      triggered_put(ni, ends, ct, threshold, threshold);
    }
    REQUIRE_OK(PtlCTSet(ct, {500, 0}));
    for (int i = 0; i < 500; ++i) next_event(ends.source_eq, PTL_EVENT_ACK);
  });
  self.target([&] {
    for (ptl_hdr_data_t i = 1; i <= 500; ++i) ASSERT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT).hdr_data, i);
  });
}

// 3.16.6: PtlTriggeredCTInc chains counters; ct_handle may be trig_ct_handle itself (openmpi.md, coll).
TEST_BOTH_WAYS(Triggered, Section3_16_6__operation_raises_its_own_counter) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  accept_everything(self, ni);
  self.initiator([&] {
    triggered_put(ni, ends, ct, 2, 2);
    REQUIRE_OK(PtlTriggeredCTInc(ct, {1, 0}, ct, 1));
    REQUIRE_OK(PtlTriggeredCTInc(ct, {3, 0}, ct, 2));
    triggered_put(ni, ends, ct, 5, 5);
    triggered_put(ni, ends, ct, 4, 4);
    triggered_put(ni, ends, ct, 6, 6);
    REQUIRE_OK(PtlCTInc(ct, {1, 0}));  // 1 -> 2 -> 5.
    for (int i = 0; i < 3; ++i) next_event(ends.source_eq, PTL_EVENT_ACK);
    wait_for_count(ct, 5);
    EXPECT_EQ(count_of(ct).success, 5u);
    settle(ni, ends, 1, 0);
  });
  self.target([&] { expect_puts(ends, {2, 4, 5, 1}); });
}

// 3.16.6: the example of the spec: a put and an increment of B wait on A; a second put waits on B: it comes second.
TEST_BOTH_WAYS(Triggered, Section3_16_6__chain_of_counters) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_handle_ct_t a = alloc_ct(ni);
  const ptl_handle_ct_t b = alloc_ct(ni);
  accept_everything(self, ni);
  self.initiator([&] {
    triggered_put(ni, ends, b, 1, 2);
    triggered_put(ni, ends, a, 7, 1);
    REQUIRE_OK(PtlTriggeredCTInc(b, {1, 0}, a, 7));
    REQUIRE_OK(PtlCTInc(a, {7, 0}));
    for (int i = 0; i < 2; ++i) next_event(ends.source_eq, PTL_EVENT_ACK);
  });
  self.target([&] { expect_puts(ends, {1, 2}); });
}

// 3.16: the counter may belong to an entry: a message triggers the answer without the process (2.1, application bypass:
// the target waits outside of Portals).
TEST_BOTH_WAYS(Triggered, Section3_16__message_triggers_the_answer) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  alloc_pt(ni, ends.target_eq, 0, kOtherPt);
  append(ni, me_of(ni, nullptr, 0), PTL_PRIORITY_LIST, nullptr, kOtherPt);
  const ptl_process_t initiator = ni.id(self.size() - 1);
  self.target([&] {
    ptl_me_t me = me_of(ni, nullptr, 0, PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_COMM_DISABLE);
    me.ct_handle = ct;
    append(ni, me);
    for (ptl_size_t i = 1; i <= 10; ++i)
      REQUIRE_OK(PtlTriggeredPut(ends.md, 0, 0, PTL_NO_ACK_REQ, initiator, kOtherPt, 0, 0, nullptr, i, ct, i));
  });
  self.initiator([&] {
    for (ptl_hdr_data_t i = 1; i <= 10; ++i) {
      put(ends.md, ni.target(), {.ack = PTL_NO_ACK_REQ});
      EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT).hdr_data, i);
    }
  });
}

// 3.16: "it uses the state of the buffer after the threshold condition is met".
TEST_BOTH_WAYS(Triggered, Section3_16__buffer_is_read_when_it_runs) {
  const Ni ni(self);
  Ends ends(ni);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  std::vector<unsigned char> memory(1024);
  self.target([&] { append(ni, me_of(ni, memory.data(), memory.size())); });
  self.initiator([&] {
    REQUIRE_OK(PtlTriggeredPut(ends.md, 0, 16, PTL_ACK_REQ, ni.target(), kPt, 0, 0, nullptr, 0, ct, 1));
    REQUIRE_OK(PtlTriggeredPut(ends.md, 0, 1000, PTL_ACK_REQ, ni.target(), kPt, 0, 16, nullptr, 0, ct, 1));
    std::fill(ends.data.begin(), ends.data.end(), 0x3c);
    REQUIRE_OK(PtlCTInc(ct, {1, 0}));
    for (int i = 0; i < 2; ++i) next_event(ends.source_eq, PTL_EVENT_ACK);
  });
  self.target([&] { EXPECT_EQ(std::count(memory.begin(), memory.end(), 0x3c), 1016); });
}

// 3.16: operations triggered on one counter may run again and again with PtlCTSet back to zero (3.16.7: "a convenient
// mechanism to provide reinitialization of counting events").
TEST_BOTH_WAYS(Triggered, Section3_16_7__triggered_set_starts_over) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  accept_everything(self, ni);
  self.initiator([&] {
    for (ptl_hdr_data_t round = 1; round <= 5; ++round) {
      triggered_put(ni, ends, ct, 2, round);
      REQUIRE_OK(PtlTriggeredCTSet(ct, {0, 0}, ct, 2));
      REQUIRE_OK(PtlCTInc(ct, {1, 0}));
      REQUIRE_OK(PtlCTInc(ct, {1, 0}));
      next_event(ends.source_eq, PTL_EVENT_ACK);
      for (int i = 0; i < 1000000 && count_of(ct).success != 0; ++i) {
      }
      EXPECT_EQ(count_of(ct).success, 0u);
    }
  });
  self.target([&] { expect_puts(ends, {1, 2, 3, 4, 5}); });
}
