#include "lib/tools/ptl_info/topology.h"

#include <dirent.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>

#include "engine/door/inspection.h"

namespace portofu::tools {
namespace {

constexpr std::string_view kLibraryThreads = "portofu";

/// "L3 cache 1, NUMA domain 0", of what is known.
std::string shared_text(const Core& core) {
  std::string text;
  if (core.l3 >= 0) text += "L3 cache " + std::to_string(core.l3);
  if (core.numa >= 0) text += (text.empty() ? "" : ", ") + std::string("NUMA domain ") + std::to_string(core.numa);
  return text;
}

/// Where it runs; nullptr: the machine does not know that CPU.
const Core* core_of(const Machine& machine, const ThreadPlace& thread) {
  const auto core = std::ranges::find_if(
      machine.cores, [&](const Core& one) { return std::ranges::find(one.cpus, thread.cpu) != one.cpus.end(); });
  return core == machine.cores.end() ? nullptr : &*core;
}

/// A line for each domain from which not all are equally far.
std::string distances_text(const Machine& machine) {
  std::string text;
  for (std::size_t from = 0; from < machine.numa_distances.size(); ++from) {
    const std::vector<std::uint64_t>& all = machine.numa_distances[from];
    if (std::ranges::all_of(all, [&](std::uint64_t one) { return one == all[from]; })) continue;
    text += "    NUMA domain " + std::to_string(from) + ": distance " + std::to_string(all[from]) + " to itself";
    for (std::size_t to = 0; to < all.size(); ++to) {
      if (to != from) text += ", " + std::to_string(all[to]) + " to " + std::to_string(to);
    }
    text += '\n';
  }
  return text;
}

/// Two cores: first what orders pairs, then words for people.
struct Distance {
  int steps = 0;  ///< 0: one core; 1: one L3 cache; 2: one domain; 3: further.
  std::uint64_t between_domains = 0;
  std::string words;
};

Distance distance_of(const Machine& machine, const Core& one, const Core& other) {
  if (&one == &other) return {0, 0, "on one core"};
  if (one.l3 >= 0 && one.l3 == other.l3) return {1, 0, "sharing L3 cache " + std::to_string(one.l3)};
  if (one.numa >= 0 && one.numa == other.numa) return {2, 0, "in NUMA domain " + std::to_string(one.numa)};
  if (one.numa < 0 || other.numa < 0) return {3, 0, "sharing nothing that hwloc knows"};
  const auto [low, high] = std::minmax(one.numa, other.numa);
  Distance far{3, 0, "in NUMA domains " + std::to_string(low) + " and " + std::to_string(high)};
  if (static_cast<std::size_t>(high) < machine.numa_distances.size()) {
    far.between_domains =
        std::max(machine.numa_distances[static_cast<std::size_t>(low)][static_cast<std::size_t>(high)],
                 machine.numa_distances[static_cast<std::size_t>(high)][static_cast<std::size_t>(low)]);
    far.words += ", distance " + std::to_string(far.between_domains);
  }
  return far;
}

/// Where the application's own threads run. The library's sleep most of the time.
std::vector<const Core*> application_cores(const Machine& machine, const std::vector<ThreadPlace>& threads) {
  std::vector<const Core*> cores;
  for (const ThreadPlace& thread : threads) {
    const Core* const core = thread.name == kLibraryThreads ? nullptr : core_of(machine, thread);
    if (core != nullptr) cores.push_back(core);
  }
  return cores;
}

}  // namespace

std::vector<ThreadPlace> threads_of(std::uint32_t os_pid) {
  const std::string tasks = "/proc/" + std::to_string(os_pid) + "/task";
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(tasks.c_str()), closedir);
  std::vector<ThreadPlace> threads;
  if (directory == nullptr) return threads;
  while (const dirent* entry = readdir(directory.get())) {
    const int number = std::atoi(entry->d_name);
    if (number == 0) continue;
    SystemTask task = look_at_task(tasks + '/' + entry->d_name);
    threads.push_back({number, std::move(task.name), task.cpu});
  }
  std::ranges::sort(threads, {}, &ThreadPlace::number);
  return threads;
}

std::string machine_text(const Machine& machine) {
  std::string text;
  for (std::size_t first = 0, last = 0; first < machine.cores.size(); first = last) {
    const Core& core = machine.cores[first];
    std::vector<int> cpus;
    for (; last < machine.cores.size() && machine.cores[last].l3 == core.l3 && machine.cores[last].numa == core.numa;
         ++last)
      cpus.insert(cpus.end(), machine.cores[last].cpus.begin(), machine.cores[last].cpus.end());
    std::ranges::sort(cpus);
    const std::string shared = shared_text(core);
    text += "    cores " + std::to_string(first) + (last - first > 1 ? "-" + std::to_string(last - 1) : "") +
            ", CPUs " + cpu_list_text(cpus) + (shared.empty() ? "" : ": " + shared) + '\n';
  }
  return text + distances_text(machine);
}

std::string threads_text(const Machine& machine, const std::vector<ThreadPlace>& threads) {
  std::string text;
  for (const ThreadPlace& thread : threads) {
    text +=
        "    thread " + std::to_string(thread.number) + " (" + thread.name + ") on CPU " + std::to_string(thread.cpu);
    if (const Core* const core = core_of(machine, thread); core != nullptr) {
      const std::string shared = shared_text(*core);
      text += ": core " + std::to_string(core - machine.cores.data()) + (shared.empty() ? "" : ", " + shared);
    }
    text += '\n';
  }
  return text;
}

std::string distance_text(const Machine& machine, const std::vector<ThreadPlace>& ones,
                          const std::vector<ThreadPlace>& others) {
  std::vector<Distance> pairs;
  for (const Core* const one : application_cores(machine, ones)) {
    for (const Core* const other : application_cores(machine, others))
      pairs.push_back(distance_of(machine, *one, *other));
  }
  if (pairs.empty()) return {};
  const auto is_nearer = [](const Distance& one, const Distance& other) {
    return std::tie(one.steps, one.between_domains) < std::tie(other.steps, other.between_domains);
  };
  const auto [nearest, farthest] = std::ranges::minmax_element(pairs, is_nearer);
  return is_nearer(*nearest, *farthest) ? nearest->words + " to " + farthest->words : nearest->words;
}

}  // namespace portofu::tools
