// Portals between two processes, through its C interface alone, so that other implementations can be measured, too.
//
//   latency     half round trips of puts: (non-)matching, with counters, full events, and SEND events at the initiator
//               as well; whole round trips of gets
//   rate        windows of puts of 8 bytes, each window answered by one put
//   bandwidth   windows of long puts, one way and both ways; and where the target is told nothing
//   atomic      fetching and non-fetching sums, until the reply or acknowledgement; the target waits in the library
//   match       the put of 8 bytes with many other entries posted; an append that finds one of many unexpected headers
//   overlap     the part of a put of 1 MiB that proceeds while the target computes
//   bypass      a put of 8 bytes to a target that computes and never calls, until acknowledged: the median and the
//               99th percentile; with a core free, and with a process of its own keeping each core busy
//   barrier     dissemination of puts among --processes
//   idle        CPU time of processes that wait in PtlCTWait or PtlEQWait
//   memory      shared memory per process with --processes, each of which talks to so many others
//   flood       round trips of two processes, alone and while a third one floods a fourth that stands still; all on one
//               node, and each on a node of its own (loopback addresses, over the fabric)

#include <portals4.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <set>

#include "world.h"

using namespace bench;

namespace {

constexpr ptl_match_bits_t kBits = 7;
constexpr ptl_size_t kEvents = 1024;

void check(int rc, const char* call) {
  if (rc != PTL_OK) fail(std::string(call) + ": return code " + std::to_string(rc));
}
#define CHECK(call) check((call), #call)

/// How a series tells the target of a message, and the initiator of its end.
struct Mode {
  const char* name;
  bool matching, events, send_events;
  bool silent = false;  ///< The target is told nothing.
};
constexpr Mode kModes[] = {{"non-matching, counter", false, false, false},
                           {"non-matching, event", false, true, false},
                           {"matching, counter", true, false, false},
                           {"matching, event", true, true, false},
                           {"matching, event, SEND", true, true, true}};
constexpr Mode kBest = kModes[0], kFull = kModes[3],
               kSilent{"non-matching, target not told", false, false, false, true};

/// One portal table entry with one persistent entry on it, and what is needed to put to the same one of the others.
class Side {
 public:
  Side(World& w, const Mode& mode, std::size_t bytes, int posted_before = 0)
      : w_(w),
        mode_(mode),
        source(w.options, std::max<std::size_t>(bytes, 64)),
        sink(w.options, std::max<std::size_t>(bytes, 64)) {
    CHECK(PtlInit());
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, (mode.matching ? PTL_NI_MATCHING : PTL_NI_NO_MATCHING) | PTL_NI_PHYSICAL,
                    PTL_PID_ANY, nullptr, nullptr, &ni));
    CHECK(PtlEQAlloc(ni, kEvents, &eq));
    CHECK(PtlEQAlloc(ni, kEvents, &source_eq));
    CHECK(PtlCTAlloc(ni, &ct));
    CHECK(PtlCTAlloc(ni, &source_ct));
    CHECK(PtlPTAlloc(ni, 0, mode.events ? eq : PTL_EQ_NONE, PTL_PT_ANY, &pt));
    for (int i = 0; i < posted_before; ++i) append(kBits + 1 + static_cast<ptl_match_bits_t>(i), PTL_PRIORITY_LIST);
    append(kBits, PTL_PRIORITY_LIST);
    ptl_md_t md{source.data, source.size, 0, PTL_EQ_NONE, source_ct};
    md.options = PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY;
    if (mode.send_events) md.eq_handle = source_eq;
    CHECK(PtlMDBind(ni, &md, &md_));
    ptl_process_t mine;
    CHECK(PtlGetPhysId(ni, &mine));
    struct Card {
      ptl_process_t id;
      ptl_pt_index_t pt;
    };
    for (const Card& card : w.share(Card{mine, pt})) ids_.push_back(card.id), pts_.push_back(card.pt);
  }

  ~Side() {
    w_.meet();
    PtlMDRelease(md_);
    for (const ptl_handle_any_t entry : entries_) mode_.matching ? PtlMEUnlink(entry) : PtlLEUnlink(entry);
    PtlPTFree(ni, pt);
    PtlNIFini(ni);
    PtlFini();
  }

  ptl_handle_any_t append(ptl_match_bits_t bits, ptl_list_t list, unsigned int more_options = 0,
                          ptl_match_bits_t ignore_bits = 0) {
    ptl_handle_any_t entry = 0;
    const unsigned int options =
        PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE | more_options |
        (mode_.events ? 0u : PTL_ME_EVENT_COMM_DISABLE) | (mode_.events || mode_.silent ? 0u : PTL_ME_EVENT_CT_COMM);
    if (mode_.matching) {
      ptl_me_t me{};
      me.start = sink.data, me.length = sink.size, me.ct_handle = ct, me.uid = PTL_UID_ANY, me.options = options;
      me.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY}, me.match_bits = bits, me.ignore_bits = ignore_bits;
      CHECK(PtlMEAppend(ni, pt, &me, list, nullptr, &entry));
    } else {
      ptl_le_t le{sink.data, sink.size, ct, PTL_UID_ANY, options};
      CHECK(PtlLEAppend(ni, pt, &le, list, nullptr, &entry));
    }
    if ((more_options & PTL_ME_USE_ONCE) == 0) entries_.push_back(entry);
    return entry;
  }

  void put(int to, ptl_size_t bytes, ptl_ack_req_t ack = PTL_NO_ACK_REQ, ptl_match_bits_t bits = kBits) {
    const auto rank = static_cast<std::size_t>(to);
    CHECK(PtlPut(md_, 0, bytes, ack, ids_[rank], pts_[rank], bits, 0, nullptr, 0));
    if (!mode_.send_events) return;
    if (next_event(source_eq).type != PTL_EVENT_SEND) fail("not the event SEND");
  }

  void get(int from, ptl_size_t bytes) {
    const auto rank = static_cast<std::size_t>(from);
    CHECK(PtlGet(md_, 0, bytes, ids_[rank], pts_[rank], kBits, 0, nullptr));
  }

  void atomic(int to, bool fetching) {
    const auto rank = static_cast<std::size_t>(to);
    if (fetching) {
      CHECK(PtlFetchAtomic(md_, 8, md_, 16, 8, ids_[rank], pts_[rank], kBits, 0, nullptr, 0, PTL_SUM, PTL_UINT64_T));
    } else {
      CHECK(PtlAtomic(md_, 16, 8, PTL_CT_ACK_REQ, ids_[rank], pts_[rank], kBits, 0, nullptr, 0, PTL_SUM, PTL_UINT64_T));
    }
  }

  /// Waits in a loop of calls that do not block until `count` more messages have come.
  void await(ptl_size_t count = 1) {
    if (mode_.events) {
      for (; count > 0; --count) {
        if (next_event(eq).type != PTL_EVENT_PUT) fail("not the event PUT");
      }
      return;
    }
    reach(ct, came_ += count);
  }

  /// The same for answers of what this process has started.
  void await_answer() { reach(source_ct, ++answered_); }

  /// The same, by calls that block.
  void sleep_until_answered() { block(source_ct, ++answered_); }
  void sleep_until_told(ptl_size_t count = 1) {
    ptl_event_t event;
    if (mode_.events) {
      CHECK(PtlEQWait(eq, &event));
    } else {
      block(ct, came_ += count);
    }
  }

  /// One look, as a process does that waits for something else.
  void look() {
    ptl_ct_event_t value;
    ptl_event_t event;
    if (!mode_.events) {
      CHECK(PtlCTGet(source_ct, &value));
    } else if (const int rc = PtlEQGet(eq, &event); rc != PTL_EQ_EMPTY) {
      check(rc, "PtlEQGet");
    }
  }

  ptl_event_t next_event(ptl_handle_eq_t queue) {
    ptl_event_t event;
    int rc;
    while ((rc = PtlEQGet(queue, &event)) == PTL_EQ_EMPTY) {
    }
    check(rc, "PtlEQGet");
    if (event.ni_fail_type != PTL_NI_OK) fail("an event says failure " + std::to_string(event.ni_fail_type));
    return event;
  }

 private:
  static void block(ptl_handle_ct_t counter, ptl_size_t count) {
    ptl_ct_event_t value;
    CHECK(PtlCTWait(counter, count, &value));
    if (value.failure != 0) fail("a counter tells a failure");
  }

  static void reach(ptl_handle_ct_t counter, ptl_size_t count) {
    ptl_ct_event_t value;
    do {
      CHECK(PtlCTGet(counter, &value));
      if (value.failure != 0) fail("a counter tells a failure");
    } while (value.success < count);
  }

  World& w_;
  Mode mode_;

 public:
  Buffer source, sink;  ///< Messages come from the one and go to the other.
  ptl_handle_ni_t ni = 0;
  ptl_handle_eq_t eq = 0, source_eq = 0;  ///< Of the target; of the initiator.
  ptl_handle_ct_t ct = 0, source_ct = 0;
  ptl_pt_index_t pt = 0;

 private:
  ptl_handle_md_t md_ = 0;
  std::vector<ptl_handle_any_t> entries_;
  std::vector<ptl_process_t> ids_;
  std::vector<ptl_pt_index_t> pts_;
  ptl_size_t came_ = 0, answered_ = 0;
};

