// Short messages of every kind between two processes, a few hundred of one kind, for stalled_loads.py: a trace of
// instructions is too slow for programs that measure times.
//
//   forwarding_short_messages KIND [COUNT [BYTES]]
//
// Portals, with the events of either side, acknowledged:
//   put          into an entry that stays
//   counted      the same, told by a counter
//   used-once    into an entry that is appended for each
//   unexpected   into the overflow list; the entry is appended afterwards
//   get, atomic, fetch, swap
// uTofu, with all notices:
//   tofu-put, tofu-piggyback, tofu-get, tofu-armw

#include <portals4.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utofu.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <new>
#include <string>
#include <utility>

namespace {

constexpr unsigned int kLimitSeconds = 300;  // If the other side has failed.
constexpr std::size_t kMemoryBytes = 65536;
alignas(4096) char source[kMemoryBytes];
alignas(4096) char sink[kMemoryBytes];

struct Shared {
  std::atomic<int> arrived{0};
  ptl_process_t ids[2];
  utofu_vcq_id_t vcqs[2];
  utofu_stadd_t stadds[2];
};

/// One of the two processes.
struct Side {
  Shared& shared;
  int me;
  int count;
  std::size_t bytes;
  int meetings = 0;

  void meet() {
    ++meetings;
    shared.arrived.fetch_add(1);
    while (shared.arrived.load() < 2 * meetings) sched_yield();
  }

  /// Side 0 sends, then awaits; side 1 the other way round.
  template <class Send, class Await>
  void take_turns(Send&& send, Await&& await) const {
    if (me == 0) send();
    await();
    if (me == 1) send();
  }
};

void check(int rc, int expected, const char* call) {
  if (rc == expected) return;
  std::fprintf(stderr, "%s: return code %d\n", call, rc);
  std::_Exit(1);
}
#define CHECK(call) check((call), 0, #call)

constexpr ptl_pt_index_t kPortal = 5;
constexpr ptl_match_bits_t kEventBits = 1, kCountBits = 2, kOnceBits = 3, kUnexpectedBits = 4;

class PortalsSide {
 public:
  explicit PortalsSide(Side& side) : side_(side) {
    CHECK(PtlInit());
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr, nullptr, &ni_));
    for (ptl_handle_eq_t& queue : queues_) CHECK(PtlEQAlloc(ni_, 256, &queue));
    CHECK(PtlCTAlloc(ni_, &counter_));
    ptl_pt_index_t portal = 0;
    CHECK(PtlPTAlloc(ni_, 0, queues_[0], kPortal, &portal));
    append(kEventBits, PTL_PRIORITY_LIST, PTL_ME_EVENT_LINK_DISABLE);
    append(kCountBits, PTL_PRIORITY_LIST, PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_CT_COMM);
    append(kUnexpectedBits, PTL_OVERFLOW_LIST, PTL_ME_EVENT_LINK_DISABLE);
    const ptl_md_t memory{source, kMemoryBytes, 0, queues_[1], PTL_CT_NONE};
    CHECK(PtlMDBind(ni_, &memory, &memory_));
    CHECK(PtlGetPhysId(ni_, &side.shared.ids[side.me]));
    side.meet();
    peer_ = side.shared.ids[1 - side.me];
  }
  ~PortalsSide() {
    side_.meet();
    PtlNIFini(ni_);
    PtlFini();
  }
  PortalsSide(const PortalsSide&) = delete;
  PortalsSide& operator=(const PortalsSide&) = delete;

  void put() {
    side_.take_turns([this] { send(kEventBits); }, [this] { await(PTL_EVENT_PUT); });
  }

  void counted() {
    ++counted_;
    const auto await_count = [this] {
      ptl_ct_event_t seen{};
      while (seen.success < counted_) CHECK(PtlCTGet(counter_, &seen));
    };
    side_.take_turns([this] { send(kCountBits); }, await_count);
  }

  void used_once() {
    if (side_.me == 1) {
      append(kOnceBits, PTL_PRIORITY_LIST, PTL_ME_USE_ONCE);
      await(PTL_EVENT_LINK);
      send(kEventBits);
      await(PTL_EVENT_PUT);
    } else {
      await(PTL_EVENT_PUT);
      send(kOnceBits);
    }
  }

  void unexpected() {
    if (side_.me == 0) {
      send(kUnexpectedBits);
      await(PTL_EVENT_PUT);
    } else {
      await(PTL_EVENT_PUT);  // In the overflow list.
      append(kUnexpectedBits, PTL_PRIORITY_LIST, PTL_ME_USE_ONCE);
      await(PTL_EVENT_PUT_OVERFLOW);
      send(kEventBits);
    }
  }

  void get() {
    one_sided([this] { return PtlGet(memory_, 0, side_.bytes, peer_, kPortal, kEventBits, 0, nullptr); },
              PTL_EVENT_REPLY, PTL_EVENT_GET);
  }
  void atomic() {
    one_sided(
        [this] {
          return PtlAtomic(memory_, 0, 8, PTL_ACK_REQ, peer_, kPortal, kEventBits, 0, nullptr, 0, PTL_SUM, PTL_INT64_T);
        },
        PTL_EVENT_ACK, PTL_EVENT_ATOMIC);
  }
  void fetch() {
    one_sided(
        [this] {
          return PtlFetchAtomic(memory_, 64, memory_, 0, 8, peer_, kPortal, kEventBits, 0, nullptr, 0, PTL_SUM,
                                PTL_INT64_T);
        },
        PTL_EVENT_REPLY, PTL_EVENT_FETCH_ATOMIC);
  }
  void swap() {
    const std::int64_t compared = 3;
    one_sided(
        [this, &compared] {
          return PtlSwap(memory_, 64, memory_, 0, 8, peer_, kPortal, kEventBits, 0, nullptr, 0, &compared, PTL_CSWAP,
                         PTL_INT64_T);
        },
        PTL_EVENT_REPLY, PTL_EVENT_FETCH_ATOMIC);
  }

 private:
  void append(ptl_match_bits_t bits, ptl_list_t list, unsigned int options) {
    ptl_me_t entry{};
    entry.start = sink;
    entry.length = kMemoryBytes;
    entry.ct_handle = counter_;
    entry.uid = PTL_UID_ANY;
    entry.options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_UNLINK_DISABLE | options;
    entry.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
    entry.match_bits = bits;
    ptl_handle_me_t handle = 0;
    CHECK(PtlMEAppend(ni_, kPortal, &entry, list, nullptr, &handle));
  }

  /// Takes events of either queue until one of this kind has come that nobody has awaited.
  void await(ptl_event_kind_t kind) {
    while (come_[kind] == 0) {
      ptl_event_t event;
      unsigned int which = 0;
      const int rc = PtlEQPoll(queues_, 2, 0, &event, &which);
      if (rc == PTL_EQ_EMPTY) continue;
      check(rc, PTL_OK, "PtlEQPoll");
      ++come_[event.type];
    }
    --come_[kind];
  }

  void send(ptl_match_bits_t bits) {
    CHECK(PtlPut(memory_, 0, side_.bytes, PTL_ACK_REQ, peer_, kPortal, bits, 0, nullptr, 0));
    await(PTL_EVENT_ACK);
  }

  template <class Start>
  void one_sided(Start&& start, ptl_event_kind_t end, ptl_event_kind_t told) {
    if (side_.me == 1) return await(told);
    check(start(), PTL_OK, "the operation");
    await(end);
  }

  Side& side_;
  ptl_handle_ni_t ni_ = 0;
  ptl_handle_eq_t queues_[2] = {};  ///< Of the portal table entry, and of the memory descriptor.
  ptl_handle_ct_t counter_ = 0;
  ptl_handle_md_t memory_ = 0;
  ptl_process_t peer_{};
  ptl_size_t counted_ = 0;
  std::map<ptl_event_kind_t, int> come_;  ///< Events that were not awaited yet.
};

