// kill -9 of a process in each step of its work, over shared memory and over the fabric, through both APIs. The
// survivors are told within a second, talk to each other all the time, and talk to the process that takes the place of
// the dead. PORTOFU_TEST_KILLS says how many die in each of the four tests.

#include <gtest/gtest.h>

#include <sys/prctl.h>

#include <algorithm>
#include <optional>
#include <random>

#include "tests/process/child_process.h"
#include "tests/process/own_node.h"
#include "tests/process/resources.h"
#include "tests/process/step_victim.h"

namespace portofu {
namespace {

constexpr int kSurvivors = 2;
constexpr int kVictim = kSurvivors;
constexpr double kPatienceS = 20;  ///< For what has no figure of its own.
constexpr double kToldWithinS = 1;

struct KillBoard {
  std::atomic<int> stop{0};
  std::atomic<int> reach_victim{1};  ///< 0: the survivors start nothing more towards it.
  PlayerCounts counts[kMostPlayers];
  VictimBoard victim;
};

/// Talks to the other survivor and to the victim until it is told to stop.
int run_survivor(const TestNodes& nodes, Api api, int rank, std::uint64_t seed, KillBoard& board) {
  nodes.enter(rank);
  const auto player = make_player(api, nodes, rank);
  if (!player->open()) return 2;
  Correspondence correspondence(*player, board.counts[rank]);
  std::mt19937_64 random(seed);
  const auto is_at_rest = [&] {
    return board.counts[rank].under_way[1 - rank] == 0 && board.counts[rank].under_way[kVictim] == 0;
  };
  while (board.stop == 0 || !is_at_rest()) {
    if (board.stop == 0) correspondence.post(1 - rank, any_operation(random), 8);
    if (board.stop == 0 && board.reach_victim != 0) correspondence.post(kVictim, any_operation(random), 8);
    if (!correspondence.take()) {
      std::fprintf(stderr, "survivor %d: code %d\n", rank, correspondence.code());
      return 3;
    }
  }
  player->close();
  return 0;
}

struct KillWay {
  Api api;
  Place place;
};

class StepKill : public testing::TestWithParam<KillWay> {
 protected:
  StepKill() : nodes_(GetParam().place) {
    setenv("PORTOFU_LANES", "2", 1);  // Session mode is on the second.
    for (int rank = 0; rank < kSurvivors; ++rank) {
      const std::uint64_t seed = random_();
      survivors_[rank].emplace([this, rank, seed] {
        alarm(0);  // They live as long as the test, which ctest bounds.
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        return run_survivor(nodes_, GetParam().api, rank, seed, *board_);
      });
    }
  }

  /// Counts of both survivors.
  struct Seen {
    std::uint64_t done_victim[kSurvivors], gone[kSurvivors], done_other[kSurvivors];
  };
  Seen look() const {
    Seen seen{};
    for (int rank = 0; rank < kSurvivors; ++rank) {
      seen.done_victim[rank] = board_->counts[rank].done[kVictim];
      seen.gone[rank] = board_->counts[rank].gone[kVictim];
      seen.done_other[rank] = board_->counts[rank].done[1 - rank];
    }
    return seen;
  }

  template <class Done>
  bool wait(const Done& done, double longest_s = kPatienceS) {
    const double begin = clock_.seconds();
    while (!done()) {
      if (clock_.tick() - begin > longest_s) return false;
    }
    return true;
  }

  /// Open files of a survivor, but for the memory of the other one, which it opens when it first needs it.
  int descriptors_of(int rank) const {
    const std::string fellow = "/proc/" + std::to_string(survivors_[1 - rank]->pid()) + "/mem";
    return descriptor_count(survivors_[rank]->pid(), fellow);
  }

  /// One life and death. @return false if the test cannot go on
  bool kill_one(Step step);
  void report(int kills) const;

