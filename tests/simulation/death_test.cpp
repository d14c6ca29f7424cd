// Kills, restarts and closings at any moment.

#include <gtest/gtest.h>

#include "tests/simulation/cluster.h"
#include "tests/simulation/seed.h"

namespace portofu::simulation {
namespace {

void run_clusters(int cluster_count, int action_count, const Fate& fate) {
  run_seeds(cluster_count, [&](std::uint64_t seed) { return Cluster(seed, fate).run(action_count); });
}

TEST(Death, Survivors__see_each_operation_end_once_without_any_death) {
  run_clusters(200, 400, {.kills = false, .closings = false});
}

TEST(Death, Survivors__see_each_operation_end_once) { run_clusters(1500, 400, {.kills = true, .closings = false}); }

TEST(Death, Closing_an_interface__leaves_nothing_open_elsewhere) {
  run_clusters(700, 400, {.kills = false, .closings = true});
}

TEST(Death, Closing_and_killing__leave_nothing_open) { run_clusters(700, 400, {.kills = true, .closings = true}); }

// The same over reliable wires on a network that loses, doubles, damages and reorders.

TEST(LossyDeath, Survivors__see_each_operation_end_once_without_any_death) {
  run_clusters(100, 1500, {.kills = false, .closings = false, .lossy = true});
}

TEST(LossyDeath, Survivors__see_each_operation_end_once) {
  run_clusters(200, 1500, {.kills = true, .closings = false, .lossy = true});
}

TEST(LossyDeath, Closing_and_killing__leave_nothing_open) {
  run_clusters(200, 1500, {.kills = true, .closings = true, .lossy = true});
}

}  // namespace
}  // namespace portofu::simulation
