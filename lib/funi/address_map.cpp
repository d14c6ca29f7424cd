#include "lib/funi/address_map.h"

namespace portofu::funi {

std::uint32_t AddressMap::add(void* start, std::size_t bytes) {
  const std::uint64_t address = next_ + reinterpret_cast<std::uintptr_t>(start) % kPage;
  // A page stays free behind each region, so that what runs over its end meets nothing.
  constexpr std::uint64_t kEnd = std::uint64_t{1} << 32;
  if (bytes > kEnd - kPage || address + bytes > kEnd - kPage) return 0;
  next_ = (address + bytes + 2 * kPage - 1) / kPage * kPage;
  regions_[static_cast<std::uint32_t>(address)] = {static_cast<std::byte*>(start), bytes};
  return static_cast<std::uint32_t>(address);
}

void* AddressMap::find(std::uint32_t address, std::size_t bytes) const {
  auto above = regions_.upper_bound(address);
  if (above == regions_.begin()) return nullptr;
  const auto& [begin, region] = *--above;
  const std::size_t offset = address - begin;
  if (offset > region.bytes || bytes > region.bytes - offset) return nullptr;
  return region.start + offset;
}

std::uint32_t AddressMap::address_of(const void* start, std::size_t bytes) const {
  const auto wanted = reinterpret_cast<std::uintptr_t>(start);
  for (const auto& [begin, region] : regions_) {
    const auto first = reinterpret_cast<std::uintptr_t>(region.start);
    if (wanted < first || wanted - first > region.bytes || bytes > region.bytes - (wanted - first)) continue;
    return begin + static_cast<std::uint32_t>(wanted - first);
  }
  return 0;
}

}  // namespace portofu::funi
