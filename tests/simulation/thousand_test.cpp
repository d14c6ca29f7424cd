// A thousand engines in one process, on a torus of Tofu-D, a crossbar and a hypercube, with a bad network.

#include <gtest/gtest.h>

#include <iostream>

#include "tests/simulation/lossy_group.h"
#include "tests/simulation/seed.h"

namespace portofu::simulation {
namespace {

/// Every process adds to its neighbours and to some far ones, and puts to one of them.
void run_all(const char* name, Topology topology, std::size_t process_count) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  process_count /= 8;
#endif
  const std::uint64_t seed = test_seed();
  LossyGroup group(seed, std::move(topology), bad_network(), process_count);
  SimRandom random(seed);
  for (std::size_t from = 0; from < process_count; ++from) {
    for (const std::size_t distance : {std::size_t{1}, std::size_t{2}, 1 + random.below(process_count)}) {
      for (int i = 0; i < 3; ++i) group.add(from, (from + distance) % process_count);
    }
    group.put(from, (from + 1) % process_count, 10'000);
  }
  ASSERT_TRUE(group.settle(5 * kSecondNs));
  std::cout << name << ": " << group.operation_count() << " operations of " << process_count << " engines in "
            << group.now_ns() / 1000 << " us of virtual time, " << group.network().frames_sent_again()
            << " frames sent again\n";
  std::uint64_t failed = 0;
  for (std::uint64_t number = 0; number < group.operation_count(); ++number)
    failed += group.operation(number).fail != NiFail::kOk ? 1 : 0;
  EXPECT_EQ(failed, 0u);
  EXPECT_EQ(group.check(), "");
  EXPECT_EQ(group.check_nothing_left(), "");
}

TEST(Thousand, Engines_on_a_torus_of_tofu_d__lose_nothing) {
  run_all("Tofu-D", Topology::tofu_d(7, 4, 3), 7 * 4 * 3 * 12);
}

TEST(Thousand, Engines_on_a_crossbar__lose_nothing) { run_all("crossbar", Topology::crossbar(1000, kLossyLink), 1000); }

TEST(Thousand, Engines_on_a_hypercube__lose_nothing) { run_all("hypercube", Topology::hypercube(6, kLossyLink), 64); }

}  // namespace
}  // namespace portofu::simulation
