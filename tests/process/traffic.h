#pragma once
// A process that sends to all others of its node until it is told to stop: load for tests in which processes die, stop
// and come back. It reaches the others by their PIDs alone and forgives them to be dead; nothing else is forgiven.

#include <portals4.h>

#include <atomic>
#include <cstdint>

#include "tests/support/eventually.h"

namespace portofu {

inline constexpr int kMostWorkers = 16;

/// What a supervisor and its workers share.
struct TrafficBoard {
  std::atomic<int> stop{0};                                 ///< 1: finish what is outstanding, and end.
  std::atomic<std::uint64_t> delivered[kMostWorkers] = {};  ///< Operations that ended well, by initiator.
  std::atomic<std::uint64_t> lost[kMostWorkers] = {};       ///< Operations that ended as undeliverable.
};

/// Why a worker ended, as its exit status.
enum class WorkerEnd : int {
  kWell = 0,
  kNoInterface = 1,  ///< PtlInit or PtlNIInit failed for longer than kPatienceS.
  kCallFailed = 2,
  kNeverEnded = 3,  ///< An operation was outstanding for longer than kPatienceS.
  kWrongEvent = 4,  ///< Of no operation, or twice of one.
  kWrongData = 5,
  kWrongFailure = 16,  ///< Plus the ni_fail_type.
};

/// Nothing may take longer: operations towards the dead end within a second on an idle machine, and this one is busy.
inline constexpr double kPatienceS = kLongestWait.count();

struct WorkerOptions {
  TrafficBoard* board = nullptr;
  std::uint32_t nid = 0;
  int rank = 0;   ///< Its PID is kFirstPid + rank.
  int count = 0;  ///< Workers, dead or alive.
  std::uint64_t seed = 0;
  int cycle_operations = 0;  ///< 0: one interface all the time. Else it is closed, whatever is outstanding, and opened
                             ///< again after so many operations.
};

inline constexpr ptl_pid_t kFirstPid = 2000;

/// Runs in a forked process. @return a WorkerEnd
int run_worker(const WorkerOptions& options);

}  // namespace portofu
