#include "engine/memory/stadd_access.h"

#include "engine/segment/region_table.h"

namespace portofu {

RegisteredRegion* find_region(const StaddTable& table, const StaddAccess& access, NiFail* fail) {
  RegisteredRegion* region = table.find(access.stadd);
  const std::uint64_t offset = stadd_offset(access.stadd);
  if (region == nullptr) {
    *fail = NiFail::kBadStadd;
    return nullptr;
  }
  const bool writes = access.use != PacketType::kTofuGet;
  switch (judge_region(region->segment.length(), !region->is_read_only(), offset, access.bytes, writes)) {
    case RegionVerdict::kFine: return region;
    case RegionVerdict::kBehind: *fail = NiFail::kBadStadd; break;
    case RegionVerdict::kTooLong: *fail = NiFail::kBadLength; break;
    case RegionVerdict::kReadOnly: *fail = NiFail::kSegv; break;
  }
  return nullptr;
}

}  // namespace portofu
