// Processes of a circuit die, and the survivors connect their gates anew, or free them first, while values and news of
// the old circuit are under way. A barrier of such a circuit gives the result of this one, or ends with an error.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "engine/wire/sim/sim_network.h"
#include "tests/simulation/seed.h"
#include "tests/simulation/tofu_node.h"

namespace portofu::simulation {
namespace {

constexpr std::size_t kProcesses = 8;
constexpr std::size_t kStages = 3;  ///< Of a butterfly of all.
constexpr std::size_t kRounds = 4;
constexpr int kMostSteps = 100'000;  ///< Of one part of a run.

SimOptions draw_network(std::uint64_t seed) {
  SimRandom random(seed ^ 0xa6a1);
  SimOptions options;
  options.max_link_packets = 1 + static_cast<std::uint32_t>(random.below(8));
  options.max_delay_polls = static_cast<std::uint32_t>(random.below(40));
  return options;
}

struct Survivor {
  std::unique_ptr<TofuNode> node;
  std::array<BarrierGate*, kStages> gates{};
  bool is_alive = true;
  bool is_connected = false;  ///< In the present circuit.
  bool has_failed = false;
  std::size_t started = 0;  ///< Rounds of the present circuit.
  std::size_t passed = 0;

  bool runs() const { return started != passed && !has_failed; }
};

class World {
 public:
  explicit World(std::uint64_t seed) : random_(seed), network_(seed + 1, draw_network(seed)) {
    for (std::size_t i = 0; i < kProcesses; ++i) {
      NodeOptions options;
      options.id = {0x0a000001, 100 + static_cast<std::uint32_t>(i)};
      options.index = i;
      options.memory_bytes = 64;
      options.ring = {16, 16384, 8192};
      options.clock_ns = &clock_ns_;
      const Coordinates at{0, 0, 0, 0, static_cast<std::uint8_t>(i % 3), static_cast<std::uint8_t>(i / 3)};
      processes_[i].node = std::make_unique<TofuNode>(network_, options, claims_, at);
      allocate(processes_[i]);
    }
  }

  std::string run() {
    for (std::size_t left = kProcesses; left >= 2 && complaint_.empty(); left /= 2) pass_circuit(left);
    return complaint_;
  }

 private:
  void complain(const std::string& text) {
    if (complaint_.empty()) complaint_ = text;
  }

  void allocate(Survivor& process) {
    const auto first = static_cast<std::uint32_t>(kStages * static_cast<std::size_t>(&process - processes_.data()));
    for (std::uint32_t i = 0; i < kStages; ++i)
      process.gates[i] =
          &process.node->make_gate(make_queue_number(0, first + i, 0), i == 0 ? 0 : process.gates[0]->id);
  }

  void free_gates(Survivor& process) {
    process.node->free_gates(process.gates);
    allocate(process);
  }

  std::vector<Survivor*> living() {
    std::vector<Survivor*> all;
    for (Survivor& process : processes_) {
      if (process.is_alive) all.push_back(&process);
    }
    return all;
  }

  void let_somebody_step() {
    Survivor& process = processes_[random_.below(kProcesses)];
    if (!process.is_alive) return;
    process.node->step();
    if (random_.below(10) != 0) return;
    clock_ns_ += random_.below(50'000'000);
    process.node->node().run_timers();
  }

  /// Goes on until that is so.
  template <class Condition>
  void run_until(const char* what, Condition&& condition) {
    for (int step = 0; complaint_.empty() && !condition(); ++step) {
      if (step == kMostSteps) complain(std::string("never: ") + what);
      let_somebody_step();
    }
  }

  /// A butterfly of those that live, as in 5.2.1 of the guide.
  void connect(Survivor& process) {
    const std::vector<Survivor*> all = living();
    const auto place = static_cast<std::size_t>(std::ranges::find(all, &process) - all.begin());
    std::size_t stages = 0;
    while (std::size_t{1} << stages < all.size()) ++stages;
    for (BarrierGate* const gate : process.gates) gate->is_left_out = true;  // Until it is connected anew.
    for (std::size_t i = 0; i < stages; ++i) {
      const std::size_t before = (i + stages - 1) % stages, after = (i + 1) % stages;
      const auto partner = [&](std::size_t stage) { return all[place ^ std::size_t{1} << stage]; };
      process.node->configure(*process.gates[i], {.local_source = process.gates[before]->id,
                                                  .remote_source = partner(before)->gates[before]->id,
                                                  .local_target = process.gates[after]->id,
                                                  .remote_target = partner(i)->gates[after]->id});
    }
    for (std::size_t i = stages; i < kStages; ++i) process.node->leave_out(*process.gates[i]);
    process.is_connected = true;
    process.has_failed = false;
    process.started = process.passed = 0;
  }

