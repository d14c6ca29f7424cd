#pragma once
// The map of a logically addressed interface: rank to process. @spec Portals 4.3, 3.6.6

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "engine/topology/process_id.h"

namespace portofu {

class RankMap {
 public:
  /// Replaces the map.
  /// @param self  finds the own rank; kNoRank if it is not in the map
  /// @return false if there is no memory; the old map stays
  bool set(const ProcessId* processes, std::uint64_t count, ProcessId self);

  bool is_set() const { return !processes_.empty(); }
  const std::vector<ProcessId>& processes() const { return processes_; }
  std::uint32_t own_rank() const { return own_rank_; }

  /// @return the process of a rank, nullptr if there is none
  const ProcessId* process_of(std::uint32_t rank) const {
    return rank < processes_.size() ? &processes_[rank] : nullptr;
  }

  /// Rank of a process that sent a message. What it claims is taken if our map agrees, else our map decides, and a
  /// process that is not in our map keeps what it claims (3.6.6: the maps of two processes may differ).
  std::uint32_t rank_of(ProcessId source, std::uint32_t claimed) const;

  static constexpr std::uint32_t kNoRank = UINT32_MAX;

 private:
  std::vector<ProcessId> processes_;                          ///< Indexed by rank; empty until set.
  std::unordered_map<std::uint64_t, std::uint32_t> rank_of_;  ///< (nid, pid) to the smallest rank that has it.
  std::uint32_t own_rank_ = kNoRank;
};

}  // namespace portofu
