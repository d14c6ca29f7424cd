// Names that move between processes of two nodes, while the processes of the other node use them: what is put to a name
// arrives at who has it (uTofu guide 2.2.1, 3.3.2; Portals 4.3, 2.1).

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/simulation/name_world.h"
#include "tests/simulation/seed.h"

namespace portofu::simulation {
namespace {

/// Shared memory of a node.
class Shared {
 public:
  Shared() {
    std::string pattern = "/dev/shm/test-names-XXXXXX";
    const char* const made = mkdtemp(pattern.data());
    if (made == nullptr) std::abort();
    path_ = made;
  }
  ~Shared() { std::filesystem::remove_all(path_); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  const std::string& path() const { return path_; }
  void empty() const {
    for (const auto& entry : std::filesystem::directory_iterator(path_)) std::filesystem::remove(entry);
  }

 private:
  std::string path_;
};

/// Half of them bring all that is told, and soon.
LossyOptions draw_network(SimRandom& random, bool is_good) {
  LossyOptions options;
  options.duplicates = static_cast<std::uint32_t>(random.below(50));
  options.reordered = static_cast<std::uint32_t>(random.below(200));
  options.reorder_span = 8;
  options.delay = DelayKind::kUniform;
  constexpr std::array<std::uint64_t, 4> kDelays{0, 20'000, 300'000, 3'000'000};
  options.mean_delay_ns = kDelays[random.below(kDelays.size())];
  if (is_good) return options;
  options.loss = static_cast<std::uint32_t>(random.below(150));
  options.delay = static_cast<DelayKind>(random.below(4));
  options.notices_in_a_row = random.below(2) == 0 ? 0 : 6;
  return options;
}

TEST(NamesBetweenNodes, Put__reaches_who_has_the_name) {
  const std::array<Shared, 2> shared;
  NameWorld::Counts sum;
  const auto run = [&](std::uint64_t seed) {
    for (const Shared& one : shared) one.empty();
    SimRandom random(seed);
    NameWorldOptions options;
    options.seed = random.next();
    options.processes_of_node = 2 + static_cast<std::uint32_t>(random.below(2));
    options.queues = 1 + static_cast<std::uint32_t>(random.below(3));
    constexpr std::array<std::uint64_t, 3> kRests{50'000, 2'000'000, 40'000'000};
    options.longest_rest_ns = kRests[random.below(kRests.size())];
    options.news_are_lost = random.below(2) == 0;
    options.network = draw_network(random, !options.news_are_lost);
    options.is_cut = random.below(10) == 0;
    if (!options.is_cut && random.below(4) == 0) {
      options.longest_stop_ns = 3'000'000'000;  // Longer than others wait.
      options.longest_rest_ns = 800'000'000;
    }
    options.directories = {shared[0].path(), shared[1].path()};
    NameWorld world(options);
    const std::string complaint = world.run();
    sum.operations += world.counts().operations;
    sum.failed += world.counts().failed;
    sum.owners += world.counts().owners;
    sum.lives += world.counts().lives;
    sum.longest_ns = std::max(sum.longest_ns, world.counts().longest_ns);
    return complaint;
  };
  run_seeds(1500, run);
  EXPECT_GT(sum.operations, 0u);
  std::printf("%llu operations, %llu failed, %llu queues, %llu lives, the longest operation took %.3f s\n",
              static_cast<unsigned long long>(sum.operations), static_cast<unsigned long long>(sum.failed),
              static_cast<unsigned long long>(sum.owners), static_cast<unsigned long long>(sum.lives),
              static_cast<double>(sum.longest_ns) * 1e-9);
}

}  // namespace
}  // namespace portofu::simulation