void ping_pong(World& w, Side& side, const std::string& what, double x, ptl_size_t bytes) {
  const auto last = [&](Buffer& buffer) -> char& { return buffer.data[bytes - 1]; };
  if (bytes > 0) last(side.source) = static_cast<char>(last(side.source) + 1);
  w.point(what, x, "us", half_us(), [&](long count) {
    w.round_trips(
        count, [&] { side.put(1 - w.rank, bytes); }, [&] { side.await(); }, [&] { side.look(); });
  });
  if (bytes > 0 && last(side.sink) != last(side.source)) fail("wrong data: " + what);
}

void run_latency(World& w) {
  for (const Mode& mode : kModes) {
    Side side(w, mode, 4 << 20);
    for (const double bytes : w.options.points_or(kLatencyBytes)) {
      ping_pong(w, side, std::string("put, ") + mode.name, bytes, static_cast<ptl_size_t>(bytes));
    }
  }
  Side side(w, kBest, 4 << 20);
  for (const double bytes : w.options.points_or(kLatencyBytes)) {
    w.point("get, whole round trip", bytes, "us", us(), [&](long count) {
      w.serve(
          [&] {
            for (long i = 0; i < count; ++i) side.get(1, static_cast<ptl_size_t>(bytes)), side.await_answer();
          },
          [&] { side.look(); });
    });
  }
}

