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

constexpr std::uint32_t kMostNumbers = 17;
constexpr std::uint16_t kPt = 2;

NodeOptions options_of(std::uint32_t rank, std::uint64_t* clock_ns) {
  NodeOptions options;
  options.id = TimedWorld::process_of(rank);
  options.index = rank;
  options.memory_bytes = kMostNumbers * sizeof(std::uint64_t);
  options.own_loopback = false;  // What an interface sends to itself takes time, too.
  options.ring = {16, 16384, 8192};
  options.clock_ns = clock_ns;
  return options;
}

double us(std::uint64_t ps) { return static_cast<double>(ps) / 1e6; }

/// Ranks with barrier gates.
class BarrierRun {
 public:
  BarrierRun(const sim::Machine& machine, std::uint32_t log2_ranks, const Circuit& circuit)
      : world_(make_network(machine, box_of(log2_ranks).c_str())), gates_(circuit.size()) {
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      nodes_.push_back(std::make_unique<TofuNode>(world_.attach(rank), options_of(rank, &clock_ns_), claims_,
                                                  world_.network().layout().coordinates[rank]));
      for (std::uint32_t i = 0; i < circuit[rank].size(); ++i)
        gates_[rank].push_back(&nodes_[rank]->make_gate(make_queue_number(0, i, 0), i == 0 ? 0 : start_of(rank).id));
    }
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      for (std::uint32_t i = 0; i < circuit[rank].size(); ++i) configure(rank, i, circuit[rank][i]);
    }
    finish();  // What gates say to each other before the first barrier.
  }

  CollectiveTime run() {
    const std::uint64_t first_ps = world_.now_ps(), packets_before = world_.packet_count();
    for (std::uint32_t rank = 0; rank < count(); ++rank) start(rank, first_ps);
    finish();
    CollectiveTime time;
    time.us = us(last_ps_ - first_ps);
    time.packets = world_.packet_count() - packets_before;
    const std::uint64_t second_ps = world_.now_ps();
    for (std::uint32_t rank = 0; rank + 1 < count(); ++rank) start(rank, second_ps);
    finish();
    if (ended_ != count()) time.complaint = "a barrier ends before all have begun it, or never";
    start(count() - 1, world_.now_ps());
    finish();
    if (time.complaint.empty() && ended_ != 2 * count()) time.complaint = "a barrier does not end at all ranks";
    return time;
  }

 private:
  std::uint32_t count() const { return world_.rank_count(); }

  BarrierGate& start_of(std::uint32_t rank) { return *gates_[rank][0]; }

  void configure(std::uint32_t rank, std::uint32_t index, const GatePlan& plan) {
    const auto own = [&](const std::optional<std::uint32_t>& gate) {
      return gate ? gates_[rank][*gate]->id : BarrierGate::kNoGate;
    };
    const auto other = [&](const std::optional<Place>& gate) {
      return gate ? gates_[gate->rank][gate->index]->id : BarrierGate::kNoGate;
    };
    nodes_[rank]->configure(*gates_[rank][index], {.local_source = own(plan.local_source),
                                                   .remote_source = other(plan.remote_source),
                                                   .local_target = own(plan.local_target),
                                                   .remote_target = other(plan.remote_target)});
  }

  void start(std::uint32_t rank, std::uint64_t at_ps) {
    world_.set_time(at_ps + world_.network().machine().processor.barrier_ps, /*by_processor=*/true);
    nodes_[rank]->start(start_of(rank), GateValue{});
    settle(rank);
  }

  /// Lets an engine do what there is to do now.
  void settle(std::uint32_t rank) {
    while (nodes_[rank]->step() > 0) {
    }
    GateValue value;
    if (nodes_[rank]->take_result(start_of(rank), &value) != BarrierState::kCompleted) return;
    const sim::Machine& machine = world_.network().machine();
    last_ps_ = std::max(last_ps_, world_.now_ps() + machine.interfaces.notice_ps + machine.processor.poll_ps);
    ++ended_;
  }

  /// Until nothing is on its way any more.
  void finish() {
    while (const auto rank = world_.deliver_next()) settle(*rank);
  }

  TimedWorld world_;
  std::uint64_t clock_ns_ = 0;
  simulation::TofuClaims claims_;
  std::vector<std::unique_ptr<TofuNode>> nodes_;
  std::vector<std::vector<BarrierGate*>> gates_;  ///< By rank. The first starts and ends.
  std::uint64_t last_ps_ = 0;                     ///< When the last rank has seen the end.
  std::uint32_t ended_ = 0;                       ///< Of all barriers and ranks together.
};

/// Ranks whose numbers go on when their counters say so.
class SumRun {
 public:
  SumRun(const sim::Machine& machine, std::vector<RankPlan> plans)
      : world_(make_network(machine, std::to_string(plans.size()).c_str())), plans_(std::move(plans)) {
    for (std::uint32_t rank = 0; rank < count(); ++rank)
      nodes_.push_back(std::make_unique<Node>(world_.attach(rank), options_of(rank, &clock_ns_)));
    for (std::uint32_t rank = 0; rank < count(); ++rank) set_up(rank);
  }

