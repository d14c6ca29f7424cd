#pragma once
// A process of the soak: through both APIs at once it does everything that a player can, at random, and stops, counts
// and goes on when its supervisor says so.

#include <atomic>
#include <cstdint>

#include "tests/process/correspondence.h"

namespace portofu {

inline constexpr int kSoakers = 4;
inline constexpr int kSoakApis = 2;

/// What all soakers do now.
enum class SoakPhase : int {
  kRandom,  ///< Everything; others may be dead, or closed.
  kRest,    ///< Nothing more is started; ends when nothing is under way.
  kMeet,    ///< Everybody gets something done at everybody.
  kBurst,   ///< kBurstOperations of each API to each other one: all of them must end well.
  kStop,
};
inline constexpr int kBurstOperations = 20;

struct SoakBoard {
  /// SoakPhase + 8 * a number that rises. Written by the supervisor.
  std::atomic<int> phase{0};
  /// The phase that a soaker has done what it had to. Written by that soaker.
  std::atomic<int> done_phase[kSoakers] = {};
  PlayerCounts counts[kSoakers][kSoakApis];
  std::atomic<std::uint64_t> reopened[kSoakers] = {};
};

constexpr SoakPhase phase_of(int word) { return static_cast<SoakPhase>(word % 8); }

/// Runs in a forked process. @return 0 if everything was right
int run_soaker(const TestNodes& nodes, int rank, std::uint64_t seed, SoakBoard& board);

}  // namespace portofu
