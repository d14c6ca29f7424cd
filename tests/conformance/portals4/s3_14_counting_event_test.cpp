// Portals 4.3, 3.14: counting events. What counts is tested with the MD (3.10) and the entries (3.12.1).
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "../harness/fixture.h"
#include "tests/support/eventually.h"

using namespace conformance;

PORTALS_SUITE(CountingEvent);

namespace {

void expect_count(ptl_handle_ct_t ct, ptl_size_t success, ptl_size_t failure) {
  const ptl_ct_event_t value = count_of(ct);
  EXPECT_EQ(value.success, success);
  EXPECT_EQ(value.failure, failure);
}

}  // namespace

// 3.14.2: "A newly allocated counting event will have both the success and failure counts initialized to zero."
TEST_PROCESSES(1, CountingEvent, Section3_14_2__starts_at_zero) {
  const Ni ni(self);
  for (int i = 0; i < 3; ++i) {
    const ptl_handle_ct_t ct = alloc_ct(ni);
    expect_count(ct, 0, 0);
    REQUIRE_OK(PtlCTSet(ct, {7, 8}));
    REQUIRE_OK(PtlCTFree(ct));  // The next one may get the same place.
  }
}

// 3.14.8, 3.14.9: "The counting event must be updated before returning"; what PtlCTGet sees of it may be late.
TEST_PROCESSES(1, CountingEvent, Section3_14_8__set_and_inc) {
  const Ni ni(self);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  const ptl_handle_ct_t other = alloc_ct(ni);
  REQUIRE_OK(PtlCTInc(ct, {3, 0}));
  wait_for_counts(ct, 3, 0);
  REQUIRE_OK(PtlCTInc(ct, {0, 4}));
  wait_for_counts(ct, 3, 4);
  REQUIRE_OK(PtlCTInc(ct, {0, 0}));
  expect_count(ct, 3, 4);
  REQUIRE_OK(PtlCTSet(ct, {1000000000000u, 9}));
  wait_for_counts(ct, 1000000000000u, 9);
  expect_count(ct, 1000000000000u, 9);
  expect_count(other, 0, 0);
}

// 3.14: counters "follow the 2^n modulo behavior for integer arithmetic".
TEST_PROCESSES(1, CountingEvent, Section3_14__arithmetic_is_modulo_2_to_the_64) {
  const Ni ni(self);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  REQUIRE_OK(PtlCTSet(ct, {PTL_SIZE_MAX, 0}));
  wait_for_counts(ct, PTL_SIZE_MAX, 0);
  REQUIRE_OK(PtlCTInc(ct, {6, 0}));
  for (int i = 0; i < 1000000 && count_of(ct).success != 5; ++i) {
  }
  expect_count(ct, 5, 0);
  // Failures, too, and what a triggered operation adds (3.16.6).
  REQUIRE_OK(PtlCTSet(ct, {PTL_SIZE_MAX - 1, PTL_SIZE_MAX}));
  REQUIRE_OK(PtlCTInc(ct, {0, 1}));
  wait_for_counts(ct, PTL_SIZE_MAX - 1, 0);
  const ptl_handle_ct_t trigger = alloc_ct(ni);
  REQUIRE_OK(PtlTriggeredCTInc(ct, {3, 0}, trigger, PTL_SIZE_MAX));
  REQUIRE_OK(PtlCTInc(trigger, {PTL_SIZE_MAX, 0}));
  wait_for_counts(ct, 1, 0);
  REQUIRE_OK(PtlCTInc(trigger, {1, 0}));
  wait_for_counts(trigger, 0, 0);
}

// 3.14.6: "returns when either the success field is greater than or equal to the test value or when the failure field
// is non-zero"; on success event is the current value.
TEST_PROCESSES(1, CountingEvent, Section3_14_6__wait_that_is_met_already) {
  const Ni ni(self);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  ptl_ct_event_t value{77, 77};
  EXPECT_RC(PtlCTWait(ct, 0, &value), PTL_OK);
  EXPECT_EQ(value.success, 0u);
  EXPECT_EQ(value.failure, 0u);
  REQUIRE_OK(PtlCTSet(ct, {5, 0}));
  for (ptl_size_t test : {1u, 5u}) {
    EXPECT_RC(PtlCTWait(ct, test, &value), PTL_OK);
    EXPECT_EQ(value.success, 5u);
  }
  REQUIRE_OK(PtlCTSet(ct, {5, 1}));
  EXPECT_RC(PtlCTWait(ct, 1000, &value), PTL_OK);
  EXPECT_EQ(value.success, 5u);
  EXPECT_EQ(value.failure, 1u);
}

