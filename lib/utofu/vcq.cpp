// 3.3 VCQ management and 3.5 communication paths.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "engine/door/process.h"
#include "engine/door/tofu.h"
#include "lib/utofu/limits.h"
#include "lib/utofu/locked_memory.h"
#include "lib/utofu/own_queues.h"

using namespace portofu;
using namespace portofu::utofu;

namespace {

constexpr unsigned long kKnownVcqFlags =
    UTOFU_VCQ_FLAG_THREAD_SAFE | UTOFU_VCQ_FLAG_EXCLUSIVE | UTOFU_VCQ_FLAG_SESSION_MODE;

/// A path id is never 0, because no path in the flags is 0.
constexpr std::uint8_t kPathIdMark = 0x10;

/// What a call asks for.
struct Wanted {
  std::uint32_t tni;
  CqMode mode;
  int component;  ///< -1: any.
  bool thread_safe;
};

/// CQs that this process must leave alone when it claims one for `mode`, because the environment keeps them for others.
std::uint32_t kept_for_others(const OwnQueues& own, std::uint32_t tni, CqMode mode) {
  const auto missing = [&](CqMode other, std::uint32_t wanted) {
    const std::uint32_t have = own.count(tni, other);
    return have >= wanted ? 0 : wanted - have;
  };
  const TofuSettings& wanted = tofu_settings();
  const std::uint32_t exclusive = missing(CqMode::kExclusive, wanted.exclusive_cqs);
  const std::uint32_t session = wanted.session_cqs_kept ? missing(CqMode::kSession, wanted.session_cqs) : 0;
  switch (mode) {
    case CqMode::kSession: return exclusive;
    case CqMode::kExclusive: return exclusive != 0 ? 0 : session;  // 4.3.2.2: those that are kept for it come first.
    default: return exclusive + session;
  }
}

/// Which settings change it.
void tell_of_no_cq(const Wanted& wanted, const char* reason, const std::string& advice) {
  static constinit ToldOnce told;
  if (!told.is_first()) return;
  log_warning("utofu_create_vcq finds no CQ on TNI %u: %s, of %u that the TNI has; %s", wanted.tni, reason,
              settings().cq_count, advice.c_str());
}

/// Where it is said how many CQs a TNI has.
const char* number_of_cqs() { return settings().sim.empty() ? "PORTOFU_CQS" : "queues_per_interface of the machine"; }

/// Processes at the same coordinates have all.
std::string advice_for_full_tni() {
  const std::string raised = std::string("raise ") + number_of_cqs();
  if (!settings().sim.empty()) return raised + ", or let ptl_sim have fewer ranks a node (--per-node)";
  return raised +
         ", for all processes of the node, or let the machine stand for several nodes (PORTOFU_PER_NODE=4, or ptl_run "
         "--per-node 4: each four local ranks are on one)";
}

/// The CQs that this process takes first.
CqRange read_own_cqs() {
  std::vector<std::uint32_t> table;
  if (!parse_cq_table(settings().rank_cqs, cq_id_limit(), &table)) {
    log_error("PORTOFU_RANK_CQS=%s is not allowed (CQs below %u, as 0,2,5,8); an equal share is taken",
              settings().rank_cqs.c_str(), cq_id_limit());
    table.clear();
  }
  return own_cqs(node_map() ? node_map()->own_place() : LocalPlace{}, table);
}

/// Whether this process may claim one more CQ. It says why not.
bool may_claim(const OwnQueues& own, const Wanted& wanted) {
  if (wanted.mode == CqMode::kSession && own.count(wanted.tni, CqMode::kSession) >= tofu_settings().session_cqs) {
    tell_of_no_cq(wanted, "this process has as many in session mode as it may", "raise UTOFU_NUM_SESSION_MODE_CQS");
    return false;
  }
  std::uint32_t have = 0;
  for (const CqMode mode : {CqMode::kShared, CqMode::kExclusive, CqMode::kSession}) have += own.count(wanted.tni, mode);
  if (have + kept_for_others(own, wanted.tni, wanted.mode) < settings().cq_count) return true;
  tell_of_no_cq(
      wanted, "this process has all, but for those that it keeps for exclusive and session mode",
      std::string("lower UTOFU_NUM_EXCLUSIVE_CQS or UTOFU_NUM_SESSION_MODE_CQS, or raise ") + number_of_cqs());
  return false;
}

/// Claims the first free CQ of this process's share of the TNI, or else the lowest that is free.
/// @return nullptr if there is none, or the system refuses it
ControlQueue* claim_cq(Tofu& tofu, const Wanted& wanted, std::uint32_t* cq) {
  const CqRange own_share = read_once<CqRange, read_own_cqs>();
  const std::uint32_t tries = own_share.count + settings().cq_count;
  for (std::uint32_t i = 0; i < tries; ++i) {
    *cq = i < own_share.count ? own_share.first + i : i - own_share.count;
    ControlQueue* const claimed = tofu.claim_queue(wanted.tni, *cq, wanted.mode);
    if (claimed != nullptr || tofu.is_refused()) return claimed;
  }
  tell_of_no_cq(wanted, "processes at the same coordinates have all", advice_for_full_tni());
  return nullptr;
}

/// The shared CQ of this process with the lowest number that has the wanted component free, or any component if any
/// will do.
/// @param wanted  its component is set
/// @param rc      set if the component is used
/// @return queue nullptr if there is none
OwnQueue find_shared(const OwnQueues& own, Wanted& wanted, int* rc) {
  OwnQueue best{};
  int component = 0;
  for (const OwnQueue& one : own.all()) {
    if (one.tni != wanted.tni || one.queue->mode != wanted.mode || wanted.mode == CqMode::kExclusive) continue;
    if (best.queue != nullptr && best.cq < one.cq) continue;
    const auto& vcqs = one.queue->vcqs;
    const auto free = std::ranges::find_if(vcqs, [](const auto& vcq) { return vcq == nullptr; });
    if (wanted.component < 0 && free == vcqs.end()) continue;
    best = one;
    component = wanted.component >= 0 ? wanted.component : static_cast<int>(free - vcqs.begin());
  }
  if (best.queue == nullptr) return best;
  wanted.component = component;
  if (best.queue->vcqs[static_cast<std::size_t>(component)] != nullptr)
    *rc = failed(UTOFU_ERR_USED, "the component id is used");
  return best;
}

/// The calls of the VCQ may go without the duty.
void open_lane(VirtualControlQueue& vcq, utofu_vcq_hdl_t hdl) {
  LaneDoor& door = door_of(hdl);
  const bool taken = door.handle.load(std::memory_order_relaxed) != 0;
  if (taken || settings().max_putget_bytes < sizeof(std::uint64_t)) return;
  vcq.direct.door = &door;
  vcq.direct.allowed = true;
  vcq.direct.most_bytes = settings().max_putget_bytes;
  door.lane = &vcq.direct;
  door.handle.store(hdl, std::memory_order_relaxed);
}

void close_lane(Core& core, VirtualControlQueue& vcq) {
  if (!vcq.direct.allowed) return;
  count_lane_on_duty(core, vcq.direct);
  LaneDoor& door = *vcq.direct.door;
  door.handle.store(0, std::memory_order_relaxed);
  shut_on_duty(door);
  door.lane = nullptr;
}

int tell_full(const Wanted& wanted) {
  return wanted.mode == CqMode::kShared ? failed(UTOFU_ERR_FULL, "no CQ of the TNI has room")
                                        : failed(UTOFU_ERR_NOT_AVAILABLE, "no CQ of the TNI is left for this type");
}

/// People have been told why.
int tell_refused() { return failed(UTOFU_ERR_OUT_OF_RESOURCE, "the system refuses the name of a CQ"); }

/// A CQ without a VCQ is nobody's.
void release_if_empty(OwnQueues& own, Tofu& tofu, const ControlQueue& queue) {
  if (!queue.is_empty()) return;
  const std::uint32_t number = queue.key << 8;
  own.remove(queue);
  tofu.release_queue(tni_of(number), queue_of(number));
}

/// Makes the VCQ in a CQ.
int create_in(Core& core, const OwnQueue& at, const Wanted& wanted, utofu_vcq_hdl_t* hdl) {
  const std::uint32_t component = wanted.component < 0 ? 0 : static_cast<std::uint32_t>(wanted.component);
  const bool session = wanted.mode == CqMode::kSession;
  // What goes without the duty would be neither recorded nor checked.
  const bool is_watched = core.observers != nullptr;
  const bool has_lane = !session && !wanted.thread_safe && !is_watched && can_have_lanes();
  auto made = std::make_unique<VirtualControlQueue>(
      settings().toq_entries, session ? tofu_settings().session_mrq_entries : tofu_settings().mrq_entries);
  made->session = session;
  made->thread_safe = wanted.thread_safe;
  if (core.checker() != nullptr) CallInside::watch();
  made->id = make_tofu_id(TofuIdKind::kVcq, my_coordinates(), make_queue_number(wanted.tni, at.cq, component));
  made->direct.stadds = &at.queue->stadds;
  if (!core.tofu->enter(*made)) return failed(UTOFU_ERR_FULL, "too many VCQs in this process");
  *hdl = to_hdl(at.engine, made->handle);
  if (has_lane) open_lane(*made, *hdl);
  at.queue->vcqs[component] = std::move(made);
  return UTOFU_SUCCESS;
}

int create(OwnQueues& own, Wanted wanted, utofu_vcq_hdl_t* hdl) {
  constexpr const char* kCall = "utofu_create_vcq";
  if (!own.is_held() || open_engine(kCall) == nullptr)
    return failed(UTOFU_ERR_OUT_OF_RESOURCE, "the engine cannot be opened");
  int rc = UTOFU_SUCCESS;
  OwnQueue at = find_shared(own, wanted, &rc);
  if (rc != UTOFU_SUCCESS) return rc;
  if (at.queue == nullptr && !may_claim(own, wanted)) return tell_full(wanted);
  Engine* const engine = at.queue != nullptr ? engine_at(at.engine) : own.choose_engine(kCall, wanted.tni, &at.engine);
  if (engine == nullptr) return failed(UTOFU_ERR_OUT_OF_RESOURCE, "the engine cannot be used");
  const Engine::Duty duty(*engine);
  Tofu& tofu = *duty.core().tofu;
  const bool is_new = at.queue == nullptr;
  if (is_new) {
    at.tni = wanted.tni;
    at.queue = claim_cq(tofu, wanted, &at.cq);
    if (at.queue == nullptr) return tofu.is_refused() ? tell_refused() : tell_full(wanted);
  }
  try {
    if (is_new) own.add(at);
    rc = create_in(duty.core(), at, wanted, hdl);
  } catch (...) {
    release_if_empty(own, tofu, *at.queue);
    throw;
  }
  if (rc != UTOFU_SUCCESS) {
    release_if_empty(own, tofu, *at.queue);
    return rc;
  }
  if (Checker* const checker = duty.core().checker()) [[unlikely]] {
    checker->tofu.uses("utofu_create_vcq", kTniLimit, wanted.tni);
    if (wanted.component > 0)
      checker->tofu.uses("utofu_create_vcq_with_cmp_id", kComponentLimit, static_cast<std::uint64_t>(wanted.component));
  }
  return rc;
}

int create_checked(const Wanted& wanted, utofu_vcq_hdl_t* hdl) {
  return guarded([&] {
    if (hdl == nullptr) return failed(UTOFU_ERR_INVALID_POINTER, "vcq_hdl is NULL");
    if (wanted.tni >= settings().tni_count) return failed(UTOFU_ERR_INVALID_TNI_ID, "no such TNI");
    if (wanted.component >= static_cast<int>(settings().cmp_id_count))
      return failed(UTOFU_ERR_INVALID_CMP_ID, "no such component id");
    OwnQueues own;
    return create(own, wanted, hdl);
  });
}

/// The path that a call names, packed; NULL is the path through the remote node's own place in its group.
bool read_path(std::uint64_t vcq_id, const std::uint8_t coords[], std::uint32_t* packed) {
  if (coords == nullptr) {
    *packed = static_cast<std::uint32_t>(vcq_id >> 32) & 15;
    return true;
  }
  const PathCoordinates path{coords[0], coords[1], coords[2]};
  *packed = pack_path(path);
  return is_path(path);
}

}  // namespace

