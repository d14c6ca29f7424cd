// What the wires cost within one core: a packet through the ring, and a look at silent sources. The cost between cores
// is measured by pair/ring_latency.

#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/segment/process_segment.h"
#include "engine/wire/loopback/loopback_wire.h"
#include "engine/wire/shm/shm_wire.h"

namespace portofu {
namespace {

/// Processes on one imaginary node, all in this process, in a directory of their own.
class Node {
 public:
  Node() {
    std::string pattern = "/dev/shm/bench-segments-XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~Node() {
    wires_.clear();
    segments_.clear();
    std::filesystem::remove_all(path_);
  }

  ShmWire& add() {
    SegmentOptions options;
    options.nid = 1;
    options.directory = path_;
    SegmentError error{};
    segments_.push_back(ProcessSegment::create(options, &error, nullptr));
    wires_.push_back(std::make_unique<ShmWire>(*segments_.back()));
    return *wires_.back();
  }

  ProcessId id(std::size_t index) const { return segments_[index]->id(); }

 private:
  std::string path_;
  std::vector<std::unique_ptr<ProcessSegment>> segments_;
  std::vector<std::unique_ptr<ShmWire>> wires_;
};

void send_and_receive(benchmark::State& state, Wire& from, Wire& to, Link& link) {
  const auto bytes = static_cast<std::uint32_t>(state.range(0));
  std::vector<std::byte> buffer(8192);
  PacketHeader header{};
  header.payload_bytes = bytes;
  for (auto _ : state) {
    std::memcpy(from.claim(link, bytes), buffer.data(), bytes);
    from.publish(link, header);
    Packet packet;
    if (!to.peek(packet)) state.SkipWithError("lost");
    std::memcpy(buffer.data(), packet.payload.here(), packet.header.payload_bytes);
    to.release();
  }
}

void BM_loopback(benchmark::State& state) {
  LoopbackWire wire({1, 1});
  Link* link = nullptr;
  wire.connect({1, 1}, &link);
  send_and_receive(state, wire, wire, *link);
}
BENCHMARK(BM_loopback)->Arg(0)->Arg(8)->Arg(64)->Arg(1024)->Arg(8192);

void BM_shm_one_core(benchmark::State& state) {
  Node node;
  ShmWire& from = node.add();
  ShmWire& to = node.add();
  Link* link = nullptr;
  from.connect(node.id(1), &link);
  send_and_receive(state, from, to, *link);
}
BENCHMARK(BM_shm_one_core)->Arg(0)->Arg(8)->Arg(64)->Arg(1024)->Arg(8192);

/// A look that finds nothing, by number of sources.
void BM_shm_silent_sources(benchmark::State& state) {
  Node node;
  ShmWire& target = node.add();
  Packet packet;
  for (int i = 0; i < state.range(0); ++i) {
    Link* link = nullptr;
    node.add().connect(node.id(0), &link);
  }
  for (auto _ : state) benchmark::DoNotOptimize(target.peek(packet));
}
BENCHMARK(BM_shm_silent_sources)->Arg(0)->Arg(1)->Arg(4)->Arg(8)->Arg(64)->Arg(256);

}  // namespace
}  // namespace portofu
