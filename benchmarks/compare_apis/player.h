// One of the forked processes of a row: knows its rank, meets the others, exchanges values, and sees the memory of all
// of them with the CPU, which is how a row finds out what is true without asking either API.
#pragma once

#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace compare {

inline constexpr int kMostProcesses = 8;
inline constexpr std::size_t kMemoryBytes = std::size_t{1} << 20;  ///< Of a process; both APIs are given all of it.
inline constexpr std::size_t kLanding = kMemoryBytes / 2;          ///< Offset in it where messages of others arrive.
inline constexpr std::size_t kMostValues = 4096;                   ///< Of Stage::seen.
inline constexpr int kPatienceMs = 20000;

/// Prints the message and ends the process, and with it the row.
[[noreturn]] void fail(const std::string& message);

inline void require(bool condition, const char* message) {
  if (!condition) fail(message);
}

/// Memory that all processes of a row map at the same address. It begins zeroed.
struct Stage {
  std::atomic<std::uint32_t> arrived;                 ///< Processes at the current meeting.
  std::atomic<std::uint32_t> meetings;                ///< That are over.
  std::byte slots[kMostProcesses][256];               ///< What share() carries.
  alignas(64) std::atomic<std::uint64_t> flag;        ///< A row's own; zeroed before each pattern.
  std::atomic<std::uint64_t> counts[kMostProcesses];  ///< The same.
  std::atomic<std::uint32_t> seen[kMostValues];       ///< The same: how often a value has been fetched.
  alignas(4096) std::byte memory[kMostProcesses][kMemoryBytes];
};

/// Calls `look` until it says true; gives the core away between looks. Ends the process if it never does.
template <class Look>
void await(Look&& look, const char* what) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
  while (!look()) {
    if (std::chrono::steady_clock::now() > end) fail(std::string("waited in vain for ") + what);
    sched_yield();
  }
}

/// Uses the CPU for this long without calling any library.
template <class Done>
bool compute_until(Done&& done, std::chrono::milliseconds most) {
  const auto end = std::chrono::steady_clock::now() + most;
  while (std::chrono::steady_clock::now() < end) {
    if (done()) return true;
  }
  return false;
}

class Player {
 public:
  Player(Stage& stage, int rank, int size, bool quick) : stage_(stage), rank_(rank), size_(size), quick_(quick) {}

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool quick() const { return quick_; }
  Stage& stage() { return stage_; }
  std::byte* memory(int rank) { return stage_.memory[rank]; }

  /// Waits until every process of the row has come.
  void meet();

  /// Meets; gives everyone the value of each rank.
  template <class Value>
  std::vector<Value> share(const Value& mine) {
    static_assert(std::is_trivially_copyable_v<Value> && sizeof(Value) <= sizeof stage_.slots[0]);
    std::memcpy(stage_.slots[rank_], &mine, sizeof mine);
    meet();
    std::vector<Value> all(static_cast<std::size_t>(size_));
    for (int rank = 0; rank < size_; ++rank)
      std::memcpy(&all[static_cast<std::size_t>(rank)], stage_.slots[rank], sizeof mine);
    meet();
    return all;
  }

 private:
  Stage& stage_;
  int rank_;
  int size_;
  bool quick_;
};

}  // namespace compare