int utofu_create_vcq(utofu_tni_id_t tni_id, unsigned long int flags, utofu_vcq_hdl_t* vcq_hdl) {
  const bool exclusive = (flags & UTOFU_VCQ_FLAG_EXCLUSIVE) != 0;
  const bool session = (flags & UTOFU_VCQ_FLAG_SESSION_MODE) != 0;
  if ((flags & ~kKnownVcqFlags) != 0 || (exclusive && session))
    return failed(UTOFU_ERR_INVALID_FLAGS, "unknown flags, or exclusive and session mode at once");
  const CqMode mode = exclusive ? CqMode::kExclusive : session ? CqMode::kSession : CqMode::kShared;
  return create_checked({tni_id, mode, -1, (flags & UTOFU_VCQ_FLAG_THREAD_SAFE) != 0}, vcq_hdl);
}

int utofu_create_vcq_with_cmp_id(utofu_tni_id_t tni_id, utofu_cmp_id_t cmp_id, unsigned long int flags,
                                 utofu_vcq_hdl_t* vcq_hdl) {
  if ((flags & ~UTOFU_VCQ_FLAG_THREAD_SAFE) != 0)
    return failed(UTOFU_ERR_INVALID_FLAGS, "only the thread-safe flag goes with a component id");
  return create_checked({tni_id, CqMode::kShared, cmp_id, (flags & UTOFU_VCQ_FLAG_THREAD_SAFE) != 0}, vcq_hdl);
}

