#pragma once
// UTOFU_SWAP_PROTECT: pages of registered memory that are not swapped out, as long as some region has them.

#include <boost/icl/interval_map.hpp>
#include <cstdint>

#include "engine/door/process.h"
#include "engine/door/tofu.h"

namespace portofu::utofu {

/// Any thread.
class LockedMemory {
 public:
  static LockedMemory& of_process();

  /// Locks the pages of a region, unless it has them already, or RLIMIT_MEMLOCK or the system does not allow it.
  void lock(RegisteredRegion& region);

  /// The region goes: releases its pages, but for those that others have, too.
  void unlock(const RegisteredRegion& region);

 private:
  ForkMutex mutex_;
  boost::icl::interval_map<std::uintptr_t, std::uint32_t> regions_;  ///< Addresses of whole pages: of how many regions.
};

/// On duty: a region that is registered no more.
inline void end_region(Core& core, const RegisteredRegion& region) {
  leave_region(core, region);
  LockedMemory::of_process().unlock(region);
}

}  // namespace portofu::utofu
