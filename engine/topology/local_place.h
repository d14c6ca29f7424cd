#pragma once
// Where a process is among those of its job on the node, and which control queues are its own by that. Programs for
// Fugaku compute the CQs of their peers from local ranks and ask nobody: with four processes a node local rank r has
// CQ 3r, with two CQ 6r, with three CQ 4r.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace portofu {

struct Settings;

/// Local rank and number of local ranks.
struct LocalPlace {
  std::uint32_t rank = kNoRank;
  std::uint32_t size = 0;  ///< 0: nobody tells.

  static constexpr std::uint32_t kNoRank = UINT32_MAX;  ///< Nobody tells.
  friend bool operator==(const LocalPlace&, const LocalPlace&) = default;
};

/// What PORTOFU_LOCAL_RANK and PORTOFU_LOCAL_SIZE say; else what the launcher says: Open MPI, Hydra and ptl_run,
/// MVAPICH, PALS, Slurm, or one that speaks PMI.
/// @param get_variable  std::getenv, or a test's own
LocalPlace find_local_place(const Settings& settings, const std::function<const char*(const char* name)>& get_variable);

/// A machine may stand for several nodes (PORTOFU_PER_NODE): the first so many local ranks are on node 0, and so on.
struct VirtualNode {
  std::uint32_t number = 0;
  LocalPlace place;  ///< Among the processes of this node.
};

/// @param place     among the processes of the machine
/// @param per_node  0: the machine is one node, as it is if nobody tells the rank
VirtualNode virtual_node(const LocalPlace& place, std::uint32_t per_node);

/// CQs of a TNI, from `first` on.
struct CqRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;  ///< 0: none.

  friend bool operator==(const CqRange&, const CqRange&) = default;
};

/// CQs that a TNI of the real machine has. 9 of them are available to a program (guide, table 6.2), but which ones
/// depends on its local rank.
inline constexpr std::uint32_t kTofuCqs = 12;

/// The CQs that a process takes before any other.
/// @param table  one CQ for each local rank; empty: kTofuCqs are divided evenly among the ranks of the node, or among
///               four if nobody tells how many there are
CqRange own_cqs(const LocalPlace& place, const std::vector<std::uint32_t>& table);

/// "0,2,5,8" as numbers below `limit`. @return false if the text is something else
bool parse_cq_table(const std::string& text, std::uint32_t limit, std::vector<std::uint32_t>* table);

}  // namespace portofu
