// Processes of a circuit die, and the survivors connect the same gates anew, or free them and connect others, once or
// again after an error, as long as there are enough of them. A barrier of such a circuit is right, or ends with an
// error, and never hangs.

#include <gtest/gtest.h>
#include <signal.h>
#include <utofu.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include "tests/process/child_process.h"
#include "tests/process/own_node.h"
#include "tests/process/test_nodes.h"

namespace portofu {
namespace {

/// Leaves the child with the line that went wrong, modulo 256.
#define MUST(condition) \
  if (!(condition)) _exit(__LINE__ % 256 == 0 ? 1 : __LINE__ % 256)

constexpr int kProcesses = 8;
constexpr int kStages = 3;  ///< Of a butterfly of all.
constexpr int kRounds = 40;
constexpr int kMostTries = 20;
constexpr int kNever = 9;
using Ids = std::array<utofu_vbg_id_t, kStages>;

struct Scene {
  std::array<Ids, kProcesses> ids;
  std::array<std::atomic<int>, kProcesses> phase;  ///< How often each has met the others.
  std::array<std::atomic<bool>, kProcesses> is_dead;
  std::atomic<int> failed{0};  ///< Phase in which somebody's last circuit failed.
  std::atomic<int> tries{0};   ///< Of the last one who stays, and of all circuits.
};

class Survivor {
 public:
  /// @param death  the circuit in which the process dies, or kNever
  Survivor(Scene& scene, int rank, int death, std::uint64_t seed)
      : scene_(scene), rank_(rank), death_(death), random_(seed + static_cast<std::uint64_t>(rank)) {
    MUST(utofu_alloc_vbg(0, own().size(), 0, own().data()) == UTOFU_SUCCESS);
    death_round_ = random_() % kRounds;
    meet();
  }

  void run() {
    for (int circuit = 0; circuit < 3; ++circuit) {
      bool done = false;
      for (int tries = 0; !done; ++tries) {
        MUST(tries < kMostTries);
        done = try_circuit(circuit);
        if (rank_ == living().front()) ++scene_.tries;
      }
    }
  }

 private:
  Ids& own() { return scene_.ids[static_cast<std::size_t>(rank_)]; }

  /// Waits for all that live, without uTofu.
  void meet() {
    auto& phase = scene_.phase[static_cast<std::size_t>(rank_)];
    const int mine = ++phase;
    MUST(eventually([&] {
      for (std::size_t i = 0; i < kProcesses; ++i) {
        if (!scene_.is_dead[i] && scene_.phase[i] < mine) return false;
      }
      return true;
    }));
  }

  std::vector<int> living() const {
    std::vector<int> ranks;
    for (int i = 0; i < kProcesses; ++i) {
      if (!scene_.is_dead[static_cast<std::size_t>(i)]) ranks.push_back(i);
    }
    return ranks;
  }

  [[noreturn]] void die() {
    scene_.is_dead[static_cast<std::size_t>(rank_)] = true;
    raise(SIGKILL);
    _exit(1);
  }

  /// Half of a circuit dies in it, and the last one stays. @return whether the circuit is over
  bool try_circuit(int circuit) {
    const int size = kProcesses >> circuit;
    MUST(eventually([&] { return static_cast<int>(living().size()) == size; }));
    connect(living());
    meet();
    const int rc = pass_rounds(circuit);
    MUST(rc == UTOFU_SUCCESS || rc == UTOFU_ERR_BARRIER_OTHER);
    if (circuit == death_) die();
    if (circuit == 2) return all_agree(rc == UTOFU_SUCCESS);
    MUST(rc != UTOFU_SUCCESS);
    if (random_() % 2 == 0) free_gates();  // Others may be in their barriers still.
    meet();
    return static_cast<int>(living().size()) < size;
  }

  void free_gates() {
    MUST(utofu_free_vbg(own().data(), own().size()) == UTOFU_SUCCESS);
    MUST(utofu_alloc_vbg(0, own().size(), 0, own().data()) == UTOFU_SUCCESS);
  }

