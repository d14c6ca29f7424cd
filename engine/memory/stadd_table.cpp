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

/// Each time another one: a STADD that was given back, by whomever, is not given out again soon.
/// @pre some are free
std::uint32_t StaddTable::next_stag() {
  std::uint32_t stag = 0;
  do {
    stag = kFirstDynamicStag + given_->fetch_add(1, std::memory_order_relaxed) % kDynamicStags;
  } while (regions_.contains(stag));
  return stag;
}

Status StaddTable::add(const RegionRequest& request, std::uint64_t* stadd) {
  if (const auto known = registered_.find(key_of(request)); known != registered_.end() && known->second != nullptr) {
    ++known->second->registrations;
    *stadd = make_stadd(known->second->stag);
    return Status::kOk;
  }
  if (registered_.size() >= kDynamicStags) return Status::kNoSpace;
  RegisteredRegion*& made = registered_[key_of(request)];  // First: what follows may find no memory, and leave nullptr.
  made = &insert(request, next_stag());
  *stadd = make_stadd(made->stag);
  return Status::kOk;
}

Status StaddTable::add_reserved(const RegionRequest& request, std::uint32_t stag, std::uint64_t* stadd) {
  const std::uint32_t full = reserved_stag(request.component, stag);
  if (regions_.contains(full)) return Status::kInUse;
  insert(request, full);
  *stadd = make_stadd(full);
  return Status::kOk;
}

bool StaddTable::remove(std::uint32_t component, std::uint64_t stadd, std::unique_ptr<RegisteredRegion>* gone) {
  RegisteredRegion* region = find(stadd);
  if (region == nullptr || region->component != component || stadd_offset(stadd) != 0) return false;
  if (--region->registrations != 0) return true;
  const auto known =
      registered_.find(key_of({component, region->start, region->segment.length(), region->is_read_only()}));
  if (known != registered_.end() && known->second == region) registered_.erase(known);
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
    region->registrations = 1;
    std::unique_ptr<RegisteredRegion> gone;
    remove(component, make_stadd(stag), &gone);
    return gone;
  }
  return nullptr;
}

}  // namespace portofu
