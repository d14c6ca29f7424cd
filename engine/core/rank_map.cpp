// Step 3 (rank to process) and step 6 (process to rank) on a logically addressed interface.

#include "engine/core/rank_map.h"

#include "engine/observe/system_failure.h"

namespace portofu {
namespace {

std::uint64_t key_of(ProcessId process) { return std::uint64_t{process.nid} << 32 | process.pid; }

}  // namespace

bool RankMap::set(const ProcessId* processes, std::uint64_t count, ProcessId self) {
  try {
    std::vector<ProcessId> fresh(processes, processes + count);
    std::unordered_map<std::uint64_t, std::uint32_t> ranks;
    ranks.reserve(count);
    for (std::uint32_t rank = 0; rank < count; ++rank) ranks.try_emplace(key_of(fresh[rank]), rank);
    processes_.swap(fresh);
    rank_of_.swap(ranks);
  } catch (...) {  // length_error or bad_alloc
    tell_of_memory("a map of ranks");
    return false;
  }
  own_rank_ = rank_of(self, kNoRank);
  return true;
}

std::uint32_t RankMap::rank_of(ProcessId source, std::uint32_t claimed) const {
  const ProcessId* process = process_of(claimed);
  if (process != nullptr && *process == source) return claimed;
  auto found = rank_of_.find(key_of(source));
  return found != rank_of_.end() ? found->second : claimed;
}

}  // namespace portofu