/// Windows of messages one way, each answered by an empty one; or both ways.
void stream(World& w, Side& side, ptl_size_t bytes, int window, bool both, long count) {
  const auto send = [&] {
    for (int i = 0; i < window; ++i) side.put(1 - w.rank, bytes);
  };
  const auto messages = static_cast<ptl_size_t>(window);
  for (long i = 0; i < count; ++i) {
    if (both || w.rank == 0) send();
    if (both || w.rank == 1) side.await(messages);
    if (both || w.rank == 1) side.put(1 - w.rank, 0);
    if (both || w.rank == 0) side.await();
  }
}

void run_rate(World& w) {
  for (const Mode& mode : kModes) {
    Side side(w, mode, 64);
    for (const double window : w.options.points_or(kWindows)) {
      w.point(std::string("put, ") + mode.name, window, "M/s", rate(window),
              [&](long count) { stream(w, side, 8, static_cast<int>(window), false, count); });
    }
  }
}

void run_bandwidth(World& w) {
  Side side(w, kFull, 64 << 20);
  for (const double bytes : w.options.points_or(kBandwidthBytes)) {
    const int window = window_of(bytes);
    for (const bool both : {false, true}) {
      w.point(both ? "put, both ways" : "put", bytes, "GB/s", bandwidth(bytes * window * (both ? 2 : 1)),
              [&](long count) { stream(w, side, static_cast<ptl_size_t>(bytes), window, both, count); });
    }
  }
  Side silent(w, kSilent, 64 << 20);
  for (const double bytes : w.options.points_or(kBandwidthBytes)) {
    const int window = window_of(bytes);
    w.point("put, ACK of the last", bytes, "GB/s", bandwidth(bytes * window), [&](long count) {
      const auto put_window = [&] {
        for (int i = 1; i < window; ++i) silent.put(1, static_cast<ptl_size_t>(bytes));
        silent.put(1, static_cast<ptl_size_t>(bytes), PTL_CT_ACK_REQ), silent.await_answer();
      };
      w.serve(
          [&] {
            for (long i = 0; i < count; ++i) put_window();
          },
          [&] { silent.look(); });
    });
  }
}

