#include "tests/process/soaker.h"

#include <chrono>
#include <optional>
#include <random>

#include "tests/process/own_node.h"
#include "tests/support/eventually.h"

namespace portofu {
namespace {

constexpr std::chrono::seconds kPatience = kLongestWait;
constexpr int kMostUnderWay = 8;
constexpr int kActs = 16;  ///< Between two looks for what has ended.
constexpr unsigned kActsBetweenCloses = 4000;

class Soaker {
 public:
  Soaker(const TestNodes& nodes, int rank, std::uint64_t seed, SoakBoard& board)
      : rank_(rank), board_(board), random_(seed) {
    for (int api = 0; api < kSoakApis; ++api) {
      players_[api] = make_player(static_cast<Api>(api), nodes, rank);
      correspondences_[api].emplace(*players_[api], board.counts[rank][api]);
      correspondences_[api]->forget();
    }
  }

  int run() {
    for (int api = 0; api < kSoakApis; ++api) {
      if (!open(api)) return 2;
    }
    for (;;) {
      const int word = board_.phase;
      if (word != phase_) begin(word);
      switch (phase_of(word)) {
        case SoakPhase::kRandom:
          for (int i = 0; i < kActs && !failed_; ++i) act();
          break;
        case SoakPhase::kRest: break;
        case SoakPhase::kMeet: meet(); break;
        case SoakPhase::kBurst: burst(); break;
        case SoakPhase::kStop: return stop();
      }
      if (failed_) return 5;
      for (int api = 0; api < kSoakApis; ++api) {
        if (correspondences_[api]->take()) continue;
        std::fprintf(stderr, "soaker %d, API %d: code %d\n", rank_, api, correspondences_[api]->code());
        return 3;
      }
      if (phase_of(word) != SoakPhase::kRandom && is_at_rest() && to_do_is_done()) board_.done_phase[rank_] = word;
    }
  }

 private:
  bool open(int api) {
    return eventually([&] { return players_[api]->open(); }, kPatience);
  }

  const PlayerCounts& counts(int api) const { return board_.counts[rank_][api]; }

  void begin(int word) {
    phase_ = word;
    for (int api = 0; api < kSoakApis; ++api) {
      for (int target = 0; target < kSoakers; ++target) {
        done_before_[api][target] = counts(api).done[target];
        left_[api][target] = phase_of(word) == SoakPhase::kBurst && target != rank_ ? kBurstOperations : 0;
      }
    }
  }

  int some_other() { return (rank_ + 1 + static_cast<int>(random_() % (kSoakers - 1))) % kSoakers; }

  void act() {
    const int api = static_cast<int>(random_() % kSoakApis);
    switch (random_() % 16) {
      case 0: players_[api]->put_unheard(some_other()); break;
      case 1: players_[api]->trigger(some_other()); break;
      default: correspondences_[api]->post(some_other(), any_operation(random_), kMostUnderWay); break;
    }
    if (random_() % kActsBetweenCloses != 0) return;
    players_[api]->close();
    correspondences_[api]->forget();
    board_.reopened[rank_].fetch_add(1);
    failed_ = !open(api);
  }

  bool has_met(int api, int target) const { return counts(api).done[target] > done_before_[api][target]; }

  void meet() {
    for (int api = 0; api < kSoakApis; ++api) {
      for (int target = 0; target < kSoakers; ++target) {
        if (target != rank_ && !has_met(api, target)) correspondences_[api]->post(target, Operation::kShortPut, 1);
      }
    }
  }

  void burst() {
    for (int api = 0; api < kSoakApis; ++api) {
      for (int target = 0; target < kSoakers; ++target) {
        if (left_[api][target] > 0 && correspondences_[api]->post(target, any_operation(random_), kMostUnderWay))
          --left_[api][target];
      }
    }
  }

  bool is_at_rest() const {
    for (int api = 0; api < kSoakApis; ++api) {
      for (const auto& under_way : counts(api).under_way) {
        if (under_way != 0) return false;
      }
    }
    return true;
  }

  bool to_do_is_done() const {
    for (int api = 0; api < kSoakApis; ++api) {
      for (int target = 0; target < kSoakers; ++target) {
        if (left_[api][target] > 0) return false;
        if (phase_of(phase_) == SoakPhase::kMeet && target != rank_ && !has_met(api, target)) return false;
      }
    }
    return true;
  }

  int stop() {
    for (const auto& player : players_) player->close();
    for (const auto& player : players_) {
      if (!player->is_untouched()) return 4;
    }
    return 0;
  }

  const int rank_;
  SoakBoard& board_;
  std::mt19937_64 random_;
  std::unique_ptr<Player> players_[kSoakApis];
  std::optional<Correspondence> correspondences_[kSoakApis];
  int phase_ = -1;
  std::uint64_t done_before_[kSoakApis][kSoakers] = {};  ///< When the phase began.
  int left_[kSoakApis][kSoakers] = {};                   ///< Of the burst.
  bool failed_ = false;                                  ///< An interface could not be opened again.
};

}  // namespace

int run_soaker(const TestNodes& nodes, int rank, std::uint64_t seed, SoakBoard& board) {
  nodes.enter(rank);
  return Soaker(nodes, rank, seed, board).run();
}

}  // namespace portofu
