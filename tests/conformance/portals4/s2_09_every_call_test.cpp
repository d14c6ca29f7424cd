// Portals 4.3, 2.9: "Every function in the Portals API is atomic with respect to both other threads and external
// operations that result from data movement operations": every function from eight threads at once, on shared objects
// and on objects that come and go, while messages arrive. Best run under ThreadSanitizer: a race shows there long
// before it shows here.
#include <atomic>
#include <functional>
#include <iterator>
#include <thread>

#include "../harness/fixture.h"

using namespace conformance;

PORTALS_SUITE(EveryCall);

namespace {

constexpr int kThreads = 8;
constexpr int kRounds = 200;
constexpr unsigned int kLogicalPlain = PTL_NI_NO_MATCHING | PTL_NI_LOGICAL;

/// What all threads of a process share.
struct Scene {
  explicit Scene(Process& process)
      : self(process),
        ni(process),
        plain(process, kLogicalPlain),
        eq(alloc_eq(ni, 1 << 16)),
        ct(alloc_ct(ni)),
        target_ct(alloc_ct(ni)) {
    alloc_pt(ni, PTL_EQ_NONE);
    alloc_pt(plain, PTL_EQ_NONE);
    md = bind_md(ni, md_of(words, sizeof words, eq, ct, PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY));
    ptl_me_t me = me_of(ni, target_words, sizeof target_words, PTL_ME_EVENT_CT_COMM);
    me.ct_handle = target_ct;
    append(ni, me);
    append(plain, le_of(target_words, sizeof target_words));
    map.resize(static_cast<std::size_t>(process.size()));
    ptl_size_t size = 0;
    REQUIRE_OK(PtlGetMap(plain, map.size(), map.data(), &size));
  }

  ptl_process_t target() const { return ni.target(); }

