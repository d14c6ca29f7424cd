#include "lib/utofu/locked_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <boost/icl/interval_set.hpp>
#include <mutex>

namespace portofu::utofu {
namespace {

using Pages = boost::icl::interval<std::uintptr_t>::interval_type;

std::uintptr_t page_bytes() { return static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE)); }

Pages pages_of(const RegisteredRegion& region) {
  const std::uintptr_t page = page_bytes();
  const auto first = reinterpret_cast<std::uintptr_t>(region.start);
  return Pages::right_open(first / page * page, (first + region.segment.length() + page - 1) / page * page);
}

}  // namespace

/// Never destroyed: threads may still call when the process ends.
LockedMemory& LockedMemory::of_process() {
  static auto* const one = new LockedMemory;
  return *one;
}

void LockedMemory::lock(RegisteredRegion& region) {
  const std::lock_guard guard(mutex_);
  if (region.is_locked || mlock(region.start, region.segment.length()) != 0) return;
  regions_ += std::pair(pages_of(region), 1u);
  region.is_locked = true;
}

void LockedMemory::unlock(const RegisteredRegion& region) {
  if (!region.is_locked) return;
  const std::lock_guard guard(mutex_);
  const Pages pages = pages_of(region);
  regions_ -= std::pair(pages, 1u);
  boost::icl::interval_set<std::uintptr_t> free{pages};
  const auto [first, last] = regions_.equal_range(pages);
  for (auto kept = first; kept != last; ++kept) free -= kept->first;
  const std::byte* const first_page = region.start - reinterpret_cast<std::uintptr_t>(region.start) % page_bytes();
  for (const Pages& part : free) munlock(first_page + (part.lower() - pages.lower()), part.upper() - part.lower());
}

}  // namespace portofu::utofu
