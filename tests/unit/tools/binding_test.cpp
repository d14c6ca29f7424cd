// Which cores ranks get, on machines of all shapes, beside others that hold some.

#include "lib/tools/ptl_run/binding.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace portofu::tools {
namespace {

using Numbers = std::vector<int>;
using Plan = std::vector<Numbers>;

/// `l3_count` caches with four cores each, two caches a NUMA domain; a core has the CPUs n and n + 100.
Machine machine_with(int l3_count) {
  Machine machine;
  for (int core = 0; core < 4 * l3_count; ++core) machine.cores.push_back({{core, core + 100}, core / 4, core / 8});
  return machine;
}

BindingPlan plan(int l3_count, int ranks, BindTo to, MapBy by = MapBy::kCore, const Numbers& held = {}) {
  return plan_binding(machine_with(l3_count), held, ranks, to, by);
}

TEST(Binding, Shares__are_equal_and_of_neighbours) {
  EXPECT_EQ(plan(1, 2, BindTo::kShare).cpus, (Plan{{0, 1, 100, 101}, {2, 3, 102, 103}}));
  EXPECT_EQ(plan(1, 3, BindTo::kShare).cpus, (Plan{{0, 100}, {1, 101}, {2, 102}}));
  EXPECT_EQ(plan(1, 4, BindTo::kShare).words, "each rank has 1 core");
}

TEST(Binding, Shares__are_of_cores_that_nobody_holds) {
  EXPECT_EQ(plan(1, 2, BindTo::kShare, MapBy::kCore, {0}).cpus, (Plan{{1, 101}, {2, 102}}));
  EXPECT_EQ(plan(1, 3, BindTo::kShare, MapBy::kCore, {101}).cpus, (Plan{{0, 100}, {2, 102}, {3, 103}}));
  const BindingPlan none = plan(1, 4, BindTo::kShare, MapBy::kCore, {3});
  EXPECT_TRUE(none.cpus.empty());
  EXPECT_EQ(none.words, "no rank is bound: 3 of 4 cores are free, for 4 ranks");
}

TEST(Binding, None__binds_nobody) { EXPECT_TRUE(plan(1, 2, BindTo::kNone).cpus.empty()); }

TEST(Binding, Cores__are_given_in_turn_and_again_from_the_first) {
  EXPECT_EQ(plan(1, 2, BindTo::kCore).cpus, (Plan{{0, 100}, {1, 101}}));
  const BindingPlan many = plan(1, 5, BindTo::kCore);
  EXPECT_EQ(many.cpus[4], (Numbers{0, 100}));
  EXPECT_NE(many.words.find("more ranks than cores"), std::string::npos);
}

TEST(Binding, Cores__that_others_hold_come_last) {
  EXPECT_EQ(plan(1, 4, BindTo::kCore, MapBy::kCore, {0, 1}).cpus, (Plan{{2, 102}, {3, 103}, {0, 100}, {1, 101}}));
}

TEST(Binding, Map__goes_round_caches_and_domains) {
  EXPECT_EQ(plan(2, 3, BindTo::kCore, MapBy::kL3).cpus, (Plan{{0, 100}, {4, 104}, {1, 101}}));
  EXPECT_EQ(plan(4, 3, BindTo::kCore, MapBy::kNuma).cpus, (Plan{{0, 100}, {8, 108}, {1, 101}}));
}

TEST(Binding, Caches_and_domains__are_whole) {
  EXPECT_EQ(plan(2, 2, BindTo::kL3, MapBy::kL3).cpus,
            (Plan{{0, 1, 2, 3, 100, 101, 102, 103}, {4, 5, 6, 7, 104, 105, 106, 107}}));
  EXPECT_EQ(plan(2, 5, BindTo::kL3).cpus[4].front(), 4) << "the fifth rank is on a core of the second cache";
  EXPECT_EQ(plan(4, 2, BindTo::kNuma, MapBy::kNuma).cpus[1].size(), 16u);
}

TEST(Binding, Machine_that_nobody_knows_much_of__is_one_cache) {
  Machine machine;
  machine.cores = {{{0}}, {{1}}};
  EXPECT_EQ(plan_binding(machine, {}, 2, BindTo::kL3, MapBy::kL3).cpus, (Plan{{0, 1}, {0, 1}}));
}

/// A process that is bound holds its CPUs as long as it lives. One that may use all holds none.
TEST(HeldCpus, Of_a_process_that_is_bound__are_found) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  Numbers usable;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &allowed)) usable.push_back(cpu);
  }
  if (usable.size() < 2) GTEST_SKIP() << "one CPU is no choice";
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    if (!bind_to_cpus({usable.back()}) || write(ready[1], "x", 1) != 1) _exit(1);
    pause();
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  const Numbers held = find_held_cpus(usable);
  EXPECT_NE(std::find(held.begin(), held.end(), usable.back()), held.end());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
}

}  // namespace
}  // namespace portofu::tools
