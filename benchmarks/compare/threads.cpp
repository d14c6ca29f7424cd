// Threads of two processes beside as many processes: each exchanges 8 bytes with one of the other side, on a core of
// its own. Points are how many each side has. Half round trips, and the rate of all together: windows of 64 puts, each
// told, each window answered by one put.
//
//   portals     each has a portal table entry, an event queue and an MD of its own
//   utofu       each has a VCQ of its own; then all of a process share one that is thread-safe, and a window is
//   complete
//               with its TCQ notices

#include <portals4.h>
#include <utofu.h>

#include <memory>
#include <thread>

#include "world.h"

using namespace bench;

namespace {

constexpr int kWindow = 64;
constexpr unsigned long kTcq = UTOFU_ONESIDED_FLAG_TCQ_NOTICE;
constexpr unsigned long kRemote = UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE;

void check(int rc, int good, const char* call) {
  if (rc != good) fail(std::string(call) + ": return code " + std::to_string(rc));
}
#define PTL(call) check((call), PTL_OK, #call)
#define TOFU(call) check((call), UTOFU_SUCCESS, #call)

/// One thread or process of one side, and whom it talks to.
struct Place {
  World& world;
  int side;    ///< 0 begins.
  int number;  ///< Of those of its side.
  int partner;
};

// ---- Portals -------------------------------------------------------------------------------------------------------

/// The interface of a process.
class Interface {
 public:
  Interface() {
    PTL(PtlInit());
    PTL(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, nullptr, nullptr, &ni));
  }
  ~Interface() {
    PtlNIFini(ni);
    PtlFini();
  }
  Interface(const Interface&) = delete;
  Interface& operator=(const Interface&) = delete;
  ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
};

class PortalsEnd {
 public:
  PortalsEnd(Place& place, const Interface& interface) {
    const ptl_handle_ni_t ni = interface.ni;
    PTL(PtlEQAlloc(ni, 4 * kWindow, &eq_));
    ptl_pt_index_t pt = 0;
    PTL(PtlPTAlloc(ni, 0, eq_, PTL_PT_ANY, &pt));
    const ptl_md_t md{source_, sizeof source_, PTL_MD_EVENT_SEND_DISABLE, PTL_EQ_NONE, PTL_CT_NONE};
    PTL(PtlMDBind(ni, &md, &md_));
    ptl_me_t me{};
    me.start = sink_;
    me.length = sizeof sink_;
    me.ct_handle = PTL_CT_NONE;
    me.uid = PTL_UID_ANY;
    me.options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE;
    me.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
    ptl_handle_me_t handle{};
    PTL(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, nullptr, &handle));
    Card mine{};
    PTL(PtlGetPhysId(ni, &mine.id));
    mine.pt = pt;
    peer_ = place.world.share(mine)[static_cast<std::size_t>(place.partner)];
  }
  void send(bool) { PTL(PtlPut(md_, 0, 8, PTL_NO_ACK_REQ, peer_.id, peer_.pt, 0, 0, nullptr, 0)); }
  void receive() {
    ptl_event_t event;
    int rc;
    while ((rc = PtlEQGet(eq_, &event)) == PTL_EQ_EMPTY) {
    }
    check(rc, PTL_OK, "PtlEQGet");
  }
  void look() {
    ptl_event_t event;
    if (PtlEQGet(eq_, &event) != PTL_EQ_EMPTY) fail("an event that nobody expects");
  }

 private:
  struct Card {
    ptl_process_t id;
    ptl_pt_index_t pt;
  };
  alignas(64) char source_[64] = {};
  alignas(64) char sink_[64] = {};
  ptl_handle_eq_t eq_ = PTL_INVALID_HANDLE;
  ptl_handle_md_t md_ = PTL_INVALID_HANDLE;
  Card peer_{};
};

// ---- uTofu ---------------------------------------------------------------------------------------------------------

