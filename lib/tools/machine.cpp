#include "lib/tools/machine.h"

#include <hwloc.h>
#include <hwloc/distances.h>

#include <charconv>
#include <memory>
#include <string_view>

namespace portofu::tools {
namespace {

struct TopologyEnd {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, TopologyEnd>;

struct BitmapEnd {
  void operator()(hwloc_bitmap_s* bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, BitmapEnd>;

Topology load_topology() {
  hwloc_topology* made = nullptr;
  if (hwloc_topology_init(&made) != 0) return nullptr;
  Topology topology(made);
  // Else it goes to each core to ask that itself, and waits there while others have it: seconds on a busy machine. What
  // the kernel says of the cores is enough.
  hwloc_topology_set_flags(made, HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING);
  return hwloc_topology_load(made) == 0 ? std::move(topology) : nullptr;
}

/// Index of the object of a kind that holds these CPUs; -1: there is none.
int index_of(hwloc_topology* topology, hwloc_obj_type_t kind, const hwloc_bitmap_s* cpus) {
  hwloc_obj* at = nullptr;
  while ((at = hwloc_get_next_obj_by_type(topology, kind, at)) != nullptr) {
    if (hwloc_bitmap_intersects(at->cpuset, cpus) != 0) return static_cast<int>(at->logical_index);
  }
  return -1;
}

/// CPUs that this process may use; all of them of a machine that is not this one.
Bitmap usable_cpus(hwloc_topology* topology) {
  Bitmap cpus(hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(topology)));
  if (cpus == nullptr || hwloc_topology_is_thissystem(topology) == 0) return cpus;
  const Bitmap bound(hwloc_bitmap_alloc());
  if (bound != nullptr && hwloc_get_cpubind(topology, bound.get(), HWLOC_CPUBIND_THREAD) == 0)
    hwloc_bitmap_and(cpus.get(), cpus.get(), bound.get());
  return cpus;
}

/// Of domains, as Machine::numa_distances.
std::vector<std::vector<std::uint64_t>> read_distances(hwloc_topology* topology) {
  hwloc_distances_s* told = nullptr;
  unsigned int count = 1;
  if (hwloc_distances_get_by_type(topology, HWLOC_OBJ_NUMANODE, &count, &told, HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) !=
          0 ||
      count == 0)
    return {};
  const auto domains = static_cast<std::size_t>(hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE));
  std::vector<std::vector<std::uint64_t>> distances;
  if (told->nbobjs == domains) {
    distances.assign(domains, std::vector<std::uint64_t>(domains));
    for (std::size_t i = 0; i < domains * domains; ++i)
      distances[told->objs[i / domains]->logical_index][told->objs[i % domains]->logical_index] = told->values[i];
  }
  hwloc_distances_release(topology, told);
  return distances;
}

std::vector<int> numbers_of(const hwloc_bitmap_s* cpus) {
  std::vector<int> numbers;
  for (int cpu = hwloc_bitmap_first(cpus); cpu >= 0; cpu = hwloc_bitmap_next(cpus, cpu)) numbers.push_back(cpu);
  return numbers;
}

}  // namespace

std::optional<Machine> read_machine(std::string* why) {
  const Topology topology = load_topology();
  const Bitmap usable = topology != nullptr ? usable_cpus(topology.get()) : nullptr;
  const Bitmap own(hwloc_bitmap_alloc());
  if (usable == nullptr || own == nullptr) {
    *why = "hwloc cannot tell what cores there are";
    return std::nullopt;
  }
  Machine machine;
  machine.is_this_system = hwloc_topology_is_thissystem(topology.get()) != 0;
  machine.numa_distances = read_distances(topology.get());
  // A machine whose cores nobody tells has processing units, at least.
  const bool has_cores = hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_CORE) > 0;
  const hwloc_obj_type_t kind = has_cores ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
  for (hwloc_obj* at = nullptr; (at = hwloc_get_next_obj_by_type(topology.get(), kind, at)) != nullptr;) {
    hwloc_bitmap_and(own.get(), at->cpuset, usable.get());
    if (hwloc_bitmap_iszero(own.get()) != 0) continue;
    machine.cores.push_back({numbers_of(own.get()), index_of(topology.get(), HWLOC_OBJ_L3CACHE, at->cpuset),
                             index_of(topology.get(), HWLOC_OBJ_NUMANODE, at->cpuset)});
  }
  if (!machine.cores.empty()) return machine;
  *why = "hwloc knows no core that this process may use";
  return std::nullopt;
}

std::string cpu_list_text(const std::vector<int>& cpus) {
  std::string text;
  for (std::size_t i = 0; i < cpus.size(); ++i) {
    const std::size_t first = i;
    while (i + 1 < cpus.size() && cpus[i + 1] == cpus[i] + 1) ++i;
    text += (text.empty() ? "" : ",") + std::to_string(cpus[first]);
    if (i != first) text += "-" + std::to_string(cpus[i]);
  }
  return text;
}

std::optional<std::vector<int>> parse_cpu_list(const std::string& text) {
  constexpr int kMostCpus = 1 << 20;
  std::vector<int> cpus;
  const auto take = [](std::string_view* rest) {
    int number = -1;
    const auto [end, error] = std::from_chars(rest->data(), rest->data() + rest->size(), number);
    if (error != std::errc{}) return -1;
    rest->remove_prefix(static_cast<std::size_t>(end - rest->data()));
    return number;
  };
  for (std::string_view rest = text; !rest.empty();) {
    const int first = take(&rest);
    const bool is_range = rest.starts_with('-');
    if (is_range) rest.remove_prefix(1);
    const int last = is_range ? take(&rest) : first;
    if (first < 0 || last < first || last >= kMostCpus) return std::nullopt;
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    if (rest.empty()) break;
    if (!rest.starts_with(',') || rest.size() == 1) return std::nullopt;
    rest.remove_prefix(1);
  }
  return cpus;
}

}  // namespace portofu::tools
