// uTofu between processes.
//
//   latency     half round trips of puts and piggyback puts: told by MRQ notices; or the target's memory polled, while
//               the waiting process calls the library, or without any call; whole round trips of gets
//   rate        windows of puts of 8 bytes, each window answered by one put, or complete with the TCQ notice of its
//               last put
//   bandwidth   windows of long puts, one way and both ways, each told; into memory that both sides map also complete
//               with the TCQ notice of the last put
//   atomic      ARMW add, until its local notice; the target polls its MRQ
//   flagged     half round trips of two puts, data and then a flag behind them, for which the other side polls; as
//   short
//               ones where they can be, too
//   bypass      a put of 8 bytes to a target that computes and never calls, until its local notice
//   barrier     butterfly circuits of --processes

#include <utofu.h>

#include <array>
#include <map>

#include "engine/queue/cpu.h"
#include "world.h"

using namespace bench;

namespace {

constexpr unsigned long kTcq = UTOFU_ONESIDED_FLAG_TCQ_NOTICE;
constexpr unsigned long kLocal = UTOFU_ONESIDED_FLAG_LOCAL_MRQ_NOTICE;
constexpr unsigned long kRemote = UTOFU_ONESIDED_FLAG_REMOTE_MRQ_NOTICE;

void check(int rc, const char* call) {
  if (rc != UTOFU_SUCCESS) fail(std::string(call) + ": return code " + std::to_string(rc));
}
#define CHECK(call) check((call), #call)

/// How the target learns of a message.
enum class Told { kNotice, kMemoryCalling, kMemory };

class Side {
 public:
  Side(World& w, std::size_t bytes) : source(w.options, bytes + 64), sink(w.options, bytes + 64), w_(w) {
    CHECK(utofu_create_vcq(0, 0, &vcq_));
    Card mine{};
    CHECK(utofu_query_vcq_id(vcq_, &mine.vcq));
    CHECK(utofu_reg_mem(vcq_, source.data, source.size, 0, &here_));
    CHECK(utofu_reg_mem(vcq_, sink.data, sink.size, 0, &mine.sink));
    utofu_onesided_caps* caps = nullptr;
    CHECK(utofu_query_onesided_caps(0, &caps));
    longest_ = std::min<std::size_t>(caps->max_putget_size, 8 << 20);
    peer_ = w.share(mine)[static_cast<std::size_t>(1 - w.rank)];
  }
  ~Side() {
    w_.meet();
    utofu_free_vcq(vcq_);
  }

  /// Puts in pieces that the interface takes; `flags` are those of the last one.
  void put(std::size_t bytes, unsigned long flags, unsigned long each = kTcq) {
    for (std::size_t at = 0; at < bytes; at += longest_) {
      const std::size_t part = std::min(longest_, bytes - at);
      const unsigned long mine = at + part == bytes ? flags : 0;
      post([&] { return utofu_put(vcq_, peer_.vcq, here_ + at, peer_.sink + at, part, 0, mine | each, nullptr); });
    }
  }

  /// From a place in the source to the same place in the sink, behind all earlier ones.
  void put_in_order(std::size_t at, std::size_t bytes, bool shortly) {
    constexpr unsigned long kOrdered = UTOFU_ONESIDED_FLAG_STRONG_ORDER | kTcq;
    post([&] {
      return shortly && bytes <= 32
                 ? utofu_put_piggyback(vcq_, peer_.vcq, source.data + at, peer_.sink + at, bytes, 0, kOrdered, nullptr)
                 : utofu_put(vcq_, peer_.vcq, here_ + at, peer_.sink + at, bytes, 0, kOrdered, nullptr);
    });
    ++open_;
  }

  /// Whether puts in order have not been sent.
  bool busy() const { return open_ > 0; }

  void look_tcq() {
    void* data = nullptr;
    const int rc = utofu_poll_tcq(vcq_, 0, &data);
    if (rc == UTOFU_ERR_NOT_FOUND) return;
    check(rc, "utofu_poll_tcq");
    --open_;
  }

  void piggyback(std::uint64_t value, unsigned long flags) {
    post([&] { return utofu_put_piggyback8(vcq_, peer_.vcq, value, peer_.sink, 8, 0, flags | kTcq, nullptr); });
  }

  void get(std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += longest_) {
      const std::size_t part = std::min(longest_, bytes - at);
      const unsigned long mine = at + part == bytes ? kLocal : 0;
      post([&] { return utofu_get(vcq_, peer_.vcq, here_ + at, peer_.sink + at, part, 0, mine | kTcq, nullptr); });
    }
  }

  void add() {
    post([&] { return utofu_armw8(vcq_, peer_.vcq, UTOFU_ARMW_OP_ADD, 1, peer_.sink, 0, kLocal | kTcq, nullptr); });
  }

  void notice() {
    utofu_mrq_notice got{};
    int rc;
    while ((rc = utofu_poll_mrq(vcq_, 0, &got)) == UTOFU_ERR_NOT_FOUND) {
    }
    check(rc, "utofu_poll_mrq");
  }