int utofu_free_vcq(utofu_vcq_hdl_t vcq_hdl) {
  OwnQueues own;
  if (!own.is_held()) return failed(UTOFU_ERR_INVALID_VCQ_HDL, "a VCQ is being made or freed");
  return with_vcq(
      vcq_hdl,
      [&own](Core& core, VirtualControlQueue& vcq) {
        const std::uint64_t id = vcq.id;
        ControlQueue& queue = *core.tofu->queue(queue_number(id));
        leave_queue(core, vcq);
        while (auto region = queue.stadds.take_any_of(component_of(id))) {
          if (Checker* const checker = core.checker()) [[unlikely]]
            checker->tofu.frees_region(vcq, *region);
          end_region(core, *region);
        }
        if (Checker* const checker = core.checker()) [[unlikely]]
          checker->tofu.frees(core, vcq, "utofu_free_vcq");
        close_lane(core, vcq);
        core.tofu->leave(vcq);
        queue.vcqs[component_of(id)].reset();
        release_if_empty(own, *core.tofu, queue);
        return UTOFU_SUCCESS;
      },
      false);
}

int utofu_query_vcq_id(utofu_vcq_hdl_t vcq_hdl, utofu_vcq_id_t* vcq_id) {
  if (vcq_id == nullptr) return failed(UTOFU_ERR_INVALID_POINTER, "vcq_id is NULL");
  return with_vcq(
      vcq_hdl,
      [vcq_id](Core&, const VirtualControlQueue& vcq) {
        *vcq_id = vcq.id;
        return UTOFU_SUCCESS;
      },
      false);
}

