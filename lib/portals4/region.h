#pragma once
// Memory as MDs, LEs and MEs name it: a start and a length, or a list of pieces. @spec Portals 4.3, 3.10.1, 3.10.2

#include "lib/portals4/library.h"

namespace portofu::portals {

struct Region {
  const void* start;
  ptl_size_t length;  ///< Bytes, or elements of the list.
  bool is_iovec;
};

/// Checks the region and describes it to the engine. Throws without memory: for callers inside guarded().
/// @return PTL_OK | PTL_ARG_INVALID (also: the pieces add up to more than PTL_SIZE_MAX)
inline int describe(const Interface& ni, const Region& region, MemorySegment* segment) {
  if (!region.is_iovec) {
    segment->describe(const_cast<void*>(region.start), region.length);
    return PTL_OK;
  }
  if (region.length > ni.limits.max_iovecs || (region.start == nullptr && region.length != 0)) return PTL_ARG_INVALID;
  return segment->describe(static_cast<const iovec*>(region.start), region.length) ? PTL_OK : PTL_ARG_INVALID;
}

}  // namespace portofu::portals