  CollectiveTime run() {
    const sim::Machine& machine = world_.network().machine();
    world_.set_time(machine.processor.put_ps, /*by_processor=*/true);
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      for (const Place& to : plans_[rank].numbers[0].targets) nodes_[rank]->post(message({rank, 0}, to));
      settle(rank);
    }
    while (const auto rank = world_.deliver_next()) settle(*rank);
    CollectiveTime time;
    time.us = us(last_ps_ + machine.interfaces.notice_ps + machine.processor.poll_ps);
    time.packets = world_.packet_count();
    const std::uint64_t sum = std::uint64_t{count()} * (count() + 1) / 2;
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      if (number(rank, plans_[rank].result) != sum) time.complaint = "a rank has another sum";
    }
    if (ended_ != count()) time.complaint = "the sum does not come to all ranks";
    return time;
  }

 private:
  std::uint32_t count() const { return world_.rank_count(); }

  std::uint64_t number(std::uint32_t rank, std::uint32_t index) {
    std::uint64_t value = 0;
    std::memcpy(&value, nodes_[rank]->memory() + index * sizeof value, sizeof value);
    return value;
  }

  /// Takes a number to another one.
  Descriptor message(Place from, Place to) {
    Descriptor descriptor;
    descriptor.type = PacketType::kPut;
    descriptor.interface_index = 1;
    descriptor.portals.target = TimedWorld::process_of(to.rank);
    descriptor.portals.md_handle = mds_[from.rank];
    descriptor.portals.local_offset = from.index * sizeof(std::uint64_t);
    descriptor.pt_index = kPt;
    descriptor.match_bits = to.index;
    descriptor.length = sizeof(std::uint64_t);
    if (plans_[to.rank].numbers[to.index].is_sum) {
      descriptor.type = PacketType::kAtomic;
      descriptor.atomic_type = static_cast<std::uint8_t>(AtomicType::kUint64);
      descriptor.atomic_operation = static_cast<std::uint8_t>(AtomicOperation::kSum);
    }
    return descriptor;
  }

  void set_up(std::uint32_t rank) {
    Node& node = *nodes_[rank];
    const std::uint64_t value = rank + 1;
    std::memcpy(node.memory(), &value, sizeof value);
    mds_.push_back(node.make_md({{{0, node.memory_bytes()}}}, kMdEventSuccessDisable, 0, 0));
    node.make_portal(kPt, 0, false);
    const std::vector<NumberPlan>& numbers = plans_[rank].numbers;
    for (std::uint32_t i = 1; i < numbers.size(); ++i) {
      if (numbers[i].awaited == 0) continue;
      simulation::EntryPlan plan;
      plan.region = {{{i * sizeof(std::uint64_t), sizeof(std::uint64_t)}}};
      plan.criteria = {i, 0, {}, true, true};
      plan.options = kEntryOpPut | kEntryEventLinkDisable | kEntryEventCommDisable | kEntryEventCtComm;
      plan.ct = node.make_counter();
      plan.pt_index = kPt;
      Handle handle = 0;
      PORTOFU_ASSERT(append_entry(node.core(), node.interface(), node.request_of(plan), &handle) == Status::kOk);
      for (const Place& to : numbers[i].targets) node.arm(plan.ct, numbers[i].awaited, message({rank, i}, to));
      if (i == plans_[rank].result) results_.push_back(plan.ct);
    }
    PORTOFU_ASSERT(results_.size() == rank + 1);
  }

  void settle(std::uint32_t rank) {
    const CountingEvent& result = *nodes_[rank]->interface().cts.find(results_[rank]);
    const std::uint64_t awaited = plans_[rank].numbers[plans_[rank].result].awaited;
    const bool was_over = result.success() == awaited;
    while (nodes_[rank]->engine().step() > 0) {
    }
    if (was_over || result.success() != awaited) return;
    ++ended_;
    last_ps_ = std::max(last_ps_, world_.now_ps());
  }

  TimedWorld world_;
  const std::vector<RankPlan> plans_;
  std::uint64_t clock_ns_ = 0;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<Handle> results_;  ///< By rank: the counter of its result.
  std::vector<Handle> mds_;      ///< By rank: its numbers.
  std::uint64_t last_ps_ = 0;
  std::uint32_t ended_ = 0;
};

}  // namespace

std::string box_of(std::uint32_t log2_ranks) {
  const auto side = [&](std::uint32_t axis) { return std::to_string(1u << ((log2_ranks + 2 - axis) / 3)); };
  return side(0) + "x" + side(1) + "x" + side(2);
}

CollectiveTime barrier(const sim::Machine& machine, std::uint32_t log2_ranks, Algorithm algorithm) {
  return BarrierRun(machine, log2_ranks, plan_barrier(algorithm, log2_ranks)).run();
}

CollectiveTime allreduce(const sim::Machine& machine, std::uint32_t log2_ranks, Algorithm algorithm) {
  return SumRun(machine, plan_sum(algorithm, log2_ranks)).run();
}

}  // namespace portofu::machines