  /// A butterfly of these, as in 5.2.1 of the guide.
  void connect(const std::vector<int>& ranks) {
    ranks_ = ranks;
    const auto place = static_cast<std::size_t>(std::ranges::find(ranks, rank_) - ranks.begin());
    std::size_t stages = 0;
    while (std::size_t{1} << stages < ranks.size()) ++stages;
    const auto partner = [&](std::size_t stage) -> const Ids& {
      return scene_.ids[static_cast<std::size_t>(ranks[place ^ std::size_t{1} << stage])];
    };
    std::vector<utofu_vbg_setting> settings(stages);
    for (std::size_t i = 0; i < stages; ++i) {
      const std::size_t before = (i + stages - 1) % stages, after = (i + 1) % stages;
      settings[i] = {own()[i], own()[before], partner(before)[before], own()[after], partner(i)[after], {}};
      settings[i].dst_path_coords[0] = UTOFU_PATH_COORD_NULL;
    }
    spend_us(static_cast<unsigned>(random_() % 2000));
    MUST(utofu_set_vbg(settings.data(), stages) == UTOFU_SUCCESS);
  }

  int pass_rounds(int circuit) {
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      if (circuit == death_ && round == death_round_) die();
      std::array<std::uint64_t, 3> values{1, round, std::uint64_t{1} << rank_};
      MUST(utofu_reduce_uint64(own()[0], UTOFU_REDUCE_OP_SUM, values.data(), values.size(), 0) == UTOFU_SUCCESS);
      int rc = UTOFU_ERR_NOT_COMPLETED;
      MUST(eventually(
          [&] { return (rc = utofu_poll_reduce_uint64(own()[0], 0, values.data())) != UTOFU_ERR_NOT_COMPLETED; }));
      if (rc != UTOFU_SUCCESS) return rc;
      std::uint64_t all = 0;
      for (const int rank : ranks_) all += std::uint64_t{1} << rank;
      MUST(values[0] == ranks_.size() && values[1] == ranks_.size() * round && values[2] == all);
    }
    return UTOFU_SUCCESS;
  }

  /// Nobody goes while another one has to try again.
  bool all_agree(bool done) {
    const int when = scene_.phase[static_cast<std::size_t>(rank_)];
    if (!done) scene_.failed = when;
    meet();
    const bool agreed = scene_.failed != when;
    meet();
    return agreed;
  }

  Scene& scene_;
  const int rank_;
  const int death_;
  std::mt19937_64 random_;
  std::uint64_t death_round_ = 0;
  std::vector<int> ranks_;
};

/// Two of eight stay.
class CircuitAgain : public testing::TestWithParam<Place> {};

TEST_P(CircuitAgain, Survivors__pass_their_own_barriers_or_are_told) {
  const TestNodes nodes(GetParam());
  const std::uint64_t seed = process_test_seed();
  for (std::uint64_t world = 0; world < 5; ++world) {
    const SharedMemory<Scene> scene;
    std::array<int, kProcesses> deaths{0, 0, 0, 0, 1, 1, kNever, kNever};
    std::shuffle(deaths.begin(), deaths.end(), std::mt19937_64(seed + world));
    std::deque<ChildProcess> processes;
    for (int rank = 0; rank < kProcesses; ++rank) {
      processes.emplace_back([&, rank] {
        nodes.enter(rank);
        Survivor(*scene, rank, deaths[static_cast<std::size_t>(rank)], seed + world * kProcesses).run();
        return 0;
      });
    }
    for (std::size_t i = 0; i < kProcesses; ++i)
      EXPECT_EQ(processes[i].wait_status(), deaths[i] == kNever ? 0 : 128 + SIGKILL)
          << "world " << world << " rank " << i;
    std::printf("%d tries\n", scene->tries.load());
  }
}

INSTANTIATE_TEST_SUITE_P(Places, CircuitAgain, testing::Values(Place::kOneNode, Place::kNodeEach));

}  // namespace
}  // namespace portofu