// 3.14.6: "All threads that are waiting on a single counting event with a given test value will return".
TEST_BOTH_WAYS(CountingEvent, Section3_14_6__all_waiting_threads_return) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  std::vector<std::thread> threads;
  self.target([&] {
    ptl_me_t me = me_of(ni, nullptr, 0, PTL_ME_EVENT_CT_COMM);
    me.ct_handle = ct;
    append(ni, me);
    std::atomic<int> started{0};
    for (ptl_size_t i = 0; i < 4; ++i)
      threads.emplace_back([ct, i, &started] {
        ptl_ct_event_t value{};
        ++started;
        EXPECT_RC(PtlCTWait(ct, 2 + i / 2, &value), PTL_OK);
        EXPECT_GE(value.success, 2 + i / 2);
      });
    while (started < 4) std::this_thread::yield();
  });
  self.initiator([&] {
    for (int i = 0; i < 3; ++i) put_and_wait(ends, ni.target(), {.length = 8});
  });
  for (std::thread& thread : threads) thread.join();
}

// 3.14.6: "will return from PtlCTWait() when that test value is reached", also if it is set back at once, as who uses a
// counter again and again lets a triggered operation do (3.16.7). 3.14.7: a poll returns when a wait would.
TEST_PROCESSES(1, CountingEvent, Section3_14_6__value_that_is_set_back_at_once_was_reached) {
  const Ni ni(self);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  const ptl_handle_ct_t other = alloc_ct(ni);
  std::atomic<int> waiting{2};
  std::thread waiter([&] {
    ptl_ct_event_t value{};
    EXPECT_RC(PtlCTWait(ct, 2, &value), PTL_OK);
    EXPECT_EQ(value.success, 2u);
    --waiting;
  });
  std::thread poller([&] {
    const std::array<ptl_handle_ct_t, 2> both{other, ct};
    const std::array<ptl_size_t, 2> tests{1, 2};
    ptl_ct_event_t value{};
    unsigned int which = 0;
    EXPECT_RC(PtlCTPoll(both.data(), tests.data(), 2, PTL_TIME_FOREVER, &value, &which), PTL_OK);
    EXPECT_EQ(value.success, 2u);
    EXPECT_EQ(which, 1u);
    --waiting;
  });
  const auto until = std::chrono::steady_clock::now() + portofu::kLongestWait;
  while (waiting > 0 && std::chrono::steady_clock::now() < until) {  // They may not have begun to wait at first.
    REQUIRE_OK(PtlTriggeredCTSet(ct, {0, 0}, ct, 2));
    REQUIRE_OK(PtlCTInc(ct, {2, 0}));
    EXPECT_EQ(count_of(ct).success, 0u);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(waiting, 0) << "somebody waits for what was reached";
  if (waiting > 0) PtlAbort();
  waiter.join();
  poller.join();
}

// 3.14.6: a failure wakes a waiter.
TEST_PROCESSES(1, CountingEvent, Section3_14_6__failure_wakes_the_waiter) {
  const Ni ni(self);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  std::atomic<bool> started{false};
  std::thread waiter([&] {
    ptl_ct_event_t value{};
    started = true;
    EXPECT_RC(PtlCTWait(ct, 100, &value), PTL_OK);
    EXPECT_EQ(value.failure, 2u);
  });
  while (!started) std::this_thread::yield();
  REQUIRE_OK(PtlCTInc(ct, {0, 2}));
  waiter.join();
}

// 3.14.7: "the counting event returned must be from the first counting event in ct_handles which has reached the
// threshold"; PTL_CT_NONE_REACHED; a failure counts as reached.
TEST_PROCESSES(1, CountingEvent, Section3_14_7__poll) {
  const Ni ni(self);
  const ptl_handle_ct_t cts[3] = {alloc_ct(ni), alloc_ct(ni), alloc_ct(ni)};
  const ptl_size_t tests[3] = {5, 6, 7};
  ptl_ct_event_t value{};
  unsigned int which = 77;
  EXPECT_RC(PtlCTPoll(cts, tests, 3, 0, &value, &which), PTL_CT_NONE_REACHED);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_RC(PtlCTPoll(cts, tests, 3, 30, &value, &which), PTL_CT_NONE_REACHED);
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(29));
  REQUIRE_OK(PtlCTSet(cts[2], {7, 0}));
  REQUIRE_OK(PtlCTSet(cts[0], {4, 0}));
  EXPECT_RC(PtlCTPoll(cts, tests, 3, kPatienceMs, &value, &which), PTL_OK);
  EXPECT_EQ(which, 2u);
  EXPECT_EQ(value.success, 7u);
  REQUIRE_OK(PtlCTSet(cts[1], {100, 0}));
  wait_for_count(cts[1], 100);
  EXPECT_RC(PtlCTPoll(cts, tests, 3, 0, &value, &which), PTL_OK);
  EXPECT_EQ(which, 1u);
  EXPECT_EQ(value.success, 100u);
  REQUIRE_OK(PtlCTInc(cts[0], {0, 1}));
  wait_for_counts(cts[0], 4, 1);
  EXPECT_RC(PtlCTPoll(cts, tests, 3, 0, &value, &which), PTL_OK);
  EXPECT_EQ(which, 0u);
  EXPECT_EQ(value.success, 4u);
  EXPECT_EQ(value.failure, 1u);
}

