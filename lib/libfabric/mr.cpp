// fi_mr(3): memory regions.

#include "lib/libfabric/mr.h"

#include <cstring>
#include <memory>
#include <utility>

#include "engine/door/libfabric.h"
#include "lib/libfabric/endpoint.h"
#include "lib/libfabric/eq.h"
#include "lib/libfabric/info.h"

namespace portofu::fabric {
namespace {

constexpr std::uint64_t kAccess = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;

bool is_reachable(const MemoryRegion& region) { return (region.access & (FI_REMOTE_READ | FI_REMOTE_WRITE)) != 0; }

/// On duty: gives the region its key. What nobody else can reach needs none of its own.
int choose_key(MemoryRegion& region, std::uint64_t wanted) {
  Domain& domain = *region.domain;
  region.fid.key = domain.chooses_keys ? domain.next_key++ : wanted;
  if (!is_reachable(region)) return 0;
  return domain.regions.emplace(region.fid.key, &region).second ? 0 : -FI_ENOKEY;
}

/// On duty.
void give_key(const MemoryRegion& region) {
  if (is_reachable(region)) region.domain->regions.erase(region.fid.key);
}

/// On duty: gives entries back that nobody has used yet.
void drop_entries(Core& core, std::vector<MemoryRegion::Entry>& entries) {
  for (const MemoryRegion::Entry& entry : entries) unlink_entry(core, interface_of(core), entry.handle);
  entries.clear();
}

/// On duty. Throws bad_alloc without memory; then it is as it was. @pre it has no entries
void enable(Core& core, MemoryRegion& region) {
  try {
    for (const Receive* receive : region.domain->receivers) {
      if (is_reachable(region)) open_region_at(core, region, *receive);
    }
  } catch (...) {
    drop_entries(core, region.entries);
    throw;
  }
  region.enabled = true;
}

/// A peer in the middle of an access ends it soon, unless it has been stopped there. What is in use then stays.
/// @return whether nothing is
bool close_entries(Engine& engine, std::vector<MemoryRegion::Entry>& entries) {
  auto is_over = [&](Core& core) {
    std::erase_if(entries, [&](const MemoryRegion::Entry& entry) {
      return unlink_entry(core, interface_of(core), entry.handle) != Status::kInUse;
    });
    return entries.empty();
  };
  return engine.wait(is_over, Engine::kLingerNs, OnAbort::kGoOn) == WaitResult::kReached;
}

/// What is still in use keeps its key, and no further endpoint reaches it; it may be closed again.
int close(fid* object) {
  auto* region = object_of<MemoryRegion>(object);
  Engine& engine = *region->domain->engine;
  {
    const Engine::Duty duty(engine);
    region->enabled = false;
  }
  if (!close_entries(engine, region->entries)) return -FI_EBUSY;
  {
    const Engine::Duty duty(engine);
    give_key(*region);
  }
  if (region->cntr != nullptr) --region->cntr->users;
  --region->domain->users;
  delete region;
  return 0;
}

/// A region that nobody had to enable gets new entries, before the old ones go: it is reached all the time. Throws
/// bad_alloc without memory; then it has the old ones.
void replace_entries(MemoryRegion& region) {
  Engine& engine = *region.domain->engine;
  std::vector<MemoryRegion::Entry> old;
  {
    const Engine::Duty duty(engine);
    old.swap(region.entries);
    try {
      region.entries.reserve(region.domain->receivers.size() + old.size());  // See below.
      enable(duty.core(), region);
    } catch (...) {
      old.swap(region.entries);
      throw;
    }
  }
  if (close_entries(engine, old)) return;
  const Engine::Duty duty(engine);
  region.entries.insert(region.entries.end(), old.begin(), old.end());
}

/// "After calling fi_mr_enable(), no further resource bindings may be made to the memory region."
int bind_counter(MemoryRegion& region, CounterFid* cntr) {
  const bool was_enabled = region.enabled && (region.events || region.domain->binds_regions);
  if (region.cntr != nullptr || was_enabled) return -FI_EOPBADSTATE;
  region.cntr = cntr;
  try {
    if (region.enabled) replace_entries(region);
  } catch (...) {
    region.cntr = nullptr;
    throw;
  }
  ++cntr->users;
  return 0;
}

int bind(fid* object, fid* other, std::uint64_t flags) {
  auto* region = object_of<MemoryRegion>(object);
  if (other == nullptr) return -FI_EINVAL;
  return guarded([&] {
    switch (other->fclass) {
      case FI_CLASS_EP:
      case FI_CLASS_SEP:
      case FI_CLASS_RX_CTX: return bind_endpoint(*region, root_of(other));
      case FI_CLASS_CNTR: break;
      default: return -FI_EINVAL;
    }
    if ((flags & FI_REMOTE_WRITE) == 0) return -FI_EINVAL;
    auto* cntr = object_of<CounterFid>(other);
    return cntr->domain == region->domain ? bind_counter(*region, cntr) : -FI_EDOMAIN;
  });
}

/// A raw key is the key.
int tell_raw_key(const MemoryRegion& region, const struct fi_mr_raw_attr& raw) {
  const std::size_t room = std::exchange(*raw.key_size, sizeof region.fid.key);
  if (room < sizeof region.fid.key) return -FI_ETOOSMALL;
  std::memcpy(raw.raw_key, &region.fid.key, sizeof region.fid.key);
  *raw.base_addr = region.origin;
  return 0;
}

int enable_region(MemoryRegion* region) {
  if (region->domain->binds_regions && region->only == nullptr) return -FI_EOPBADSTATE;
  return guarded([&] {
    const Engine::Duty duty(*region->domain->engine);
    if (!region->enabled) enable(duty.core(), *region);
    return 0;
  });
}

int control(fid* object, int command, void* argument) {
  auto* region = object_of<MemoryRegion>(object);
  switch (command) {
    case FI_ENABLE: return enable_region(region);
    case FI_GET_RAW_MR: return tell_raw_key(*region, *static_cast<const struct fi_mr_raw_attr*>(argument));
    case FI_REFRESH: return 0;  // Pages are found when they are reached.
    default: return -FI_ENOSYS;
  }
}

fi_ops object_calls = {sizeof(fi_ops), close, bind, control, refuse_ops, NotThere{}, NotThere{}};

/// "An asynchronous event will not be generated unless the registration call returns success."
int tell_of(MemoryRegion& region) {
  if (!region.domain->tells_regions) return 0;
  const int told = guarded([&] {
    region.domain->eq->post(FI_MR_COMPLETE, {&region.fid.fid, region.fid.fid.context, 0});
    return 0;
  });
  if (told != 0) close(&region.fid.fid);
  return told;
}

int register_attributes(fid* domain_fid, const fi_mr_attr* attr, std::uint64_t flags, fid_mr** opened) {
  const int made = guarded([&] {
    if (domain_fid->fclass != FI_CLASS_DOMAIN || attr == nullptr || attr->mr_iov == nullptr || attr->iov_count == 0)
      return -FI_EINVAL;
    if (attr->iov_count > kMostPieces || (attr->access & ~kAccess) != 0) return -FI_EINVAL;
    if ((flags & ~std::uint64_t{FI_RMA_EVENT}) != 0) return -FI_EBADFLAGS;
    auto region = std::make_unique<MemoryRegion>();
    region->domain = object_of<Domain>(domain_fid);
    region->pieces.assign(attr->mr_iov, attr->mr_iov + attr->iov_count);
    region->access = attr->access;
    region->origin = region->domain->virtual_addresses
                         ? reinterpret_cast<std::uintptr_t>(attr->mr_iov->iov_base) + attr->offset
                         : attr->offset;
    region->events = region->domain->enables_regions && (flags & FI_RMA_EVENT) != 0;
    const Engine::Duty duty(*region->domain->engine);
    if (const int result = choose_key(*region, attr->requested_key); result != 0) return result;
    region->fid.fid = {FI_CLASS_MR, attr->context, &object_calls};
    region->fid.mem_desc = region.get();
    try {
      if (!region->events && !region->domain->binds_regions) enable(duty.core(), *region);
    } catch (...) {
      give_key(*region);
      throw;
    }
    ++region->domain->users;
    *opened = &region.release()->fid;
    return 0;
  });
  return made == 0 ? tell_of(*object_of<MemoryRegion>(*opened)) : made;
}

int register_pieces(fid* domain, const iovec* pieces, std::size_t count, std::uint64_t access, std::uint64_t offset,
                    std::uint64_t key, std::uint64_t flags, fid_mr** opened, void* context) {
  fi_mr_attr attr{};
  attr.mr_iov = pieces;
  attr.iov_count = count;
  attr.access = access;
  attr.offset = offset;
  attr.requested_key = key;
  attr.context = context;
  return register_attributes(domain, &attr, flags, opened);
}

int register_buffer(fid* domain, const void* buffer, std::size_t bytes, std::uint64_t access, std::uint64_t offset,
                    std::uint64_t key, std::uint64_t flags, fid_mr** opened, void* context) {
  const iovec piece{const_cast<void*>(buffer), bytes};
  return register_pieces(domain, &piece, 1, access, offset, key, flags, opened, context);
}

Handle handle_of(const CounterFid* cntr) { return cntr != nullptr ? cntr->ct_handle : 0; }

}  // namespace

void open_region_at(Core& core, MemoryRegion& region, const Receive& receive) {
  if (region.only != nullptr && region.only.get() != &receive && region.only != receive.whole) return;
  const std::uint64_t access = region.access & receive.access;
  EntryRequest request;
  if (region.pieces.size() == 1) {
    request.segment.describe(region.pieces.front().iov_base, region.pieces.front().iov_len);
  } else if (!request.segment.describe(region.pieces.data(), region.pieces.size())) {
    return;
  }
  request.criteria = {.match_bits = region.fid.key, .any_nid = true, .any_pid = true};
  request.ct_handle = handle_of(region.cntr != nullptr ? region.cntr : receive.remote_write_cntr);
  request.counts_reads_apart = true;
  request.read_ct_handle = handle_of(receive.remote_read_cntr);
  request.counts_changes = region.cntr != nullptr;
  request.options = ((access & FI_REMOTE_WRITE) != 0 ? kEntryOpPut : 0) |
                    ((access & FI_REMOTE_READ) != 0 ? kEntryOpGet : 0) | kEntryNoTruncate | kEntryEventLinkDisable |
                    kEntryEventUnlinkDisable | kEntryEventSuccessDisable |
                    (request.ct_handle != 0 || request.read_ct_handle != 0 ? kEntryEventCtComm : 0);
  request.origin = region.origin;
  request.pt_index = portal_of(receive.number, PortalUse::kMemory);
  region.entries.push_back({receive.number, 0});
  Handle& handle = region.entries.back().handle;
  if (append_entry(core, interface_of(core), std::move(request), &handle) == Status::kOk) return;
  region.entries.pop_back();
  throw std::bad_alloc();
}

/// Without FI_MR_ENDPOINT every endpoint of the domain may be used.
int bind_endpoint(MemoryRegion& region, const Endpoint& ep) {
  if (ep.domain != region.domain) return -FI_EDOMAIN;
  const bool has_contexts = ep.fid.fid.fclass == FI_CLASS_SEP;
  if (ep.shared != nullptr || !(ep.receives || has_contexts)) return -FI_EINVAL;  // Nothing is reached by it.
  if (!region.domain->binds_regions) return 0;
  if (region.only != nullptr || region.enabled) return -FI_EOPBADSTATE;
  region.only = ep.rx;
  return 0;
}

int map_raw_key(const struct fi_mr_map_raw& raw) {
  if (raw.key_size != sizeof *raw.key) return -FI_EINVAL;
  std::memcpy(raw.key, raw.raw_key, sizeof *raw.key);
  return 0;
}

fi_ops_mr region_calls = {sizeof(fi_ops_mr), register_buffer, register_pieces, register_attributes};

}  // namespace portofu::fabric
