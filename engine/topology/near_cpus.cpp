// Reads what the kernel tells of CPUs, caches and NUMA nodes, when an engine opens.

#include "engine/topology/near_cpus.h"

#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <string_view>
#include <utility>

namespace portofu {
namespace {

constexpr std::size_t kMostCpus = 8192;
constexpr std::size_t kMostNodes = 1024;  // As many as a kernel may have.

/// The first line of a file; empty if there is none.
std::string read_line(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::array<char, 4096> text{};  // What a file of /sys has at most.
  const ssize_t bytes = ::read(fd, text.data(), text.size());
  ::close(fd);
  const std::string_view read(text.data(), static_cast<std::size_t>(std::max<ssize_t>(bytes, 0)));
  return std::string(read.substr(0, read.find('\n')));
}

/// CPUs that share the third-level cache of a CPU.
std::vector<int> cpus_of_l3(int cpu, const std::string& directory) {
  const std::string cache = directory + "/cpu/cpu" + std::to_string(cpu) + "/cache/index3/";
  return read_line(cache + "level") == "3" ? parse_cpus(read_line(cache + "shared_cpu_list")) : std::vector<int>{};
}

std::vector<int> cpus_of_node(int node, const std::string& directory) {
  return parse_cpus(read_line(directory + "/node/node" + std::to_string(node) + "/cpulist"));
}

/// The node of which they all are; -1: there is none.
int node_of(const std::vector<int>& cpus, const std::vector<int>& nodes, const std::string& directory) {
  const auto node =
      std::ranges::find_if(nodes, [&](int one) { return std::ranges::includes(cpus_of_node(one, directory), cpus); });
  return node == nodes.end() || cpus.empty() ? -1 : *node;
}

std::vector<int> online_nodes(const std::string& directory) {
  return parse_cpus(read_line(directory + "/node/online"));
}

}  // namespace

std::vector<int> usable_cpus() {
  std::array<cpu_set_t, kMostCpus / CPU_SETSIZE> set{};
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, set.data()) != 0) return cpus;
  for (std::size_t cpu = 0; cpu < kMostCpus; ++cpu) {
    if (CPU_ISSET_S(cpu, sizeof set, set.data())) cpus.push_back(static_cast<int>(cpu));
  }
  return cpus;
}

std::vector<std::vector<int>> roomy_neighbourhoods(const std::vector<int>& cpus, std::size_t processes,
                                                   const std::string& directory) {
  std::vector<std::vector<int>> found;
  if (cpus.empty()) return found;
  const auto add = [&](std::vector<int> near) {
    if (std::ranges::includes(near, cpus) && near.size() > cpus.size() * std::max<std::size_t>(processes, 1))
      found.push_back(std::move(near));
  };
  add(cpus_of_l3(cpus.front(), directory));
  if (const int node = node_of(cpus, online_nodes(directory), directory); node >= 0) add(cpus_of_node(node, directory));
  return found;
}

int only_node_of(const std::vector<int>& cpus, const std::string& directory) {
  const std::vector<int> nodes = online_nodes(directory);
  return nodes.size() > 1 ? node_of(cpus, nodes, directory) : -1;
}

bool prefer_node(void* start, std::size_t bytes, int node) {
  constexpr std::size_t kWordBits = CHAR_BIT * sizeof(unsigned long);
  std::array<unsigned long, kMostNodes / kWordBits> mask{};
  const auto number = static_cast<std::size_t>(node);
  if (number >= kMostNodes) return false;
  mask[number / kWordBits] = 1UL << number % kWordBits;
  // The kernel takes one bit less than it is told of.
  return syscall(SYS_mbind, start, bytes, MPOL_PREFERRED, mask.data(), kMostNodes + 1, 0) == 0;
}

std::vector<int> parse_cpus(const std::string& text) {
  std::vector<int> cpus;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    int first = -1;
    at = std::from_chars(at, end, first).ptr;
    int last = first;
    if (at != end && *at == '-') {
      last = -1;
      at = std::from_chars(at + 1, end, last).ptr;
    }
    if (first < 0 || last < first || last >= static_cast<int>(kMostCpus) || (!cpus.empty() && first <= cpus.back()))
      return {};
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    if (at != end && (*at != ',' || ++at == end)) return {};
  }
  return cpus;
}

}  // namespace portofu
