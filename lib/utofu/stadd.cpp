// 3.6 STADD management.

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "engine/door/process.h"
#include "engine/door/tofu.h"
#include "lib/utofu/limits.h"
#include "lib/utofu/locked_memory.h"

using namespace portofu;
using namespace portofu::utofu;

namespace {

/// Whether every page is mapped; how it is protected shows when it is used.
bool is_mapped(const void* addr, std::size_t size) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(addr) / page * page;
  const std::uintptr_t bytes = reinterpret_cast<std::uintptr_t>(addr) + size - first;
  const NoCancellation whole;
  return msync(reinterpret_cast<void*>(first), bytes, MS_ASYNC) == 0 || errno != ENOMEM;
}

int check_region(const void* addr, std::size_t size, unsigned long flags, const utofu_stadd_t* stadd) {
  if (stadd == nullptr) return failed(UTOFU_ERR_INVALID_POINTER, "stadd is NULL");
  if ((flags & ~UTOFU_REG_MEM_FLAG_READ_ONLY) != 0) return failed(UTOFU_ERR_INVALID_FLAGS, "unknown flags");
  if (size == 0 || size > kMaxRegionBytes || size > UINTPTR_MAX - reinterpret_cast<std::uintptr_t>(addr))
    return failed(UTOFU_ERR_INVALID_SIZE, "a region has 1 to 2^40 bytes");
  if (addr == nullptr || !is_mapped(addr, size)) return failed(UTOFU_ERR_INVALID_ADDRESS, "the region is not mapped");
  return UTOFU_SUCCESS;
}

/// UTOFU_SWAP_PROTECT: as far as RLIMIT_MEMLOCK allows, as the guide says.
void protect(const StaddTable& table, utofu_stadd_t stadd) {
  if (tofu_settings().swap_protect) LockedMemory::of_process().lock(*table.find(stadd));
}

RegionRequest request_of(const VirtualControlQueue& vcq, void* addr, std::size_t size, unsigned long flags) {
  return {component_of(vcq.id), static_cast<std::byte*>(addr), size, (flags & UTOFU_REG_MEM_FLAG_READ_ONLY) != 0};
}

}  // namespace

int utofu_reg_mem(utofu_vcq_hdl_t vcq_hdl, void* addr, size_t size, unsigned long int flags, utofu_stadd_t* stadd) {
  if (const int rc = check_region(addr, size, flags, stadd); rc != UTOFU_SUCCESS) return rc;
  return with_vcq(vcq_hdl, [&](Core& core, const VirtualControlQueue& vcq) {
    StaddTable& table = core.tofu->stadds(vcq);
    if (table.add(request_of(vcq, addr, size, flags), stadd) != Status::kOk)
      return failed(UTOFU_ERR_FULL, "no STag is left");
    protect(table, *stadd);
    return static_cast<int>(UTOFU_SUCCESS);
  });
}

int utofu_reg_mem_with_stag(utofu_vcq_hdl_t vcq_hdl, void* addr, size_t size, unsigned int stag,
                            unsigned long int flags, utofu_stadd_t* stadd) {
  if (stag >= settings().reserved_stag_count) return failed(UTOFU_ERR_INVALID_STAG, "no such reserved STag");
  if (size % kStagAlignment != 0) return failed(UTOFU_ERR_INVALID_SIZE, "the size is no multiple of the alignment");
  if (reinterpret_cast<std::uintptr_t>(addr) % kStagAlignment != 0)
    return failed(UTOFU_ERR_INVALID_ADDRESS, "the address is not aligned");
  if (const int rc = check_region(addr, size, flags, stadd); rc != UTOFU_SUCCESS) return rc;
  return with_vcq(vcq_hdl, [&](Core& core, const VirtualControlQueue& vcq) {
    StaddTable& table = core.tofu->stadds(vcq);
    if (Checker* const checker = core.checker()) [[unlikely]]
      checker->tofu.uses("utofu_reg_mem_with_stag", kStagLimit, stag);
    if (table.add_reserved(request_of(vcq, addr, size, flags), stag, stadd) != Status::kOk)
      return failed(UTOFU_ERR_USED, "the STag is used");
    protect(table, *stadd);
    return static_cast<int>(UTOFU_SUCCESS);
  });
}

int utofu_query_stadd(utofu_vcq_id_t vcq_id, unsigned int stag, utofu_stadd_t* stadd) {
  if (stadd == nullptr) return failed(UTOFU_ERR_INVALID_POINTER, "stadd is NULL");
  if (!is_vcq_id(vcq_id)) return failed(UTOFU_ERR_INVALID_VCQ_ID, "not a VCQ id");
  if (stag >= settings().reserved_stag_count) return failed(UTOFU_ERR_INVALID_STAG, "no such reserved STag");
  *stadd = make_stadd(reserved_stag(component_of(vcq_id), stag));
  return UTOFU_SUCCESS;
}

int utofu_dereg_mem(utofu_vcq_hdl_t vcq_hdl, utofu_stadd_t stadd, unsigned long int flags) {
  if (flags != 0) return failed(UTOFU_ERR_INVALID_FLAGS, "unknown flags");
  return with_vcq(vcq_hdl, [stadd](Core& core, const VirtualControlQueue& vcq) {
    std::unique_ptr<RegisteredRegion> gone;
    if (!core.tofu->stadds(vcq).remove(component_of(vcq.id), stadd, &gone))
      return failed(UTOFU_ERR_INVALID_STADD, "the VCQ has given out no such STADD");
    if (Checker* const checker = core.checker(); checker != nullptr && gone != nullptr) [[unlikely]]
      checker->tofu.leaves(vcq, *gone);
    if (gone != nullptr) end_region(core, *gone);
    return static_cast<int>(UTOFU_SUCCESS);
  });
}