  const std::uint64_t seed_ = process_test_seed();
  std::mt19937_64 random_{seed_};
  TestNodes nodes_;
  SharedMemory<KillBoard> board_;
  FairClock clock_;
  std::optional<ChildProcess> survivors_[kSurvivors];
  int in_step_[kStepCount] = {};  ///< Deaths in the step that was meant.
  int deaths_[kStepCount] = {};
  double told_s_[kStepCount] = {};  ///< The longest until both survivors were told of a death, and owed nothing.
  double met_s_[kStepCount] = {};   ///< The longest until both had talked to who took the place of the dead.
};

bool StepKill::kill_one(Step step) {
  const Seen born = look();
  const int number = static_cast<int>(step);
  board_->victim.may_die = 0;
  board_->victim.step_now = -1;
  for (auto& count : board_->counts[kVictim].under_way) count = 0;
  const VictimOptions options{GetParam().api, step, kVictim, random_()};
  ChildProcess victim([&] { return run_victim(nodes_, options, board_->victim, board_->counts[kVictim]); });
  board_->reach_victim = 1;
  const double birth_s = clock_.seconds();
  const bool met = wait([&] {
    const Seen now = look();
    return now.done_victim[0] > born.done_victim[0] && now.done_victim[1] > born.done_victim[1];
  });
  EXPECT_TRUE(met) << "nobody talks to who took the place of the dead, before " << step_name(step);
  if (!met) return false;
  met_s_[number] = std::max(met_s_[number], clock_.seconds() - birth_s);
  board_->victim.may_die = 1;
  EXPECT_EQ(victim.wait_death(), SIGKILL) << step_name(step);
  ++deaths_[number];
  in_step_[number] += board_->victim.step_now == number ? 1 : 0;
  const Seen died = look();
  const FairStopwatch watch({survivors_[0]->pid(), survivors_[1]->pid()});
  const bool told = wait([&] { return look().gone[0] > died.gone[0] && look().gone[1] > died.gone[1]; });
  board_->reach_victim = 0;
  const bool ended =
      wait([&] { return board_->counts[0].under_way[kVictim] == 0 && board_->counts[1].under_way[kVictim] == 0; });
  const double took_s = watch.seconds();
  told_s_[number] = std::max(told_s_[number], took_s);
  EXPECT_TRUE(told && ended) << "operations towards the dead do not end, after " << step_name(step);
  EXPECT_LT(took_s, kToldWithinS) << step_name(step);
  const bool goes_on =
      wait([&] { return look().done_other[0] > died.done_other[0] && look().done_other[1] > died.done_other[1]; });
  EXPECT_TRUE(goes_on) << "the survivors do not talk to each other any more, after " << step_name(step);
  victim.kill_now();  // Only now it is no zombie any more.
  return told && ended && goes_on;
}

void StepKill::report(int kills) const {
  std::printf("%d kills, %s, %s, seed %llu\n", kills, GetParam().api == Api::kPortals ? "Portals" : "uTofu",
              nodes_.place() == Place::kOneNode ? "shared memory" : "fabric", static_cast<unsigned long long>(seed_));
  for (int i = 0; i < kStepCount; ++i)
    std::printf("  %-8s %4d deaths, %4d of them in the step; told and ended within %.3f s, replaced within %.3f s\n",
                step_name(static_cast<Step>(i)), deaths_[i], in_step_[i], told_s_[i], met_s_[i]);
  std::fflush(stdout);
}

TEST_P(StepKill, Process_that_dies_in_any_step__is_told_to_the_others_within_a_second_and_replaced) {
  const int kills = test_amount("PORTOFU_TEST_KILLS", 3 * kStepCount);
  constexpr int kWarm = kStepCount;
  int descriptors[kSurvivors] = {};
  long bytes[kSurvivors] = {};
  for (int i = 0; i < kills && !HasFailure(); ++i) {
    if (!kill_one(static_cast<Step>(i % kStepCount))) break;
    for (int rank = 0; rank < kSurvivors && i + 1 == kWarm; ++rank) {
      descriptors[rank] = descriptors_of(rank);
      bytes[rank] = data_bytes(survivors_[rank]->pid());
    }
  }
  report(kills);
  for (int rank = 0; rank < kSurvivors; ++rank) {
    const pid_t pid = survivors_[rank]->pid();
    EXPECT_TRUE(wait([&] { return descriptors_of(rank) <= descriptors[rank]; }))
        << "survivor " << rank << " had " << descriptors[rank] << " descriptors, and has " << descriptors_of(rank);
    std::printf("  survivor %d: %d descriptors, %ld KiB more than after the first %d kills\n", rank,
                descriptors_of(rank), (data_bytes(pid) - bytes[rank]) / 1024, kWarm);
    // What is known of a process that will not come back: 64 KiB are far more.
    const long pools_bytes = nodes_.place() == Place::kNodeEach ? kFabricPoolsBytes : 0;
    EXPECT_LT(data_bytes(pid) - bytes[rank], (1 << 20) + kills * 65536L + pools_bytes);
  }
  board_->stop = 1;
  for (auto& survivor : survivors_) EXPECT_EQ(survivor->wait_status(), 0);
  // What a node's last process has left is removed by the next that opens there.
  for (int rank = 0; rank <= kVictim; ++rank) {
    ChildProcess next([&] { return open_and_close(nodes_, rank); });
    EXPECT_EQ(next.wait_status(), 0);
  }
  EXPECT_EQ(nodes_.names_left(kVictim + 1), 0) << "something is left in /dev/shm";
}

std::string name_of_way(const testing::TestParamInfo<KillWay>& way) {
  return std::string(way.param.api == Api::kPortals ? "Portals" : "Tofu") +
         (way.param.place == Place::kOneNode ? "_in_shared_memory" : "_over_the_fabric");
}

INSTANTIATE_TEST_SUITE_P(Ways, StepKill,
                         testing::Values(KillWay{Api::kPortals, Place::kOneNode}, KillWay{Api::kTofu, Place::kOneNode},
                                         KillWay{Api::kPortals, Place::kNodeEach},
                                         KillWay{Api::kTofu, Place::kNodeEach}),
                         name_of_way);

}  // namespace
}  // namespace portofu
