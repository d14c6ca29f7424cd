#pragma once
// The cores of this machine, as hwloc knows them, and which caches and memory they share. HWLOC_SYNTHETIC and
// HWLOC_XMLFILE name another machine.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace portofu::tools {

struct Core {
  std::vector<int> cpus;  ///< Numbers of the kernel, ascending: those that this process may use; not empty.
  int l3 = -1;            ///< Which L3 cache, counted from 0; -1: hwloc knows none.
  int numa = -1;          ///< Which NUMA domain, likewise.

  friend bool operator==(const Core&, const Core&) = default;
};

struct Machine {
  std::vector<Core> cores;  ///< Neighbours share most. Without those that this process may not use.
  /// How long the cores of a NUMA domain take to the memory of another, as the firmware tells: [from][to], by
  /// Core::numa; mostly 10 for their own. Empty: it does not tell.
  std::vector<std::vector<std::uint64_t>> numa_distances;
  bool is_this_system = true;  ///< false: the environment names another machine, whose CPUs nobody can be bound to.
};

/// @param why  a sentence for people on failure
/// @return nothing if hwloc cannot tell, or no core is left
std::optional<Machine> read_machine(std::string* why);

/// As "0-3,8": numbers, ascending.
std::string cpu_list_text(const std::vector<int>& cpus);

/// The other way round, as the kernel writes it. @return nothing if the text is something else
std::optional<std::vector<int>> parse_cpu_list(const std::string& text);

}  // namespace portofu::tools
