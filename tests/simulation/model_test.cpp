// Random sequences of everything that Portals has, on two to four engines and on the model, side by side.

#include <gtest/gtest.h>

#include "tests/simulation/random_sequence.h"
#include "tests/simulation/seed.h"

namespace portofu::simulation {
namespace {

/// Runs sequences with consecutive seeds until one goes wrong. A failed one is repeated by its seed with
/// PORTOFU_TEST_ROUNDS=1.
void run_sequences(int sequence_count, int action_count, const Taste& taste = {}) {
  const std::uint64_t first = test_seed();
  for (int i = 0; i < test_rounds(sequence_count); ++i) {
    const std::uint64_t seed = first + static_cast<std::uint64_t>(i);
    RandomSequence sequence(seed, taste);
    const std::string disagreement = sequence.run(action_count);
    ASSERT_EQ(disagreement, "") << "repeat with PORTOFU_TEST_SEED=" << seed << " PORTOFU_TEST_ROUNDS=1";
  }
}

TEST(Model, Engines__agree_with_it_in_short_sequences) { run_sequences(2000, 120); }

TEST(Model, Engines__agree_with_it_in_long_sequences) { run_sequences(1000, 700); }

/// Lists that are searched by their indices, not entry by entry.
TEST(Model, Engines__agree_with_it_on_long_lists) {
  run_sequences(300, 500, {.bit_values = 6, .initial_entries = 400, .append_percent = 20});
}

TEST(Model, Engines__agree_with_it_on_long_unexpected_lists) {
  run_sequences(300, 700, {.bit_values = 5, .initial_entries = 80, .append_percent = 8, .priority_percent = 25});
}

}  // namespace
}  // namespace portofu::simulation
