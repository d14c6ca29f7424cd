#include "engine/target/stadd_access.h"

#include "engine/target/permission.h"

namespace portofu {

RegisteredRegion* find_region(const StaddTable& table, const StaddAccess& access, NiFail* fail) {
  RegisteredRegion* region = table.find(access.stadd);
  const std::uint64_t offset = stadd_offset(access.stadd);
  PacketHeader header{};
  header.type = access.use;
  if (region == nullptr || !region->segment.fits(offset, 0)) {
    *fail = NiFail::kBadStadd;
  } else if (!region->segment.fits(offset, access.bytes)) {
    *fail = offset == region->segment.length() ? NiFail::kBadStadd : NiFail::kBadLength;
  } else if (judge(*region, header) != Refusal::kNone) {
    *fail = NiFail::kSegv;
  } else {
    return region;
  }
  return nullptr;
}

}  // namespace portofu
