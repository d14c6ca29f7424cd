// Several threads of one process: waiting on one queue, being aborted, sending at once. Runs under ThreadSanitizer too.

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "tests/conformance/harness/fixture.h"
#include "tests/process/own_node.h"

namespace portofu {
namespace {

using namespace conformance;

constexpr int kThreads = 4;

/// Takes events until one says that it was the last. @return how many of each number came
std::vector<int> take_numbered(ptl_handle_eq_t eq, int count, std::atomic<int>& left) {
  std::vector<int> seen(static_cast<std::size_t>(count));
  ptl_event_t event{};
  unsigned int which = 0;
  while (left.load() > 0) {
    if (PtlEQPoll(&eq, 1, 50, &event, &which) != PTL_OK) continue;
    left.fetch_sub(1);
    if (event.hdr_data < seen.size()) ++seen[event.hdr_data];
  }
  return seen;
}

// 3.13.8: "PtlEQWait() is guaranteed to wake exactly one thread for each event".
TEST(Threads, Events__are_taken_by_exactly_one_of_the_threads_that_wait) {
  const OwnNode node;
  run_processes(2, [](Process& self) {
    constexpr int kPuts = 3000;
    const Ni ni(self);
    const Ends ends(ni, 0, 2 * kPuts);
    std::uint64_t word = 0;
    append(ni, me_of(ni, &word, sizeof word));
    self.barrier();
    if (self.is_target()) {
      std::atomic<int> left{kPuts};
      std::vector<std::vector<int>> seen(kThreads);
      std::vector<std::thread> threads;
      for (std::vector<int>& mine : seen) {
        threads.emplace_back([&mine, &left, &ends] { mine = take_numbered(ends.target_eq, kPuts, left); });
      }
      for (std::thread& thread : threads) thread.join();
      for (int i = 0; i < kPuts; ++i) {
        int times = 0;
        for (const std::vector<int>& mine : seen) times += mine[static_cast<std::size_t>(i)];
        EXPECT_EQ(times, 1) << "event " << i;
      }
    } else {
      for (int i = 0; i < kPuts; ++i) {
        put(ends.md, ni.target(), {.length = 8, .hdr_data = static_cast<ptl_hdr_data_t>(i)});
        if (i % 100 == 0) next_event(ends.source_eq, PTL_EVENT_ACK);
      }
    }
    self.barrier();
  });
}

// Without a timeout: as many events as threads, and each thread comes back.
TEST(Threads, PtlEQWait__lets_each_thread_have_one) {
  const OwnNode node;
  run_processes(2, [](Process& self) {
    const Ni ni(self);
    const Ends ends(ni);
    std::uint64_t word = 0;
    append(ni, me_of(ni, &word, sizeof word));
    for (int round = 0; round < 20; ++round) {
      self.barrier();
      if (self.is_target()) {
        std::atomic<int> sum{0};
        std::vector<std::thread> threads;
        for (int i = 0; i < kThreads; ++i) {
          threads.emplace_back([&] {
            ptl_event_t event{};
            if (PtlEQWait(ends.target_eq, &event) == PTL_OK) sum.fetch_add(static_cast<int>(event.hdr_data));
          });
        }
        for (std::thread& thread : threads) thread.join();
        EXPECT_EQ(sum.load(), kThreads * (kThreads + 1) / 2);
      } else {
        for (ptl_hdr_data_t i = 1; i <= kThreads; ++i) put_and_wait(ends, ni.target(), {.length = 8, .hdr_data = i});
      }
    }
    self.barrier();
  });
}

// 3.5.3: every waiting call ends with PTL_ABORTED, those that wait and those that come later.
TEST(Threads, PtlAbort__wakes_all_that_wait) {
  const OwnNode node;
  run_processes(1, [](Process& self) {
    const Ni ni(self);
    const ptl_handle_eq_t eq = alloc_eq(ni);
    const ptl_handle_ct_t ct = alloc_ct(ni);
    std::atomic<int> aborted{0};
    std::atomic<int> inside{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 2 * kThreads; ++i) {
      threads.emplace_back([&, i] {
        ptl_event_t event{};
        ptl_ct_event_t value{};
        unsigned int which = 0;
        const ptl_size_t test = 1;
        inside.fetch_add(1);
        int rc = PTL_FAIL;
        if (i % 4 == 0) rc = PtlEQWait(eq, &event);
        if (i % 4 == 1) rc = PtlCTWait(ct, 1, &value);
        if (i % 4 == 2) rc = PtlEQPoll(&eq, 1, PTL_TIME_FOREVER, &event, &which);
        if (i % 4 == 3) rc = PtlCTPoll(&ct, &test, 1, PTL_TIME_FOREVER, &value, &which);
        aborted.fetch_add(rc == PTL_ABORTED ? 1 : 0);
      });
    }
    while (inside.load() < 2 * kThreads) sched_yield();
    PtlAbort();
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(aborted.load(), 2 * kThreads);
    ptl_event_t event{};
    EXPECT_RC(PtlEQWait(eq, &event), PTL_ABORTED);
    EXPECT_RC(PtlEQFree(eq), PTL_OK);
    EXPECT_RC(PtlCTFree(ct), PTL_OK);
  });
}

/// One thread's traffic: puts, gets and atomics to everybody, with its own MD and queue.
void exchange(const Ni& ni, int size, std::atomic<int>& failures) {
  constexpr int kOperations = 400;
  ptl_handle_eq_t eq = PTL_INVALID_HANDLE;
  ptl_handle_md_t md = PTL_INVALID_HANDLE;
  std::vector<unsigned char> buffer(20000);
  if (PtlEQAlloc(ni, 1024, &eq) != PTL_OK) failures.fetch_add(1);
  const ptl_md_t description = md_of(buffer.data(), buffer.size(), eq, PTL_CT_NONE, PTL_MD_EVENT_SEND_DISABLE);
  if (PtlMDBind(ni, &description, &md) != PTL_OK) failures.fetch_add(1);
  for (int i = 0; i < kOperations; ++i) {
    const ptl_process_t peer = ni.id(i % size);
    const ptl_size_t length = i % 7 == 0 ? 20000 : 64;
    const int rc = i % 3 == 0   ? PtlPut(md, 0, length, PTL_ACK_REQ, peer, kPt, 0, 0, nullptr, 0)
                   : i % 3 == 1 ? PtlGet(md, 0, length, peer, kPt, 0, 0, nullptr)
                                : PtlAtomic(md, 0, 64, PTL_ACK_REQ, peer, kPt, 0, 0, nullptr, 0, PTL_SUM, PTL_INT64_T);
    ptl_event_t event{};
    unsigned int which = 0;
    if (rc != PTL_OK || PtlEQPoll(&eq, 1, kPatienceMs, &event, &which) != PTL_OK || event.ni_fail_type != PTL_NI_OK) {
      failures.fetch_add(1);
    }
  }
}

TEST(Threads, Threads_of_several_processes__send_at_once) {
  const OwnNode node;
  run_processes(2, [](Process& self) {
    const Ni ni(self);
    alloc_pt(ni, PTL_EQ_NONE);
    std::vector<std::int64_t> memory(4096);
    append(ni, me_of(ni, memory.data(), memory.size() * sizeof memory[0]));
    self.barrier();
    std::atomic<int> failures{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back([&] { exchange(ni, self.size(), failures); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(failures.load(), 0);
    self.barrier();
  });
}

/// How a thread waits for its next message.
enum class WaysToWait { kGet, kPollTwo, kWait, kCount };

/// What one thread of a side has: a portal table entry whose messages are told by an event and by a counter.
struct Corner {
  Corner(const Ni& ni, ptl_pt_index_t number) : pt(kPt + 1 + number), eq(alloc_eq(ni)), other(alloc_eq(ni)) {
    alloc_pt(ni, eq, 0, pt);
    ct = alloc_ct(ni);
    ptl_me_t me = me_of(ni, &word, sizeof word, PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_LINK_DISABLE);
    me.ct_handle = ct;
    EXPECT_RC(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, nullptr, &entry), PTL_OK);
    const ptl_md_t description = md_of(&word, sizeof word, PTL_EQ_NONE, PTL_CT_NONE, PTL_MD_EVENT_SEND_DISABLE);
    EXPECT_RC(PtlMDBind(ni, &description, &md), PTL_OK);
  }

  /// @return whether message `number`, from 1 on, has come, and nothing else has
  bool receive(WaysToWait way, ptl_hdr_data_t number) const {
    ptl_event_t event{};
    ptl_ct_event_t counted{};
    unsigned int which = 0;
    const ptl_handle_eq_t both[] = {other, eq};
    int rc = PTL_EQ_EMPTY;
    if (way == WaysToWait::kWait) rc = PtlEQWait(eq, &event);
    while (way == WaysToWait::kCount && counted.success < number) {
      if (PtlCTGet(ct, &counted) != PTL_OK || counted.success > number) return false;
    }
    while (rc == PTL_EQ_EMPTY)
      rc = way == WaysToWait::kPollTwo ? PtlEQPoll(both, 2, 0, &event, &which) : PtlEQGet(eq, &event);
    return rc == PTL_OK && event.type == PTL_EVENT_PUT && event.hdr_data == number;
  }

  std::uint64_t word = 0;
  ptl_pt_index_t pt;
  ptl_handle_eq_t eq;
  ptl_handle_eq_t other;  ///< Nothing ever comes there.
  ptl_handle_ct_t ct = PTL_INVALID_HANDLE;
  ptl_handle_me_t entry = PTL_INVALID_HANDLE;
  ptl_handle_md_t md = PTL_INVALID_HANDLE;
};

// One of the threads that wait looks after the packets of all. Whichever that is ends earlier than the others, or
// computes for a while, and the others go on.
TEST(Threads, Threads_with_queues_of_their_own__exchange_each_with_its_partner) {
  const OwnNode node;
  run_processes(2, [](Process& self) {
    constexpr ptl_hdr_data_t kFewest = 200;
    const Ni ni(self);
    std::vector<std::unique_ptr<Corner>> corners;
    for (ptl_pt_index_t t = 0; t < kThreads; ++t) corners.push_back(std::make_unique<Corner>(ni, t));
    self.barrier();
    std::atomic<int> failures{0};
    const auto exchange_all = [&](Corner& corner, ptl_pt_index_t t) {
      const ptl_process_t peer = ni.id(1 - self.rank());
      const auto send = [&](ptl_hdr_data_t i) {
        if (PtlPut(corner.md, 0, 8, PTL_NO_ACK_REQ, peer, corner.pt, 0, 0, nullptr, i) != PTL_OK) failures.fetch_add(1);
      };
      for (ptl_hdr_data_t i = 1; i <= kFewest * (t + 1); ++i) {
        if (self.is_target()) send(i);
        if (!corner.receive(static_cast<WaysToWait>((t + i / 50) % 4), i)) failures.fetch_add(1);
        if (!self.is_target()) send(i);
        if (i % 64 == t) std::this_thread::sleep_for(std::chrono::microseconds(300));
      }
    };
    std::vector<std::thread> threads;
    for (ptl_pt_index_t t = 0; t < kThreads; ++t) threads.emplace_back([&, t] { exchange_all(*corners[t], t); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(failures.load(), 0);
    self.barrier();
  });
}

}  // namespace
}  // namespace portofu
