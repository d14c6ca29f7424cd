#pragma once
// A process that dies in a certain step of its work, by SIGKILL of a timer of the kernel: so the death comes at any
// instruction of that step, wherever the scheduler was.

#include <atomic>
#include <cstdint>

#include "tests/process/correspondence.h"

namespace portofu {

/// What the victim does when it dies.
enum class Step : int {
  kClaim,    ///< Short puts, more than the ring holds.
  kPublish,  ///< Long puts.
  kFetch,    ///< Gets and fetching atomics.
  kTrigger,  ///< Triggered operations, session mode.
  kAttach,   ///< Opening an interface, and the first words to everybody.
  kDetach,   ///< Closing it, with operations under way.
};
inline constexpr int kStepCount = 6;
const char* step_name(Step step);

/// What the victim shares with its supervisor.
struct VictimBoard {
  std::atomic<int> may_die{0};    ///< 1: it has met everybody, and is to begin its step.
  std::atomic<int> step_now{-1};  ///< The step that it is in; -1: none. Still there after its death.
};

struct VictimOptions {
  Api api = Api::kPortals;
  Step step = Step::kClaim;
  int rank = 0;  ///< Others are all smaller ranks.
  std::uint64_t seed = 0;
};

/// Runs in a forked process and is killed in it. @return if it was not: why, not 0
int run_victim(const TestNodes& nodes, const VictimOptions& options, VictimBoard& board, PlayerCounts& counts);

}  // namespace portofu
