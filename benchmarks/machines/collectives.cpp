#include "benchmarks/machines/collectives.h"

#include <algorithm>
#include <cstring>

#include "benchmarks/machines/driver.h"
#include "benchmarks/machines/timed_world.h"
#include "engine/atomic/atomic_unit.h"
#include "engine/topology/tofu_id.h"
#include "tests/simulation/tofu_node.h"

namespace portofu::machines {
namespace {

using simulation::Node;
using simulation::NodeOptions;
using simulation::TofuNode;

constexpr std::uint32_t kMostStages = 16;
constexpr std::uint16_t kPt = 2;
constexpr std::uint64_t kLatePs = 100'000'000;

/// A box as near to a cube as powers of two come.
std::string box_of(std::uint32_t log2_ranks) {
  const auto side = [&](std::uint32_t axis) { return std::to_string(1u << ((log2_ranks + 2 - axis) / 3)); };
  return side(0) + "x" + side(1) + "x" + side(2);
}

NodeOptions options_of(std::uint32_t rank, std::uint64_t* clock_ns) {
  NodeOptions options;
  options.id = TimedWorld::process_of(rank);
  options.index = rank;
  options.memory_bytes = (kMostStages + 1) * sizeof(std::uint64_t);
  options.own_loopback = false;  // What an interface sends to itself takes time, too.
  options.ring = {16, 16384, 8192};
  options.clock_ns = clock_ns;
  return options;
}

double us(std::uint64_t ps) { return static_cast<double>(ps) / 1e6; }

/// Ranks with barrier gates: the first of each starts and ends, and a relay gate awaits the packet of each stage.
class BarrierRun {
 public:
  BarrierRun(const sim::Machine& machine, std::uint32_t stages)
      : world_(make_network(machine, box_of(stages).c_str())), stages_(stages) {
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      nodes_.push_back(std::make_unique<TofuNode>(world_.attach(rank), options_of(rank, &clock_ns_), claims_,
                                                  world_.network().layout().coordinates[rank]));
      starts_.push_back(&nodes_[rank]->make_gate(make_queue_number(0, 0, 0), 0));
      for (std::uint32_t stage = 1; stage <= stages_; ++stage)
        gates_.push_back(&nodes_[rank]->make_gate(make_queue_number(0, stage, 0), starts_[rank]->id));
    }
    for (std::uint32_t rank = 0; rank < count(); ++rank) configure(rank);
  }

  CollectiveTime run() {
    for (std::uint32_t rank = 0; rank < count(); ++rank) start(rank, 0);
    CollectiveTime time;
    time.us = us(finish().last_ps);
    time.packets = world_.packet_count();
    const std::uint64_t begin_ps = world_.now_ps();
    for (std::uint32_t rank = 1; rank < count(); ++rank) start(rank, begin_ps);
    late_ps_ = begin_ps + kLatePs;
    const Ends ends = finish();
    if (ended_ != 2 * count()) time.complaint = "a barrier does not end at all ranks";
    if (ends.first_ps < late_ps_) time.complaint = "a barrier ends before all have begun it";
    return time;
  }

 private:
  struct Ends {
    std::uint64_t first_ps = UINT64_MAX;
    std::uint64_t last_ps = 0;
  };

  std::uint32_t count() const { return world_.rank_count(); }

  BarrierGate& gate(std::uint32_t rank, std::uint32_t stage) {
    return stage == 0 ? *starts_[rank] : *gates_[rank * stages_ + stage - 1];
  }

  void configure(std::uint32_t rank) {
    const auto partner = [&](std::uint32_t stage) { return rank ^ (1u << stage); };
    nodes_[rank]->configure_gate(gate(rank, 0), {.local_source = gate(rank, stages_).id,
                                                 .remote_source = BarrierGate::kNoGate,
                                                 .local_target = gate(rank, 1).id,
                                                 .remote_target = gate(partner(0), 1).id});
    for (std::uint32_t stage = 1; stage <= stages_; ++stage) {
      const bool is_last = stage == stages_;
      nodes_[rank]->configure_gate(
          gate(rank, stage), {.local_source = gate(rank, stage - 1).id,
                              .remote_source = gate(partner(stage - 1), stage - 1).id,
                              .local_target = gate(rank, is_last ? 0 : stage + 1).id,
                              .remote_target = is_last ? BarrierGate::kNoGate : gate(partner(stage), stage + 1).id});
    }
  }

  void start(std::uint32_t rank, std::uint64_t at_ps) {
    world_.set_time(at_ps + world_.network().machine().processor.barrier_ps, /*by_processor=*/true);
    nodes_[rank]->start(*starts_[rank], GateValue{});
    settle(rank);
  }

  /// Lets an engine do what there is to do now.
  void settle(std::uint32_t rank) {
    while (nodes_[rank]->step() > 0) {
    }
    GateValue value;
    if (!nodes_[rank]->take_result(*starts_[rank], &value)) return;
    const sim::Machine& machine = world_.network().machine();
    const std::uint64_t seen_ps = world_.now_ps() + machine.interfaces.notice_ps + machine.processor.poll_ps;
    ends_.first_ps = std::min(ends_.first_ps, seen_ps);
    ends_.last_ps = std::max(ends_.last_ps, seen_ps);
    ++ended_;
  }

  /// Until nothing is on its way any more. @return of the barriers that have ended since the last call
  Ends finish() {
    for (;;) {
      while (const auto rank = world_.deliver_next()) settle(*rank);
      if (late_ps_ == 0) return std::exchange(ends_, {});
      start(0, std::exchange(late_ps_, 0));
    }
  }

