// 3.4 VBG management.

#include <algorithm>
#include <cstring>
#include <vector>

#include "engine/door/process.h"
#include "engine/door/tofu.h"
#include "lib/utofu/limits.h"
#include "lib/utofu/own_queues.h"

using namespace portofu;
using namespace portofu::utofu;

namespace {

std::uint64_t gate_id(std::uint32_t tni, std::uint32_t gate) {
  return make_tofu_id(TofuIdKind::kVbg, my_coordinates(), make_queue_number(tni, gate, 0));
}

BarrierGate* gate_of(const Core& core, std::uint64_t id) {
  BarrierGate* gate = is_vbg_id(id) ? core.tofu->gate(queue_number(id)) : nullptr;
  return gate != nullptr && gate->id == id ? gate : nullptr;
}

void tell_of_no_gates(std::uint32_t tni, std::size_t count) {
  static constinit ToldOnce told;
  if (!told.is_first()) return;
  log_warning(
      "utofu_alloc_vbg finds no %zu gates free on TNI %u, which processes at the same coordinates share; raise "
      "PORTOFU_START_VBGS (%u) or PORTOFU_RELAY_VBGS (%u), for all processes of the node, or let the "
      "machine stand for several nodes (PORTOFU_PER_NODE)",
      count, tni, settings().start_vbg_count, settings().relay_vbg_count);
}

void release_gates(Tofu& tofu, const std::vector<BarrierGate*>& gates) {
  for (const BarrierGate* gate : gates) tofu.release_gate(gate->id);
}

/// Claims one start/end gate and `count` - 1 relay gates, or none. Throws bad_alloc without memory; then what it has
/// claimed is in `gates`.
bool claim_gates(Tofu& tofu, std::uint32_t tni, std::size_t count, std::vector<BarrierGate*>* gates) {
  const std::uint32_t starts = settings().start_vbg_count;
  const std::uint32_t all = starts + settings().relay_vbg_count;
  gates->reserve(std::min<std::size_t>(count, all));
  for (std::uint32_t at = 0; at < all && gates->size() < count; ++at) {
    const bool is_start = at < starts;
    if (is_start != gates->empty()) continue;
    if (BarrierGate* gate = tofu.claim_gate(gate_id(tni, at))) gates->push_back(gate);
    if (tofu.is_refused()) break;
  }
  if (gates->size() == count) return true;
  release_gates(tofu, *gates);
  return false;
}

/// A gate of the same TNI of this process (3.4.2.1), or none. The guide says "another VBG"; a circuit of two processes
/// that is one gate in each may signal to itself here.
bool is_local_end(const Core& core, const BarrierGate& gate, std::uint64_t id) {
  return id == UTOFU_VBG_ID_NULL || (gate_of(core, id) != nullptr && tni_of(id) == tni_of(gate.id));
}
bool is_remote_end(std::uint64_t id) { return id == UTOFU_VBG_ID_NULL || is_vbg_id(id); }

int check_setting(const Core& core, const utofu_vbg_setting& setting, std::uint64_t set_id) {
  const BarrierGate* gate = gate_of(core, setting.vbg_id);
  if (gate == nullptr || gate->set_id != set_id) return failed(UTOFU_ERR_INVALID_VBG_ID, "not a gate of this set");
  const bool good = is_local_end(core, *gate, setting.src_lcl_vbg_id) &&
                    is_local_end(core, *gate, setting.dst_lcl_vbg_id) && is_remote_end(setting.src_rmt_vbg_id) &&
                    is_remote_end(setting.dst_rmt_vbg_id);
  if (!good) return failed(UTOFU_ERR_INVALID_VBG_ID, "a source or destination is no possible gate");
  const PathCoordinates path{setting.dst_path_coords[0], setting.dst_path_coords[1], setting.dst_path_coords[2]};
  if (setting.dst_rmt_vbg_id != UTOFU_VBG_ID_NULL && path[0] != UTOFU_PATH_COORD_NULL && !is_path(path))
    return failed(UTOFU_ERR_INVALID_PATH, "A < 2, B < 3, C < 2");
  return UTOFU_SUCCESS;
}

}  // namespace

int utofu_alloc_vbg(utofu_tni_id_t tni_id, size_t num_vbgs, unsigned long int flags, utofu_vbg_id_t vbg_ids[]) {
  return guarded([&] {
    if (vbg_ids == nullptr) return failed(UTOFU_ERR_INVALID_POINTER, "vbg_ids is NULL");
    if (tni_id >= settings().tni_count) return failed(UTOFU_ERR_INVALID_TNI_ID, "no such TNI");
    if (num_vbgs == 0) return failed(UTOFU_ERR_INVALID_NUMBER, "no gate is asked for");
    if ((flags & ~UTOFU_VBG_FLAG_THREAD_SAFE) != 0) return failed(UTOFU_ERR_INVALID_FLAGS, "unknown flags");
    OwnQueues own;
    std::uint32_t number = 0;
    Engine* engine = own.is_held() ? own.choose_gate_engine("utofu_alloc_vbg", tni_id, &number) : nullptr;
    if (engine == nullptr) return failed(UTOFU_ERR_OUT_OF_RESOURCE, "the engine cannot be opened");
    const Engine::Duty duty(*engine);
    std::vector<BarrierGate*> gates;
    Tofu& tofu = *duty.core().tofu;
    bool claimed = false;
    try {
      claimed = claim_gates(tofu, tni_id, num_vbgs, &gates);
      if (claimed) own.add_gates(tni_id, number);
    } catch (...) {
      release_gates(tofu, gates);
      throw;
    }
    if (!claimed) {
      if (tofu.is_refused()) return failed(UTOFU_ERR_OUT_OF_RESOURCE, "the system refuses the name of a gate");
      tell_of_no_gates(tni_id, num_vbgs);
      return failed(UTOFU_ERR_FULL, "not as many gates are free");
    }
    for (std::size_t i = 0; i < num_vbgs; ++i) {
      gates[i]->set_id = gates[0]->id;
      gates[i]->set_size = static_cast<std::uint32_t>(num_vbgs);
      vbg_ids[i] = gates[i]->id;
    }
    return static_cast<int>(UTOFU_SUCCESS);
  });
}

