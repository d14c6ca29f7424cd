// 3.7 Portal table entries.

#include <memory>

#include "engine/door/portals.h"
#include "engine/door/process.h"
#include "lib/portals4/library.h"

using namespace portofu;
using namespace portofu::portals;

namespace {

std::uint32_t first_free_index(const Interface& ni) {
  for (std::uint32_t index = 0; index <= ni.limits.max_pt_index; ++index) {
    if (ni.portal(index) == nullptr) return index;
  }
  return PTL_PT_ANY;
}

/// Calls `use(core, interface, portal table entry)` on duty.
template <class Use>
int with_portal(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, Use&& use) {
  return with_interface(ni_handle, [&](Core& core, Interface& ni) {
    PortalTableEntry* portal = ni.portal(pt_index);
    return portal != nullptr ? use(core, ni, *portal) : PTL_ARG_INVALID;
  });
}

int allocate(Interface& ni, unsigned int options, ptl_handle_eq_t eq_handle, ptl_pt_index_t wanted,
             ptl_pt_index_t* pt_index) {
  if (!is_eq_or_none(ni, eq_handle)) return PTL_ARG_INVALID;
  const bool flow_control = (options & PTL_PT_FLOWCTRL) != 0;
  if (flow_control && eq_handle == PTL_EQ_NONE) return PTL_PT_EQ_NEEDED;
  if (wanted != PTL_PT_ANY && wanted > ni.limits.max_pt_index) return PTL_ARG_INVALID;
  const std::uint32_t index = wanted == PTL_PT_ANY ? first_free_index(ni) : wanted;
  if (index == PTL_PT_ANY) return PTL_PT_FULL;
  if (ni.portal(index) != nullptr) return PTL_PT_IN_USE;
  auto portal = std::make_unique<PortalTableEntry>();
  portal->eq_handle = eq_or_zero(eq_handle);
  portal->flow_control = flow_control;
  portal->enabled = (options & PTL_PT_ALLOC_DISABLED) == 0;
  if (flow_control && !ni.eqs.find(eq_handle)->reserve_on_duty()) {
    tell_of_memory("an event queue");
    return PTL_NO_SPACE;
  }
  ni.portal_table[index] = std::move(portal);
  *pt_index = index;
  return PTL_OK;
}

}  // namespace

int PtlPTAlloc(ptl_handle_ni_t ni_handle, unsigned int options, ptl_handle_eq_t eq_handle, ptl_pt_index_t pt_index_req,
               ptl_pt_index_t* pt_index) {
  const auto allocate_in = [&](const Core& core, Interface& ni) {
    const bool valid = pt_index != nullptr && (options & ~PTL_PT_ALLOC_OPTIONS_MASK) == 0;
    const int rc = valid ? allocate(ni, options, eq_handle, pt_index_req, pt_index) : PTL_ARG_INVALID;
    if (Checker* const checker = core.checker(); checker != nullptr && rc == PTL_OK) [[unlikely]]
      checker->portals.allocates_portal(*pt_index);
    return rc;
  };
  return guarded([&] { return with_interface(ni_handle, allocate_in); });
}

int PtlPTFree(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index) {
  return with_portal(ni_handle, pt_index, [&](Core&, Interface& ni, const PortalTableEntry& portal) {
    if (portal.has_entries() || portal.in_progress != 0 || !portal.unexpected.empty()) return PTL_PT_IN_USE;
    if (portal.flow_control) {
      if (EventQueue* queue = ni.eqs.find(portal.eq_handle)) queue->unreserve_on_duty();
    }
    ni.portal_table[pt_index].reset();
    return PTL_OK;
  });
}

int PtlPTDisable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index) {
  const BlockingCall inside(OnAbort::kGoOn);
  std::weak_ptr<PortalTableEntry> drained;  // It may be freed meanwhile, and another one get its index.
  const int rc = with_portal(ni_handle, pt_index, [&](Core& core, const Interface& ni, PortalTableEntry& portal) {
    portal.disable(DisabledBy::kProgram, core.now_ns());
    withdraw_entries(core, ni, portal);
    if (portal.in_progress == 0 && portal.publications == 0) return PTL_OK;
    drained = ni.portal_table[pt_index];
    ++portal.drains;
    return PTL_OK;
  });
  Engine* engine = nullptr;
  if (rc != PTL_OK || begin(&engine) != PTL_OK || !is_open(*engine)) return rc;
  // Messages under way end: by their last byte, or because their sender is found dead. No new ones come: whoever would
  // enable the entry waits, too.
  auto is_quiet = [&](Core&) {
    const auto portal = drained.lock();
    return portal == nullptr || portal->in_progress == 0;
  };
  engine->wait(is_quiet, Engine::kForever, OnAbort::kGoOn);
  const Engine::Duty duty(*engine);
  const auto portal = drained.lock();
  const Interface* const ni = interface_of(duty.core(), ni_handle);
  if (portal == nullptr || ni == nullptr) return PTL_OK;
  end_visits(duty.core(), *ni, *portal);
  --portal->drains;
  ++duty.core().activity;
  return PTL_OK;
}

int PtlPTEnable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index) {
  const BlockingCall inside(OnAbort::kGoOn);
  Engine* engine = nullptr;
  if (const int rc = begin(&engine); rc != PTL_OK || !is_open(*engine)) return rc;
  int rc = PTL_ARG_INVALID;
  auto enable = [&](Core& core) {
    const Interface* const ni = interface_of(core, ni_handle);
    PortalTableEntry* const portal = ni != nullptr ? ni->portal(pt_index) : nullptr;
    if (portal == nullptr) return true;
    if (portal->drains != 0) return false;
    portal->enabled = true;
    rc = PTL_OK;
    return true;
  };
  engine->wait(enable, Engine::kForever, OnAbort::kGoOn);
  return rc;
}