int utofu_construct_vcq_id(uint8_t coords[], utofu_tni_id_t tni_id, utofu_cq_id_t cq_id, utofu_cmp_id_t cmp_id,
                           utofu_vcq_id_t* vcq_id) {
  if (coords == nullptr || vcq_id == nullptr) return failed(UTOFU_ERR_INVALID_POINTER, "coords or vcq_id is NULL");
  Coordinates at;
  std::memcpy(at.data(), coords, at.size());
  if (!is_coordinates(at)) return failed(UTOFU_ERR_INVALID_COORDS, "A < 2, B < 3, C < 2");
  if (tni_id >= settings().tni_count) return failed(UTOFU_ERR_INVALID_TNI_ID, "no such TNI");
  if (cq_id >= cq_id_limit()) return failed(UTOFU_ERR_INVALID_CQ_ID, "no such CQ");
  if (cmp_id >= settings().cmp_id_count) return failed(UTOFU_ERR_INVALID_CMP_ID, "no such component id");
  *vcq_id = make_tofu_id(TofuIdKind::kVcq, at, make_queue_number(tni_id, cq_id, cmp_id));
  return UTOFU_SUCCESS;
}

int utofu_set_vcq_id_path(utofu_vcq_id_t* vcq_id, uint8_t path_coords[]) {
  if (vcq_id == nullptr) return failed(UTOFU_ERR_INVALID_POINTER, "vcq_id is NULL");
  if (!is_vcq_id(*vcq_id)) return failed(UTOFU_ERR_INVALID_VCQ_ID, "not a VCQ id");
  std::uint32_t packed = 0;
  if (!read_path(*vcq_id, path_coords, &packed)) return failed(UTOFU_ERR_INVALID_PATH, "A < 2, B < 3, C < 2");
  *vcq_id = with_path(*vcq_id, packed);
  return UTOFU_SUCCESS;
}

