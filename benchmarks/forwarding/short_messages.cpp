// Short messages of every kind between two processes, a few hundred of one kind, for stalled_loads.py: a trace of
// instructions is too slow for programs that measure times.
//
//   forwarding_short_messages KIND [--points BYTES] [--limit SECONDS]
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
#include <utofu.h>

#include <map>

#include "../compare/world.h"

using namespace bench;

namespace {

constexpr int kMessages = 400;
constexpr std::size_t kMemoryBytes = 65536;
alignas(4096) char source[kMemoryBytes];
alignas(4096) char sink[kMemoryBytes];

void check(int rc, int expected, const char* call) {
  if (rc != expected) fail(std::string(call) + ": return code " + std::to_string(rc));
}
#define CHECK(call) check((call), 0, #call)

std::size_t bytes_of(const World& w) {
  const double bytes = w.options.points_or({8}).front();
  if (bytes < 0 || bytes > kMemoryBytes) fail("not possible: so many bytes", 2);
  return static_cast<std::size_t>(bytes);
}

/// Rank 0 sends, then awaits; rank 1 the other way round.
template <class Send, class Await>
void in_turns(const World& w, Send&& send, Await&& await) {
  if (w.rank == 0) send();
  await();
  if (w.rank == 1) send();
}

constexpr ptl_pt_index_t kPortal = 5;
constexpr ptl_match_bits_t kEventBits = 1, kCountBits = 2, kOnceBits = 3, kUnexpectedBits = 4;

class PortalsSide {
 public:
  explicit PortalsSide(World& w) : w_(w), bytes_(bytes_of(w)) {
    CHECK(PtlInit());
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr, nullptr, &ni_));
    // What a target does not wait for goes on while its thread has no core, so there is room for all events.
    for (ptl_handle_eq_t& queue : queues_) CHECK(PtlEQAlloc(ni_, 2 * kMessages, &queue));
    CHECK(PtlCTAlloc(ni_, &counter_));
    ptl_pt_index_t portal = 0;
    CHECK(PtlPTAlloc(ni_, 0, queues_[0], kPortal, &portal));
    append(kEventBits, PTL_PRIORITY_LIST, PTL_ME_EVENT_LINK_DISABLE);
    append(kCountBits, PTL_PRIORITY_LIST, PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_CT_COMM);
    append(kUnexpectedBits, PTL_OVERFLOW_LIST, PTL_ME_EVENT_LINK_DISABLE);
    const ptl_md_t memory{source, kMemoryBytes, 0, queues_[1], PTL_CT_NONE};
    CHECK(PtlMDBind(ni_, &memory, &memory_));
    ptl_process_t own;
    CHECK(PtlGetPhysId(ni_, &own));
    peer_ = w.share(own)[static_cast<std::size_t>(1 - w.rank)];
  }
  ~PortalsSide() {
    w_.meet();
    PtlNIFini(ni_);
    PtlFini();
  }
  PortalsSide(const PortalsSide&) = delete;
  PortalsSide& operator=(const PortalsSide&) = delete;

  void put() {
    in_turns(
        w_, [this] { send(kEventBits); }, [this] { await(PTL_EVENT_PUT); });
  }

  void counted() {
    ++counted_;
    const auto await_count = [this] {
      ptl_ct_event_t seen{};
      while (seen.success < counted_) CHECK(PtlCTGet(counter_, &seen));
    };
    in_turns(
        w_, [this] { send(kCountBits); }, await_count);
  }

  void used_once() {
    if (w_.rank == 1) {
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
    if (w_.rank == 0) {
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
    one_sided([this] { return PtlGet(memory_, 0, bytes_, peer_, kPortal, kEventBits, 0, nullptr); }, PTL_EVENT_REPLY,
              PTL_EVENT_GET);
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
    CHECK(PtlPut(memory_, 0, bytes_, PTL_ACK_REQ, peer_, kPortal, bits, 0, nullptr, 0));
    await(PTL_EVENT_ACK);
  }

  template <class Start>
  void one_sided(Start&& start, ptl_event_kind_t end, ptl_event_kind_t told) {
    if (w_.rank == 1) return await(told);
    check(start(), PTL_OK, "the operation");
    await(end);
  }

  World& w_;
  const std::size_t bytes_;
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
  explicit TofuSide(World& w) : w_(w), bytes_(bytes_of(w)) {
    utofu_tni_id_t* tnis = nullptr;
    std::size_t tni_count = 0;
    CHECK(utofu_get_onesided_tnis(&tnis, &tni_count));
    CHECK(utofu_create_vcq(tnis[0], 0, &vcq_));
    std::free(tnis);
    CHECK(utofu_reg_mem(vcq_, source, kMemoryBytes, 0, &source_));
    CHECK(utofu_reg_mem(vcq_, sink, kMemoryBytes, 0, &sink_));
    struct Card {
      utofu_vcq_id_t vcq;
      utofu_stadd_t sink;
    } own{0, sink_};
    CHECK(utofu_query_vcq_id(vcq_, &own.vcq));
    const Card other = w.share(own)[static_cast<std::size_t>(1 - w.rank)];
    peer_ = other.vcq;
    target_ = other.sink;
  }
  ~TofuSide() {
    w_.meet();
    utofu_dereg_mem(vcq_, source_, 0);
    utofu_dereg_mem(vcq_, sink_, 0);
    utofu_free_vcq(vcq_);
  }
  TofuSide(const TofuSide&) = delete;
  TofuSide& operator=(const TofuSide&) = delete;

  void put() {
    take_turns([this] { return utofu_put(vcq_, peer_, source_, target_, bytes_, 1, kFlags, nullptr); });
  }
  void piggyback() {
    take_turns([this] { return utofu_put_piggyback(vcq_, peer_, source, target_, 8, 1, kFlags, nullptr); });
  }
  void get() {
    one_sided([this] { return utofu_get(vcq_, peer_, source_, target_, bytes_, 1, kFlags, nullptr); },
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
    in_turns(w_, send, [this] { await(UTOFU_MRQ_TYPE_RMT_PUT); });
  }

  template <class Start>
  void one_sided(Start&& what, int end, int told) {
    if (w_.rank == 1) return await(told);
    start(what);
    await(end);
  }

  World& w_;
  const std::size_t bytes_;
  utofu_vcq_hdl_t vcq_ = 0;
  utofu_stadd_t source_ = 0, sink_ = 0;
  utofu_vcq_id_t peer_ = 0;
  utofu_stadd_t target_ = 0;
  std::map<int, int> come_;  ///< Notices that were not awaited yet.
};

template <class Side, void (Side::*kStep)()>
void run(World& w) {
  Side side(w);
  for (int i = 0; i < kMessages; ++i) (side.*kStep)();
}

}  // namespace

int main(int argc, char** argv) {
  const Options options(argc, argv);
  const std::map<std::string, void (*)(World&)> kinds = {{"put", run<PortalsSide, &PortalsSide::put>},
                                                         {"counted", run<PortalsSide, &PortalsSide::counted>},
                                                         {"used-once", run<PortalsSide, &PortalsSide::used_once>},
                                                         {"unexpected", run<PortalsSide, &PortalsSide::unexpected>},
                                                         {"get", run<PortalsSide, &PortalsSide::get>},
                                                         {"atomic", run<PortalsSide, &PortalsSide::atomic>},
                                                         {"fetch", run<PortalsSide, &PortalsSide::fetch>},
                                                         {"swap", run<PortalsSide, &PortalsSide::swap>},
                                                         {"tofu-put", run<TofuSide, &TofuSide::put>},
                                                         {"tofu-piggyback", run<TofuSide, &TofuSide::piggyback>},
                                                         {"tofu-get", run<TofuSide, &TofuSide::get>},
                                                         {"tofu-armw", run<TofuSide, &TofuSide::armw>}};
  const auto kind = kinds.find(options.group);
  if (kind == kinds.end()) fail("no kind of message: " + options.group, 2);
  return run_processes(options, 2, kind->second);
}
