// Where memory gets and loses its STADD.

#include "engine/memory/stadd_table.h"

#include <utility>

#include "engine/memory/guarded_copy.h"

namespace portofu {
namespace {

std::uintptr_t address_of(const std::byte* at) { return reinterpret_cast<std::uintptr_t>(at); }

/// Whether peers may write without us. What the kernel writes for them gets through the protection of pages
/// (ProcessMemory::write), so memory that is read-only now, a constant, is left to who finds out by writing.
bool may_be_written(const RegionRequest& request) {
  return !request.read_only && guarded_touch(request.start) && guarded_touch(request.start + request.bytes - 1);
}

}  // namespace

RegisteredRegion* StaddTable::look_up(std::uint32_t stag) const {
  const auto found = regions_.find(stag);
  if (found == regions_.end()) return nullptr;
  return near_.place(stag) = found->second.get();
}

RegisteredRegion& StaddTable::insert(const RegionRequest& request, std::uint32_t stag) {
  auto region = std::make_unique<RegisteredRegion>();
  region->segment.describe(request.start, request.bytes);
  region->options = request.read_only ? kEntryOpGet : kEntryOpGet | kEntryOpPut;
  region->component = request.component;
  region->start = request.start;
  region->stag = stag;
  if (directory_ != nullptr) {
    directory_->publish({region_key(control_queue_, stag), address_of(request.start), request.bytes, request.component,
                         may_be_written(request)});
  }
  return *(regions_[stag] = std::move(region));
}

Status StaddTable::add(const RegionRequest& request, std::uint64_t* stadd) {
  // Backwards from the last region that begins at or before the wanted one; a region nearby is the usual answer.
  constexpr int kMostLooks = 64;
  auto at = by_address_.upper_bound(address_of(request.start));
  for (int looks = 0; at != by_address_.begin() && looks < kMostLooks; ++looks) {
    RegisteredRegion& region = *(--at)->second;
    const bool same = region.component == request.component && region.is_read_only() == request.read_only;
    if (!same || !region.holds(request.start, request.bytes)) continue;
    const auto offset = static_cast<std::uint64_t>(request.start - region.start);
    ++region.given[offset];
    *stadd = make_stadd(region.stag) + offset;
    return Status::kOk;
  }
  if (by_address_.size() >= kDynamicStags) return Status::kNoSpace;
  while (regions_.contains(next_stag_)) {
    next_stag_ = kFirstDynamicStag + (next_stag_ - kFirstDynamicStag + 1) % kDynamicStags;
  }
  RegisteredRegion& region = insert(request, next_stag_);
  // The one after: a STADD that was given back is not given out again soon.
  next_stag_ = kFirstDynamicStag + (next_stag_ - kFirstDynamicStag + 1) % kDynamicStags;
  by_address_.emplace(address_of(request.start), &region);
  ++region.given[0];
  *stadd = make_stadd(region.stag);
  return Status::kOk;
}

Status StaddTable::add_reserved(const RegionRequest& request, std::uint32_t stag, std::uint64_t* stadd) {
  const std::uint32_t full = reserved_stag(request.component, stag);
  if (regions_.contains(full)) return Status::kInUse;
  ++insert(request, full).given[0];
  *stadd = make_stadd(full);
  return Status::kOk;
}

bool StaddTable::remove(std::uint32_t component, std::uint64_t stadd, std::unique_ptr<RegisteredRegion>* gone) {
  RegisteredRegion* region = find(stadd);
  if (region == nullptr || region->component != component) return false;
  const auto given = region->given.find(stadd_offset(stadd));
  if (given == region->given.end()) return false;
  if (--given->second == 0) region->given.erase(given);
  if (!region->given.empty()) return true;
  const auto same_start = by_address_.equal_range(address_of(region->start));
  for (auto at = same_start.first; at != same_start.second; ++at) {
    if (at->second != region) continue;
    by_address_.erase(at);
    break;
  }
  if (directory_ != nullptr) directory_->withdraw(region_key(control_queue_, region->stag));
  generation_.store(generation_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  near_.place(region->stag) = nullptr;
  const auto found = regions_.find(region->stag);
  *gone = std::move(found->second);
  regions_.erase(found);
  return true;
}

std::unique_ptr<RegisteredRegion> StaddTable::take_any_of(std::uint32_t component) {
  for (const auto& [stag, region] : regions_) {
    if (region->component != component) continue;
    const std::uint64_t offset = region->given.begin()->first;
    const std::uint64_t stadd = make_stadd(stag) + offset;
    region->given = {{offset, 1}};
    std::unique_ptr<RegisteredRegion> gone;
    remove(component, stadd, &gone);
    return gone;
  }
  return nullptr;
}

}  // namespace portofu