utofu_tni_id_t tni_of(int number) {
  utofu_tni_id_t* tnis = nullptr;
  std::size_t count = 0;
  TOFU(utofu_get_onesided_tnis(&tnis, &count));
  const utofu_tni_id_t chosen = tnis[static_cast<std::size_t>(number) % count];
  std::free(tnis);
  return chosen;
}

class TofuEnd {
 public:
  /// @param shared  nullptr, or the VCQ of all threads of this process
  explicit TofuEnd(Place& place, const utofu_vcq_hdl_t* shared) : owned_(shared == nullptr) {
    if (shared != nullptr) vcq_ = *shared;
    if (owned_) TOFU(utofu_create_vcq(tni_of(place.number), 0, &vcq_));
    Card mine{};
    TOFU(utofu_query_vcq_id(vcq_, &mine.vcq));
    TOFU(utofu_reg_mem(vcq_, source_, sizeof source_, 0, &here_));
    TOFU(utofu_reg_mem(vcq_, sink_, sizeof sink_, 0, &mine.sink));
    peer_ = place.world.share(mine)[static_cast<std::size_t>(place.partner)];
  }
  ~TofuEnd() {
    if (owned_) utofu_free_vcq(vcq_);
  }
  TofuEnd(const TofuEnd&) = delete;
  TofuEnd& operator=(const TofuEnd&) = delete;

  /// @param last  its TCQ notice is read
  void send(bool last) {
    put(kRemote | (last ? kTcq : 0));
    void* data = nullptr;
    while (last && utofu_poll_tcq(vcq_, 0, &data) == UTOFU_ERR_NOT_FOUND) {
    }
  }
  void receive() {
    utofu_mrq_notice notice;
    int rc;
    while ((rc = utofu_poll_mrq(vcq_, 0, &notice)) == UTOFU_ERR_NOT_FOUND) {
    }
    check(rc, UTOFU_SUCCESS, "utofu_poll_mrq");
  }
  void look() {
    utofu_mrq_notice notice;
    if (utofu_poll_mrq(vcq_, 0, &notice) != UTOFU_ERR_NOT_FOUND) fail("a notice that nobody expects");
  }

  /// Puts whose TCQ notices any thread of this process may find: it tells whose they are.
  void window_on_shared() {
    done_.store(0, std::memory_order_relaxed);
    for (int i = 0; i < kWindow; ++i) put(kTcq);
    while (done_.load(std::memory_order_relaxed) < kWindow) {
      void* data = nullptr;
      if (utofu_poll_tcq(vcq_, 0, &data) == UTOFU_SUCCESS)
        static_cast<std::atomic<int>*>(data)->fetch_add(1, std::memory_order_relaxed);
    }
  }

 private:
  struct Card {
    utofu_vcq_id_t vcq;
    utofu_stadd_t sink;
  };
  void put(unsigned long flags) {
    int rc;
    while ((rc = utofu_put(vcq_, peer_.vcq, here_, peer_.sink, 8, 0, flags, &done_)) == UTOFU_ERR_BUSY) look();
    check(rc, UTOFU_SUCCESS, "utofu_put");
  }

  alignas(256) char source_[256] = {};
  alignas(256) char sink_[256] = {};
  alignas(64) std::atomic<int> done_{0};
  const bool owned_;
  utofu_vcq_hdl_t vcq_ = 0;
  utofu_stadd_t here_ = 0;
  Card peer_{};
};

// ---- What is measured ----------------------------------------------------------------------------------------------

template <class End>
void latency(Place& place, End& end, const std::string& what, int each_side) {
  place.world.point(what, each_side, "us", half_us(), [&](long count) {
    for (long i = 0; i < count; ++i) {
      if (place.side == 0) end.send(true), end.receive();
      if (place.side == 1) end.receive(), end.send(true);
    }
    // What of the last message is still to be sent does not wait for somebody who notices that this one is away.
    place.world.serve([] {}, [&] { end.look(); });
  });
}

