// Portals 4.3, 2.9: "Every function in the Portals API is atomic with respect to both other threads and external
// operations"; "calls into the Portals API are thread safe".
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "../harness/fixture.h"

using namespace conformance;

PORTALS_SUITE(Threads);

namespace {

constexpr int kThreads = 4;

// Runs body(0) .. body(kThreads - 1) at once. EXPECT_* only in there, and no helper that stops.
void in_threads(const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

// One event of a queue that belongs to the calling thread alone; false if none comes.
bool take_event(ptl_handle_eq_t eq, ptl_event_t* event) {
  unsigned int which = 0;
  const int rc = PtlEQPoll(&eq, 1, kPatienceMs, event, &which);
  EXPECT_RC(rc, PTL_OK);
  return rc == PTL_OK;
}

}  // namespace

// Each thread sends with its own descriptor and queue, and the target's counter sees all of them.
TEST_BOTH_WAYS(Threads, Section2_9__threads_send_at_once) {
  const Ni ni(self);
  constexpr int kRounds = 300;
  const ptl_handle_ct_t ct = alloc_ct(ni);
  std::atomic<std::uint64_t> sum{0};
  alignas(64) std::uint64_t target_values[kThreads] = {};
  alloc_pt(ni, PTL_EQ_NONE);
  self.target([&] {
    ptl_me_t me = me_of(ni, target_values, sizeof target_values, PTL_ME_EVENT_CT_COMM);
    me.ct_handle = ct;
    append(ni, me);
  });
  std::vector<ptl_handle_eq_t> eqs;
  for (int i = 0; i < kThreads; ++i) eqs.push_back(alloc_eq(ni));
  self.initiator([&] {
    in_threads([&](int i) {
      std::uint64_t values[2] = {1, 0};
      const ptl_md_t described = md_of(values, 16, eqs[i], PTL_CT_NONE, PTL_MD_EVENT_SEND_DISABLE);
      ptl_handle_md_t md = PTL_INVALID_HANDLE;
      EXPECT_RC(PtlMDBind(ni, &described, &md), PTL_OK);
      ptl_event_t event{};
      for (int round = 0; round < kRounds; ++round) {
        EXPECT_RC(PtlAtomic(md, 0, 8, PTL_ACK_REQ, ni.target(), kPt, 0, 8 * i, nullptr, 0, PTL_SUM, PTL_UINT64_T),
                  PTL_OK);
        EXPECT_RC(PtlGet(md, 8, 8, ni.target(), kPt, 0, 8 * i, nullptr), PTL_OK);
        if (!take_event(eqs[i], &event) || !take_event(eqs[i], &event)) return;
        EXPECT_EQ(values[1], static_cast<std::uint64_t>(round + 1)) << "a get sees the atomic before it (2.7.1)";
      }
      sum += values[1];
      EXPECT_RC(PtlMDRelease(md), PTL_OK);
    });
    EXPECT_EQ(sum, static_cast<std::uint64_t>(kThreads * kRounds));
  });
  self.target([&] {
    const ptl_size_t expected = 2 * kThreads * kRounds;
    EXPECT_EQ(wait_for_count(ct, expected).success, expected);
  });
}

// Threads make and free objects of every kind while messages come in.
TEST_BOTH_WAYS(Threads, Section2_9__threads_allocate_and_free_at_once) {
  const Ni ni(self);
  const Ends ends(ni, 0, 16);
  constexpr int kRounds = 200;
  self.target([&] { append(ni, me_of(ni, nullptr, 0, PTL_ME_EVENT_COMM_DISABLE)); });
  const auto churn = [&](int i) {
    for (int round = 0; round < kRounds; ++round) {
      ptl_handle_eq_t eq = PTL_INVALID_HANDLE;
      ptl_handle_ct_t ct = PTL_INVALID_HANDLE;
      ptl_handle_md_t md = PTL_INVALID_HANDLE;
      ptl_handle_me_t entry = PTL_INVALID_HANDLE;
      ptl_pt_index_t pt = PTL_PT_ANY;
      EXPECT_RC(PtlEQAlloc(ni, 16, &eq), PTL_OK);
      EXPECT_RC(PtlCTAlloc(ni, &ct), PTL_OK);
      EXPECT_RC(PtlPTAlloc(ni, 0, eq, PTL_PT_ANY, &pt), PTL_OK);
      const ptl_md_t described = md_of(&round, sizeof round, eq, ct, PTL_MD_EVENT_SEND_DISABLE | PTL_MD_EVENT_CT_ACK);
      EXPECT_RC(PtlMDBind(ni, &described, &md), PTL_OK);
      const ptl_me_t me = me_of(ni, nullptr, 0);
      EXPECT_RC(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, tag(i), &entry), PTL_OK);
      EXPECT_RC(PtlTriggeredCTInc(ct, {1, 0}, ct, 10), PTL_OK);
      EXPECT_RC(PtlPut(md, 0, 4, PTL_ACK_REQ, ni.target(), kPt, 0, 0, tag(i), 0), PTL_OK);
      ptl_event_t event{};
      if (!take_event(eq, &event)) return;
      EXPECT_EQ(event.type, PTL_EVENT_ACK);
      EXPECT_EQ(event.user_ptr, tag(i));
      EXPECT_RC(PtlMDRelease(md), PTL_OK);
      EXPECT_RC(PtlMEUnlink(entry), PTL_OK);
      EXPECT_RC(PtlPTFree(ni, pt), PTL_OK);
      EXPECT_RC(PtlCTFree(ct), PTL_OK);
      EXPECT_RC(PtlEQFree(eq), PTL_OK);
    }
  };
  self.initiator([&] { in_threads(churn); });
}

