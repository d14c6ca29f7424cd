// Random sequences of everything that Portals has, on two to four engines and on the model, side by side.

#include <gtest/gtest.h>

#include "tests/simulation/random_sequence.h"
#include "tests/simulation/seed.h"

namespace portofu::simulation {
namespace {

/// Runs sequences with consecutive seeds until one goes wrong. A failed one is repeated by its seed with
/// PORTOFU_TEST_ROUNDS=1.
void run_sequences(int sequence_count, int action_count) {
  const std::uint64_t first = test_seed();
  for (int i = 0; i < test_rounds(sequence_count); ++i) {
    const std::uint64_t seed = first + static_cast<std::uint64_t>(i);
    RandomSequence sequence(seed);
    const std::string disagreement = sequence.run(action_count);
    ASSERT_EQ(disagreement, "") << "repeat with PORTOFU_TEST_SEED=" << seed << " PORTOFU_TEST_ROUNDS=1";
  }
}

TEST(Model, Engines__agree_with_it_in_short_sequences) { run_sequences(2000, 120); }

TEST(Model, Engines__agree_with_it_in_long_sequences) { run_sequences(600, 700); }

}  // namespace
}  // namespace portofu::simulation
