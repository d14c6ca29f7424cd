// Portals 4.3, 3.13.5 to 3.13.9: event queues. The fields of events: s3_13_4_event_fields_test.cpp.
#include <atomic>
#include <chrono>
#include <thread>

#include "../harness/fixture.h"
#include "tests/support/eventually.h"

using namespace conformance;

PORTALS_SUITE(EventQueue);

namespace {

// Makes an event in a queue, without communication: a LINK.
void make_event(const Ni& ni, std::uintptr_t number, ptl_pt_index_t pt = kPt) {
  append(ni, me_of(ni, nullptr, 0, kLink), PTL_PRIORITY_LIST, tag(number), pt);
}

std::uintptr_t number(const ptl_event_t& event) { return reinterpret_cast<std::uintptr_t>(event.user_ptr); }

}  // namespace

// 3.13.7: PTL_EQ_EMPTY, and the events in their order, each once.
TEST_PROCESSES(1, EventQueue, Section3_13_7__get_takes_the_next_event) {
  const Ni ni(self);
  const Ends ends(ni);
  ptl_event_t event{};
  EXPECT_RC(PtlEQGet(ends.target_eq, &event), PTL_EQ_EMPTY);
  for (std::uintptr_t i = 1; i <= 10; ++i) make_event(ni, i);
  for (std::uintptr_t i = 1; i <= 10; ++i) {
    int rc = PTL_EQ_EMPTY;
    for (int tries = 0; tries < 1000000 && rc == PTL_EQ_EMPTY; ++tries) rc = PtlEQGet(ends.target_eq, &event);
    EXPECT_RC(rc, PTL_OK);
    EXPECT_EQ(number(event), i);
  }
  EXPECT_RC(PtlEQGet(ends.target_eq, &event), PTL_EQ_EMPTY);
}

// 3.13.8: "can be used to block the calling process or thread until there is a full event in an event queue".
TEST_BOTH_WAYS(EventQueue, Section3_13_8__wait_blocks_until_an_event_comes) {
  const Ni ni(self);
  const Ends ends(ni);
  std::atomic<bool> waiting{false};
  std::thread waiter;
  self.target([&] {
    append(ni, me_of(ni, nullptr, 0), PTL_PRIORITY_LIST, tag(3));
    waiter = std::thread([&] {
      ptl_event_t event{};
      waiting = true;
      EXPECT_RC(PtlEQWait(ends.target_eq, &event), PTL_OK);
      EXPECT_EQ(event.type, PTL_EVENT_PUT);
      EXPECT_EQ(number(event), 3u);
    });
    while (!waiting) std::this_thread::yield();
  });
  self.initiator([&] { put_and_wait(ends, ni.target(), {.length = 8}); });
  if (waiter.joinable()) waiter.join();
}

// 3.13.9: a timeout of 0 polls, another one blocks "for a fixed period".
TEST_PROCESSES(1, EventQueue, Section3_13_9__poll_gives_empty_after_the_timeout) {
  const Ni ni(self);
  const ptl_handle_eq_t eq = alloc_eq(ni);
  ptl_event_t event{};
  unsigned int which = 77;
  EXPECT_RC(PtlEQPoll(&eq, 1, 0, &event, &which), PTL_EQ_EMPTY);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_RC(PtlEQPoll(&eq, 1, 30, &event, &which), PTL_EQ_EMPTY);
  const auto spent = std::chrono::steady_clock::now() - start;
  EXPECT_GE(spent, std::chrono::milliseconds(29));
  EXPECT_LT(spent, std::chrono::milliseconds(2000));
}

// 3.13.9: "If events are available on multiple event queues when PtlEQPoll() is called, the event returned must be from
// the first event queue in eq_handles with an available event"; which is its index.
TEST_PROCESSES(1, EventQueue, Section3_13_9__poll_takes_from_the_first_queue_that_has_an_event) {
  const Ni ni(self);
  ptl_handle_eq_t eqs[4];
  for (ptl_pt_index_t i = 0; i < 4; ++i) {
    eqs[i] = alloc_eq(ni);
    alloc_pt(ni, eqs[i], 0, i);
  }
  const ptl_handle_eq_t last_eq = alloc_eq(ni);
  alloc_pt(ni, last_eq);
  for (int i : {3, 1, 3, 2}) make_event(ni, static_cast<std::uintptr_t>(i), static_cast<ptl_pt_index_t>(i));
  make_event(ni, 9);  // LINK may come a moment after PtlMEAppend; when this one is there, the others are.
  next_event(last_eq, PTL_EVENT_LINK);
  ptl_event_t event{};
  unsigned int which = 77;
  std::vector<unsigned int> order;
  while (PtlEQPoll(eqs, 4, 0, &event, &which) == PTL_OK) {
    EXPECT_EQ(number(event), which);
    order.push_back(which);
  }
  EXPECT_EQ(order, (std::vector<unsigned int>{1, 2, 3, 3}));
}