  TimedWorld world_;
  const std::uint32_t stages_;
  std::uint64_t clock_ns_ = 0;
  simulation::TofuClaims claims_;
  std::vector<std::unique_ptr<TofuNode>> nodes_;
  std::vector<BarrierGate*> starts_;
  std::vector<BarrierGate*> gates_;  ///< Of each rank, the relay gates.
  std::uint64_t late_ps_ = 0;        ///< When rank 0 begins, if the others have; 0: it has.
  Ends ends_;
  std::uint32_t ended_ = 0;
};

/// Ranks with a counter and a number for each stage.
class AllreduceRun {
 public:
  AllreduceRun(const sim::Machine& machine, std::uint32_t stages)
      : world_(make_network(machine, std::to_string(1u << stages).c_str())), stages_(stages) {
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      nodes_.push_back(std::make_unique<Node>(world_.attach(rank), options_of(rank, &clock_ns_)));
      counters_.emplace_back();
    }
    for (std::uint32_t rank = 0; rank < count(); ++rank) set_up(rank);
  }

  CollectiveTime run() {
    const sim::Machine& machine = world_.network().machine();
    world_.set_time(machine.processor.put_ps, /*by_processor=*/true);
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      for (const std::uint32_t to : {rank, rank ^ 1u}) nodes_[rank]->engine().post(addition(rank, to, 0));
      settle(rank);
    }
    while (const auto rank = world_.deliver_next()) settle(*rank);
    CollectiveTime time;
    time.us = us(last_ps_ + machine.interfaces.notice_ps + machine.processor.poll_ps);
    time.packets = world_.packet_count();
    const std::uint64_t sum = std::uint64_t{count()} * (count() + 1) / 2;
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      if (number(rank, stages_) != sum) time.complaint = "a rank has another sum";
    }
    if (ended_ != count()) time.complaint = "the sum does not come to all ranks";
    return time;
  }

 private:
  std::uint32_t count() const { return world_.rank_count(); }

  std::uint64_t number(std::uint32_t rank, std::uint32_t stage) {
    std::uint64_t value = 0;
    std::memcpy(&value, nodes_[rank]->memory() + stage * sizeof value, sizeof value);
    return value;
  }

  /// Adds the number of a stage to that of the next.
  Descriptor addition(std::uint32_t rank, std::uint32_t to, std::uint32_t stage) {
    Descriptor descriptor;
    descriptor.type = PacketType::kAtomic;
    descriptor.interface_index = 1;
    descriptor.portals.target = TimedWorld::process_of(to);
    descriptor.portals.md_handle = mds_[rank];
    descriptor.portals.local_offset = stage * sizeof(std::uint64_t);
    descriptor.pt_index = kPt;
    descriptor.match_bits = stage + 1;
    descriptor.length = sizeof(std::uint64_t);
    descriptor.atomic_type = static_cast<std::uint8_t>(AtomicType::kUint64);
    descriptor.atomic_operation = static_cast<std::uint8_t>(AtomicOperation::kSum);
    return descriptor;
  }

  void set_up(std::uint32_t rank) {
    Node& node = *nodes_[rank];
    const std::uint64_t value = rank + 1;
    std::memcpy(node.memory(), &value, sizeof value);
    mds_.push_back(node.make_md({{{0, node.memory_bytes()}}}, kMdEventSuccessDisable, 0, 0));
    node.make_portal(kPt, 0, false);
    for (std::uint32_t stage = 1; stage <= stages_; ++stage) {
      counters_[rank].push_back(node.make_counter());
      simulation::EntryPlan plan;
      plan.region = {{{stage * sizeof(std::uint64_t), sizeof(std::uint64_t)}}};
      plan.criteria = {stage, 0, {}, true, true};
      plan.options = kEntryOpPut | kEntryEventLinkDisable | kEntryEventCommDisable | kEntryEventCtComm;
      plan.ct = counters_[rank].back();
      plan.pt_index = kPt;
      Handle handle = 0;
      PORTOFU_ASSERT(append_entry(node.core(), node.interface(), node.request_of(plan), &handle) == Status::kOk);
      if (stage == stages_) break;
      for (const std::uint32_t to : {rank, rank ^ (1u << stage)})
        node.arm(counters_[rank].back(), 2, addition(rank, to, stage));
    }
  }

  void settle(std::uint32_t rank) {
    CountingEvent& last = *nodes_[rank]->interface().cts.find(counters_[rank].back());
    const bool was_over = last.success() == 2;
    while (nodes_[rank]->engine().step() > 0) {
    }
    if (was_over || last.success() != 2) return;
    ++ended_;
    last_ps_ = std::max(last_ps_, world_.now_ps());
  }

  TimedWorld world_;
  const std::uint32_t stages_;
  std::uint64_t clock_ns_ = 0;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::vector<Handle>> counters_;  ///< By rank and stage.
  std::vector<Handle> mds_;                    ///< By rank: its numbers.
  std::uint64_t last_ps_ = 0;
  std::uint32_t ended_ = 0;
};

}  // namespace

CollectiveTime barrier(const sim::Machine& machine, std::uint32_t log2_ranks) {
  return BarrierRun(machine, log2_ranks).run();
}

CollectiveTime allreduce(const sim::Machine& machine, std::uint32_t log2_ranks) {
  return AllreduceRun(machine, log2_ranks).run();
}

}  // namespace portofu::machines