// Threads append, search and unlink on one portal table entry while messages arrive there: every message is seen once.
TEST_BOTH_WAYS(Threads, Section2_9__threads_receive_at_once) {
  const Ni ni(self);
  constexpr int kRounds = 250;  // Receives of each thread.
  const Ends ends(ni, 0, 8 * kThreads * kRounds);
  self.target([&] {
    ptl_me_t overflow = me_of(ni, nullptr, 0, PTL_ME_EVENT_COMM_DISABLE);
    overflow.ignore_bits = ~ptl_match_bits_t{0};
    append(ni, overflow, PTL_OVERFLOW_LIST);
  });
  const auto receive = [&](int i) {
    for (int round = 0; round < kRounds; ++round) {
      ptl_me_t me = me_of(ni, nullptr, 0, PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE);
      me.match_bits = static_cast<ptl_match_bits_t>(i);
      ptl_handle_me_t entry = PTL_INVALID_HANDLE;
      EXPECT_RC(PtlMEAppend(ni, kPt, &me, PTL_PRIORITY_LIST, tag(i), &entry), PTL_OK);
    }
  };
  const auto send = [&] {
    for (int k = 0; k < kThreads * kRounds; ++k) {
      put(ends.md, ni.target(), {.match_bits = static_cast<ptl_match_bits_t>(k % kThreads), .hdr_data = 1u * k});
      if (k % 50 == 49)
        for (int n = 0; n < 50; ++n) next_event(ends.source_eq, PTL_EVENT_ACK);
    }
  };
  if (self.size() == 1) {
    std::thread receiver([&] { in_threads(receive); });
    send();
    receiver.join();
  } else if (self.is_target()) {
    in_threads(receive);
  } else {
    send();
  }
  self.barrier();
  self.target([&] {
    std::vector<int> seen(kThreads * kRounds);
    for (int k = 0; k < kThreads * kRounds; ++k) {
      const ptl_event_t event = next_event(ends.target_eq);
      EXPECT_TRUE(event.type == PTL_EVENT_PUT || event.type == PTL_EVENT_PUT_OVERFLOW) << describe(event);
      EXPECT_EQ(event.user_ptr, tag(event.match_bits));
      ++seen[event.hdr_data];
    }
    EXPECT_EQ(seen, std::vector<int>(kThreads * kRounds, 1));
    expect_empty(ends.target_eq);
  });
}

