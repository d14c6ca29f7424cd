// Everything at random on four processes, for PORTOFU_TEST_SECONDS: both APIs, all kinds of operations, interfaces that
// close and open, processes that are killed and come back. About once a second all come to rest: what they hold must
// not grow, and what is sent must be what is received.

#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <array>
#include <optional>
#include <random>

#include "engine/segment/peer_segment.h"
#include "tests/process/child_process.h"
#include "tests/process/own_node.h"
#include "tests/process/resources.h"
#include "tests/process/soaker.h"

namespace portofu {
namespace {

constexpr double kPatienceS = 30;

/// What a process held when it had seen everything for the first time.
struct Holdings {
  int rounds = 0;  ///< That this life has seen; 0: `descriptors` and `bytes` are not known yet.
  int descriptors = 0;
  long bytes = 0;
};

class Soak : public testing::TestWithParam<Place> {
 protected:
  Soak() : nodes_(GetParam()) {
    for (int rank = 0; rank < kSoakers; ++rank) start(rank);
  }

  void start(int rank) {
    const std::uint64_t seed = random_();
    held_[rank] = {};
    soakers_[rank].emplace([this, rank, seed] {
      alarm(0);
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      return run_soaker(nodes_, rank, seed, *board_);
    });
  }

  void begin(SoakPhase phase) { board_->phase = static_cast<int>(phase) + 8 * ++phases_; }

  /// Lets all do what a phase asks of them.
  bool complete(SoakPhase phase) {
    begin(phase);
    const double begin_s = clock_.seconds();
    for (int rank = 0; rank < kSoakers; ++rank) {
      while (board_->done_phase[rank] != board_->phase && !soakers_[rank]->has_ended() &&
             clock_.tick() - begin_s < kPatienceS) {
      }
      EXPECT_EQ(board_->done_phase[rank], board_->phase)
          << "soaker " << rank << " does not come to the end of phase " << static_cast<int>(phase);
    }
    return !HasFailure();
  }

  void pass(double seconds) {
    const double end = clock_.seconds() + seconds;
    while (clock_.tick() < end) {
    }
  }

  using Sums = std::array<std::uint64_t, kCounterCount>;

  /// Of the counters of all, once they stand still: acknowledgements of packets may still be under way.
  Sums sum_counters() {
    Sums sums{};
    Sums before{};
    do {
      before = sums;
      pass(0.01);
      sums = {};
      for (int rank = 0; rank < kSoakers; ++rank) {
        std::shared_ptr<PeerSegment> segment;
        const ProcessId id{nodes_.nid(rank), kPlayerPid + static_cast<std::uint32_t>(rank)};
        EXPECT_EQ(PeerSegment::attach("/dev/shm", id, &segment), AttachResult::kAttached);
        if (segment == nullptr) return sums;
        for (std::size_t i = 0; i < kCounterCount; ++i)
          sums[i] += Counters(segment->control().counters).get(static_cast<Counter>(i));
      }
    } while (moves(before, sums));
    return sums;
  }
  static bool moves(const Sums& before, const Sums& after) {
    const auto at = [](Counter counter) { return static_cast<std::size_t>(counter); };
    return before[at(Counter::kPacketsSent)] != after[at(Counter::kPacketsSent)] ||
           before[at(Counter::kPacketsReceived)] != after[at(Counter::kPacketsReceived)];
  }

  std::uint64_t ended(bool well) const {
    std::uint64_t count = 0;
    for (const auto& of_rank : board_->counts) {
      for (const PlayerCounts& of_api : of_rank) {
        for (int target = 0; target < kSoakers; ++target)
          count += well ? of_api.done[target].load() : of_api.gone[target].load() + of_api.not_open[target].load();
      }
    }
    return count;
  }

  void expect_counters_add_up();
  void expect_no_growth();
  void run_round(bool with_death);