// 3.14.7: counters of "different logical network interfaces"; blocks until one of them gets there.
TEST_BOTH_WAYS(CountingEvent, Section3_14_7__poll_across_logical_interfaces) {
  const Ni matching(self, kMatching);
  const Ni plain(self, kNonMatching);
  const Ends plain_ends(plain);
  const ptl_handle_ct_t cts[2] = {alloc_ct(matching), alloc_ct(plain)};
  const ptl_size_t tests[2] = {1, 1};
  self.target([&] {
    ptl_le_t le = le_of(nullptr, 0, PTL_LE_EVENT_CT_COMM);
    le.ct_handle = cts[1];
    append(plain, le);
  });
  self.initiator([&] { put_and_wait(plain_ends, plain.target(), {.length = 1}); });
  self.target([&] {
    ptl_ct_event_t value{};
    unsigned int which = 77;
    EXPECT_RC(PtlCTPoll(cts, tests, 2, kPatienceMs, &value, &which), PTL_OK);
    EXPECT_EQ(which, 1u);
    EXPECT_EQ(value.success, 1u);
  });
}

// 3.14: one counter may be named by an MD and by entries: "the total number of operations".
TEST_BOTH_WAYS(CountingEvent, Section3_14__counter_is_shared) {
  const Ni ni(self);
  Ends ends(ni);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  const ptl_handle_md_t md =
      bind_md(ni, md_of(ends.data.data(), 64, ends.source_eq, ct, PTL_MD_EVENT_SEND_DISABLE | PTL_MD_EVENT_CT_ACK));
  self.target([&] {
    for (ptl_match_bits_t bits : {0u, 1u}) {
      ptl_me_t me = me_of(ni, nullptr, 0, PTL_ME_EVENT_CT_COMM);
      me.ct_handle = ct;
      me.match_bits = bits;
      append(ni, me);
    }
  });
  self.initiator([&] {
    for (ptl_match_bits_t bits : {0u, 1u, 0u}) {
      put(md, ni.target(), {.length = 8, .match_bits = bits});
      next_event(ends.source_eq, PTL_EVENT_ACK);
    }
  });
  self.everywhere([&] {
    const ptl_size_t expected = self.size() == 1 ? 6 : 3;
    EXPECT_EQ(wait_for_count(ct, expected).success, expected);
  });
}

// 3.14.3: freed, the handle "stops being valid".
TEST_PROCESSES(1, CountingEvent, Section3_14_3__free) {
  const Ni ni(self);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  const ptl_handle_ct_t kept = alloc_ct(ni);
  EXPECT_RC(PtlCTFree(ct), PTL_OK);
  ptl_ct_event_t value{};
  EXPECT_RC(PtlCTGet(ct, &value), PTL_ARG_INVALID);
  EXPECT_RC(PtlCTFree(ct), PTL_ARG_INVALID);
  EXPECT_RC(PtlCTGet(kept, &value), PTL_OK);
}

// openmpi.md C4: "CT increments only after the data is in memory".
TEST_BOTH_WAYS(CountingEvent, Section3_14__data_is_in_memory_when_it_is_counted) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  std::vector<unsigned char> memory(200000);
  std::vector<unsigned char> out = pattern(memory.size(), 3);
  const ptl_handle_md_t md = bind_quiet(ni, out.data(), out.size(), ends.source_eq);
  self.target([&] {
    ptl_me_t me = me_of(ni, memory.data(), memory.size(), PTL_ME_EVENT_CT_COMM);
    me.ct_handle = ct;
    append(ni, me);
  });
  ptl_size_t round = 0;
  for (ptl_size_t length : {8u, 100u, 5000u, 200000u}) {
    ++round;
    if (self.is_initiator()) put(md, ni.target(), {.length = length});
    if (self.is_target()) {
      wait_for_count(ct, round);
      EXPECT_TRUE(std::equal(memory.begin(), memory.begin() + static_cast<std::ptrdiff_t>(length), out.begin()));
      std::fill(memory.begin(), memory.end(), 0);
    }
    self.barrier();
  }
}

