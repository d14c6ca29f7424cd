// Random barrier circuits of uTofu: butterflies, rings, trees, dissemination and mixtures, with relays on several TNIs
// and masked signals and packets.

#include <gtest/gtest.h>

#include "tests/simulation/seed.h"
#include "tests/simulation/tofu_circuit.h"

namespace portofu::simulation {
namespace {

void run_circuits(int run_count, const CircuitTaste& taste) {
  run_seeds(run_count, [&](std::uint64_t seed) { return TofuCircuits(seed, taste).run(); });
}

TEST(TofuCircuits, Every_shape__gives_everybody_the_plain_result) { run_circuits(3000, {}); }

TEST(TofuCircuits, Large_circuits__give_the_plain_result) {
  run_circuits(200, {.most_processes = 12, .most_circuits = 2, .most_participants = 32, .most_rounds = 3});
}

TEST(TofuCircuits, Mismatches__are_told_to_everybody) {
  run_circuits(1000, {.most_circuits = 1, .most_participants = 6, .mismatch_percent = 70});
}

TEST(TofuCircuits, Many_rounds__do_not_mix) {
  run_circuits(200, {.most_circuits = 2, .most_participants = 5, .most_rounds = 60});
}

// What a process that is gone would have sent is missing somewhere in the circuit. Every round of every survivor ends.
TEST(TofuCircuits, Deaths__end_all_rounds_of_the_survivors) {
  run_circuits(2000, {.most_processes = 8, .most_participants = 9, .most_rounds = 30, .deaths = 1});
}

TEST(TofuCircuits, Several_deaths__end_all_rounds_of_the_survivors) {
  run_circuits(1000, {.most_processes = 12, .most_participants = 16, .most_rounds = 30, .deaths = 3});
}

}  // namespace
}  // namespace portofu::simulation