  GateValue value_of(const Survivor& process, std::size_t round) const {
    GateValue value;
    value.operation = ReduceOperation::kSum;
    value.item_count = 3;
    value.items = {1, round, std::uint64_t{1} << (&process - processes_.data())};
    return value;
  }

  void start_next(Survivor& process) {
    if (process.has_failed || process.runs() || process.started == kRounds) return;
    process.node->start(*process.gates[0], value_of(process, process.started++));
  }

  void look(Survivor& process) {
    if (!process.runs()) return;
    GateValue value;
    const BarrierState end = process.node->take_result(*process.gates[0], &value);
    if (end == BarrierState::kRunning) return;
    if (end == BarrierState::kFailed) {
      process.has_failed = true;
      return;
    }
    std::array<std::uint64_t, 3> expected{};
    for (const std::size_t index : members_) {
      const GateValue one = value_of(processes_[index], process.passed);
      for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += one.items[i];
      if (processes_[index].is_alive && processes_[index].started <= process.passed)
        complain("a round ends before all have started");
    }
    if (value.mismatch != 0 || !std::ranges::equal(expected, std::span(value.items).first(expected.size())))
      complain("another result than that of this circuit");
    ++process.passed;
  }

  void kill_one() {
    std::vector<Survivor*> all = living();
    Survivor& process = *all[random_.below(all.size())];
    network_.kill(process.node->node().id());
    process.is_alive = false;
  }

  /// Those who live pass their rounds; or half of them die, and the others leave the circuit.
  void pass_circuit(std::size_t size) {
    members_.clear();
    for (const Survivor* process : living()) members_.push_back(static_cast<std::size_t>(process - processes_.data()));
    connect_all();
    const std::size_t deaths = size == 2 ? 0 : size / 2;
    std::size_t dead = 0;
    const auto is_over = [&] {
      if (deaths != 0) return dead == deaths && random_.below(30) == 0;
      return std::ranges::all_of(living(), [](const Survivor* one) { return one->passed == kRounds; });
    };
    run_until("all rounds pass", [&] {
      Survivor& process = processes_[random_.below(kProcesses)];
      if (process.is_alive) {
        // Who has heard from others that somebody is dead begins nothing more in this circuit.
        if (dead == 0 || random_.below(8) == 0) start_next(process);
        look(process);
        if (process.has_failed && dead == 0) complain("a barrier fails, and nobody of its circuit is dead");
      }
      if (dead < deaths && random_.below(dead == 0 ? 300 : 20) == 0) {
        kill_one();
        ++dead;
      }
      return is_over();
    });
    if (deaths != 0) leave_circuit_of_the_dead();
  }

  /// Whoever is in no barrier may free its gates at once. The others' barriers end all the same.
  void leave_circuit_of_the_dead() {
    for (Survivor* process : living()) process->is_connected = false;
    run_until("barriers of the survivors end", [&] {
      Survivor& process = processes_[random_.below(kProcesses)];
      if (process.is_alive) {
        look(process);
        if (!process.runs() && process.gates[0]->configured && random_.below(40) == 0) free_gates(process);
      }
      return std::ranges::none_of(living(), [](const Survivor* one) { return one->runs(); });
    });
  }

  void connect_all() {
    std::vector<Survivor*> all = living();
    for (Survivor* process : all) process->is_connected = false;
    run_until("all are connected", [&] {
      Survivor* const process = all[random_.below(all.size())];
      if (!process->is_connected && random_.below(4) == 0) connect(*process);
      return std::ranges::all_of(all, [](const Survivor* one) { return one->is_connected; });
    });
  }

  SimRandom random_;
  std::uint64_t clock_ns_ = 0;
  SimNetwork network_;
  TofuClaims claims_;
  std::array<Survivor, kProcesses> processes_;
  std::vector<std::size_t> members_;  ///< Of the present circuit.
  std::string complaint_;
};

TEST(TofuCircuitAgain, Survivors__pass_their_own_barriers_or_are_told) {
  run_seeds(1000, [](std::uint64_t seed) { return World(seed).run(); });
}

}  // namespace
}  // namespace portofu::simulation
