#pragma once
// What a player has under way, by target, and what has become of it.

#include <array>
#include <atomic>
#include <cstdint>

#include "tests/process/player.h"

namespace portofu {

inline constexpr int kMostPlayers = 4;

/// What the others may see of one player. Written by that player only.
struct PlayerCounts {
  std::atomic<std::uint64_t> done[kMostPlayers] = {};  ///< Operations that ended well, by target.
  std::atomic<std::uint64_t> gone[kMostPlayers] = {};  ///< Those that told that the target is gone.
  std::atomic<std::uint64_t> not_open[kMostPlayers] = {};
  std::atomic<int> under_way[kMostPlayers] = {};
};

class Correspondence {
 public:
  Correspondence(Player& player, PlayerCounts& counts) : player_(player), counts_(counts) { target_of_.fill(-1); }

  /// Starts an operation if fewer than `most` are under way to the target. @return false if nothing was started
  bool post(int target, Operation operation, int most) {
    if (counts_.under_way[target] >= most) return false;
    int slot = 0;
    while (slot < Player::kSlots && target_of_[slot] >= 0) ++slot;
    if (slot == Player::kSlots || !player_.post(slot, target, operation)) return false;
    target_of_[slot] = target;
    counts_.under_way[target].fetch_add(1);
    return true;
  }

  /// Takes what has ended, waiting a moment for the first. @return false if something came out wrong
  bool take() {
    Outcome outcome;
    while (player_.next(&outcome)) {
      const int target = outcome.slot >= 0 && outcome.slot < Player::kSlots ? target_of_[outcome.slot] : -1;
      if (target < 0 || outcome.ending == Ending::kWrong) {
        code_ = outcome.ending == Ending::kWrong ? outcome.code : kNobodyAsked;
        return false;
      }
      target_of_[outcome.slot] = -1;
      counts_.under_way[target].fetch_sub(1);
      auto& count = outcome.ending == Ending::kDone       ? counts_.done[target]
                    : outcome.ending == Ending::kPeerGone ? counts_.gone[target]
                                                          : counts_.not_open[target];
      count.fetch_add(1);
      if (++taken_ % Player::kSlots == 0) break;
    }
    return true;
  }

  /// The interface was closed: nothing of that comes any more.
  void forget() {
    target_of_.fill(-1);
    for (auto& count : counts_.under_way) count.store(0);
  }

  /// After take has given false: what the API, or kWrongData or kNobodyAsked, said.
  int code() const { return code_; }

  /// An outcome of an operation that is not under way.
  static constexpr int kNobodyAsked = 9998;

 private:
  Player& player_;
  PlayerCounts& counts_;
  std::array<int, Player::kSlots> target_of_;  ///< -1: free.
  std::uint64_t taken_ = 0;
  int code_ = 0;
};

template <class Random>
Operation any_operation(Random& random) {
  return static_cast<Operation>(random() % kOperationCount);
}

}  // namespace portofu