  const std::uint64_t seed_ = process_test_seed();
  std::mt19937_64 random_{seed_};
  TestNodes nodes_;
  SharedMemory<SoakBoard> board_;
  FairClock clock_;
  std::optional<ChildProcess> soakers_[kSoakers];
  Holdings held_[kSoakers];
  int phases_ = 0;
  int deaths_ = 0;
  long most_growth_ = 0;
};

void Soak::expect_counters_add_up() {
  const Sums before = sum_counters();
  const std::uint64_t well = ended(true);
  const std::uint64_t badly = ended(false);
  if (!complete(SoakPhase::kBurst)) return;
  const Sums after = sum_counters();
  EXPECT_EQ(ended(true) - well, kSoakers * (kSoakers - 1) * kSoakApis * kBurstOperations);
  EXPECT_EQ(ended(false), badly) << "everybody is there";
  const auto grown = [&](Counter counter) {
    const auto i = static_cast<std::size_t>(counter);
    return after[i] - before[i];
  };
  EXPECT_EQ(grown(Counter::kPacketsSent), grown(Counter::kPacketsReceived));
  // What was written into a peer's memory is sent, and received by nobody.
  const std::uint64_t direct = grown(Counter::kPutsDirect);
  const std::uint64_t bytes = grown(Counter::kBytesSent) - grown(Counter::kBytesReceived);
  EXPECT_GE(bytes, direct * kShortPutBytes);
  EXPECT_LE(bytes, direct * kLongPutBytes);
  for (const Counter never : {Counter::kPacketsRefusedKey, Counter::kPacketsRefusedMalformed,
                              Counter::kPacketsRefusedSource, Counter::kSourcesEvicted, Counter::kPeersLost,
                              Counter::kEventsDropped, Counter::kHeadersDropped, Counter::kPermissionViolations}) {
    EXPECT_EQ(grown(never), 0u) << counter_table()[static_cast<std::size_t>(never)].label;
  }
}

void Soak::expect_no_growth() {
  constexpr int kWarmRounds = 3;
  // Threads of malloc, and what is known of lives that are over.
  const long pools_bytes = nodes_.place() == Place::kNodeEach ? kFabricPoolsBytes : 0;
  const long slack_bytes = (8 << 20) + deaths_ * 65536L + pools_bytes;
  for (int rank = 0; rank < kSoakers; ++rank) {
    Holdings& held = held_[rank];
    const int descriptors = descriptor_count(soakers_[rank]->pid());
    const long bytes = data_bytes(soakers_[rank]->pid());
    if (++held.rounds <= kWarmRounds) {
      held.descriptors = std::max(held.descriptors, descriptors);
      held.bytes = std::max(held.bytes, bytes);
      continue;
    }
    most_growth_ = std::max(most_growth_, bytes - held.bytes);
    EXPECT_LE(descriptors, held.descriptors + 4) << "soaker " << rank;
    EXPECT_LT(bytes - held.bytes, slack_bytes) << "soaker " << rank;
  }
  // Of each two control queues, the second one of session mode, with a name each, and a segment for each lane; and the
  // counts of STags of all.
  EXPECT_LE(nodes_.names_left(kSoakers), 4 * kSoakers + 1);
}

void Soak::run_round(bool with_death) {
  begin(SoakPhase::kRandom);
  pass(static_cast<double>(random_() % 500) / 1000);
  if (with_death) {
    const auto victim = static_cast<int>(random_() % kSoakers);
    soakers_[victim]->kill_now();
    ++deaths_;
    start(victim);
  }
  pass(0.3);
  if (!complete(SoakPhase::kRest) || !complete(SoakPhase::kMeet)) return;
  expect_counters_add_up();
  expect_no_growth();
}

TEST_P(Soak, Everything_at_random__grows_nothing_and_adds_up) {
  const int seconds = test_amount("PORTOFU_TEST_SECONDS", 6);
  const double end = now_s() + seconds;
  int rounds = 0;
  for (; now_s() < end && !HasFailure(); ++rounds) {
    run_round(rounds % 3 == 2);
    if (rounds % 60 == 59) {
      std::printf("  %d rounds, %d deaths, %llu operations ended well; the most that one has grown is %ld KiB\n",
                  rounds, deaths_, static_cast<unsigned long long>(ended(true)), most_growth_ / 1024);
      std::fflush(stdout);
    }
  }
  begin(SoakPhase::kStop);
  for (auto& soaker : soakers_) EXPECT_EQ(soaker->wait_status(), 0);
  std::uint64_t reopened = 0;
  for (const auto& count : board_->reopened) reopened += count;
  std::printf(
      "  %d rounds, %d deaths, %llu interfaces closed and opened, %llu operations ended well, %llu found nobody; "
      "the most that one has grown is %ld KiB\n",
      rounds, deaths_, static_cast<unsigned long long>(reopened), static_cast<unsigned long long>(ended(true)),
      static_cast<unsigned long long>(ended(false)), most_growth_ / 1024);
  // They have ended without a word; what they have left is removed by whoever opens next.
  for (int rank = 0; rank < kSoakers; ++rank) {
    ChildProcess next([&] { return open_and_close(nodes_, rank); });
    EXPECT_EQ(next.wait_status(), 0);
  }
  EXPECT_EQ(nodes_.names_left(kSoakers), 0);
}

INSTANTIATE_TEST_SUITE_P(Places, Soak, testing::Values(Place::kOneNode, Place::kNodeEach),
                         [](const testing::TestParamInfo<Place>& place) {
                           return place.param == Place::kOneNode ? "shared_memory" : "fabric";
                         });

}  // namespace
}  // namespace portofu