// 3.13.9: queues "may be from different logical network interfaces" of the same interface.
TEST_BOTH_WAYS(EventQueue, Section3_13_9__poll_across_logical_interfaces) {
  const Ni matching(self, kMatching);
  const Ni plain(self, PTL_NI_NO_MATCHING | PTL_NI_LOGICAL);
  const Ends matching_ends(matching);
  const Ends plain_ends(plain);
  const ptl_handle_eq_t eqs[2] = {matching_ends.target_eq, plain_ends.target_eq};
  self.target([&] {
    append(matching, me_of(matching, nullptr, 0), PTL_PRIORITY_LIST, tag(0));
    append(plain, le_of(nullptr, 0), PTL_PRIORITY_LIST, tag(1));
  });
  for (unsigned int wanted : {1u, 0u, 1u}) {
    self.initiator([&] {
      put_and_wait(wanted == 0 ? matching_ends : plain_ends, wanted == 0 ? matching.target() : plain.target(),
                   {.length = 1});
    });
    self.target([&] {
      ptl_event_t event{};
      unsigned int which = 77;
      REQUIRE_OK(PtlEQPoll(eqs, 2, kPatienceMs, &event, &which));
      EXPECT_EQ(which, wanted);
      EXPECT_EQ(number(event), wanted);
    });
  }
}

// 3.13, 3.13.9: "an event can only be returned to one PtlEQGet(), PtlEQPoll(), or PtlEQWait() call".
TEST_BOTH_WAYS(EventQueue, Section3_13__each_event_goes_to_one_of_several_threads) {
  const Ni ni(self);
  constexpr int kEvents = 2000;
  const Ends ends(ni, 0, 2 * kEvents);
  std::atomic<int> seen[kEvents] = {};
  std::atomic<int> taken{0};
  std::vector<std::thread> threads;
  self.target([&] {
    append(ni, me_of(ni, nullptr, 0));
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&, i] {
        const auto end = std::chrono::steady_clock::now() + portofu::kLongestWait;
        while (taken < kEvents && std::chrono::steady_clock::now() < end) {
          ptl_event_t event{};
          unsigned int which = 0;
          const int rc =
              i % 2 == 0 ? PtlEQPoll(&ends.target_eq, 1, 100, &event, &which) : PtlEQGet(ends.target_eq, &event);
          if (rc == PTL_EQ_EMPTY) {
            std::this_thread::yield();
            continue;
          }
          EXPECT_RC(rc, PTL_OK);
          ++seen[event.hdr_data % kEvents];
          ++taken;
        }
      });
  });
  if (self.is_initiator()) {
    for (ptl_hdr_data_t i = 0; i < kEvents; ++i) {
      put(ends.md, ni.target(), {.length = 8, .hdr_data = i});
      if (i % 100 == 99)
        for (int k = 0; k < 100; ++k) next_event(ends.source_eq, PTL_EVENT_ACK);
    }
  }
  for (std::thread& thread : threads) thread.join();
  self.barrier();
  for (int i = 0; i < kEvents; ++i) EXPECT_EQ(seen[i], self.is_target() ? 1 : 0) << "event " << i;
}

// 3.13.5: "An event queue has room for at least count number of full events."
TEST_PROCESSES(1, EventQueue, Section3_13_5__holds_what_was_asked_for) {
  const Ni ni(self);
  for (ptl_size_t count : {1u, 2u, 7u, 100u, 1000u, 5000u}) {
    const ptl_handle_eq_t eq = alloc_eq(ni, count);
    alloc_pt(ni, eq);
    std::vector<ptl_handle_me_t> entries;
    for (ptl_size_t i = 0; i < count; ++i)
      entries.push_back(append(ni, me_of(ni, nullptr, 0, kLink), PTL_PRIORITY_LIST, tag(i)));
    for (ptl_size_t i = 0; i < count; ++i)
      ASSERT_EQ(number(next_event(eq, PTL_EVENT_LINK)), i) << "of " << count;  // next_event stops at PTL_EQ_DROPPED.
    for (ptl_handle_me_t entry : entries) REQUIRE_OK(PtlMEUnlink(entry));
    REQUIRE_OK(PtlPTFree(ni, kPt));
    REQUIRE_OK(PtlEQFree(eq));
  }
}

