// Random sequences of everything that Portals has, on two to four engines and on the model, side by side.

#include <gtest/gtest.h>

#include "tests/simulation/random_sequence.h"
#include "tests/simulation/seed.h"

namespace portofu::simulation {
namespace {

/// Runs sequences with consecutive seeds until one goes wrong. A failed one is repeated by its seed with
/// PORTOFU_TEST_ROUNDS=1.
void run_sequences(int sequence_count, int action_count, const Taste& taste = {}) {
  run_seeds(sequence_count, [&](std::uint64_t seed) { return RandomSequence(seed, taste).run(action_count); });
}

TEST(Model, Engines__agree_with_it_in_short_sequences) { run_sequences(7000, 120); }

TEST(Model, Engines__agree_with_it_in_long_sequences) { run_sequences(2000, 700); }

/// Lists that are searched by their indices, not entry by entry.
TEST(Model, Engines__agree_with_it_on_long_lists) {
  run_sequences(400, 500, {.bit_values = 6, .initial_entries = 400, .append_percent = 20});
}

TEST(Model, Engines__agree_with_it_on_long_unexpected_lists) {
  run_sequences(400, 700, {.bit_values = 5, .initial_entries = 80, .append_percent = 8, .priority_percent = 25});
}

/// Several messages under way into one entry, which the last of them unlinks.
TEST(Model, Engines__agree_with_it_on_messages_of_many_packets) {
  run_sequences(600, 400, {.bit_values = 1, .append_percent = 20, .local_percent = 90, .long_percent = 60});
}

/// Payloads that their senders lend, and what follows from that: deferred reads, offers and help.
TEST(Model, Engines__agree_with_it_on_messages_that_are_lent) {
  run_sequences(1500, 400, {.append_percent = 25, .priority_percent = 75, .long_percent = 60, .lends = true});
}

}  // namespace
}  // namespace portofu::simulation
