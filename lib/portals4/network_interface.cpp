// 3.6 Network interfaces.

#include <bit>
#include <cstdlib>
#include <vector>

#include "engine/door/process.h"
#include "lib/portals4/library.h"

using namespace portofu;
using namespace portofu::portals;

namespace {

bool is_one_of_each(unsigned int options) {
  if ((options & ~PTL_NI_INIT_OPTIONS_MASK) != 0) return false;
  return std::popcount(options & (PTL_NI_MATCHING | PTL_NI_NO_MATCHING)) == 1 &&
         std::popcount(options & (PTL_NI_LOGICAL | PTL_NI_PHYSICAL)) == 1;
}

}  // namespace

int PtlNIInit(ptl_interface_t iface, unsigned int options, ptl_pid_t pid, const ptl_ni_limits_t* desired,
              ptl_ni_limits_t* actual, ptl_handle_ni_t* ni_handle) {
  return guarded([&] {
    if (!is_initialised()) return PTL_NO_INIT;
    if (ni_handle == nullptr || !is_one_of_each(options)) return PTL_ARG_INVALID;
    if (iface != PTL_IFACE_DEFAULT && iface != 0) return PTL_ARG_INVALID;
    const std::uint32_t index =
        ((options & PTL_NI_MATCHING) != 0 ? 1u : 0u) | ((options & PTL_NI_LOGICAL) != 0 ? 2u : 0u);
    return open_interface(index, pid, desired, actual, ni_handle);
  });
}

int PtlNIFini(ptl_handle_ni_t ni_handle) {
  return guarded([&] { return close_interface(ni_handle); });
}

int PtlNIStatus(ptl_handle_ni_t ni_handle, ptl_sr_index_t status_register, ptl_sr_value_t* status) {
  Engine* engine = nullptr;
  if (const int rc = begin(&engine); rc != PTL_OK) return rc;
  if (status == nullptr || static_cast<unsigned>(status_register) >= PTL_SR_LAST) return PTL_ARG_INVALID;
  engine->step();
  const Engine::Duty duty(*engine);
  const Interface* ni = interface_of(duty.core(), ni_handle);
  if (ni == nullptr) return PTL_ARG_INVALID;
  *status = ni->status_registers[status_register].load(std::memory_order_relaxed);
  return PTL_OK;
}

int PtlNIHandle(ptl_handle_any_t handle, ptl_handle_ni_t* ni_handle) {
  Engine* engine = nullptr;
  if (const int rc = begin(&engine); rc != PTL_OK) return rc;
  if (ni_handle == nullptr) return PTL_ARG_INVALID;
  const Engine::Duty duty(*engine);
  const bool is_interface = handle_kind(handle) == static_cast<std::uint32_t>(HandleKind::kInterface);
  const Interface* ni = is_interface ? interface_of(duty.core(), handle) : home_of(duty.core(), handle);
  if (ni == nullptr) return PTL_ARG_INVALID;
  const bool is_object = handle == handle_of(ni->index) || ni->mds.find(handle) != nullptr ||
                         ni->entries.find(handle) != nullptr || ni->eqs.find(handle) != nullptr ||
                         ni->cts.find(handle) != nullptr;
  if (!is_object) return PTL_ARG_INVALID;
  *ni_handle = handle_of(ni->index);
  return PTL_OK;
}

int PtlSetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size, const ptl_process_t* mapping) {
  const auto set = [&](const Core& core, Interface& ni) {
    if (!ni.is_logical() || mapping == nullptr || map_size == 0 || map_size >= PTL_RANK_ANY) return PTL_ARG_INVALID;
    std::vector<ProcessId> processes(map_size);
    for (ptl_size_t rank = 0; rank < map_size; ++rank)
      processes[rank] = {mapping[rank].phys.nid, mapping[rank].phys.pid};
    if (shows_same_nid(processes, core.self.nid, [](const char* name) { return std::getenv(name); })) {
      log_error(
          "PtlSetMap: more processes of the job have the NID %s of this node than the launcher has started here; "
          "messages to those of another node would reach a stranger: PORTOFU_INTERFACE or PORTOFU_NID gives each "
          "node its own",
          node_id_text(core.self.nid).c_str());
    }
    return ni.map.set(processes.data(), map_size, core.self) ? PTL_OK : PTL_NO_SPACE;
  };
  return guarded([&] { return with_interface(ni_handle, set); });
}

int PtlGetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size, ptl_process_t* mapping, ptl_size_t* actual_map_size) {
  return with_interface(ni_handle, [&](const Core&, const Interface& ni) {
    if (!ni.is_logical() || actual_map_size == nullptr) return PTL_ARG_INVALID;
    if (mapping == nullptr && map_size != 0) return PTL_ARG_INVALID;
    if (!ni.map.is_set()) return PTL_IGNORED;
    const auto& processes = ni.map.processes();
    for (ptl_size_t rank = 0; rank < map_size && rank < processes.size(); ++rank) {
      mapping[rank].phys.nid = processes[rank].nid;
      mapping[rank].phys.pid = processes[rank].pid;
    }
    *actual_map_size = processes.size();
    return PTL_OK;
  });
}