template <class End>
void rate_of(Place& place, End& end, const std::string& what, int each_side) {
  place.world.point(what, each_side, "M/s", rate(1.0 * kWindow * each_side), [&](long count) {
    for (long round = 0; round < count; ++round) {
      if (place.side == 0) {
        for (int i = 1; i <= kWindow; ++i) end.send(i == kWindow);
        end.receive();
      } else {
        for (int i = 0; i < kWindow; ++i) end.receive();
        end.send(true);
      }
    }
    place.world.meet();  // The slowest counts.
  });
}

template <class End>
void measure(Place& place, End& end, const std::string& what, int each_side) {
  latency(place, end, what, each_side);
  rate_of(place, end, what + ", rate", each_side);
  place.world.meet();
}

void rate_of_shared(Place& place, TofuEnd& end, const std::string& what, int each_side) {
  place.world.point(what, each_side, "M/s", rate(1.0 * kWindow * each_side), [&](long count) {
    bool is_done = place.side == 1;
    const auto work = [&] {
      for (long round = 0; round < count && !is_done; ++round) end.window_on_shared();
      is_done = true;
    };
    place.world.serve(work, [&] { is_done ? end.look() : work(); });
    place.world.meet();
  });
}

/// What the threads of a process share.
struct Common {
  std::unique_ptr<Interface> interface;
  utofu_vcq_hdl_t vcq = 0;
};

void run(Place place, const Common& common, bool threads, int each_side) {
  const std::string who = threads ? ", threads" : ", processes";
  if (place.world.options.group == "portals") {
    PortalsEnd end(place, *common.interface);
    return measure(place, end, "put, event" + who, each_side);
  }
  {
    TofuEnd end(place, nullptr);
    measure(place, end, "put, MRQ notice" + who, each_side);
  }
  TofuEnd end(place, &common.vcq);
  rate_of_shared(place, end, threads ? "put, threads that share a VCQ, rate" : "put, TCQ notices, processes, rate",
                 each_side);
  place.world.meet();
}

void pin(const Options& options, int rank) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(options.allowed[static_cast<std::size_t>(rank) % options.allowed.size()], &one);
  sched_setaffinity(0, sizeof one, &one);
}

/// Everything of one process: its threads, or the one that it is.
void run_process(Shared& shared, const Options& options, int first, int count, int each_side) {
  const bool threads = count == each_side && each_side > 1;
  Common common;
  const bool portals = options.group == "portals";
  if (portals) common.interface = std::make_unique<Interface>();
  if (!portals) TOFU(utofu_create_vcq(tni_of(first % each_side), UTOFU_VCQ_FLAG_THREAD_SAFE, &common.vcq));
  std::vector<std::thread> others;
  const auto body = [&](int rank) {
    pin(options, rank);
    World world(shared, options, rank, 2 * each_side, false);
    run({world, rank / each_side, rank % each_side, (rank + each_side) % (2 * each_side)}, common, threads, each_side);
  };
  for (int i = 1; i < count; ++i) others.emplace_back(body, first + i);
  body(first);
  for (std::thread& other : others) other.join();
  if (!portals) utofu_free_vcq(common.vcq);
}

/// @return the exit status of the processes
int run_side_by_side(const Options& options, int each_side, bool threads) {
  Options own = options;
  own.processes = threads ? 2 : 2 * each_side;
  const int count = threads ? each_side : 1;
  return run_processes(own, own.processes,
                       [&](World& outer) { run_process(outer.shared(), own, outer.rank * count, count, each_side); });
}

}  // namespace

int main(int argc, char** argv) {
  const Options options(argc, argv);
  if (options.group != "portals" && options.group != "utofu") {
    fail("the program for threads cannot measure " + options.group, kNotApplicable);
  }
  for (const double point : options.points_or({1, 2, 4, 8})) {
    const int each_side = static_cast<int>(point);
    if (each_side < 1 || 2 * each_side > kMostProcesses) fail("not possible: --points " + std::to_string(each_side), 2);
    for (const bool threads : {false, true}) {
      if (threads && each_side == 1) continue;  // That is one process on each side.
      if (const int status = run_side_by_side(options, each_side, threads); status != 0) return status;
    }
  }
  return 0;
}
