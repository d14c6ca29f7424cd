#pragma once
// Barrier circuits of several processes over the simulated wire, some of them at the same time, for several rounds. The
// result of a round is computed from what everybody has handed in.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/wire/sim/sim_network.h"
#include "tests/simulation/tofu_node.h"
#include "tests/simulation/tofu_shape.h"

namespace portofu::simulation {

struct CircuitTaste {
  std::size_t most_processes = 5;
  std::size_t most_circuits = 3;
  std::size_t most_participants = 9;  ///< Of one circuit; several may be in one process.
  std::size_t most_rounds = 5;
  std::uint64_t mismatch_percent = 10;  ///< Rounds in which somebody starts something else.
  std::uint64_t deaths = 0;             ///< Processes that die while the rounds go on, at most.
};

/// What somebody hands in, and what comes out.
struct Contribution {
  ReduceOperation operation = ReduceOperation::kBarrier;
  std::vector<std::uint64_t> integers;
  std::vector<double> doubles;

  std::size_t item_count() const { return integers.size() + doubles.size(); }
};

/// The plain result. @return false if the contributions do not go together
bool reduce(const std::vector<Contribution>& contributions, Contribution* result);

/// Used by one thread.
class TofuCircuits {
 public:
  TofuCircuits(std::uint64_t seed, const CircuitTaste& taste);

  /// Runs all rounds. @return what went wrong; empty if nothing
  std::string run();

 private:
  struct Participant {
    std::size_t process = 0;
    BarrierGate* start = nullptr;
    std::size_t started = 0;  ///< Rounds.
    std::size_t ended = 0;
    bool slow = false;
    bool failed = false;  ///< A round has.
  };

  struct Circuit {
    std::string name;
    std::vector<Participant> participants;
    std::vector<BarrierGate*> gates;
    std::vector<std::vector<Contribution>> rounds;  ///< What everybody hands in.
  };

  void start_processes(std::uint64_t seed);
  void make_circuit();
  void make_gates(Circuit& circuit, const CircuitShape& shape);
  void draw_rounds(Circuit& circuit, bool exact);
  /// @param few  few different values, so that some are equal, and doubles that are mostly zero
  Contribution draw(ReduceOperation operation, std::size_t item_count, bool few);
  std::size_t draw_count(ReduceOperation operation);
  BarrierGate& allocate(std::size_t process, std::uint32_t tni, std::uint64_t set);
  bool act_for(Circuit& circuit, Participant& participant);
  void check_result(const Circuit& circuit, const Participant& participant, const GateValue& value);
  void kill_somebody();
  bool is_alive(const Participant& participant) const { return nodes_[participant.process] != nullptr; }
  void let_somebody_step();
  bool is_over() const;
  void check_end();
  void complain(const std::string& text);

  SimRandom random_;
  const CircuitTaste taste_;
  std::uint64_t clock_ns_ = 0;
  SimNetwork network_;
  TofuClaims claims_;
  std::vector<std::unique_ptr<TofuNode>> nodes_;  ///< nullptr: it has died.
  std::vector<std::unique_ptr<TofuNode>> dead_;
  std::vector<Circuit> circuits_;
  std::uint32_t gate_count_ = 0;  ///< Allocated in all, so that no number comes twice on a node.
  std::string complaint_;
};

}  // namespace portofu::simulation