  void look() {
    utofu_mrq_notice got{};
    const int rc = utofu_poll_mrq(vcq_, 0, &got);
    if (rc != UTOFU_ERR_NOT_FOUND) check(rc, "utofu_poll_mrq");
  }

  /// Reads the TCQ until nothing is there, as the guide wants it.
  void read_tcq() {
    void* data = nullptr;
    int rc;
    while ((rc = utofu_poll_tcq(vcq_, 0, &data)) == UTOFU_SUCCESS) open_ = std::max(open_ - 1, 0l);
    if (rc != UTOFU_ERR_NOT_FOUND) check(rc, "utofu_poll_tcq");
  }

  /// Waits for an entry of the TCQ.
  void await_tcq() {
    void* data = nullptr;
    int rc;
    while ((rc = utofu_poll_tcq(vcq_, 0, &data)) == UTOFU_ERR_NOT_FOUND) {
    }
    check(rc, "utofu_poll_tcq");
  }

  Buffer source, sink;

 private:
  struct Card {
    utofu_vcq_id_t vcq;
    utofu_stadd_t sink;
  };

  template <class Call>
  void post(Call&& call) {
    int rc;
    while ((rc = call()) == UTOFU_ERR_BUSY) read_tcq();
    check(rc, "starting a communication");
  }

  World& w_;
  utofu_vcq_hdl_t vcq_ = 0;
  utofu_stadd_t here_ = 0;
  Card peer_{};
  std::size_t longest_ = 0;
  long open_ = 0;  ///< Puts in order whose notices have not been read.
};

/// The last word of a message of `bytes`, which changes with every message.
std::atomic_ref<std::uint64_t> last_word(Buffer& buffer, std::size_t bytes) {
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(buffer.data + bytes - 8));
}

void ping_pong(World& w, Side& side, const char* what, std::size_t bytes, bool piggyback, Told told) {
  last_word(side.sink, bytes).store(0);
  std::uint64_t number = 0;
  const unsigned long flags = told == Told::kNotice ? kRemote : 0;
  const auto send = [&] {
    if (w.rank == 0) ++number;
    last_word(side.source, bytes).store(number, std::memory_order_relaxed);
    piggyback ? side.piggyback(number, flags) : side.put(bytes, flags);
  };
  const auto receive = [&] {
    if (w.rank == 1) ++number;
    if (told == Told::kNotice) side.notice();
    const auto word = last_word(side.sink, bytes);
    for (long tries = 0; word.load(std::memory_order_acquire) != number; ++tries) {
      if (told == Told::kNotice) fail("wrong data behind a notice");
      if (told == Told::kMemoryCalling) side.look();
      if (told == Told::kMemory) portofu::pause_cpu();
      if (tries > 10000000 && told == Told::kMemory) sched_yield();
    }
  };
  const auto look = [&] { told == Told::kMemory ? portofu::pause_cpu() : side.look(); };
  w.point(what, static_cast<double>(bytes), "us", half_us(),
          [&](long count) { w.round_trips(count, send, receive, look); });
}

void run_latency(World& w) {
  Side side(w, 4 << 20);
  for (const double point : w.options.points_or(kLatencyBytes)) {
    const auto bytes = static_cast<std::size_t>(point);
    if (bytes < 8) continue;  // There is no put of nothing.
    ping_pong(w, side, "put, MRQ notice", bytes, false, Told::kNotice);
    ping_pong(w, side, "put, memory polled, calling", bytes, false, Told::kMemoryCalling);
    ping_pong(w, side, "put, memory polled", bytes, false, Told::kMemory);
    if (bytes == 8) {
      ping_pong(w, side, "piggyback, MRQ notice", bytes, true, Told::kNotice);
      ping_pong(w, side, "piggyback, memory polled, calling", bytes, true, Told::kMemoryCalling);
      ping_pong(w, side, "piggyback, memory polled", bytes, true, Told::kMemory);
    }
    w.point("get, whole round trip", point, "us", us(), [&](long count) {
      w.serve(
          [&] {
            for (long i = 0; i < count; ++i) side.get(bytes), side.notice(), side.read_tcq();
          },
          [&] { side.look(); });
    });
  }
}

/// Windows one way, the last message of each window told; or both ways. `each` tells the target of every message.
void stream(World& w, Side& side, std::size_t bytes, int window, bool both, bool each, long count) {
  for (long round = 0; round < count; ++round) {
    if (both || w.rank == 0) {
      for (int i = 1; i <= window; ++i) side.put(bytes, each || i == window ? kRemote : 0);
    }
    if (both || w.rank == 1) {
      for (int i = 0; i < (each ? window : 1); ++i) side.notice();
      side.piggyback(0, kRemote);
    }
    if (both || w.rank == 0) side.notice();
    side.read_tcq();
  }
}