class TofuSide {
 public:
  explicit TofuSide(Side& side) : side_(side) {
    utofu_tni_id_t* tnis = nullptr;
    std::size_t tni_count = 0;
    CHECK(utofu_get_onesided_tnis(&tnis, &tni_count));
    CHECK(utofu_create_vcq(tnis[0], 0, &vcq_));
    std::free(tnis);
    CHECK(utofu_reg_mem(vcq_, source, kMemoryBytes, 0, &source_));
    CHECK(utofu_reg_mem(vcq_, sink, kMemoryBytes, 0, &sink_));
    side.shared.stadds[side.me] = sink_;
    CHECK(utofu_query_vcq_id(vcq_, &side.shared.vcqs[side.me]));
    side.meet();
    peer_ = side.shared.vcqs[1 - side.me];
    target_ = side.shared.stadds[1 - side.me];
  }
  ~TofuSide() {
    side_.meet();
    utofu_dereg_mem(vcq_, source_, 0);
    utofu_dereg_mem(vcq_, sink_, 0);
    utofu_free_vcq(vcq_);
  }
  TofuSide(const TofuSide&) = delete;
  TofuSide& operator=(const TofuSide&) = delete;

  void put() {
    take_turns([this] { return utofu_put(vcq_, peer_, source_, target_, side_.bytes, 1, kFlags, nullptr); });
  }
  void piggyback() {
    take_turns([this] { return utofu_put_piggyback(vcq_, peer_, source, target_, 8, 1, kFlags, nullptr); });
  }
  void get() {
    one_sided([this] { return utofu_get(vcq_, peer_, source_, target_, side_.bytes, 1, kFlags, nullptr); },
              UTOFU_MRQ_TYPE_LCL_GET, UTOFU_MRQ_TYPE_RMT_GET);
  }
  void armw() {
    one_sided([this] { return utofu_armw8(vcq_, peer_, UTOFU_ARMW_OP_ADD, 1, target_, 1, kFlags, nullptr); },
              UTOFU_MRQ_TYPE_LCL_ARMW, UTOFU_MRQ_TYPE_RMT_ARMW);
  }

