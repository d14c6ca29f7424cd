// Rounds of barriers and reductions, and what they must give.

#include "tests/simulation/tofu_circuit.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "tests/simulation/network.h"

namespace portofu::simulation {
namespace {

constexpr int kMostSteps = 400000;

/// Doubles of these tests are integers times this power of two, so that their sum fits into 128 bits.
constexpr int kUnit = -60;
constexpr std::uint64_t kMostShift = 20;

SimOptions draw_network(std::uint64_t seed) {
  SimRandom random(seed ^ 0xbaa1);
  return draw_links(random, 5);
}

std::uint64_t combine(ReduceOperation operation, std::uint64_t a, std::uint64_t b) {
  switch (operation) {
    case ReduceOperation::kBand: return a & b;
    case ReduceOperation::kBor: return a | b;
    case ReduceOperation::kBxor: return a ^ b;
    case ReduceOperation::kMax: return a > b ? a : b;
    default: return a + b;
  }
}

/// The sum of one item of all, rounded once.
double sum_of(const std::vector<Contribution>& contributions, std::size_t item) {
  __int128 sum = 0;
  bool all_negative_zeros = true;
  for (const Contribution& one : contributions) {
    sum += static_cast<__int128>(std::ldexp(one.doubles[item], -kUnit));
    all_negative_zeros = all_negative_zeros && one.doubles[item] == 0 && std::signbit(one.doubles[item]);
  }
  return all_negative_zeros ? -0.0 : std::ldexp(static_cast<double>(sum), kUnit);
}

GateValue value_of(const Contribution& contribution) {
  GateValue value;
  value.operation = contribution.operation;
  value.item_count = static_cast<std::uint8_t>(contribution.item_count());
  std::copy(contribution.integers.begin(), contribution.integers.end(), value.items.begin());
  for (std::size_t i = 0; i < contribution.doubles.size(); ++i) value.sums[i].add(contribution.doubles[i]);
  return value;
}

bool same(const Contribution& expected, const GateValue& value) {
  if (value.operation != expected.operation || value.item_count != expected.item_count()) return false;
  for (std::size_t i = 0; i < expected.doubles.size(); ++i) {
    if (std::bit_cast<std::uint64_t>(value.sums[i].value()) != std::bit_cast<std::uint64_t>(expected.doubles[i]))
      return false;
  }
  return std::equal(expected.integers.begin(), expected.integers.end(), value.items.begin());
}

}  // namespace

bool reduce(const std::vector<Contribution>& contributions, Contribution* result) {
  *result = contributions.front();
  for (const Contribution& one : contributions) {
    if (one.operation != result->operation || one.item_count() != result->item_count()) return false;
  }
  for (std::size_t i = 0; i < result->doubles.size(); ++i) result->doubles[i] = sum_of(contributions, i);
  for (std::size_t other = 1; other < contributions.size(); ++other) {
    const auto& integers = contributions[other].integers;
    for (std::size_t i = 0; i < integers.size(); ++i) {
      if (result->operation != ReduceOperation::kMaxloc) {
        result->integers[i] = combine(result->operation, result->integers[i], integers[i]);
        continue;
      }
      // Pairs: the larger first element; of equal ones the smaller second (2.3.4).
      const std::pair<std::uint64_t, std::uint64_t> best{result->integers[i], ~result->integers[i + 1]};
      const std::pair<std::uint64_t, std::uint64_t> next{integers[i], ~integers[i + 1]};
      if (next > best) {
        result->integers[i] = integers[i];
        result->integers[i + 1] = integers[i + 1];
      }
      ++i;
    }
  }
  return true;
}

TofuCircuits::TofuCircuits(std::uint64_t seed, const CircuitTaste& taste)
    : random_(seed), taste_(taste), network_(seed + 1, draw_network(seed)) {
  start_processes(seed);
  for (std::size_t left = 1 + random_.below(taste_.most_circuits); left > 0; --left) make_circuit();
}

void TofuCircuits::complain(const std::string& text) {
  if (complaint_.empty()) complaint_ = text;
}

void TofuCircuits::start_processes(std::uint64_t seed) {
  SimRandom random(seed ^ 0x5e55);
  const std::size_t count = 1 + random_.below(taste_.most_processes);
  for (std::size_t process = 0; process < count; ++process) {
    NodeOptions options;
    options.id = {0x0a000001, 100 + static_cast<std::uint32_t>(process)};
    options.index = process;
    options.memory_bytes = 64;
    options.own_loopback = random.below(2) == 0;
    options.ring = {16, 16384, 8192};
    if (random.below(3) == 0) options.shuffle_seed = random.next();
    options.clock_ns = &clock_ns_;
    Coordinates at{};
    if (random.below(2) == 0) at = {3, static_cast<std::uint8_t>(process), 1, 0, 2, 1};
    nodes_.push_back(std::make_unique<TofuNode>(network_, options, claims_, at));
  }
}

BarrierGate& TofuCircuits::allocate(std::size_t process, std::uint32_t tni, std::uint64_t set) {
  return nodes_[process]->make_gate(make_queue_number(tni, gate_count_++, 0), set);
}

void TofuCircuits::make_circuit() {
  Circuit circuit;
  const std::size_t count = 1 + random_.below(taste_.most_participants);
  const bool spread = random_.below(2) == 0;
  for (std::size_t i = 0; i < count; ++i) {
    Participant participant;
    participant.process = spread ? i % nodes_.size() : random_.below(nodes_.size());
    participant.slow = random_.below(5) == 0;
    circuit.participants.push_back(participant);
  }
  const CircuitShape shape(random_, count);
  circuit.name = std::to_string(count) + shape.name;
  make_gates(circuit, shape);
  draw_rounds(circuit, shape.exact);
  circuits_.push_back(circuit);
}

/// Each participant has a set of gates on every TNI that it uses; only the one on its own TNI is started.
void TofuCircuits::make_gates(Circuit& circuit, const CircuitShape& shape) {
  std::map<std::pair<std::size_t, std::uint32_t>, std::uint64_t> sets;
  circuit.gates.resize(shape.gates.size());
  for (std::size_t i = 0; i < circuit.participants.size(); ++i) {
    Participant& participant = circuit.participants[i];
    const PlannedGate& planned = shape.gates[shape.starts[i]];
    participant.start = &allocate(participant.process, planned.tni, 0);
    circuit.gates[shape.starts[i]] = participant.start;
    sets[{i, planned.tni}] = participant.start->id;
  }
  for (std::size_t i = 0; i < shape.gates.size(); ++i) {
    const PlannedGate& planned = shape.gates[i];
    if (planned.start || planned.removed) continue;
    const std::size_t process = circuit.participants[planned.participant].process;
    std::uint64_t& set = sets[{planned.participant, planned.tni}];
    if (set == 0) set = allocate(process, planned.tni, 0).id;
    circuit.gates[i] = &allocate(process, planned.tni, set);
  }
  const auto id = [&circuit](std::size_t gate) {
    return gate == PlannedGate::kNone ? BarrierGate::kNoGate : circuit.gates[gate]->id;
  };
  for (std::size_t i = 0; i < shape.gates.size(); ++i) {
    const PlannedGate& planned = shape.gates[i];
    if (planned.removed) continue;
    nodes_[circuit.participants[planned.participant].process]->configure(
        *circuit.gates[i],
        {id(planned.local_source), id(planned.remote_source), id(planned.local_target), id(planned.remote_target)});
  }
}

std::size_t TofuCircuits::draw_count(ReduceOperation operation) {
  switch (operation) {
    case ReduceOperation::kBarrier: return 0;
    case ReduceOperation::kMaxloc: return 2 * (1 + random_.below(3));
    case ReduceOperation::kBfpsum: return 1 + random_.below(kMaxReduceSums);
    default: return 1 + random_.below(kMaxReduceItems);
  }
}

Contribution TofuCircuits::draw(ReduceOperation operation, std::size_t item_count, bool few) {
  Contribution made;
  made.operation = operation;
  for (std::size_t i = 0; i < item_count; ++i) {
    if (operation != ReduceOperation::kBfpsum) {
      made.integers.push_back(few ? random_.below(3) : random_.next());
      continue;
    }
    const auto mantissa = static_cast<double>(static_cast<std::int64_t>(random_.next()) >> 11);
    const double value = std::ldexp(mantissa, kUnit + static_cast<int>(random_.below(kMostShift)));
    const double zero = random_.below(4) != 0 ? -0.0 : 0.0;
    made.doubles.push_back(few && random_.below(4) != 0 ? zero : value);
  }
  return made;
}

void TofuCircuits::draw_rounds(Circuit& circuit, bool exact) {
  constexpr ReduceOperation kRepeatable[] = {ReduceOperation::kBarrier, ReduceOperation::kBand, ReduceOperation::kBor,
                                             ReduceOperation::kMax, ReduceOperation::kMaxloc};
  const auto draw_operation = [&] {
    if (!exact) return kRepeatable[random_.below(std::size(kRepeatable))];
    return static_cast<ReduceOperation>(1 + random_.below(8));
  };
  for (std::size_t round = 1 + random_.below(taste_.most_rounds); round > 0; --round) {
    const ReduceOperation operation = draw_operation();
    const std::size_t item_count = draw_count(operation);
    const bool few = random_.below(2) == 0;
    std::vector<Contribution> contributions;
    for (std::size_t i = 0; i < circuit.participants.size(); ++i)
      contributions.push_back(draw(operation, item_count, few));
    if (random_.below(100) < taste_.mismatch_percent) {
      const ReduceOperation other = random_.below(3) == 0 ? operation : draw_operation();
      contributions[random_.below(contributions.size())] = draw(other, draw_count(other), few);
    }
    circuit.rounds.push_back(contributions);
  }
}

/// Starts the next round of a participant, or looks for the end of the last. @return whether anything happened
bool TofuCircuits::act_for(Circuit& circuit, Participant& participant) {
  const auto index = static_cast<std::size_t>(&participant - circuit.participants.data());
  if (!is_alive(participant)) return false;
  TofuNode& node = *nodes_[participant.process];
  if (participant.started == participant.ended) {
    if (participant.started == circuit.rounds.size() || (participant.slow && random_.below(40) != 0)) return false;
    const Contribution& contribution = circuit.rounds[participant.started++][index];
    node.start(*participant.start, value_of(contribution));
    return true;
  }
  GateValue value;
  const BarrierState end = node.take_result(*participant.start, &value);
  if (end == BarrierState::kRunning) return false;
  ++participant.ended;
  if (end == BarrierState::kFailed) {
    if (dead_.empty()) complain("circuit " + circuit.name + ": a round fails");
    participant.failed = true;
  } else {
    if (participant.failed) complain("circuit " + circuit.name + ": a round succeeds behind one that has failed");
    check_result(circuit, participant, value);
  }
  return true;
}

void TofuCircuits::check_result(const Circuit& circuit, const Participant& participant, const GateValue& value) {
  const std::size_t round = participant.ended - 1;
  const std::string what = "circuit " + circuit.name + ", round " + std::to_string(round) + ", participant " +
                           std::to_string(&participant - circuit.participants.data()) + ": ";
  for (const Participant& other : circuit.participants) {
    if (other.started <= round) complain(what + "ends before all have started");
  }
  Contribution expected;
  const bool matches = reduce(circuit.rounds[round], &expected);
  if (matches != (value.mismatch == 0)) complain(what + (matches ? "a mismatch" : "no mismatch"));
  // A poll function is chosen by what was started, so that must not change.
  if (!matches &&
      value.operation !=
          circuit.rounds[round][static_cast<std::size_t>(&participant - circuit.participants.data())].operation)
    complain(what + "another operation comes out than was started");
  if (matches && value.mismatch == 0 && !same(expected, value)) complain(what + "another result");
}

bool TofuCircuits::is_over() const {
  for (const Circuit& circuit : circuits_) {
    for (const Participant& participant : circuit.participants) {
      if (is_alive(participant) && participant.ended < circuit.rounds.size()) return false;
    }
  }
  return network_.quiet();
}

/// What is left in the gates of a circuit that has lost a process are inputs of rounds that never were.
void TofuCircuits::check_end() {
  for (const Circuit& circuit : circuits_) {
    if (!dead_.empty()) break;
    for (const BarrierGate* gate : circuit.gates) {
      if (gate != nullptr && !(gate->rounds.signals.empty() && gate->rounds.packets.empty()))
        complain("circuit " + circuit.name + ": something is left in a gate");
    }
  }
  for (const auto& node : nodes_) {
    if (node != nullptr && node->node().core().counters.get(Counter::kPacketsRefusedMalformed) != 0)
      complain("a packet was refused");
  }
}

void TofuCircuits::kill_somebody() {
  std::unique_ptr<TofuNode>& node = nodes_[random_.below(nodes_.size())];
  if (node == nullptr) return;
  network_.kill(node->node().id());
  dead_.push_back(std::move(node));
}

void TofuCircuits::let_somebody_step() {
  TofuNode* const node = nodes_[random_.below(nodes_.size())].get();
  if (node == nullptr) return;
  node->step();
  if (taste_.deaths == 0 || random_.below(10) != 0) return;
  clock_ns_ += random_.below(50'000'000);
  node->node().run_timers();
}

std::string TofuCircuits::run() {
  for (int step = 0; !is_over() && complaint_.empty(); ++step) {
    if (step == kMostSteps) return "the barriers never end: circuit " + circuits_.front().name;
    if (dead_.size() < taste_.deaths && random_.below(400) == 0) kill_somebody();
    for (std::uint64_t left = random_.below(6); left > 0; --left) let_somebody_step();
    Circuit& circuit = circuits_[random_.below(circuits_.size())];
    act_for(circuit, circuit.participants[random_.below(circuit.participants.size())]);
  }
  if (complaint_.empty()) check_end();
  return complaint_;
}

}  // namespace portofu::simulation
