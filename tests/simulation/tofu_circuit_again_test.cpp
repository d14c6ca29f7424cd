// Processes of a circuit die, lose links to each other, or leave it, and the survivors connect their gates anew, or
// free them first, with other neighbours or the same ones, while values and news of the old circuit are under way. A
// barrier gives the result of its circuit, or ends with an error.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "engine/wire/sim/sim_network.h"
#include "tests/simulation/far_directory.h"
#include "tests/simulation/network.h"
#include "tests/simulation/seed.h"
#include "tests/simulation/tofu_node.h"

namespace portofu::simulation {
namespace {

constexpr std::size_t kProcesses = 8;
constexpr std::size_t kStages = 3;  ///< Of a butterfly of all.
constexpr std::size_t kRounds = 4;
constexpr int kCircuits = 6;
constexpr int kMostSteps = 100'000;  ///< Of one part of a run.

SimOptions draw_network(std::uint64_t seed) {
  SimRandom random(seed ^ 0xa6a1);
  return draw_links(random, 39);
}

/// What may happen in a world.
struct Taste {
  bool is_far = false;      ///< Each process is a node of its own, which is asked for names.
  bool has_deaths = false;  ///< Else nobody dies.
  bool has_losses = false;  ///< Links are lost between processes that live.
};

struct Survivor {
  std::unique_ptr<TofuNode> node;
  std::array<BarrierGate*, kStages> gates{};
  bool is_alive = true;
  bool is_connected = false;  ///< In the present circuit.
  bool has_failed = false;
  std::size_t started = 0;  ///< Rounds of the present circuit.
  std::size_t passed = 0;

  bool runs() const { return started != passed && !has_failed; }
  bool is_done() const { return has_failed || passed == kRounds; }
};

class World {
 public:
  World(std::uint64_t seed, const Taste& taste)
      : taste_(taste), random_(seed), network_(seed + 1, draw_network(seed)), names_(seed + 2) {
    if (taste.is_far) names_.most_looks = random_.below(40);
    for (std::size_t i = 0; i < kProcesses; ++i) {
      NodeOptions options;
      options.id = {0x0a000001 + static_cast<std::uint32_t>(taste.is_far ? i : 0), 100 + static_cast<std::uint32_t>(i)};
      options.index = i;
      options.memory_bytes = 64;
      options.ring = {16, 16384, 8192};
      options.clock_ns = &clock_ns_;
      const Coordinates at{static_cast<std::uint8_t>(i), 0, 0, 0, 0, 0};
      processes_[i].node = std::make_unique<TofuNode>(network_.attach(options.id), options,
                                                      std::make_unique<FarDirectory>(names_, options.id, at), at);
      allocate(processes_[i]);
    }
  }

  std::string run() {
    for (int circuit = 0; circuit < kCircuits && living().size() >= 2 && complaint_.empty(); ++circuit) {
      choose_members();
      connect_all();
      pass_circuit();
    }
    return complaint_;
  }

 private:
  bool percent(std::uint64_t share) { return random_.below(100) < share; }

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

  std::vector<std::size_t> living() const {
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < kProcesses; ++i) {
      if (processes_[i].is_alive) all.push_back(i);
    }
    return all;
  }

  /// A member of the present circuit that lives; nullptr: the one that was drawn does not.
  Survivor* draw_member() {
    Survivor& process = processes_[members_[random_.below(members_.size())]];
    return process.is_alive ? &process : nullptr;
  }