void run_atomic(World& w) {
  for (const Mode& mode : {kBest, kFull, kSilent}) {
    Side side(w, mode, 64);
    for (const bool fetching : {true, false}) {
      const std::string what = fetching ? "fetch-add" : "add, acknowledged";
      const char* how = mode.silent ? ", target not told" : mode.events ? ", matching, event" : "";
      w.point(what + how, 8, "us", us(), [&](long count) {
        w.serve(
            [&] {
              for (long i = 0; i < count; ++i) side.atomic(1, fetching), side.await_answer();
            },
            [&] { side.look(); });
      });
    }
  }
}

/// Every header lies on the overflow list of rank 0 under bits of its own; one is taken, and put anew.
void find_unexpected(World& w, ptl_match_bits_t depth) {
  constexpr int kAppends = 2000;
  Side side(w, kFull, 64);
  side.append(0, PTL_OVERFLOW_LIST, PTL_ME_EVENT_COMM_DISABLE, ~ptl_match_bits_t{0});
  const auto put_anew = [&](ptl_match_bits_t number) {
    side.put(0, 8, PTL_CT_ACK_REQ, kBits + 1 + number);
    side.await_answer();
  };
  for (ptl_match_bits_t i = 0; w.rank == 0 && i < depth; ++i) put_anew(i);
  std::minstd_rand random(1);
  w.labelled("append, unexpected headers", static_cast<double>(depth), "us", [&] {
    std::vector<double> times, clock;
    for (int i = 0; w.rank == 0 && i < kAppends; ++i) {
      const ptl_match_bits_t number = random() % depth;
      const double start = now_s();
      side.append(kBits + 1 + number, PTL_PRIORITY_LIST, PTL_ME_USE_ONCE);
      const ptl_event_t event = side.next_event(side.eq);
      const double end = now_s();
      times.push_back((end - start) * 1e6);
      clock.push_back((now_s() - end) * 1e6);
      if (event.type != PTL_EVENT_PUT_OVERFLOW) fail("not the event PUT_OVERFLOW");
      put_anew(number);
    }
    return w.rank == 0 ? mean_of_most(times) - mean_of_most(clock) : 0;
  });
  for (ptl_match_bits_t i = 0; w.rank == 0 && i < depth; ++i) {
    side.append(kBits + 1 + i, PTL_PRIORITY_LIST, PTL_ME_USE_ONCE);
    side.next_event(side.eq);
  }
}

void run_match(World& w) {
  for (const double depth : w.options.points_or(kDepths)) {
    Side side(w, kFull, 64, static_cast<int>(depth) - 1);
    ping_pong(w, side, "put 8 B, entries posted", depth, 8);
  }
  for (const double depth : w.options.points_or(kDepths)) find_unexpected(w, static_cast<ptl_match_bits_t>(depth));
}

void run_overlap(World& w) {
  const auto bytes = static_cast<ptl_size_t>(kOverlapBytes);
  Side side(w, kFull, bytes);
  w.overlap(
      "put", kOverlapBytes, [&] { side.put(1, bytes); }, [] {}, [&] { side.await(); });
}

void run_bypass(World& w) {
  Side side(w, kBest, 64);
  w.bypass("put, acknowledged", [&] {
    side.put(1, 8, PTL_CT_ACK_REQ);
    side.sleep_until_answered();
  });
}

/// Everybody tells the one 1, 2, 4, ... ranks further, and waits for the one so far behind.
void run_barrier(World& w) {
  std::vector<std::unique_ptr<Side>> stages;
  for (int distance = 1; distance < w.size; distance *= 2) stages.push_back(std::make_unique<Side>(w, kBest, 64));
  w.point("barrier of puts", w.size, "us", us(), [&](long count) {
    for (long i = 0; i < count; ++i) {
      for (std::size_t stage = 0; stage < stages.size(); ++stage) {
        stages[stage]->put((w.rank + (1 << stage)) % w.size, 0);
        stages[stage]->await();
      }
    }
  });
}

void run_idle(World& w) {
  for (const Mode& mode : {kBest, kFull}) {
    Side side(w, mode, 64);
    w.idle(
        mode.events ? "PtlEQWait" : "PtlCTWait", w.options.budget_s, [&] { side.sleep_until_told(); },
        [&](int rank) { side.put(rank, 8); });
  }
}

