#pragma once
// Step 6 of uTofu: the region behind a STADD, bounds, and whether it may be used so. One function for both ends.

#include "engine/event/event.h"
#include "engine/memory/stadd_table.h"
#include "engine/wire/header.h"

namespace portofu {

/// What somebody wants with registered memory.
struct StaddAccess {
  std::uint64_t stadd;
  std::uint64_t bytes;
  PacketType use;  ///< kTofuPut writes, kTofuGet reads, kTofuArmw does both.
};

/// @param fail  kBadStadd: no region, or the address lies behind it | kBadLength: the range leaves it | kSegv: it is
///              registered read-only
/// @return nullptr if `fail` was set
RegisteredRegion* find_region(const StaddTable& table, const StaddAccess& access, NiFail* fail);

}  // namespace portofu
