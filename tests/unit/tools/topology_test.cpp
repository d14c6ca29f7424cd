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

TEST(Topology, Domains__are_shown_with_their_distances_where_these_differ) {
  Machine two = machine();
  two.cores[2].numa = two.cores[3].numa = 1;
  two.numa_distances = {{10, 21}, {32, 10}};
  const std::string text = machine_text(two);
  EXPECT_NE(text.find("    NUMA domain 0: distance 10 to itself, 21 to 1\n"
                      "    NUMA domain 1: distance 10 to itself, 32 to 0\n"),
            std::string::npos)
      << text;
  two.numa_distances = {{10}};
  EXPECT_EQ(machine_text(two).find("distance"), std::string::npos);
}

/// By the CPUs of the threads of two processes.
std::string distance_of(const std::vector<int>& ones, const std::vector<int>& others, int far_domain = 0) {
  Machine made = machine();
  made.cores[2].numa = made.cores[3].numa = far_domain;
  made.numa_distances = {{10, 21}, {32, 10}};
  const auto threads_on = [](const std::vector<int>& cpus) {
    std::vector<ThreadPlace> threads{{1, "portofu", 9}};
    for (const int cpu : cpus) threads.push_back({2, "solver", cpu});
    return threads;
  };
  return distance_text(made, threads_on(ones), threads_on(others));
}

TEST(Topology, Distance__is_what_cores_share) {
  EXPECT_EQ(distance_of({0}, {1}), "on one core") << "its two CPUs";
  EXPECT_EQ(distance_of({0}, {2}), "sharing L3 cache 0");
  EXPECT_EQ(distance_of({0}, {5}), "in NUMA domain 0");
  EXPECT_EQ(distance_of({5}, {0}, 1), "in NUMA domains 0 and 1, distance 32") << "the longer way";
  EXPECT_EQ(distance_of({0}, {9}), "sharing nothing that hwloc knows");
}

TEST(Topology, Distance__is_that_of_the_nearest_and_farthest_application_threads) {
  EXPECT_EQ(distance_of({0, 2}, {1}), "on one core to sharing L3 cache 0");
  EXPECT_EQ(distance_of({0, 1}, {4, 5}), "in NUMA domain 0") << "all pairs are as far";
  EXPECT_EQ(distance_of({}, {4}), "") << "only the library's thread is there";
  EXPECT_EQ(distance_of({40}, {4}), "") << "no such CPU";
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
