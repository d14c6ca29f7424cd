#include "benchmarks/machines/schedules.h"

namespace portofu::machines {
namespace {

/// The shape of a tree over ranks 0 to count - 1, whose root is rank 0.
struct Tree {
  Algorithm algorithm;
  std::uint32_t count;

  std::uint32_t parent(std::uint32_t rank) const {
    return algorithm == Algorithm::kBinomialTree ? rank & (rank - 1) : (rank - 1) / 2;
  }
  /// Whoever has the most below comes first.
  std::vector<std::uint32_t> children(std::uint32_t rank) const {
    std::vector<std::uint32_t> found;
    if (algorithm == Algorithm::kBinomialTree) {
      const std::uint32_t lowest = rank == 0 ? count : rank & (~rank + 1);
      for (std::uint32_t bit = lowest / 2; bit > 0; bit /= 2) found.push_back(rank | bit);
    } else {
      for (std::uint32_t child = 2 * rank + 1; child <= 2 * rank + 2 && child < count; ++child) found.push_back(child);
    }
    return found;
  }
};

void connect_signal(Circuit& circuit, std::uint32_t rank, std::uint32_t from, std::uint32_t to) {
  circuit[rank][from].local_target = to;
  circuit[rank][to].local_source = from;
}

void connect_packet(Circuit& circuit, Place from, Place to) {
  circuit[from.rank][from.index].remote_target = to;
  circuit[to.rank][to.index].remote_source = from;
}

/// Gate s of 1 to log2 n awaits the packet of stage s.
Circuit plan_doubling(std::uint32_t stages) {
  Circuit circuit(1u << stages, std::vector<GatePlan>(stages + 1));
  for (std::uint32_t rank = 0; rank < circuit.size(); ++rank) {
    for (std::uint32_t stage = 0; stage < stages; ++stage) {
      connect_signal(circuit, rank, stage, stage + 1);
      connect_packet(circuit, {rank, stage}, {rank ^ (1u << stage), stage + 1});
    }
    connect_signal(circuit, rank, stages, 0);
  }
  return circuit;
}

/// Of c children: gates 1 to c await theirs, the least first, and the last of these tells the parent; gates c + 1 to 2c
/// tell them, the greatest first. Who has none needs only gate 0.
Circuit plan_tree(const Tree& tree) {
  Circuit circuit(tree.count);
  const auto child_count = [&](std::uint32_t rank) { return static_cast<std::uint32_t>(tree.children(rank).size()); };
  for (std::uint32_t rank = 0; rank < tree.count; ++rank) circuit[rank].resize(2 * child_count(rank) + 1);
  const auto last_up = child_count;
  const auto first_down = [&](std::uint32_t rank) { return child_count(rank) > 0 ? child_count(rank) + 1 : 0; };
  for (std::uint32_t rank = 0; rank < tree.count; ++rank) {
    const std::vector<std::uint32_t> children = tree.children(rank);
    const auto count = static_cast<std::uint32_t>(children.size());
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t least = children[count - 1 - i];
      connect_signal(circuit, rank, i, i + 1);
      connect_packet(circuit, {least, last_up(least)}, {rank, i + 1});
      connect_packet(circuit, {rank, count + 1 + i}, {children[i], first_down(children[i])});
      connect_signal(circuit, rank, count + 1 + i, i + 1 < count ? count + 2 + i : 0);
    }
    if (rank == 0) connect_signal(circuit, 0, count, count + 1);
  }
  return circuit;
}

/// Gate 1 awaits the rank before, and gate 2 the news; rank 0 awaits only those, with gate 1.
Circuit plan_ring(std::uint32_t count) {
  Circuit circuit(count, std::vector<GatePlan>(3));
  circuit[0].resize(2);
  circuit[count - 1].resize(2);
  const auto down = [](std::uint32_t rank) { return rank == 0 ? 1u : 2u; };
  for (std::uint32_t rank = 0; rank + 1 < count; ++rank) {
    connect_packet(circuit, {rank, rank == 0 ? 0u : 1u}, {rank + 1, 1});
    connect_signal(circuit, rank + 1, 0, 1);
    connect_signal(circuit, rank, down(rank), 0);
    if (rank + 2 < count) connect_packet(circuit, {rank, down(rank)}, {rank + 1, down(rank + 1)});
  }
  connect_packet(circuit, {count - 1, 1}, {0, 1});
  connect_signal(circuit, count - 1, 1, 0);
  return circuit;
}

/// Number s of 1 to log2 n is the sum of both partners of stage s.
std::vector<RankPlan> plan_doubling_sum(std::uint32_t stages) {
  std::vector<RankPlan> plans(1u << stages);
  for (std::uint32_t rank = 0; rank < plans.size(); ++rank) {
    plans[rank].result = stages;
    for (std::uint32_t stage = 0; stage <= stages; ++stage) {
      NumberPlan number{stage > 0 ? 2u : 0u, true, {}};
      if (stage < stages) number.targets = {{rank, stage + 1}, {rank ^ (1u << stage), stage + 1}};
      plans[rank].numbers.push_back(number);
    }
  }
  return plans;
}

/// Number 1 is the sum of all below, if there are any; number 2 is what comes down.
std::vector<RankPlan> plan_tree_sum(const Tree& tree) {
  std::vector<RankPlan> plans(tree.count);
  for (std::uint32_t rank = 0; rank < tree.count; ++rank) {
    const std::vector<std::uint32_t> children = tree.children(rank);
    const bool is_root = rank == 0;
    RankPlan& plan = plans[rank];
    plan.numbers.resize(is_root ? 2 : 3);
    plan.result = is_root ? 1 : 2;
    if (!is_root) plan.numbers[children.empty() ? 0 : 1].targets = {{tree.parent(rank), 1}};
    if (!children.empty()) {
      plan.numbers[0].targets = {{rank, 1}};
      plan.numbers[1].awaited = 1 + static_cast<std::uint32_t>(children.size());
    }
    if (!is_root) plan.numbers[2] = {1, false, {}};
    for (const std::uint32_t child : children) plan.numbers[plan.result].targets.push_back({child, 2});
  }
  return plans;
}

/// Number 1 is the sum of all ranks before, and number 2 what comes round.
std::vector<RankPlan> plan_ring_sum(std::uint32_t count) {
  std::vector<RankPlan> plans(count, {std::vector<NumberPlan>(3), 2});
  for (std::uint32_t rank = 0; rank < count; ++rank) {
    RankPlan& plan = plans[rank];
    const bool is_last = rank + 1 == count;
    plan.numbers[0].targets = {{rank == 0 ? 1 : rank, 1}};
    if (rank > 0) plan.numbers[1] = {2, true, {is_last ? Place{0, 2} : Place{rank + 1, 1}}};
    if (is_last) plan.result = 1;
    if (!is_last) plan.numbers[2] = {1, false, {}};
    if (rank + 2 < count) plan.numbers[2].targets = {{rank + 1, 2}};
  }
  return plans;
}

}  // namespace

Circuit plan_barrier(Algorithm algorithm, std::uint32_t log2_ranks) {
  const std::uint32_t count = 1u << log2_ranks;
  switch (algorithm) {
    case Algorithm::kRecursiveDoubling: return plan_doubling(log2_ranks);
    case Algorithm::kRing: return plan_ring(count);
    case Algorithm::kBinomialTree:
    case Algorithm::kBinaryTree: break;
  }
  return plan_tree({algorithm, count});
}

std::vector<RankPlan> plan_sum(Algorithm algorithm, std::uint32_t log2_ranks) {
  const std::uint32_t count = 1u << log2_ranks;
  switch (algorithm) {
    case Algorithm::kRecursiveDoubling: return plan_doubling_sum(log2_ranks);
    case Algorithm::kRing: return plan_ring_sum(count);
    case Algorithm::kBinomialTree:
    case Algorithm::kBinaryTree: break;
  }
  return plan_tree_sum({algorithm, count});
}

}  // namespace portofu::machines