/// Windows of puts, each window complete when the TCQ notice of its last one is read (they come in order, 2.2.10); the
/// target is told nothing.
/// @param convert  of the seconds of a window
template <class Convert>
void put_alone(World& w, Side& side, double point, std::size_t bytes, int window, const char* unit, Convert&& convert) {
  std::uint64_t number = 0;
  last_word(side.sink, bytes).store(0);
  w.point("put, TCQ notice of the last", point, unit, convert, [&](long count) {
    number += static_cast<std::uint64_t>(count);
    w.serve(
        [&] {
          for (std::uint64_t i = number - static_cast<std::uint64_t>(count) + 1; i <= number; ++i) {
            last_word(side.source, bytes).store(i, std::memory_order_relaxed);
            for (int put = 1; put < window; ++put) side.put(bytes, 0, 0);
            side.put(bytes, kTcq, 0);
            side.await_tcq();
          }
        },
        [&] { side.look(); });
    while (w.rank == 1 && last_word(side.sink, bytes).load() != number) side.look();
  });
}

void run_rate(World& w) {
  Side side(w, 64);
  for (const double window : w.options.points_or(kWindows)) {
    for (const bool each : {true, false}) {
      w.point(each ? "put, MRQ notice" : "put, last one told", window, "M/s", rate(window),
              [&](long count) { stream(w, side, 8, static_cast<int>(window), false, each, count); });
    }
    put_alone(w, side, window, 8, static_cast<int>(window), "M/s", rate(window));
  }
}

void run_bandwidth(World& w) {
  Side side(w, 64 << 20);
  for (const double bytes : w.options.points_or(kBandwidthBytes)) {
    const int window = window_of(bytes);
    for (const bool both : {false, true}) {
      w.point(both ? "put, both ways" : "put", bytes, "GB/s", bandwidth(bytes * window * (both ? 2 : 1)),
              [&](long count) { stream(w, side, static_cast<std::size_t>(bytes), window, both, true, count); });
    }
    if (w.options.memory == "shared")
      put_alone(w, side, bytes, static_cast<std::size_t>(bytes), window, "GB/s", bandwidth(bytes * window));
  }
}

void run_atomic(World& w) {
  Side side(w, 64);
  w.point("ARMW add", 8, "us", us(), [&](long count) {
    w.serve(
        [&] {
          for (long i = 0; i < count; ++i) side.add(), side.notice(), side.read_tcq();
        },
        [&] { side.look(); });
  });
}

void run_overlap(World& w) {
  const auto bytes = static_cast<std::size_t>(kOverlapBytes);
  Side side(w, bytes);
  w.overlap(
      "put", kOverlapBytes, [&] { side.put(bytes, kRemote), side.read_tcq(); }, [] {}, [&] { side.notice(); });
}

void run_flagged(World& w) {
  Side side(w, 4 << 20);
  for (const double point : w.options.points_or(kFlaggedBytes)) {
    for (const bool shortly : {false, true}) {
      flagged(
          w, side, shortly ? "data, flag, short" : "data, flag", static_cast<std::size_t>(point),
          [&](std::size_t at, std::size_t bytes) { side.put_in_order(at, bytes, shortly); }, [&] { side.look_tcq(); });
    }
  }
}

void run_bypass(World& w) {
  Side side(w, 64);
  w.bypass("put, local notice", [&] { side.put(8, kLocal), side.notice(), side.read_tcq(); });
}

/// A butterfly: gate i hears from the partner of the stage before, and tells the one of its own stage.
void run_barrier(World& w) {
  std::size_t stages = 0;
  while (1 << stages < w.size) ++stages;
  using Gates = std::array<utofu_vbg_id_t, 6>;
  Gates mine{};
  CHECK(utofu_alloc_vbg(0, stages, 0, mine.data()));
  const std::vector<Gates> all = w.share(mine);
  const auto partner = [&](std::size_t stage) { return all[static_cast<std::size_t>(w.rank ^ (1 << stage))]; };
  std::vector<utofu_vbg_setting> settings;
  for (std::size_t i = 0; i < stages; ++i) {
    const std::size_t before = (i + stages - 1) % stages, after = (i + 1) % stages;
    settings.push_back({mine[i],
                        mine[before],
                        partner(before)[before],
                        mine[after],
                        partner(i)[after],
                        {UTOFU_PATH_COORD_NULL, 0, 0}});
  }
  CHECK(utofu_set_vbg(settings.data(), stages));
  w.point("barrier of gates", w.size, "us", us(), [&](long count) {
    for (long i = 0; i < count; ++i) {
      CHECK(utofu_barrier(mine[0], 0));
      int rc;
      while ((rc = utofu_poll_barrier(mine[0], 0)) == UTOFU_ERR_NOT_COMPLETED) {
      }
      check(rc, "utofu_poll_barrier");
    }
  });
  CHECK(utofu_free_vbg(mine.data(), stages));
}

}  // namespace

int main(int argc, char** argv) {
  const Options options(argc, argv);
  const std::map<std::string, void (*)(World&)> groups = {
      {"latency", run_latency}, {"rate", run_rate},       {"bandwidth", run_bandwidth}, {"atomic", run_atomic},
      {"overlap", run_overlap}, {"flagged", run_flagged}, {"bypass", run_bypass},       {"barrier", run_barrier}};
  const auto group = groups.find(options.group);
  if (group == groups.end()) fail("the program for uTofu cannot measure " + options.group, kNotApplicable);
  return run_processes(options, options.processes, group->second);
}
