// What ptl_info says of a machine and of the threads of a process.

#include "lib/tools/ptl_info/topology.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace portofu::tools {
namespace {

/// Two L3 caches with two cores of two CPUs each, and a core that nobody knows more of.
Machine machine() {
  Machine made;
  made.cores = {{{0, 1}, 0, 0}, {{2, 3}, 0, 0}, {{4, 5}, 1, 0}, {{6, 7}, 1, 0}, {{9}, -1, -1}};
  return made;
}

TEST(Topology, Machine__has_a_line_for_what_is_shared) {
  EXPECT_EQ(machine_text(machine()),
            "    cores 0-1, CPUs 0-3: L3 cache 0, NUMA domain 0\n"
            "    cores 2-3, CPUs 4-7: L3 cache 1, NUMA domain 0\n"
            "    cores 4, CPUs 9\n");
}

TEST(Topology, Threads__have_a_place_if_the_machine_knows_it) {
  EXPECT_EQ(threads_text(machine(), {{77, "solver", 5}, {78, "portofu", 9}, {79, "lost", 40}}),
            "    thread 77 (solver) on CPU 5: core 2, L3 cache 1, NUMA domain 0\n"
            "    thread 78 (portofu) on CPU 9: core 4\n"
            "    thread 79 (lost) on CPU 40\n");
}

TEST(Topology, Our_own_thread__is_found) {
  const std::vector<ThreadPlace> threads = threads_of(static_cast<std::uint32_t>(getpid()));
  ASSERT_FALSE(threads.empty());
  EXPECT_EQ(threads.front().number, getpid());
  EXPECT_FALSE(threads.front().name.empty());
  EXPECT_GE(threads.front().cpu, 0);
  EXPECT_TRUE(threads_of(0x7ffffff0).empty()) << "no process has this number";
}

}  // namespace
}  // namespace portofu::tools