// 3.14.1: "both a count of succeeding events and a count of failing events", independent of each other.
TEST_PROCESSES(1, CountingEvent, Section3_14_1__two_counts) {
  const Ni ni(self);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  for (ptl_size_t i = 1; i <= 5; ++i) {
    REQUIRE_OK(PtlCTInc(ct, {2, 0}));
    REQUIRE_OK(PtlCTInc(ct, {0, 3}));
    wait_for_counts(ct, 2 * i, 3 * i);
    expect_count(ct, 2 * i, 3 * i);
  }
}

// 3.14.5: "used to obtain the current value of a counting event": the value stays what it is.
TEST_BOTH_WAYS(CountingEvent, Section3_14_5__get_reads_and_changes_nothing) {
  const Ni ni(self);
  const Ends ends(ni);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  self.target([&] {
    ptl_me_t me = me_of(ni, nullptr, 0, PTL_ME_EVENT_CT_COMM);
    me.ct_handle = ct;
    append(ni, me);
    for (int i = 0; i < 3; ++i) expect_count(ct, 0, 0);
  });
  self.initiator([&] { put_and_wait(ends, ni.target(), {.length = 8}); });
  self.target([&] {
    wait_for_counts(ct, 1, 0);
    for (int i = 0; i < 3; ++i) expect_count(ct, 1, 0);
  });
}

// 3.14.9: "the increment field can only be non-zero for either the success or failure field"; "they will be interpreted
// as very large positive numbers" (discussion of negative ones).
TEST_PROCESSES(1, CountingEvent, Section3_14_9__increments_one_of_the_two) {
  const Ni ni(self);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  EXPECT_RC(PtlCTInc(ct, {5, 0}), PTL_OK);
  EXPECT_RC(PtlCTInc(ct, {1, 1}), PTL_ARG_INVALID);
  EXPECT_RC(PtlTriggeredCTInc(ct, {1, 1}, ct, 100), PTL_ARG_INVALID);
  expect_count(ct, 5, 0);
  EXPECT_RC(PtlCTInc(ct, {static_cast<ptl_size_t>(-2), 0}), PTL_OK);
  for (int i = 0; i < 1000000 && count_of(ct).success != 3; ++i) {
  }
  expect_count(ct, 3, 0);
}

// 3.14.7 and lib/portals4/README.md: a poll of no counters finds nothing, at once; one wrong handle among others is an
// error.
TEST_PROCESSES(1, CountingEvent, Section3_14_7__poll_of_no_counters_and_of_a_wrong_one) {
  const Ni ni(self);
  ptl_ct_event_t value{};
  unsigned int which = 77;
  for (ptl_time_t timeout : {ptl_time_t{0}, ptl_time_t{1000}, ptl_time_t{PTL_TIME_FOREVER}})
    EXPECT_RC(PtlCTPoll(nullptr, nullptr, 0, timeout, &value, &which), PTL_CT_NONE_REACHED);
  const ptl_handle_ct_t cts[2] = {alloc_ct(ni), PTL_CT_NONE};
  const ptl_size_t tests[2] = {1, 1};
  EXPECT_RC(PtlCTPoll(cts, tests, 2, PTL_TIME_FOREVER, &value, &which), PTL_ARG_INVALID);
  EXPECT_EQ(which, 77u);
}

// How often this thread went to sleep by itself.
long voluntary_switches() {
  struct rusage usage = {};
  if (getrusage(RUSAGE_THREAD, &usage) != 0) stop("getrusage");
  return usage.ru_nvcsw;
}

// Note 14: "PtlCTGet() should remain as close to a pair of loads in performance as possible": who has spun on it for a
// while, and then does other things, does not find it asleep.
TEST_PROCESSES(1, CountingEvent, Section3_14_5__get_is_quick_for_who_does_other_things) {
  const Ni ni(self);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  using Clock = std::chrono::steady_clock;
  const auto spend = [](std::chrono::microseconds time, const auto& work) {
    for (const auto end = Clock::now() + time; Clock::now() < end;) work();
  };
  int slept = 0;
  for (int i = 0; i < 15; ++i) {
    spend(std::chrono::milliseconds(5), [ct] { count_of(ct); });
    spend(std::chrono::microseconds(500), [] {});
    const long before = voluntary_switches();
    count_of(ct);
    slept += voluntary_switches() != before ? 1 : 0;
  }
  EXPECT_LE(slept, 7) << "of 15 calls";
}
