#pragma once
// The simulator's only source of chance: small, the same on every machine, and copied with the state it drives.

#include <cstdint>

#include "engine/queue/assert.h"

namespace portofu {

/// Sequence of numbers that a seed decides (splitmix64, S. Vigna, public domain).
class SimRandom {
 public:
  explicit SimRandom(std::uint64_t seed) : state_(seed) {}

  /// Next 64 random bits.
  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
  }

  /// Number below `bound`, which is at least 1. Small bounds only: the bias of the remainder is not corrected.
  std::uint64_t below(std::uint64_t bound) {
    PORTOFU_ASSERT(bound >= 1);
    return next() % bound;
  }

 private:
  std::uint64_t state_;  ///< Every value is good, also 0.
};

}  // namespace portofu
