#pragma once
// What connects the engines of a test: the plain simulated wire, which keeps every promise of wire.h by itself, or
// reliable wires over a lossy network in virtual time.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/observe/counters.h"
#include "engine/wire/reliable/reliable_wire.h"
#include "engine/wire/sim/lossy_network.h"
#include "engine/wire/sim/sim_network.h"
#include "engine/wire/sim/sim_random.h"

namespace portofu::simulation {

/// Loses 10 % of the datagrams, doubles 5 %, damages 1 %, and reorders over 64.
LossyOptions bad_network();

/// Links of the crossbar that connects lossy tests unless they say otherwise.
inline constexpr LinkFigures kLossyLink{.latency_ns = 1000, .bytes_per_us = 10'000};

/// Links that hold one packet to eight, and hand them over up to so many looks late.
inline SimOptions draw_links(SimRandom& random, std::uint64_t most_delay_polls) {
  SimOptions options;
  options.max_link_packets = 1 + static_cast<std::uint32_t>(random.below(8));
  options.max_delay_polls = static_cast<std::uint32_t>(random.below(most_delay_polls + 1));
  return options;
}

/// Outlives the wires that it makes. Used by one thread.
class Network {
 public:
  /// @param lossy  set: reliable wires carry everything, and `options` means nothing
  Network(std::uint64_t seed, const SimOptions& options, const std::optional<LossyOptions>& lossy,
          std::uint32_t process_count);
  Network(std::uint64_t seed, Topology topology, const LossyOptions& lossy);

  /// @param index  number of the process, which is that of its node
  std::unique_ptr<Wire> attach(ProcessId id, std::uint32_t index);
  void kill(ProcessId id);

  /// True if nothing is under way between the living.
  bool is_quiet() const;

  std::uint64_t* clock_ns() { return lossy_ != nullptr ? lossy_->clock_ns() : &clock_ns_; }
  std::uint64_t now_ns() const { return lossy_ != nullptr ? lossy_->now_ns() : clock_ns_; }

  /// Lets virtual time pass; nobody looks meanwhile.
  void pass(std::uint64_t for_ns);

  /// The same, but at most to the next moment at which somebody has to look. Nothing without a lossy network.
  void pass_to_next(std::uint64_t at_most_ns);

  /// Where processes list memory for their peers; nullptr: nobody can use memory of others.
  SimNetwork* shown() { return is_shown() ? &plain_ : nullptr; }
  bool is_shown() const { return lossy_ == nullptr && shows_memory_; }

  /// nullptr for the plain one.
  LossyNetwork* lossy() { return lossy_.get(); }

  /// Of each process, as it was attached last; nullptr: it was never.
  ReliableWire* reliable(std::size_t index) const { return wires_[index].wire; }
  std::uint64_t frames_sent_again() const;

 private:
  struct Attached {
    ReliableWire* wire = nullptr;
    ProcessId id;
    bool alive = false;
  };

  std::uint64_t clock_ns_ = 0;
  SimRandom random_;  ///< For lives.
  bool shows_memory_ = false;
  SimNetwork plain_;
  std::unique_ptr<LossyNetwork> lossy_;
  std::vector<Attached> wires_;  ///< By index of the process.
  CountersShared frames_{};      ///< Of all wires together.
};

}  // namespace portofu::simulation