  Process& self;
  Ni ni;
  Ni plain;
  ptl_handle_eq_t eq;         ///< Taken from by all threads, whoever made the events.
  ptl_handle_ct_t ct;         ///< Counts answers of all threads.
  ptl_handle_ct_t target_ct;  ///< Counts what arrives.
  ptl_handle_md_t md = PTL_INVALID_HANDLE;
  std::vector<ptl_process_t> map;
  alignas(64) std::uint64_t words[64] = {};
  alignas(64) std::uint64_t target_words[64] = {};
};

// Memory that several threads send from or fetch into would be a race of the test itself: each thread has its words.
ptl_size_t own_words(int thread) { return static_cast<ptl_size_t>(thread) * 64; }

/// Interfaces, identification, maps, status, handles.
void ask(const Scene& s, int) {
  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  ptl_ni_limits_t limits{};
  ptl_sr_value_t status = -1;
  ptl_uid_t uid = PTL_UID_ANY;
  ptl_process_t id{};
  ptl_size_t size = 0;
  EXPECT_RC(PtlInit(), PTL_OK);
  EXPECT_RC(PtlNIInit(PTL_IFACE_DEFAULT, kMatching, PTL_PID_ANY, nullptr, &limits, &ni), PTL_OK);
  EXPECT_TRUE(PtlHandleIsEqual(ni, s.ni));
  EXPECT_RC(PtlNIStatus(ni, PTL_SR_DROP_COUNT, &status), PTL_OK);
  EXPECT_EQ(status, 0);
  EXPECT_RC(PtlNIHandle(s.ct, &ni), PTL_OK);
  EXPECT_RC(PtlGetUid(ni, &uid), PTL_OK);
  EXPECT_RC(PtlGetPhysId(ni, &id), PTL_OK);
  EXPECT_RC(PtlGetId(s.plain, &id), PTL_OK);
  EXPECT_EQ(id.rank, static_cast<ptl_rank_t>(s.self.rank()));
  EXPECT_RC(PtlSetMap(s.plain, s.map.size(), s.map.data()), PTL_OK);
  EXPECT_RC(PtlGetMap(s.plain, 1, &id, &size), PTL_OK);
  EXPECT_EQ(size, s.map.size());
  EXPECT_RC(PtlAtomicSync(), PTL_OK);
  EXPECT_RC(PtlNIFini(s.ni), PTL_OK);
  PtlFini();
}

/// An interface that the threads open and close together.
void open_and_close(const Scene&, int thread) {
  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
  ptl_handle_eq_t eq = PTL_INVALID_HANDLE;
  EXPECT_RC(PtlNIInit(PTL_IFACE_DEFAULT, kNonMatching, PTL_PID_ANY, nullptr, nullptr, &ni), PTL_OK);
  EXPECT_RC(PtlEQAlloc(ni, 8, &eq), PTL_OK);
  if (thread % 2 == 0) {
    EXPECT_RC(PtlEQFree(eq), PTL_OK);
  }
  EXPECT_RC(PtlNIFini(ni), PTL_OK);
}

/// Objects of every kind, made and freed.
void make_and_free(const Scene& s, int thread) {
  ptl_handle_eq_t eq = PTL_INVALID_HANDLE;
  ptl_handle_ct_t ct = PTL_INVALID_HANDLE;
  ptl_handle_md_t md = PTL_INVALID_HANDLE;
  ptl_handle_me_t entry = PTL_INVALID_HANDLE;
  ptl_pt_index_t pt = PTL_PT_ANY;
  ptl_event_t event{};
  std::uint64_t word = 0;
  EXPECT_RC(PtlEQAlloc(s.ni, 64, &eq), PTL_OK);
  EXPECT_RC(PtlCTAlloc(s.ni, &ct), PTL_OK);
  const ptl_md_t described = md_of(&word, 8, eq, ct);
  EXPECT_RC(PtlMDBind(s.ni, &described, &md), PTL_OK);
  EXPECT_RC(PtlPTAlloc(s.ni, PTL_PT_ALLOC_DISABLED, eq, PTL_PT_ANY, &pt), PTL_OK);
  EXPECT_RC(PtlPTEnable(s.ni, pt), PTL_OK);
  const ptl_me_t me = me_of(s.ni, &word, 8, kLink);
  EXPECT_RC(PtlMEAppend(s.ni, pt, &me, PTL_PRIORITY_LIST, tag(thread), &entry), PTL_OK);
  EXPECT_RC(PtlEQWait(eq, &event), PTL_OK);
  EXPECT_EQ(event.user_ptr, tag(thread));
  EXPECT_RC(PtlMESearch(s.ni, pt, &me, PTL_SEARCH_ONLY, tag(thread)), PTL_OK);
  EXPECT_RC(PtlEQWait(eq, &event), PTL_OK);
  EXPECT_EQ(event.ni_fail_type, PTL_NI_NO_MATCH);
  EXPECT_RC(PtlPTDisable(s.ni, pt), PTL_OK);
  EXPECT_RC(PtlMEUnlink(entry), PTL_OK);
  EXPECT_RC(PtlPTFree(s.ni, pt), PTL_OK);
  EXPECT_RC(PtlMDRelease(md), PTL_OK);
  EXPECT_RC(PtlCTFree(ct), PTL_OK);
  EXPECT_RC(PtlEQFree(eq), PTL_OK);
}

/// The same for the entries of a non-matching interface.
void make_and_free_plain(const Scene& s, int thread) {
  ptl_pt_index_t pt = PTL_PT_ANY;
  ptl_handle_le_t entry = PTL_INVALID_HANDLE;
  const ptl_le_t le = le_of(nullptr, 0);
  EXPECT_RC(PtlPTAlloc(s.plain, 0, PTL_EQ_NONE, PTL_PT_ANY, &pt), PTL_OK);
  EXPECT_RC(PtlLEAppend(s.plain, pt, &le, PTL_OVERFLOW_LIST, tag(thread), &entry), PTL_OK);
  EXPECT_RC(PtlLESearch(s.plain, pt, &le, PTL_SEARCH_DELETE, tag(thread)), PTL_OK);
  EXPECT_RC(PtlLEUnlink(entry), PTL_OK);
  EXPECT_RC(PtlPTFree(s.plain, pt), PTL_OK);
}

/// Counters, alone and with operations that wait for them.
void count(const Scene& s, int) {
  ptl_handle_ct_t ct = PTL_INVALID_HANDLE;
  ptl_ct_event_t value{};
  unsigned int which = 0;
  const ptl_size_t test = 3;
  EXPECT_RC(PtlCTAlloc(s.ni, &ct), PTL_OK);
  EXPECT_RC(PtlTriggeredCTInc(ct, {1, 0}, ct, 2), PTL_OK);
  EXPECT_RC(PtlTriggeredCTSet(ct, {100, 0}, ct, 50), PTL_OK);
  EXPECT_RC(PtlCTInc(ct, {2, 0}), PTL_OK);
  EXPECT_RC(PtlCTWait(ct, 3, &value), PTL_OK);
  EXPECT_EQ(value.success, 3u);
  EXPECT_RC(PtlCTPoll(&ct, &test, 1, PTL_TIME_FOREVER, &value, &which), PTL_OK);
  EXPECT_RC(PtlCTSet(ct, {7, 0}), PTL_OK);
  EXPECT_RC(PtlCTGet(ct, &value), PTL_OK);
  EXPECT_EQ(value.success, 7u);
  EXPECT_RC(PtlCTCancelTriggered(ct), PTL_OK);
  EXPECT_RC(PtlCTFree(ct), PTL_OK);
  EXPECT_RC(PtlCTGet(s.ct, &value), PTL_OK);
  EXPECT_EQ(value.failure, 0u);
}

/// Operations started at once and by triggers: kOperations answers are counted in s.ct, as many messages at the target.
constexpr ptl_size_t kOperations = 10;
void communicate(const Scene& s, int thread) {
  const ptl_size_t at = own_words(thread);
  const ptl_process_t to = s.target();
  const auto type = PTL_UINT64_T;
  const ptl_handle_md_t md = s.md;
  ptl_handle_ct_t ct = PTL_INVALID_HANDLE;
  EXPECT_RC(PtlCTAlloc(s.ni, &ct), PTL_OK);
  EXPECT_RC(PtlTriggeredPut(md, at, 8, PTL_ACK_REQ, to, kPt, 0, at, nullptr, 0, ct, 1), PTL_OK);
  EXPECT_RC(PtlTriggeredGet(md, at + 8, 8, to, kPt, 0, at, nullptr, ct, 1), PTL_OK);
  EXPECT_RC(PtlTriggeredAtomic(md, at, 8, PTL_ACK_REQ, to, kPt, 0, at, nullptr, 0, PTL_SUM, type, ct, 1), PTL_OK);
  EXPECT_RC(PtlTriggeredFetchAtomic(md, at + 16, md, at, 8, to, kPt, 0, at, nullptr, 0, PTL_SUM, type, ct, 1), PTL_OK);
  EXPECT_RC(PtlTriggeredSwap(md, at + 24, md, at, 8, to, kPt, 0, at, nullptr, 0, nullptr, PTL_SWAP, type, ct, 1),
            PTL_OK);
  EXPECT_RC(PtlStartBundle(s.ni), PTL_OK);
  EXPECT_RC(PtlPut(md, at, 8, PTL_ACK_REQ, to, kPt, 0, at, nullptr, 0), PTL_OK);
  EXPECT_RC(PtlGet(md, at + 32, 8, to, kPt, 0, at, nullptr), PTL_OK);
  EXPECT_RC(PtlAtomic(md, at, 8, PTL_CT_ACK_REQ, to, kPt, 0, at, nullptr, 0, PTL_SUM, type), PTL_OK);
  EXPECT_RC(PtlFetchAtomic(md, at + 40, md, at, 8, to, kPt, 0, at, nullptr, 0, PTL_SUM, type), PTL_OK);
  EXPECT_RC(PtlSwap(md, at + 48, md, at, 8, to, kPt, 0, at, nullptr, 0, nullptr, PTL_SWAP, type), PTL_OK);
  EXPECT_RC(PtlEndBundle(s.ni), PTL_OK);
  EXPECT_RC(PtlCTInc(ct, {1, 0}), PTL_OK);
  EXPECT_RC(PtlCTFree(ct), PTL_OK);
  ptl_event_t event{};
  unsigned int which = 0;
  if (PtlEQGet(s.eq, &event) == PTL_OK) {
    EXPECT_EQ(event.ni_fail_type, PTL_NI_OK) << describe(event);
  }
  if (PtlEQPoll(&s.eq, 1, 0, &event, &which) == PTL_OK) {
    EXPECT_EQ(event.ni_fail_type, PTL_NI_OK) << describe(event);
  }
}

using Work = void (*)(const Scene&, int thread);
constexpr Work kWork[] = {ask, open_and_close, make_and_free, make_and_free_plain, count, communicate};

void in_threads(const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

// Each thread goes through all the work, beginning elsewhere, so that any two functions meet.
TEST_BOTH_WAYS(EveryCall, Section2_9__from_eight_threads_at_once) {
  Scene scene(self);
  self.barrier();
  in_threads([&](int thread) {
    for (int round = 0; round < kRounds; ++round)
      for (std::size_t i = 0; i < std::size(kWork); ++i)
        kWork[(i + static_cast<std::size_t>(thread + round)) % std::size(kWork)](scene, thread);
  });
  constexpr ptl_size_t kEach = kOperations * kThreads * kRounds;
  EXPECT_EQ(wait_for_count(scene.ct, kEach).success, kEach);
  EXPECT_EQ(count_of(scene.ct).failure, 0u);
  self.target([&] {
    const ptl_size_t all = kEach * static_cast<ptl_size_t>(self.size());
    EXPECT_EQ(wait_for_count(scene.target_ct, all).success, all);
  });
  self.barrier();
}

// The waits of many threads on the same objects: each event and each count wakes whom it is for, and PtlAbort, from one
// more thread, everybody.
TEST_BOTH_WAYS(EveryCall, Section2_9__waiting_from_eight_threads_at_once) {
  Scene scene(self);
  self.barrier();
  constexpr std::uintptr_t kEvents = 800;  // For each process; the target is one of the senders.
  std::atomic<std::uintptr_t> taken{0};
  const auto wait_for_anything = [&](int thread) {
    ptl_event_t event{};
    ptl_ct_event_t value{};
    unsigned int which = 0;
    for (ptl_size_t test = 1;; ++test) {
      int rc = PTL_OK;
      switch (thread % 4) {
        case 0: rc = PtlEQWait(scene.eq, &event); break;
        case 1: rc = PtlEQPoll(&scene.eq, 1, PTL_TIME_FOREVER, &event, &which); break;
        case 2: rc = PtlCTWait(scene.ct, test, &value); break;
        default: rc = PtlCTPoll(&scene.ct, &test, 1, PTL_TIME_FOREVER, &value, &which); break;
      }
      if (rc == PTL_ABORTED) return;
      EXPECT_RC(rc, PTL_OK);
      if (thread % 4 < 2) ++taken;
    }
  };
  std::thread sender([&] {
    for (std::uintptr_t i = 0; i < kEvents / 2; ++i)  // SEND and ACK of each.
      EXPECT_RC(PtlPut(scene.md, 0, 8, PTL_ACK_REQ, scene.target(), kPt, 0, 0, tag(i), 0), PTL_OK);
    while (taken < kEvents) std::this_thread::yield();
    PtlAbort();
  });
  in_threads(wait_for_anything);
  sender.join();
  EXPECT_EQ(taken, kEvents);
  EXPECT_RC(PtlEQFree(scene.eq), PTL_OK);
  EXPECT_RC(PtlCTFree(scene.ct), PTL_OK);
  self.barrier();
}
