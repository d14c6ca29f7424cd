#pragma once
// One simulated process with uTofu: what lib/utofu does with an engine, at the level of the engine. Processes find each
// other's queues and gates in a table instead of the node's shared segments.

#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "engine/core/tofu.h"
#include "engine/descriptor/tofu_descriptor.h"
#include "tests/simulation/node.h"

namespace portofu::simulation {

/// Who has which queue or gate, by claim key.
using TofuClaims = std::map<std::uint64_t, ProcessId>;

/// What one process sees of the claims.
class TableDirectory final : public NodeDirectory {
 public:
  /// @param shown  where memory is listed for peers; nullptr: nowhere
  TableDirectory(TofuClaims& claims, ProcessId self, SimNetwork* shown) : claims_(claims), self_(self), shown_(shown) {}
  ClaimResult claim(std::uint64_t key) override;
  void release(std::uint64_t key) override;
  FindResult find(std::uint64_t key, NameOwner* owner) override;
  bool publish(const PublishedRegion& region) override {
    return shown_ != nullptr && publish_region(shown_->regions(self_), region);
  }
  void withdraw(std::uint64_t key) override {
    if (shown_ != nullptr) withdraw_region(shown_->regions(self_), key);
  }
  bool is_visited(std::uint64_t key) override { return shown_ != nullptr && shown_->is_visited(self_, key); }

 private:
  TofuClaims& claims_;
  ProcessId self_;
  SimNetwork* shown_;
};

/// Used by one thread; functions take the duty themselves.
class TofuNode {
 public:
  TofuNode(SimNetwork& network, const NodeOptions& options, TofuClaims& claims, const Coordinates& at)
      : TofuNode(network.attach(options.id), options, claims, at) {}
  /// @param carrier  reaches the other processes
  /// @param shown    Network::shown
  TofuNode(std::unique_ptr<Wire> carrier, const NodeOptions& options, TofuClaims& claims, const Coordinates& at,
           SimNetwork* shown = nullptr)
      : TofuNode(std::move(carrier), options, std::make_unique<TableDirectory>(claims, options.id, shown), at) {}
  TofuNode(std::unique_ptr<Wire> carrier, const NodeOptions& options, std::unique_ptr<NodeDirectory> directory,
           const Coordinates& at);

  Node& node() { return node_; }
  Tofu& tofu() { return *node_.core().tofu; }
  std::byte* memory() { return node_.memory(); }
  int step() { return node_.engine().step(); }

  /// Creates a VCQ on a CQ that this process claims, or has claimed.
  VirtualControlQueue& make_vcq(std::uint32_t number, CqMode mode, std::uint32_t toq_entries);

  /// Whether a CQ can be claimed, which is done.
  bool claim(std::uint32_t number);

  /// Frees a VCQ, and its CQ if it was the last one.
  void free_vcq(VirtualControlQueue& vcq);

  /// Registers a piece of the memory. @return its STADD
  std::uint64_t register_memory(const VirtualControlQueue& vcq, std::uint64_t at, std::uint64_t bytes, bool read_only);

  /// Writes a descriptor into the TOQ; there must be room. Fields that name the VCQ and the TCQ entry are set here.
  void post(VirtualControlQueue& vcq, const Descriptor& wanted, void* callback_data, bool tcq_notice);

  bool read_tcq(VirtualControlQueue& vcq, void** callback_data, NiFail* fail);
  bool read_mrq(VirtualControlQueue& vcq, Notice* notice);

  /// Claims a gate. @param set  the start/end gate that is allocated with it; 0: it is one itself
  BarrierGate& make_gate(std::uint32_t number, std::uint64_t set);
  /// Gives a set of gates back.
  void free_gates(std::span<BarrierGate* const> gates);
  void configure(BarrierGate& gate, const GateEnds& ends);
  /// The set of the gate is configured without it.
  void leave_out(BarrierGate& gate);
  void start(BarrierGate& gate, const GateValue& value);

  /// Takes the result of a barrier. @return how it has ended; kRunning: it has not
  BarrierState take_result(BarrierGate& gate, GateValue* value);

 private:
  std::unique_ptr<NodeDirectory> directory_;
  Node node_;
};

}  // namespace portofu::simulation
