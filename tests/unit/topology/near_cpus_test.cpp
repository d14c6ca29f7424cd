// CPUs, caches and NUMA nodes of machines of all shapes, as the kernel shows them, and of this one.

#include "engine/topology/near_cpus.h"

#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace portofu {
namespace {

using Numbers = std::vector<int>;
using Places = std::vector<Numbers>;

/// A tree like /sys/devices/system, with `nodes` NUMA nodes of two L3 caches with four CPUs each.
class SystemTree {
 public:
  explicit SystemTree(int nodes) {
    std::string pattern = testing::TempDir() + "portofu-system-XXXXXX";
    const char* made = mkdtemp(pattern.data());
    if (made == nullptr) std::abort();
    path_ = made;
    write("node/online", nodes == 1 ? "0" : range(0, nodes - 1));
    for (int node = 0; node < nodes; ++node)
      write("node/node" + std::to_string(node) + "/cpulist", range(8 * node, 8 * node + 7));
    for (int cpu = 0; cpu < 8 * nodes; ++cpu) {
      const int first = cpu / 4 * 4;
      write("cpu/cpu" + std::to_string(cpu) + "/cache/index3/level", "3");
      write("cpu/cpu" + std::to_string(cpu) + "/cache/index3/shared_cpu_list", range(first, first + 3));
    }
  }
  ~SystemTree() { std::filesystem::remove_all(path_); }
  SystemTree(const SystemTree&) = delete;
  SystemTree& operator=(const SystemTree&) = delete;

  const std::string& path() const { return path_; }
  void write(const std::string& name, const std::string& line) const {
    const std::filesystem::path file = path_ + "/" + name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << line << '\n';
  }

 private:
  static std::string range(int first, int last) { return std::to_string(first) + "-" + std::to_string(last); }
  std::string path_;
};

const Numbers kFirstL3{0, 1, 2, 3};
const Numbers kFirstNode{0, 1, 2, 3, 4, 5, 6, 7};

TEST(NearCpus, Neighbourhoods__are_the_cache_and_then_the_node) {
  const SystemTree tree(2);
  EXPECT_EQ(roomy_neighbourhoods({1}, 0, tree.path()), (Places{kFirstL3, kFirstNode}));
  EXPECT_EQ(roomy_neighbourhoods({4, 5}, 1, tree.path()), (Places{{4, 5, 6, 7}, kFirstNode}));
}

TEST(NearCpus, Neighbourhoods__have_room_beside_all_processes) {
  const SystemTree tree(2);
  EXPECT_EQ(roomy_neighbourhoods({1}, 3, tree.path()), (Places{kFirstL3, kFirstNode}));
  EXPECT_EQ(roomy_neighbourhoods({1}, 4, tree.path()), (Places{kFirstNode})) << "each of four may have one of the L3";
  EXPECT_EQ(roomy_neighbourhoods({1}, 8, tree.path()), Places{});
  EXPECT_EQ(roomy_neighbourhoods(kFirstL3, 1, tree.path()), (Places{kFirstNode}));
  EXPECT_EQ(roomy_neighbourhoods(kFirstNode, 1, tree.path()), Places{});
}

TEST(NearCpus, Neighbourhoods__hold_all_cpus_of_the_caller) {
  const SystemTree tree(2);
  EXPECT_EQ(roomy_neighbourhoods({3, 4}, 1, tree.path()), (Places{kFirstNode}));
  EXPECT_EQ(roomy_neighbourhoods({7, 8}, 1, tree.path()), Places{});
  EXPECT_EQ(roomy_neighbourhoods({}, 1, tree.path()), Places{});
}

TEST(NearCpus, Neighbourhoods__are_none_where_nobody_tells) {
  const SystemTree tree(1);
  EXPECT_EQ(roomy_neighbourhoods({1}, 1, tree.path() + "/nowhere"), Places{});
  tree.write("cpu/cpu1/cache/index3/level", "2");
  EXPECT_EQ(roomy_neighbourhoods({1}, 1, tree.path()), (Places{kFirstNode})) << "it is no L3 cache";
}

TEST(NearCpus, Node__is_that_of_all_cpus) {
  const SystemTree tree(3);
  EXPECT_EQ(only_node_of({1, 5}, tree.path()), 0);
  EXPECT_EQ(only_node_of({16}, tree.path()), 2);
  EXPECT_EQ(only_node_of({7, 8}, tree.path()), -1);
  EXPECT_EQ(only_node_of({}, tree.path()), -1);
  EXPECT_EQ(only_node_of({99}, tree.path()), -1);
}

TEST(NearCpus, Node_that_is_the_only_one__does_not_count) {
  const SystemTree tree(1);
  EXPECT_EQ(only_node_of({1}, tree.path()), -1);
  EXPECT_EQ(only_node_of({1}, tree.path() + "/nowhere"), -1);
}

TEST(NearCpus, Usable_cpus__are_those_of_this_thread) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  const Numbers all = usable_cpus();
  EXPECT_EQ(all.size(), static_cast<std::size_t>(CPU_COUNT(&before)));
  ASSERT_FALSE(all.empty());
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(all.back()), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_cpus(), (Numbers{all.back()}));
  EXPECT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(NearCpus, Lists__are_as_the_kernel_writes_them) {
  EXPECT_EQ(parse_cpus("0-3,8,10-11"), (Numbers{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(parse_cpus("7"), (Numbers{7}));
  for (const char* text : {"", "a", "1,", ",1", "3-1", "1-", "-1", "1;2", "5,4", "4,4", "99999999", "1-99999999"})
    EXPECT_TRUE(parse_cpus(text).empty()) << text;
}

/// Pages of a file in shared memory are asked for once, and the kernel tells it of every mapping of them.
TEST(NearCpus, Preferred_node__holds_for_all_who_map_the_file) {
  constexpr std::size_t kBytes = 1 << 16;
  const int fd = memfd_create("portofu-near-cpus", MFD_CLOEXEC);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(ftruncate(fd, kBytes), 0);
  void* const ours = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  void* const others = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ASSERT_TRUE(ours != MAP_FAILED && others != MAP_FAILED);
  EXPECT_FALSE(prefer_node(ours, kBytes, 1023)) << "no machine has this node";
  EXPECT_FALSE(prefer_node(ours, kBytes, 1 << 20));
  if (!prefer_node(ours, kBytes, 0)) GTEST_SKIP() << "mbind: " << std::strerror(errno);
  int policy = -1;
  unsigned long nodes[16] = {};
  ASSERT_EQ(syscall(SYS_get_mempolicy, &policy, nodes, 1025, static_cast<char*>(others) + 8192, MPOL_F_ADDR), 0);
  EXPECT_EQ(policy, MPOL_PREFERRED);
  EXPECT_EQ(nodes[0], 1UL);
  munmap(ours, kBytes);
  munmap(others, kBytes);
  close(fd);
}

}  // namespace
}  // namespace portofu