int utofu_free_vbg(utofu_vbg_id_t vbg_ids[], size_t num_vbgs) {
  return guarded([&] {
    if (vbg_ids == nullptr) return failed(UTOFU_ERR_INVALID_POINTER, "vbg_ids is NULL");
    OwnQueues own;
    Engine* open = own.is_held() && num_vbgs > 0 ? engine_of_gate(vbg_ids[0]) : nullptr;
    if (open == nullptr) return failed(UTOFU_ERR_INVALID_VBG_ID, "there is no such VBG in this process");
    const Engine::Duty duty(*open);
    Core& core = duty.core();
    const BarrierGate* first = gate_of(core, vbg_ids[0]);
    if (first == nullptr) return failed(UTOFU_ERR_INVALID_VBG_ID, "not a gate of this process");
    if (first->set_size != num_vbgs) return failed(UTOFU_ERR_INVALID_NUMBER, "as many as were allocated");
    const std::uint64_t set_id = first->set_id;
    for (std::size_t i = 0; i < num_vbgs; ++i) {
      const BarrierGate* gate = gate_of(core, vbg_ids[i]);
      if (gate == nullptr || gate->set_id != set_id) return failed(UTOFU_ERR_INVALID_VBG_ID, "not of this set");
      for (std::size_t j = 0; j < i; ++j) {
        if (vbg_ids[j] == vbg_ids[i]) return failed(UTOFU_ERR_INVALID_VBG_ID, "a gate is named twice");
      }
    }
    for (std::size_t i = 0; i < num_vbgs; ++i) leave_circuit(core, *gate_of(core, vbg_ids[i]));
    open->settle_on_duty();  // Gates of other sets may have to tell of an end.
    for (std::size_t i = 0; i < num_vbgs; ++i) core.tofu->release_gate(vbg_ids[i]);
    own.remove_gates(tni_of(set_id));
    return static_cast<int>(UTOFU_SUCCESS);
  });
}

int utofu_set_vbg(struct utofu_vbg_setting vbg_settings[], size_t num_vbg_settings) {
  return guarded([&] {
    if (vbg_settings == nullptr) return failed(UTOFU_ERR_INVALID_POINTER, "vbg_settings is NULL");
    if (num_vbg_settings == 0) return failed(UTOFU_ERR_INVALID_NUMBER, "no setting is given");
    Engine* open = engine_of_gate(vbg_settings[0].vbg_id);
    if (open == nullptr) return failed(UTOFU_ERR_INVALID_VBG_ID, "there is no VBG in this process");
    const Engine::Duty duty(*open);
    Core& core = duty.core();
    if (core.receive_arrived != nullptr) core.receive_arrived(core);  // It is of the former circuit.
    const BarrierGate* first = gate_of(core, vbg_settings[0].vbg_id);
    if (first == nullptr || !first->is_start())
      return failed(UTOFU_ERR_INVALID_VBG_ID, "the first is no start/end gate of this process");
    if (num_vbg_settings > first->set_size) return failed(UTOFU_ERR_INVALID_NUMBER, "more than were allocated");
    if (first->state == BarrierState::kRunning) return failed(UTOFU_ERR_BUSY, "a barrier is under way");
    for (std::size_t i = 0; i < num_vbg_settings; ++i) {
      const int rc = check_setting(core, vbg_settings[i], first->id);
      if (rc != UTOFU_SUCCESS) return rc;
    }
    core.tofu->for_each_gate([first](BarrierGate& gate) { gate.is_left_out |= gate.set_id == first->id; });
    for (std::size_t i = 0; i < num_vbg_settings; ++i) {
      const utofu_vbg_setting& one = vbg_settings[i];
      configure_gate(core, *gate_of(core, one.vbg_id),
                     {one.src_lcl_vbg_id, one.src_rmt_vbg_id, one.dst_lcl_vbg_id, one.dst_rmt_vbg_id});
    }
    core.tofu->for_each_gate([&](BarrierGate& gate) {
      if (gate.set_id == first->id && gate.is_left_out) leave_circuit(core, gate);
    });
    return static_cast<int>(UTOFU_SUCCESS);
  });
}

int utofu_query_vbg_info(utofu_vbg_id_t vbg_id, uint8_t coords[], utofu_tni_id_t* tni_id, utofu_bg_id_t* bg_id,
                         uint16_t* extra_val) {
  if (coords == nullptr || tni_id == nullptr || bg_id == nullptr || extra_val == nullptr)
    return failed(UTOFU_ERR_INVALID_POINTER, "a result pointer is NULL");
  if (!is_vbg_id(vbg_id)) return failed(UTOFU_ERR_INVALID_VBG_ID, "not a VBG id");
  const Coordinates at = coordinates_of(vbg_id);
  std::memcpy(coords, at.data(), at.size());
  *tni_id = static_cast<utofu_tni_id_t>(tni_of(vbg_id));
  *bg_id = static_cast<utofu_bg_id_t>(queue_of(vbg_id));
  *extra_val = 0;
  return UTOFU_SUCCESS;
}