int utofu_query_vcq_info(utofu_vcq_id_t vcq_id, uint8_t coords[], utofu_tni_id_t* tni_id, utofu_cq_id_t* cq_id,
                         uint16_t* extra_val) {
  if (coords == nullptr || tni_id == nullptr || cq_id == nullptr || extra_val == nullptr)
    return failed(UTOFU_ERR_INVALID_POINTER, "a result pointer is NULL");
  if (!is_vcq_id(vcq_id)) return failed(UTOFU_ERR_INVALID_VCQ_ID, "not a VCQ id");
  const Coordinates at = coordinates_of(vcq_id);
  std::memcpy(coords, at.data(), at.size());
  *tni_id = static_cast<utofu_tni_id_t>(tni_of(vcq_id));
  *cq_id = static_cast<utofu_cq_id_t>(queue_of(vcq_id));
  *extra_val = static_cast<uint16_t>(component_of(vcq_id));
  return UTOFU_SUCCESS;
}

int utofu_get_path_id(utofu_vcq_id_t vcq_id, uint8_t path_coords[], utofu_path_id_t* path_id) {
  if (path_id == nullptr) return failed(UTOFU_ERR_INVALID_POINTER, "path_id is NULL");
  if (!is_vcq_id(vcq_id)) return failed(UTOFU_ERR_INVALID_VCQ_ID, "not a VCQ id");
  std::uint32_t packed = 0;
  if (!read_path(vcq_id, path_coords, &packed)) return failed(UTOFU_ERR_INVALID_PATH, "A < 2, B < 3, C < 2");
  *path_id = static_cast<utofu_path_id_t>(kPathIdMark | packed);
  return UTOFU_SUCCESS;
}

int utofu_get_path_coords(utofu_vcq_id_t vcq_id, utofu_path_id_t path_id, uint8_t path_coords[]) {
  if (path_coords == nullptr) return failed(UTOFU_ERR_INVALID_POINTER, "path_coords is NULL");
  if (!is_vcq_id(vcq_id)) return failed(UTOFU_ERR_INVALID_VCQ_ID, "not a VCQ id");
  const PathCoordinates path = unpack_path(path_id & 15u);
  if ((path_id & 0xf0) != kPathIdMark || !is_path(path)) return failed(UTOFU_ERR_INVALID_PATH_ID, "not a path id");
  std::memcpy(path_coords, path.data(), path.size());
  return UTOFU_SUCCESS;
}
