#pragma once
// From a region that a peer has published to one that this process may use itself.

#include "engine/segment/region_table.h"
#include "engine/wire/peer_memory.h"

namespace portofu {

/// @param memory   where this process maps the region
/// @param visited  as MappedRegion has it
inline MappedRegion mapped_region(const FoundRegion& region, std::byte* memory, std::atomic<std::uint64_t>* visited) {
  return {.memory = memory,
          .bytes = region.bytes,
          .writable = region.writable,
          .readable = region.readable,
          .user = region.user,
          .sequence = region.sequence,
          .seen = region.seen,
          .match_bits = region.match_bits,
          .visited = visited};
}

}  // namespace portofu
