#include "lib/tools/ptl_run/binding.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string_view>

#include "engine/config/settings.h"

namespace portofu::tools {
namespace {

/// Free cores in front, each half in the order in which ranks get them.
std::vector<const Core*> in_turn(const Machine& machine, const std::vector<int>& held, MapBy by, std::size_t* free) {
  const std::set<int> taken(held.begin(), held.end());
  const auto is_held = [&](const Core& core) {
    return std::ranges::any_of(core.cpus, [&](int cpu) { return taken.contains(cpu); });
  };
  std::vector<const Core*> order;
  for (const bool wanted : {false, true}) {
    std::map<int, std::vector<const Core*>> places;  // By what they share; neighbours in one.
    for (const Core& core : machine.cores) {
      const int place = by == MapBy::kL3 ? core.l3 : by == MapBy::kNuma ? core.numa : 0;
      if (is_held(core) == wanted) places[place].push_back(&core);
    }
    for (std::size_t round = 0, before = SIZE_MAX; order.size() != before; ++round) {
      before = order.size();
      for (const auto& [place, cores] : places) {
        if (round < cores.size()) order.push_back(cores[round]);
      }
    }
    if (!wanted) *free = order.size();
  }
  return order;
}

/// CPUs of all cores of the machine that share with this one what ranks are bound to.
std::vector<int> widen(const Machine& machine, const Core& core, BindTo to) {
  if (to == BindTo::kCore) return core.cpus;
  std::vector<int> cpus;
  for (const Core& other : machine.cores) {
    const bool shares = to == BindTo::kL3 ? other.l3 == core.l3 : other.numa == core.numa;
    if (shares) cpus.insert(cpus.end(), other.cpus.begin(), other.cpus.end());
  }
  std::ranges::sort(cpus);
  return cpus;
}

BindingPlan plan_shares(const std::vector<const Core*>& order, std::size_t free, std::size_t ranks) {
  const std::size_t share = free / ranks;
  if (share == 0) {
    return {{},
            false,
            "no rank is bound: " + std::to_string(free) + " of " + std::to_string(order.size()) +
                " cores are free, for " + std::to_string(ranks) + " ranks"};
  }
  BindingPlan plan;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::vector<int>& cpus = plan.cpus.emplace_back();
    for (std::size_t i = rank * share; i < (rank + 1) * share; ++i)
      cpus.insert(cpus.end(), order[i]->cpus.begin(), order[i]->cpus.end());
    std::ranges::sort(cpus);
  }
  plan.words = "each rank has " + std::to_string(share) + (share == 1 ? " core" : " cores");
  return plan;
}

/// Of a process: the CPUs that it may use, if it is one of a user's programs.
std::vector<int> cpus_of_process(const std::string& directory, uid_t user) {
  std::ifstream status(directory + "/status");
  std::vector<int> cpus;
  bool is_users = false, has_memory = false;
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Uid:")) is_users = line.starts_with("Uid:\t" + std::to_string(user) + '\t');
    if (line.starts_with("VmSize:")) has_memory = true;  // Threads of the kernel have none.
    constexpr std::string_view kCpus = "Cpus_allowed_list:\t";
    if (line.starts_with(kCpus)) cpus = parse_cpu_list(line.substr(kCpus.size())).value_or(std::vector<int>{});
  }
  return is_users && has_memory ? cpus : std::vector<int>{};
}

}  // namespace

BindingPlan plan_binding(const Machine& machine, const std::vector<int>& held, int ranks, BindTo to, MapBy by) {
  if (to == BindTo::kNone) return {{}, false, "no rank is bound"};
  std::size_t free = 0;
  const std::vector<const Core*> order = in_turn(machine, held, by, &free);
  const auto count = static_cast<std::size_t>(ranks);
  if (to == BindTo::kShare) return plan_shares(order, free, count);
  BindingPlan plan;
  for (std::size_t rank = 0; rank < count; ++rank) plan.cpus.push_back(widen(machine, *order[rank % order.size()], to));
  plan.words = to == BindTo::kCore ? "each rank has a core"
               : to == BindTo::kL3 ? "each rank has the cores of an L3 cache"
                                   : "each rank has the cores of a NUMA domain";
  if (count > order.size()) plan.words += "; there are more ranks than cores";
  return plan;
}

std::vector<int> find_held_cpus(const std::vector<int>& usable) {
  const std::unique_ptr<DIR, int (*)(DIR*)> processes(opendir("/proc"), closedir);
  if (processes == nullptr) return {};
  std::set<int> held;
  while (const dirent* entry = readdir(processes.get())) {
    if (*entry->d_name < '1' || *entry->d_name > '9') continue;
    const std::vector<int> cpus = cpus_of_process(std::string("/proc/") + entry->d_name, getuid());
    if (!std::ranges::includes(cpus, usable)) held.insert(cpus.begin(), cpus.end());
  }
  return {held.begin(), held.end()};
}

PlanningTurn::PlanningTurn() : fd_(open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  constexpr int kTries = 100;
  constexpr timespec kPause{0, 10'000'000};
  for (int i = 0; fd_ >= 0 && i < kTries && flock(fd_, LOCK_EX | LOCK_NB) != 0; ++i) nanosleep(&kPause, nullptr);
}

PlanningTurn::~PlanningTurn() {
  if (fd_ >= 0) close(fd_);
}

BindingPlan plan_binding_here(int ranks) {
  const Settings settings = read_settings();
  const auto to = static_cast<BindTo>(settings.bind);
  std::string why;
  if (to == BindTo::kNone) return plan_binding({}, {}, ranks, to, MapBy::kCore);
  const auto machine = read_machine(&why);
  if (!machine) return {{}, false, "no rank is bound: " + why};
  std::vector<int> usable;
  for (const Core& core : machine->cores) usable.insert(usable.end(), core.cpus.begin(), core.cpus.end());
  std::ranges::sort(usable);
  const auto held = machine->is_this_system ? find_held_cpus(usable) : std::vector<int>{};
  BindingPlan plan = plan_binding(*machine, held, ranks, to, static_cast<MapBy>(settings.map));
  plan.is_for_show = !machine->is_this_system;
  if (plan.is_for_show) plan.words += ", on a machine that the environment names; here none is bound";
  return plan;
}

bool bind_to_cpus(const std::vector<int>& cpus) {
  if (cpus.empty()) return true;
  const auto count = static_cast<std::size_t>(cpus.back()) + 1;
  const std::size_t bytes = CPU_ALLOC_SIZE(count);
  cpu_set_t* const set = CPU_ALLOC(count);
  if (set == nullptr) return false;
  CPU_ZERO_S(bytes, set);
  for (const int cpu : cpus) CPU_SET_S(static_cast<std::size_t>(cpu), bytes, set);
  const bool bound = sched_setaffinity(0, bytes, set) == 0;
  CPU_FREE(set);
  return bound;
}

}  // namespace portofu::tools
