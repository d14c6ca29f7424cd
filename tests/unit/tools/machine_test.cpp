// Cores, caches and memory of machines that hwloc makes up, and lists of CPUs.

#include "lib/tools/machine.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace portofu::tools {
namespace {

using Numbers = std::vector<int>;

/// The machine that hwloc makes of a description.
Machine machine_of(const char* description) {
  setenv("HWLOC_SYNTHETIC", description, 1);
  std::string why;
  const auto machine = read_machine(&why);
  unsetenv("HWLOC_SYNTHETIC");
  EXPECT_TRUE(machine) << why;
  return machine.value_or(Machine{});
}

TEST(Machine, Cores__are_told_with_what_they_share) {
  const Machine machine = machine_of("pack:2 numa:1 l3:2 core:2 pu:2");
  EXPECT_FALSE(machine.is_this_system);
  ASSERT_EQ(machine.cores.size(), 8u);
  EXPECT_EQ(machine.cores[0], (Core{{0, 1}, 0, 0}));
  EXPECT_EQ(machine.cores[3], (Core{{6, 7}, 1, 0}));
  EXPECT_EQ(machine.cores[7], (Core{{14, 15}, 3, 1}));
}

TEST(Machine, Without_caches__has_none) {
  const Machine machine = machine_of("core:3 pu:1");
  ASSERT_EQ(machine.cores.size(), 3u);
  EXPECT_EQ(machine.cores[2].cpus, (Numbers{2}));
  EXPECT_EQ(machine.cores[2].l3, -1);
}

/// As hwloc writes a machine with two domains whose firmware tells distances.
constexpr const char* kTwoDomains = R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x3" complete_cpuset="0x3" allowed_cpuset="0x3" nodeset="0x3"
          complete_nodeset="0x3" allowed_nodeset="0x3" gp_index="1">
    <object type="Package" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1"
            gp_index="2">
      <object type="NUMANode" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1"
              gp_index="3" local_memory="1073741824"/>
      <object type="Core" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1"
              gp_index="4">
        <object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1"
                gp_index="5"/>
      </object>
    </object>
    <object type="Package" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x2" complete_nodeset="0x2"
            gp_index="6">
      <object type="NUMANode" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x2" complete_nodeset="0x2"
              gp_index="7" local_memory="1073741824"/>
      <object type="Core" os_index="0" cpuset="0x2" complete_cpuset="0x2" nodeset="0x2" complete_nodeset="0x2"
              gp_index="8">
        <object type="PU" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x2" complete_nodeset="0x2"
                gp_index="9"/>
      </object>
    </object>
  </object>
  <distances2 type="NUMANode" nbobjs="2" kind="5" name="NUMALatency" indexing="os">
    <indexes length="4">0 1 </indexes>
    <u64values length="12">10 21 32 10 </u64values>
  </distances2>
</topology>
)";

TEST(Machine, Distances__are_those_of_the_firmware) {
  const std::string path = testing::TempDir() + "portofu_two_domains_" + std::to_string(getpid()) + ".xml";
  std::ofstream(path) << kTwoDomains;
  setenv("HWLOC_XMLFILE", path.c_str(), 1);
  std::string why;
  const auto machine = read_machine(&why);
  unsetenv("HWLOC_XMLFILE");
  std::filesystem::remove(path);
  ASSERT_TRUE(machine) << why;
  EXPECT_FALSE(machine->is_this_system);
  ASSERT_EQ(machine->cores.size(), 2u);
  EXPECT_EQ(machine->cores[1], (Core{{1}, -1, 1}));
  const std::vector<std::vector<std::uint64_t>> told{{10, 21}, {32, 10}};
  EXPECT_EQ(machine->numa_distances, told);
}

TEST(Machine, Without_distances__has_none) { EXPECT_TRUE(machine_of("numa:2 core:2 pu:1").numa_distances.empty()); }

TEST(Machine, This_one__has_the_CPUs_that_we_may_use) {
  std::string why;
  const auto machine = read_machine(&why);
  ASSERT_TRUE(machine) << why;
  EXPECT_TRUE(machine->is_this_system);
  std::size_t cpus = 0;
  for (const Core& core : machine->cores) cpus += core.cpus.size();
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  EXPECT_EQ(cpus, static_cast<std::size_t>(CPU_COUNT(&allowed)));
}

TEST(CpuList, Numbers__become_ranges_and_back) {
  EXPECT_EQ(cpu_list_text({0, 1, 2, 3, 8, 10, 11}), "0-3,8,10-11");
  EXPECT_EQ(cpu_list_text({}), "");
  EXPECT_EQ(parse_cpu_list("0-3,8,10-11"), (Numbers{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(parse_cpu_list("7"), (Numbers{7}));
  EXPECT_EQ(parse_cpu_list(""), Numbers{});
  for (const char* text : {"a", "1,", ",1", "3-1", "1-", "-1", "1;2", "99999999"})
    EXPECT_FALSE(parse_cpu_list(text)) << text;
}

}  // namespace
}  // namespace portofu::tools
