#pragma once
// CPUs and memory of this machine that are near to those of the caller, as the kernel shows them: for the few places of
// the engine where that matters, when it opens. A question reads some small files of /sys. Any thread.

#include <cstddef>
#include <string>
#include <vector>

namespace portofu {

/// Where the kernel shows them; tests have trees of their own.
inline constexpr const char* kSystemDirectory = "/sys/devices/system";

/// CPUs that the calling thread may use, ascending; none if the kernel does not tell.
std::vector<int> usable_cpus();

/// Where a thread finds a free core near to the given ones, nearest first: the CPUs that share an L3 cache with all of
/// them, and those of their NUMA node. Only as far as there are more than all processes of the job here have.
/// @param cpus       ascending
/// @param processes  of the job on this machine, with so many CPUs each; 0 counts as 1
std::vector<std::vector<int>> roomy_neighbourhoods(const std::vector<int>& cpus, std::size_t processes,
                                                   const std::string& directory = kSystemDirectory);

/// The NUMA node of all given CPUs, on a machine with several.
/// @param cpus  ascending
/// @return -1 if they are of several, or if the machine has one only
int only_node_of(const std::vector<int>& cpus, const std::string& directory = kSystemDirectory);

/// Memory for these pages is taken from that node from now on, whoever touches them first, in any process if they are
/// of a file in shared memory. Where the node has none left it comes from elsewhere.
/// @param start  of a page
/// @return false if the kernel refuses
bool prefer_node(void* start, std::size_t bytes, int node);

/// "0-3,8" as the kernel writes it, ascending; none if the text is something else.
std::vector<int> parse_cpus(const std::string& text);

}  // namespace portofu