// 3.13.5: "If the event queue overflows, older events will be overwritten by new ones"; 3.13.7: PTL_EQ_DROPPED says
// "that at least one full event between this full event and the last full event obtained ... has been dropped". 2.8:
// without flow control "the message will be delivered and any acknowledgment or reply will be generated".
TEST_BOTH_WAYS(EventQueue, Section3_13_5__overflow) {
  const Ni ni(self);
  constexpr ptl_size_t kCount = 8;
  constexpr ptl_hdr_data_t kPuts = 20000;  // More than any implementation adds to a queue of 8.
  const Ends ends(ni, 0, kCount);
  const ptl_handle_ct_t ct = alloc_ct(ni);
  self.target([&] {
    ptl_me_t me = me_of(ni, nullptr, 0, PTL_ME_EVENT_CT_COMM);
    me.ct_handle = ct;
    append(ni, me);
  });
  self.initiator([&] {
    for (ptl_hdr_data_t i = 0; i < kPuts; ++i) {
      put(ends.md, ni.target(), {.length = 0, .hdr_data = i});
      if (i % 100 == 99)
        for (int k = 0; k < 100; ++k) next_event(ends.source_eq, PTL_EVENT_ACK);
    }
  });
  self.target([&] {
    EXPECT_EQ(wait_for_count(ct, kPuts).success, kPuts);
    ptl_event_t event{};
    ptl_hdr_data_t expected = 0;
    ptl_size_t taken = 0;
    int dropped = 0;
    for (int rc = PtlEQGet(ends.target_eq, &event); rc != PTL_EQ_EMPTY; rc = PtlEQGet(ends.target_eq, &event)) {
      EXPECT_TRUE(rc == PTL_OK || rc == PTL_EQ_DROPPED) << name_of_rc(rc);
      EXPECT_EQ(event.type, PTL_EVENT_PUT);
      EXPECT_GE(event.hdr_data, expected);
      EXPECT_EQ(rc == PTL_EQ_DROPPED, event.hdr_data != expected)
          << "event " << event.hdr_data << " after " << expected;
      dropped += rc == PTL_EQ_DROPPED ? 1 : 0;
      expected = event.hdr_data + 1;
      ++taken;
    }
    EXPECT_GE(dropped, 1);
    EXPECT_GE(taken, kCount);
    EXPECT_EQ(expected, kPuts) << "the newest events are kept";
  });
  // It goes on as if nothing had happened.
  self.initiator([&] { put_and_wait(ends, ni.target(), {.length = 0, .hdr_data = 5}); });
  self.target([&] { EXPECT_EQ(next_event(ends.target_eq, PTL_EVENT_PUT).hdr_data, 5u); });
}

// 3.13.8, 3.13.9: PtlEQWait and PtlEQPoll tell of lost events too.
TEST_PROCESSES(1, EventQueue, Section3_13_8__wait_and_poll_tell_of_lost_events) {
  const Ni ni(self);
  const Ends ends(ni, 0, 8);
  append(ni, me_of(ni, nullptr, 0));
  const auto overflow = [&] {
    for (int i = 0; i < 20000; ++i) {
      put(ends.md, ni.target(), {.length = 0});
      if (i % 100 == 99)
        for (int k = 0; k < 100; ++k) next_event(ends.source_eq, PTL_EVENT_ACK);
    }
  };
  ptl_event_t event{};
  unsigned int which = 0;
  overflow();
  EXPECT_RC(PtlEQWait(ends.target_eq, &event), PTL_EQ_DROPPED);
  EXPECT_RC(PtlEQWait(ends.target_eq, &event), PTL_OK);
  while (PtlEQGet(ends.target_eq, &event) != PTL_EQ_EMPTY) {
  }
  overflow();
  EXPECT_RC(PtlEQPoll(&ends.target_eq, 1, PTL_TIME_FOREVER, &event, &which), PTL_EQ_DROPPED);
  EXPECT_EQ(which, 0u);
  EXPECT_RC(PtlEQPoll(&ends.target_eq, 1, PTL_TIME_FOREVER, &event, &which), PTL_OK);
}