/// Bytes of the files in shared memory that any of these processes has mapped, whatever name the mapping shows.
double mapped_bytes(const std::vector<pid_t>& pids) {
  std::set<ino_t> mapped;
  for (const pid_t pid : pids) {
    std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
    std::string range, access, offset, device, path;
    for (ino_t inode; maps >> range >> access >> offset >> device >> inode && std::getline(maps, path);) {
      if (path.find("/dev/shm/") != std::string::npos) mapped.insert(inode);
    }
  }
  double sum = 0;
  for (const auto& file : std::filesystem::directory_iterator("/dev/shm")) {
    struct stat status {};
    if (stat(file.path().c_str(), &status) != 0 || mapped.count(status.st_ino) == 0) continue;
    sum += static_cast<double>(status.st_blocks) * 512;
  }
  return sum;
}

void run_memory(World& w) {
  for (const double peers : w.options.points_or({0, 1, 8, 63})) {
    Side side(w, kBest, 64);
    const auto pids = w.share(getpid());
    for (int i = 1; i <= peers; ++i) side.put((w.rank + i) % w.size, 8);
    side.sleep_until_told(static_cast<ptl_size_t>(peers));
    w.meet();
    if (w.rank == 0) w.print("process that talks to so many", peers, mapped_bytes(pids) / w.size / 1048576, "MiB");
    w.meet();
  }
}

/// Rank 0 prints how fast it talks to rank 1.
void talk(World& w, Side& side, const std::string& what, ptl_size_t bytes) {
  // Enough that what the flooder did to the cores on its way has passed.
  const int trips = w.options.is_test() ? 50 : 5000, batches = w.options.is_test() ? 1 : kBatches;
  std::vector<double> times;
  for (int batch = 0; batch < batches; ++batch) {
    const double start = now_s();
    for (int i = 0; i < trips; ++i) {
      if (w.rank == 1) side.await();
      side.put(1 - w.rank, bytes);
      if (w.rank == 0) side.await();
    }
    times.push_back((now_s() - start) / trips);
  }
  w.print(what, static_cast<double>(bytes), rate(1)(median(times)), "M/s");
}

void run_flood(World& w) {
  constexpr ptl_size_t kBytes = 512;
  constexpr int kFlooder = 2, kStuck = 3;
  const int all_puts = w.options.budget_s < 0.01 ? 2000 : 20000;
  if (w.rank == kStuck) prctl(PR_SET_PDEATHSIG, SIGKILL);  // A time limit does not reach who stands still.
  for (const std::string place : {"shared memory", "fabric"}) {
    if (place == "fabric") {
      setenv("PORTOFU_FABRIC", "1", 1);
      setenv("PORTOFU_NID", ("127.9.5." + std::to_string(w.rank + 1)).c_str(), 1);
      setenv("PORTOFU_JOB_KEY", std::to_string(getppid()).c_str(), 1);
    }
    Side side(w, kBest, kBytes);
    const pid_t stuck = w.share(getpid())[kStuck];
    const auto flood = [&](int puts) {
      for (int i = 0; i < puts; ++i) side.put(kStuck, kBytes, PTL_CT_ACK_REQ);
    };
    if (w.rank == kFlooder) flood(1), side.sleep_until_answered(), kill(stuck, SIGSTOP);
    for (const bool floods : {false, true}) {
      if (w.rank == kFlooder) flood(floods ? all_puts : 0), side.put(0, 0), side.sleep_until_told();
      if (w.rank == 0) side.await();
      if (w.rank < 2) talk(w, side, "round trips, " + place + (floods ? ", beside a flood" : ", alone"), kBytes);
      if (w.rank == 0) side.put(kFlooder, 0);
    }
    if (w.rank != kFlooder) continue;
    kill(stuck, SIGCONT);
    for (int i = 0; i < all_puts; ++i) side.sleep_until_answered();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Options options(argc, argv);
  const std::map<std::string, void (*)(World&)> groups = {
      {"latency", run_latency}, {"rate", run_rate},       {"bandwidth", run_bandwidth}, {"atomic", run_atomic},
      {"match", run_match},     {"overlap", run_overlap}, {"bypass", run_bypass},       {"barrier", run_barrier},
      {"idle", run_idle},       {"memory", run_memory},   {"flood", run_flood}};
  const auto group = groups.find(options.group);
  if (group == groups.end()) fail("the program for Portals cannot measure " + options.group, kNotApplicable);
  return run_processes(options, options.group == "flood" ? 4 : options.processes, group->second);
}