namespace {

// A waiter that nobody wakes looks again after a second. A machine that is busy may take long now and then.
constexpr std::int64_t kAtOnceMs = 500;

// Calls that wait for what will never come, each with the objects that it waits at.
struct Waited {
  ptl_handle_eq_t eq;
  ptl_handle_ct_t ct;
};
const std::function<int(const Waited&)> kWaits[] = {
    [](const Waited& at) {
      ptl_ct_event_t event{};
      return PtlCTWait(at.ct, 10, &event);
    },
    [](const Waited& at) {
      ptl_ct_event_t event{};
      unsigned int which = 0;
      const ptl_size_t test = 10;
      return PtlCTPoll(&at.ct, &test, 1, PTL_TIME_FOREVER, &event, &which);
    },
    [](const Waited& at) {
      ptl_event_t event{};
      return PtlEQWait(at.eq, &event);
    },
    [](const Waited& at) {
      ptl_event_t event{};
      unsigned int which = 0;
      return PtlEQPoll(&at.eq, 1, PTL_TIME_FOREVER, &event, &which);
    },
};

// Each of them sleeps when `end` is called, and returns PTL_INTERRUPTED. Gives the time that this took, in ms.
std::int64_t interrupt_waits(const Waited& at, const std::function<void()>& end) {
  std::vector<std::thread> threads;
  for (const auto& wait : kWaits) {
    std::atomic<pid_t> id{0};
    threads.emplace_back([&wait, &id, &at] {
      id = gettid();
      EXPECT_RC(wait(at), PTL_INTERRUPTED);
    });
    while (id == 0) std::this_thread::yield();
    wait_for_sleep(id);
  }
  const auto begin = std::chrono::steady_clock::now();
  end();
  for (std::thread& thread : threads) thread.join();
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

// 3.13.6, 3.14.3, 3.6.3 leave open what a thread sees whose queue, counter or interface another one frees. It does not
// wait on (lib/portals4/README.md).
TEST_PROCESSES(1, Threads, Section3_14_3__free_wakes_who_waits) {
  const Ni ni(self);
  std::int64_t fastest_ms = kPatienceMs;
  for (int round = 0; round < 5; ++round) {
    const Waited at{alloc_eq(ni), alloc_ct(ni)};
    const std::int64_t took_ms = interrupt_waits(at, [&at] {
      EXPECT_RC(PtlCTFree(at.ct), PTL_OK);
      EXPECT_RC(PtlEQFree(at.eq), PTL_OK);
    });
    fastest_ms = std::min(fastest_ms, took_ms);
    for (const auto& wait : kWaits) EXPECT_RC(wait(at), PTL_ARG_INVALID) << "nobody waits for what is not there";
  }
  EXPECT_LT(fastest_ms, kAtOnceMs);
}

TEST_PROCESSES(1, Threads, Section3_6_3__closing_an_interface_wakes_who_waits) {
  REQUIRE_OK(PtlInit());
  std::int64_t fastest_ms = kPatienceMs;
  for (int round = 0; round < 5; ++round) {
    ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
    REQUIRE_OK(PtlNIInit(PTL_IFACE_DEFAULT, kMatching, PTL_PID_ANY, nullptr, nullptr, &ni));
    Waited at{};
    REQUIRE_OK(PtlEQAlloc(ni, 8, &at.eq));
    REQUIRE_OK(PtlCTAlloc(ni, &at.ct));
    const std::int64_t took_ms = interrupt_waits(at, [ni] { EXPECT_RC(PtlNIFini(ni), PTL_OK); });
    fastest_ms = std::min(fastest_ms, took_ms);
  }
  EXPECT_LT(fastest_ms, kAtOnceMs);
  PtlFini();
}

// 3.6.2, 3.6.3: whoever opens an interface is told its limits, also if another thread closes it at once.
TEST_PROCESSES(1, Threads, Section3_6_2__opening_what_another_thread_closes) {
  const Ni other(self, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL);
  constexpr int kRounds = 10000;
  std::atomic<ptl_handle_ni_t> opened{PTL_INVALID_HANDLE};
  in_threads([&](int i) {
    for (int round = 0; round < kRounds; ++round) {
      ptl_handle_ni_t ni = opened;
      if (i % 2 == 0) {
        ptl_ni_limits_t limits{};
        EXPECT_RC(PtlNIInit(PTL_IFACE_DEFAULT, kMatching, PTL_PID_ANY, nullptr, &limits, &ni), PTL_OK);
        EXPECT_GT(limits.max_entries, 0);
        opened = ni;
      }
      const int rc = PtlNIFini(ni);
      EXPECT_TRUE(rc == PTL_OK || rc == PTL_ARG_INVALID) << rc;
    }
  });
}
