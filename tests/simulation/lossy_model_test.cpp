// The random sequences of model_test.cpp over a network that loses 10 % of the datagrams, doubles 5 %, reorders over 64
// and damages 1 %: every effect exactly once, order kept, memory as in the model. PORTOFU_TEST_OPERATIONS says how many
// operations at least; 1000000 is the run of a night.

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "tests/simulation/random_sequence.h"
#include "tests/simulation/seed.h"

namespace portofu::simulation {
namespace {

std::uint64_t wanted_operations(std::uint64_t usual) {
  const char* given = std::getenv("PORTOFU_TEST_OPERATIONS");
  return given != nullptr ? std::strtoull(given, nullptr, 0) : usual;
}

void run_operations(std::uint64_t usual, int action_count, Taste taste) {
  taste.lossy = true;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  usual /= 10;
#endif
  // One sequence that was found wrong is repeated as the other sequences are.
  const bool repeats = std::getenv("PORTOFU_TEST_ROUNDS") != nullptr;
  const std::uint64_t wanted = repeats ? 1 : wanted_operations(usual);
  const std::uint64_t first = test_seed();
  std::uint64_t operations = 0;
  std::uint64_t sent_again = 0;
  std::uint64_t sequences = 0;
  for (; operations < wanted; ++sequences) {
    RandomSequence sequence(first + sequences, taste);
    ASSERT_EQ(sequence.run(action_count), "")
        << "repeat with PORTOFU_TEST_SEED=" << first + sequences << " PORTOFU_TEST_ROUNDS=1";
    operations += sequence.operations();
    sent_again += sequence.world().frames_sent_again();
  }
  std::cout << operations << " operations in " << sequences << " sequences, " << sent_again << " frames sent again\n";
  EXPECT_GT(repeats ? operations : sent_again, 0u) << "nothing was lost at all";
}

TEST(LossyModel, Engines__agree_with_it_in_mixed_sequences) { run_operations(60'000, 700, {}); }

TEST(LossyModel, Engines__agree_with_it_on_messages_of_many_packets) {
  run_operations(20'000, 400, {.bit_values = 1, .append_percent = 20, .local_percent = 90, .long_percent = 60});
}

}  // namespace
}  // namespace portofu::simulation