  template <class Is>
  bool all_members(Is&& is) const {
    return std::ranges::all_of(members_, [&](std::size_t i) { return !processes_[i].is_alive || is(processes_[i]); });
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

  /// The same ones as before, or others, with other neighbours. Who is left over may free its gates, or leave them.
  void choose_members() {
    const bool all_live = std::ranges::all_of(members_, [this](std::size_t i) { return processes_[i].is_alive; });
    if (!members_.empty() && all_live && percent(50)) return;
    members_ = living();
    for (std::size_t i = members_.size(); i > 1; --i) std::swap(members_[i - 1], members_[random_.below(i)]);
    std::size_t size = kProcesses;
    while (size > members_.size() || (size > 2 && percent(20))) size /= 2;
    for (std::size_t i = size; i < members_.size(); ++i) {
      if (percent(50)) free_gates(processes_[members_[i]]);
    }
    members_.resize(size);
  }

  /// A butterfly of the members, as in 5.2.1 of the guide.
  void connect(Survivor& process) {
    const auto index = static_cast<std::size_t>(&process - processes_.data());
    const auto place = static_cast<std::size_t>(std::ranges::find(members_, index) - members_.begin());
    std::size_t stages = 0;
    while (std::size_t{1} << stages < members_.size()) ++stages;
    for (BarrierGate* const gate : process.gates) gate->is_left_out = true;  // Until it is connected anew.
    for (std::size_t i = 0; i < stages; ++i) {
      const std::size_t before = (i + stages - 1) % stages, after = (i + 1) % stages;
      const auto partner = [&](std::size_t stage) -> const Survivor& {
        return processes_[members_[place ^ std::size_t{1} << stage]];
      };
      process.node->configure(*process.gates[i], {.local_source = process.gates[before]->id,
                                                  .remote_source = partner(before).gates[before]->id,
                                                  .local_target = process.gates[after]->id,
                                                  .remote_target = partner(i).gates[after]->id});
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
    Survivor* process = nullptr;
    while (process == nullptr) process = draw_member();
    network_.kill(process->node->node().id());
    names_.dead.insert(process_key(process->node->node().id()));
    process->is_alive = false;
  }

  void lose_link() {
    const Survivor *const from = draw_member(), *const to = draw_member();
    if (from == nullptr || to == nullptr || from == to) return;
    network_.break_link(from->node->node().id(), to->node->node().id());
    ++lost_;
  }

  /// Members pass their rounds, unless some of them die, or links between them are lost. Or they leave when they like.
  void pass_circuit() {
    const std::size_t deaths = taste_.has_deaths && percent(60) ? 1 + random_.below(members_.size() - 1) : 0;
    const bool at_once = percent(50);
    const bool is_left = deaths == 0 && percent(20);
    const bool loses = taste_.has_losses && percent(60);
    std::size_t dead = 0;
    const auto is_over = [&] {
      if (deaths != 0 || is_left) return dead == deaths && random_.below(30) == 0;
      return all_members([](const Survivor& one) { return one.is_done(); });
    };
    run_until("all rounds pass, or fail", [&] {
      if (Survivor* const process = draw_member()) {
        // Who has heard from others that somebody is dead begins nothing more in this circuit.
        if (dead == 0 || random_.below(8) == 0) start_next(*process);
        look(*process);
        if (process->has_failed && dead == 0 && lost_ == 0) complain("a barrier fails for no reason");
      }
      if (loses && random_.below(200) == 0) lose_link();
      if (dead < deaths && random_.below(dead == 0 ? 300 : 20) == 0) {
        do kill_one();
        while (++dead < deaths && at_once);
      }
      return is_over();
    });
    leave_circuit(deaths != 0 || is_left);
  }

  /// Whoever is in no barrier may free its gates at once. The others' barriers end all the same.
  void leave_circuit(bool frees) {
    run_until("barriers of the survivors end", [&] {
      if (Survivor* const process = draw_member()) {
        look(*process);
        if (frees && !process->runs() && process->gates[0]->configured && random_.below(40) == 0) free_gates(*process);
      }
      return all_members([](const Survivor& one) { return !one.runs(); });
    });
  }

  void connect_all() {
    for (Survivor& process : processes_) process.is_connected = false;
    run_until("all are connected", [&] {
      Survivor* const process = draw_member();
      if (process != nullptr && !process->is_connected && random_.below(4) == 0) connect(*process);
      return all_members([](const Survivor& one) { return one.is_connected; });
    });
  }

  const Taste taste_;
  SimRandom random_;
  std::uint64_t clock_ns_ = 0;
  SimNetwork network_;
  FarNames names_;
  std::array<Survivor, kProcesses> processes_;
  std::vector<std::size_t> members_;  ///< Of the present circuit, in the order of their places.
  std::size_t lost_ = 0;              ///< Links, in all circuits.
  std::string complaint_;
};

void run_worlds(int count, const Taste& taste) {
  run_seeds(count, [&](std::uint64_t seed) { return World(seed, taste).run(); });
}

TEST(TofuCircuitAgain, Survivors__pass_their_own_barriers_or_are_told) { run_worlds(1000, {.has_deaths = true}); }

TEST(TofuCircuitAgain, Survivors_on_nodes_of_their_own__pass_their_own_barriers_or_are_told) {
  run_worlds(1000, {.is_far = true, .has_deaths = true});
}

TEST(TofuCircuitAgain, Processes_that_lose_links__pass_their_own_barriers_or_are_told) {
  run_worlds(500, {.has_losses = true});
}

TEST(TofuCircuitAgain, Survivors_that_lose_links__pass_their_own_barriers_or_are_told) {
  run_worlds(500, {.is_far = true, .has_deaths = true, .has_losses = true});
}

TEST(TofuCircuitAgain, Processes_that_come_and_go__pass_their_own_barriers_or_are_told) {
  run_worlds(500, {.is_far = true});
}

}  // namespace
}  // namespace portofu::simulation
