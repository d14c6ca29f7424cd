#include "lib/funi/address_map.h"

#include <algorithm>

namespace portofu::funi {

std::uint32_t AddressMap::add(void* start, std::size_t bytes) {
  constexpr std::uint64_t kEnd = std::uint64_t{1} << 32;
  if (bytes > kEnd - kPage) return 0;
  const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(start) % kPage;
  const auto fits_at = [&](std::uint64_t page) { return page + offset + bytes <= kEnd - kPage; };
  const std::uint64_t page = fits_at(next_) ? next_ : find_gap(offset + bytes);
  if (!fits_at(page)) return 0;
  next_ = std::max(next_, page_behind(page + offset + bytes));
  regions_[static_cast<std::uint32_t>(page + offset)] = {static_cast<std::byte*>(start), bytes};
  return static_cast<std::uint32_t>(page + offset);
}

/// Addresses that were taken back are given again when there are no others left.
std::uint64_t AddressMap::find_gap(std::uint64_t bytes) const {
  std::uint64_t page = kPage;
  for (const auto& [begin, region] : regions_) {
    if (page_behind(page + bytes) <= begin / kPage * kPage) return page;
    page = page_behind(begin + region.bytes);
  }
  return page;
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
