#pragma once
// Shapes of barrier circuits, drawn from a seed: who sends to whom, stage by stage, and the gates that do so. A shape
// is right by construction: everybody's contribution reaches everybody, and in most shapes exactly once.

#include <cstdint>
#include <string>
#include <vector>

#include "engine/wire/sim/sim_random.h"

namespace portofu::simulation {

/// One packet from a participant to another.
struct Hop {
  std::size_t from;
  std::size_t to;
  bool gives;  ///< The receiver takes the value instead of combining it: its signal is masked.
};

/// Hops that go out before any of them has come in; nobody receives twice.
using Stage = std::vector<Hop>;

/// A gate of a circuit; the others by index.
struct PlannedGate {
  static constexpr std::size_t kNone = SIZE_MAX;

  std::size_t participant = 0;
  std::uint32_t tni = 0;
  bool start = false;
  bool removed = false;  ///< The start/end gate has taken its place.
  std::size_t local_source = kNone;
  std::size_t remote_source = kNone;
  std::size_t local_target = kNone;
  std::size_t remote_target = kNone;
};

class CircuitShape {
 public:
  CircuitShape(SimRandom& random, std::size_t participant_count);

  std::string name;
  bool exact = true;  ///< False: contributions may count more than once, so not every reduction has a meaning.
  std::vector<Stage> stages;
  std::vector<PlannedGate> gates;
  std::vector<std::size_t> starts;  ///< Start/end gate of each participant.

 private:
  using Group = std::vector<std::size_t>;

  bool percent(std::uint64_t share) { return random_.below(100) < share; }
  void shuffle(Group& group);

  void butterfly(const Group& group);
  void ring(const Group& group);
  void spread(const Group& group);
  void tree(const Group& group);
  void groups(const Group& group);
  std::size_t gather(const Group& group, std::vector<Hop>* hops);
  void check_contributions() const;

  std::size_t add_gate(std::size_t participant, std::uint32_t tni);
  void signal(std::size_t from, std::size_t to);
  void packet(std::size_t from, std::size_t to);
  void make_gates();
  std::size_t sender(std::size_t participant);
  void wander(std::size_t participant);
  void close(std::size_t participant);
  bool becomes_end(std::size_t participant);

  SimRandom& random_;
  std::size_t count_;
  std::uint32_t tni_count_ = 1;
  std::vector<std::size_t> current_;  ///< Gate whose output is what a participant has so far; its signal is free.
};

}  // namespace portofu::simulation
