#pragma once
// Which cores each rank of a job may use.

#include <cstdint>
#include <string>
#include <vector>

#include "lib/tools/machine.h"

namespace portofu::tools {

/// PORTOFU_BIND. What a rank is bound to.
enum class BindTo : std::uint32_t {
  kShare,  ///< An equal share of the cores that are free, neighbours; nothing if there are fewer than ranks.
  kNone,
  kCore,  ///< A core.
  kL3,    ///< The cores that share an L3 cache.
  kNuma,  ///< The cores of a NUMA domain.
};

/// PORTOFU_MAP. What ranks that follow each other have in common.
enum class MapBy : std::uint32_t {
  kCore,  ///< All that there is: they are neighbours.
  kL3,    ///< No L3 cache, as far as there are several: they go round the caches.
  kNuma,  ///< No NUMA domain, likewise.
};

struct BindingPlan {
  std::vector<std::vector<int>> cpus;  ///< By rank; empty: no rank is bound.
  bool is_for_show = false;            ///< It is of another machine (read_machine), and nobody can be bound.
  std::string words;                   ///< For people: what ranks are bound to, or why they are not.
};

/// @param held  CPUs that others hold. Cores with one of them are left to these while there are others
BindingPlan plan_binding(const Machine& machine, const std::vector<int>& held, int ranks, BindTo to, MapBy by);

/// The CPUs to which other processes of this user are bound.
/// @param usable  all CPUs that this process may use; who may use all of these is bound to none
std::vector<int> find_held_cpus(const std::vector<int>& usable);

/// While it lives, no other ptl_run of this machine plans: what it finds free stays so until its ranks have begun.
/// Waits a second at most.
class PlanningTurn {
 public:
  PlanningTurn();
  ~PlanningTurn();
  PlanningTurn(const PlanningTurn&) = delete;
  PlanningTurn& operator=(const PlanningTurn&) = delete;

 private:
  int fd_;
};

/// Plans for the ranks that are started here, as PORTOFU_BIND and PORTOFU_MAP say.
BindingPlan plan_binding_here(int ranks);

/// Binds the calling process. @return false, with errno set, if the kernel refuses
bool bind_to_cpus(const std::vector<int>& cpus);

}  // namespace portofu::tools
