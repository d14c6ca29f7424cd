// What the shared-memory wire costs beside the machine's own limits: two processes on two cores, half round trip of
// packets over ShmWire with their payload copied in and out; then one-way rate and bandwidth. Use the ratios, and only
// those of one run. Two limits are measured with each series:
//
//   line  half round trip of one cache line that both sides write in turn, right before and right after
//   raw   half round trip of the same payload copied through one fixed place a direction, and a sequence word beside
//   it.
//         On some machines it costs twice a line, because the reader's polling takes the line away from the writer
//
// usage: ring_latency [core core] [repetitions]

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/segment/process_segment.h"
#include "engine/wire/shm/shm_wire.h"

namespace portofu {
namespace {

constexpr int kBatchCount = 400;          ///< A series is the median of so many batches.
constexpr int kBatchRoundTrips = 50;      ///< Short, so that most batches see no interruption.
constexpr int kRateBatchMessages = 1000;  ///< One-way messages of a batch.
constexpr int kBandwidthMessages = 2;     ///< Long messages of a batch.
constexpr std::uint32_t kLongBytes = 1 << 20;
constexpr std::uint32_t kChunkBytes = 8192;  ///< The wire's longest payload.
constexpr double kNearNs = 100;              ///< Half round trips of the bouncing line below it are called near.
constexpr double kDisagreement = 1.3;        ///< A series is dropped when the line before and after differ by more.

/// What the two processes share besides their segments.
struct Shared {
  alignas(128) std::atomic<std::uint64_t> line;     ///< The bouncing line; even: the parent's turn.
  alignas(128) std::atomic<std::uint32_t> pids[2];  ///< PIDs, once known.
  /// One fixed place a direction, for the raw limit.
  struct Place {
    alignas(4096) std::byte data[8192];
    alignas(128) std::atomic<std::uint64_t> word;
  } places[2];
};

double now_ns() {
  return static_cast<double>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

/// Ends the program when a wait lasts so long that the other side must be gone. Looks at the clock only now and then:
/// reading it costs as much as half a message.
class Patience {
 public:
  void spin() {
    if ((++spins_ & 0xfffff) != 0) return;
    sched_yield();
    if (start_ns_ == 0) start_ns_ = now_ns();
    if (now_ns() - start_ns_ < 60e9) return;
    std::fprintf(stderr, "the other process does not answer\n");
    std::exit(1);
  }

 private:
  std::uint64_t spins_ = 0;
  double start_ns_ = 0;  ///< First look at the clock; 0 before it.
};

/// One of the two processes. Both run the same series in the same order; the parent measures.
class Side {
 public:
  Side(Shared& shared, int index, int core) : shared_(shared), index_(index) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(core, &cores);
    sched_setaffinity(0, sizeof cores, &cores);
    SegmentOptions options;
    options.nid = 0x7f000001;
    SegmentError error{};
    std::string why;
    segment_ = ProcessSegment::create(options, &error, &why);
    if (segment_ == nullptr) fail(why);
    std::memset(outgoing_, 1, sizeof outgoing_);
    std::memset(incoming_, 1, sizeof incoming_);
    wire_ = std::make_unique<ShmWire>(*segment_);
    shared_.pids[index].store(segment_->id().pid, std::memory_order_release);
    Patience patience;
    while (shared_.pids[1 - index].load(std::memory_order_acquire) == 0) patience.spin();
    const ProcessId peer{options.nid, shared_.pids[1 - index].load(std::memory_order_relaxed)};
    if (wire_->connect(peer, &link_) != ConnectResult::kConnected) fail("cannot connect");
  }

  bool measures() const { return index_ == 0; }

  /// Half round trip of the bouncing line.
  double bounce_ns() {
    return median_of_batches(kBatchCount / 2, [this] { bounce(kBatchRoundTrips); }) / (2 * kBatchRoundTrips);
  }

  /// Half round trip of a packet.
  double packet_ns(std::uint32_t bytes) {
    return median_of_batches(kBatchCount,
                             [this, bytes] {
                               for (int i = 0; i < kBatchRoundTrips; ++i) {
                                 if (measures()) send(bytes);
                                 receive();
                                 if (!measures()) send(bytes);
                               }
                             }) /
           (2 * kBatchRoundTrips);
  }

  /// Half round trip of a payload copied through a fixed place.
  double raw_ns(std::uint32_t bytes) {
    return median_of_batches(kBatchCount / 2,
                             [this, bytes] {
                               for (int i = 0; i < kBatchRoundTrips; ++i) {
                                 if (measures()) raw_send(bytes);
                                 raw_receive(bytes);
                                 if (!measures()) raw_send(bytes);
                               }
                             }) /
           (2 * kBatchRoundTrips);
  }

  /// Time of one message of a one-way stream, the way back included once a batch.
  double stream_ns(std::uint32_t bytes, int messages) {
    return median_of_batches(kBatchCount / 4,
                             [this, bytes, messages] {
                               for (int i = 0; i < messages; ++i) measures() ? send(bytes) : receive();
                               measures() ? receive() : send(0);
                             }) /
           messages;
  }

 private:
  [[noreturn]] static void fail(const std::string& why) {
    std::fprintf(stderr, "%s\n", why.c_str());
    std::exit(1);
  }

  double median_of_batches(int batches, const std::function<void()>& batch) {
    std::vector<double> times;
    for (int i = 0; i < batches; ++i) {
      bounce(1);  // Both start together.
      const double start = now_ns();
      batch();
      times.push_back(now_ns() - start);
    }
    std::nth_element(times.begin(), times.begin() + batches / 2, times.end());
    return times[static_cast<std::size_t>(batches) / 2];
  }

  void bounce(int round_trips) {
    Patience patience;
    for (int i = 0; i < round_trips; ++i) {
      if (measures()) shared_.line.store(++bounces_, std::memory_order_release);
      if (!measures()) ++bounces_;
      const std::uint64_t awaited = measures() ? bounces_ + 1 : bounces_;
      while (shared_.line.load(std::memory_order_acquire) != awaited) patience.spin();
      if (!measures()) shared_.line.store(bounces_ + 1, std::memory_order_release);
      ++bounces_;
    }
  }

  void raw_send(std::uint32_t bytes) {
    Shared::Place& place = shared_.places[index_];
    std::memcpy(place.data, outgoing_, bytes);
    place.word.store(++raw_sent_, std::memory_order_release);
  }

  void raw_receive(std::uint32_t bytes) {
    Patience patience;
    Shared::Place& place = shared_.places[1 - index_];
    ++raw_received_;
    while (place.word.load(std::memory_order_acquire) != raw_received_) patience.spin();
    std::memcpy(incoming_, place.data, bytes);
  }

  void send(std::uint32_t bytes) {
    PacketHeader header{};
    header.type = PacketType::kPut;
    header.payload_bytes = bytes;
    Patience patience;
    std::byte* room = nullptr;
    while ((room = wire_->claim(*link_, bytes)) == nullptr) patience.spin();
    std::memcpy(room, outgoing_ + offset_, bytes);
    wire_->publish(*link_, header);
    advance(bytes);
  }

  void receive() {
    Patience patience;
    Packet packet;
    while (!wire_->peek(packet)) patience.spin();
    std::memcpy(incoming_ + offset_, packet.payload.here(), packet.header.payload_bytes);
    wire_->release();
    if (!measures()) advance(packet.header.payload_bytes);
  }

  /// Chunks of a long message lie side by side; a short one is always at the same, warm place.
  void advance(std::uint32_t bytes) {
    if (bytes == kChunkBytes) offset_ = (offset_ + bytes) % kLongBytes;
  }

  Shared& shared_;
  int index_;  ///< 0 measures.
  std::unique_ptr<ProcessSegment> segment_;
  std::unique_ptr<ShmWire> wire_;
  Link* link_ = nullptr;
  std::uint64_t bounces_ = 0;       ///< Value of the bouncing line that this side has seen last.
  std::uint64_t raw_sent_ = 0;      ///< Payloads sent through the fixed place.
  std::uint64_t raw_received_ = 0;  ///< Payloads received through the fixed place.
  std::uint32_t offset_ = 0;        ///< Into both buffers.
  alignas(64) inline static std::byte outgoing_[kLongBytes];
  alignas(64) inline static std::byte incoming_[kLongBytes];
};

/// A series, and the bouncing line before and after it.
struct Result {
  double time_ns = 0;
  double line_ns = 0;
  const char* label = "";
};

Result run_series(Side& side, const std::function<double()>& series) {
  const double before = side.bounce_ns();
  Result result;
  result.time_ns = series();
  const double after = side.bounce_ns();
  result.line_ns = (before + after) / 2;
  const bool disagree = std::max(before, after) > kDisagreement * std::min(before, after);
  result.label = disagree ? "dropped" : result.line_ns < kNearNs ? "near" : "far";
  return result;
}

void run_latency(Side& side, std::uint32_t bytes) {
  const double raw = side.raw_ns(bytes);
  const Result result = run_series(side, [&side, bytes] { return side.packet_ns(bytes); });
  if (!side.measures()) return;
  std::printf("half round trip %5u B  %7.1f ns  line %6.1f ns ratio %5.2f  raw %7.1f ns ratio %4.2f  %s\n", bytes,
              result.time_ns, result.line_ns, result.time_ns / result.line_ns, raw, result.time_ns / raw, result.label);
}

void run_all(Side& side) {
  for (const std::uint32_t bytes : {0u, 8u, 64u, 1024u, 4096u, 8192u}) run_latency(side, bytes);
  const Result rate = run_series(side, [&side] { return side.stream_ns(8, kRateBatchMessages); });
  constexpr int kChunks = kBandwidthMessages * (kLongBytes / kChunkBytes);
  const Result stream = run_series(side, [&side] { return side.stream_ns(kChunkBytes, kChunks); });
  if (!side.measures()) return;
  std::printf("one-way rate        8 B  %7.2f M/s line %6.1f ns ratio %5.2f  %s\n", 1e3 / rate.time_ns, rate.line_ns,
              rate.time_ns / rate.line_ns, rate.label);
  std::printf("1 MiB in chunks of 8 KiB %7.2f GB/s line %6.1f ns              %s\n", kChunkBytes / stream.time_ns,
              stream.line_ns, stream.label);
}

}  // namespace
}  // namespace portofu

int main(int argc, char** argv) {
  using namespace portofu;
  const int cores[2] = {argc > 2 ? std::atoi(argv[1]) : 0, argc > 2 ? std::atoi(argv[2]) : 1};
  const int repetitions = argc > 3 ? std::atoi(argv[3]) : 3;
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  auto* shared = new (memory) Shared{};
  const pid_t child = fork();
  if (child < 0) return 1;
  int status = 0;
  {
    Side side(*shared, child == 0 ? 1 : 0, cores[child == 0 ? 1 : 0]);
    for (int i = 0; i < repetitions; ++i) run_all(side);
  }
  if (child == 0) return 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