 private:
  static constexpr unsigned long kFlags =
      UTOFU_ONESIDED_FLAG_TCQ_NOTICE | UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE | UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE;

  template <class Start>
  void start(Start&& start) {
    CHECK(start());
    void* data = nullptr;
    int rc = UTOFU_ERR_NOT_FOUND;
    while (rc == UTOFU_ERR_NOT_FOUND) rc = utofu_poll_tcq(vcq_, 0, &data);
    check(rc, UTOFU_SUCCESS, "utofu_poll_tcq");
  }

  void await(int type) {
    while (come_[type] == 0) {
      utofu_mrq_notice notice{};
      const int rc = utofu_poll_mrq(vcq_, 0, &notice);
      if (rc == UTOFU_ERR_NOT_FOUND) continue;
      check(rc, UTOFU_SUCCESS, "utofu_poll_mrq");
      ++come_[notice.notice_type];
    }
    --come_[type];
  }

  template <class Start>
  void take_turns(Start&& what) {
    const auto send = [&] {
      start(what);
      await(UTOFU_MRQ_TYPE_LCL_PUT);
    };
    side_.take_turns(send, [this] { await(UTOFU_MRQ_TYPE_RMT_PUT); });
  }

  template <class Start>
  void one_sided(Start&& what, int end, int told) {
    if (side_.me == 1) return await(told);
    start(what);
    await(end);
  }

  Side& side_;
  utofu_vcq_hdl_t vcq_ = 0;
  utofu_stadd_t source_ = 0, sink_ = 0;
  utofu_vcq_id_t peer_ = 0;
  utofu_stadd_t target_ = 0;
  std::map<int, int> come_;  ///< Notices that were not awaited yet.
};

using Step = std::pair<void (PortalsSide::*)(), void (TofuSide::*)()>;  // One of the two.
const std::map<std::string, Step> kKinds = {{"put", {&PortalsSide::put, nullptr}},
                                            {"counted", {&PortalsSide::counted, nullptr}},
                                            {"used-once", {&PortalsSide::used_once, nullptr}},
                                            {"unexpected", {&PortalsSide::unexpected, nullptr}},
                                            {"get", {&PortalsSide::get, nullptr}},
                                            {"atomic", {&PortalsSide::atomic, nullptr}},
                                            {"fetch", {&PortalsSide::fetch, nullptr}},
                                            {"swap", {&PortalsSide::swap, nullptr}},
                                            {"tofu-put", {nullptr, &TofuSide::put}},
                                            {"tofu-piggyback", {nullptr, &TofuSide::piggyback}},
                                            {"tofu-get", {nullptr, &TofuSide::get}},
                                            {"tofu-armw", {nullptr, &TofuSide::armw}}};

void run(Side& side, const Step& step) {
  if (step.first != nullptr) {
    PortalsSide portals(side);
    for (int i = 0; i < side.count; ++i) (portals.*step.first)();
  } else {
    TofuSide tofu(side);
    for (int i = 0; i < side.count; ++i) (tofu.*step.second)();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto kind = kKinds.find(argc > 1 ? argv[1] : "");
  const int count = argc > 2 ? std::atoi(argv[2]) : 400;
  const long bytes = argc > 3 ? std::atol(argv[3]) : 8;
  if (kind == kKinds.end() || argc > 4 || count < 1 || bytes < 0 || bytes > static_cast<long>(kMemoryBytes)) {
    std::fprintf(stderr, "usage: forwarding_short_messages KIND [COUNT [BYTES]], KIND one of:");
    for (const auto& [name, step] : kKinds) std::fprintf(stderr, " %s", name.c_str());
    std::fprintf(stderr, "\n");
    return 2;
  }
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  auto& shared = *new (memory) Shared;
  const pid_t child = fork();
  if (child < 0) return 1;
  if (child == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm(kLimitSeconds);
  Side side{shared, child == 0 ? 1 : 0, count, static_cast<std::size_t>(bytes)};
  run(side, kind->second);
  if (child == 0) return 0;
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? 0 : 1;
}