// 3.13: "Multiple memory descriptors or portal table entries can share a single event queue."
TEST_BOTH_WAYS(EventQueue, Section3_13__queue_is_shared_by_descriptors_and_portal_table_entries) {
  const Ni ni(self);
  const ptl_handle_eq_t eq = alloc_eq(ni);
  alloc_pt(ni, eq, 0, kPt);
  alloc_pt(ni, eq, 0, kOtherPt);
  const ptl_handle_md_t first = bind_quiet(ni, nullptr, 0, eq);
  const ptl_handle_md_t second = bind_quiet(ni, nullptr, 0, eq);
  self.target([&] {
    append(ni, me_of(ni, nullptr, 0), PTL_PRIORITY_LIST, tag(1), kPt);
    append(ni, me_of(ni, nullptr, 0), PTL_PRIORITY_LIST, tag(2), kOtherPt);
  });
  if (self.is_initiator()) {
    put(first, ni.target(), {.user_ptr = tag(11), .pt = kPt});
    put(second, ni.target(), {.user_ptr = tag(12), .pt = kOtherPt});
  }
  int acks = 0;
  int puts = 0;
  for (int i = 0; i < (self.size() == 1 ? 4 : 2); ++i) {
    const ptl_event_t event = next_event(eq);
    if (event.type == PTL_EVENT_ACK) acks += static_cast<int>(number(event));
    if (event.type == PTL_EVENT_PUT) {
      puts += static_cast<int>(number(event));
      EXPECT_EQ(event.pt_index, number(event) == 1 ? kPt : kOtherPt);
    }
  }
  EXPECT_EQ(acks, self.is_initiator() ? 23 : 0);
  EXPECT_EQ(puts, self.is_target() ? 3 : 0);
  self.barrier();
}

// 3.13.6: a freed queue is gone; 3.4: so is one of which there never was a handle. (Freeing a queue that an MD or a
// portal table entry still uses is left to the user.)
TEST_PROCESSES(1, EventQueue, Section3_13_6__free) {
  const Ni ni(self);
  ptl_event_t event{};
  unsigned int which = 0;
  for (int i = 0; i < 3; ++i) {
    const ptl_handle_eq_t eqs[2] = {alloc_eq(ni), alloc_eq(ni)};
    EXPECT_RC(PtlEQFree(eqs[1]), PTL_OK);
    EXPECT_RC(PtlEQGet(eqs[1], &event), PTL_ARG_INVALID);
    EXPECT_RC(PtlEQPoll(eqs, 2, 0, &event, &which), PTL_ARG_INVALID);
    EXPECT_RC(PtlEQFree(eqs[1]), PTL_ARG_INVALID);
    EXPECT_RC(PtlEQGet(eqs[0], &event), PTL_EQ_EMPTY);
  }
}

// 3.13.9 and lib/portals4/README.md: a poll of no queues at all finds nothing, at once, whatever the timeout.
TEST_PROCESSES(1, EventQueue, Section3_13_9__poll_of_no_queues) {
  const Ni ni(self);
  const ptl_handle_eq_t eq = alloc_eq(ni);
  ptl_event_t event{};
  unsigned int which = 77;
  for (ptl_time_t timeout : {ptl_time_t{0}, ptl_time_t{1000}, ptl_time_t{PTL_TIME_FOREVER}}) {
    EXPECT_RC(PtlEQPoll(&eq, 0, timeout, &event, &which), PTL_EQ_EMPTY);
    EXPECT_RC(PtlEQPoll(nullptr, 0, timeout, &event, &which), PTL_EQ_EMPTY);
  }
  EXPECT_EQ(which, 77u);
}

// 3.13.5: "insufficient memory to allocate the event queue"; a count of zero is a hint like any other.
TEST_PROCESSES(1, EventQueue, Section3_13_5__counts_from_none_to_all) {
  const Ni ni(self);
  ptl_handle_eq_t eq = PTL_INVALID_HANDLE;
  EXPECT_RC(PtlEQAlloc(ni, PTL_SIZE_MAX, &eq), PTL_NO_SPACE);
  EXPECT_RC(PtlEQAlloc(ni, 0, &eq), PTL_OK);
  alloc_pt(ni, eq);
  make_event(ni, 1);
  EXPECT_EQ(number(next_event(eq, PTL_EVENT_LINK)), 1u);
}
