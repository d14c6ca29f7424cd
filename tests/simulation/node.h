#pragma once
// One simulated process: memory, wires, an engine, one logical interface, and the calls of an application, made on the
// engine as lib/portals4 makes them.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/run/engine.h"
#include "engine/target/list_entries.h"
#include "engine/wire/loopback/loopback_wire.h"
#include "engine/wire/sim/shuffle_wire.h"
#include "engine/wire/sim/sim_network.h"
#include "tests/simulation/model.h"
#include "tests/simulation/recording_wire.h"

namespace portofu::simulation {

struct NodeOptions {
  ProcessId id;
  std::size_t index = 0;              ///< For the observer.
  std::uint32_t interface_index = 1;  ///< Bit 0 is matching, bit 1 is logical.
  std::uint32_t uid = 1000;
  Limits limits = kDefaultLimits;
  Settings settings;
  std::size_t memory_bytes = 65536;
  bool own_loopback = true;           ///< False: the simulated wire carries what it sends to itself.
  RingGeometry ring;                  ///< Of the loopback wire.
  std::uint64_t shuffle_seed = 0;     ///< Not 0: the disorder of PORTOFU_SHUFFLE lies over the wires.
  std::uint64_t* clock_ns = nullptr;  ///< The test's clock; must be set.
};

/// Everything of one process. Used by one thread; functions take the duty themselves.
class Node {
 public:
  Node(SimNetwork& network, const NodeOptions& options, WireObserver* observer = nullptr)
      : Node(network.attach(options.id), options, observer) {}
  /// @param carrier  reaches the other processes
  Node(std::unique_ptr<Wire> carrier, const NodeOptions& options, WireObserver* observer = nullptr);
  ~Node();

  Engine& engine() { return *engine_; }
  /// For looking, and for what the functions below do not offer; nothing else runs meanwhile.
  Core& core() { return *core_; }
  Interface& interface() { return *core_->interface(options_.interface_index); }
  bool has_interface() const { return core_->interface(options_.interface_index) != nullptr; }
  const NodeOptions& options() const { return options_; }
  ProcessId id() const { return options_.id; }
  std::byte* memory() { return memory_.data(); }
  std::size_t memory_bytes() const { return memory_.size(); }

  Handle make_queue(std::uint64_t count);
  Handle make_counter();
  Handle make_md(const ModelRegion& region, std::uint32_t md_options, Handle eq, Handle ct);
  void release_md(Handle handle);
  void make_portal(std::uint16_t pt_index, Handle eq, bool flow_control);
  void enable_portal(std::uint16_t pt_index, bool enabled);
  void set_map(const std::vector<ProcessId>& processes);

  /// The request that means the same as the plan.
  EntryRequest request_of(const EntryPlan& plan);
  MemorySegment segment_of(const ModelRegion& region);

  void post(const Descriptor& posted);
  /// Arms a triggered operation, without starting it if it is due.
  void arm(Handle ct, std::uint64_t threshold, const Descriptor& descriptor);
  void cancel(Handle ct);
  void free_counter(Handle ct);

  /// PtlNIFini for which nothing that waits may leave any more.
  void close_interface();
  void open_interface();

  /// Looks after the dead, as the engine does ten times a second.
  void run_timers();

 private:
  NodeOptions options_;
  std::vector<std::byte> memory_;
  std::unique_ptr<Wire> carrier_;
  std::unique_ptr<LoopbackWire> loopback_;
  std::unique_ptr<RecordingWire> recorded_carrier_;
  std::unique_ptr<RecordingWire> recorded_loopback_;
  std::vector<std::unique_ptr<ShuffleWire>> shuffled_;
  std::unique_ptr<Engine> engine_;
  Core* core_ = nullptr;  ///< Of engine_.
};

}  // namespace portofu::simulation
