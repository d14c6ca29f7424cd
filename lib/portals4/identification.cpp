// 3.8 Usage identification and 3.9 process identification.

#include "lib/portals4/library.h"

using namespace portofu;
using namespace portofu::portals;

int PtlGetUid(ptl_handle_ni_t ni_handle, ptl_uid_t* uid) {
  Engine* engine = nullptr;
  if (const int rc = begin(&engine); rc != PTL_OK) return rc;
  const Engine::Duty duty(*engine);
  if (uid == nullptr || interface_of(duty.core(), ni_handle) == nullptr) return PTL_ARG_INVALID;
  *uid = engine->uid();
  return PTL_OK;
}

int PtlGetId(ptl_handle_ni_t ni_handle, ptl_process_t* id) {
  Engine* engine = nullptr;
  if (const int rc = begin(&engine); rc != PTL_OK) return rc;
  const Engine::Duty duty(*engine);
  const Interface* ni = interface_of(duty.core(), ni_handle);
  if (id == nullptr || ni == nullptr) return PTL_ARG_INVALID;
  if (ni->is_logical()) {
    if (ni->map.own_rank() == RankMap::kNoRank) return PTL_ARG_INVALID;  // No map yet, or we are not in it.
    *id = {};
    id->rank = ni->map.own_rank();
    return PTL_OK;
  }
  id->phys.nid = engine->self().nid;
  id->phys.pid = engine->self().pid;
  return PTL_OK;
}

int PtlGetPhysId(ptl_handle_ni_t ni_handle, ptl_process_t* id) {
  Engine* engine = nullptr;
  if (const int rc = begin(&engine); rc != PTL_OK) return rc;
  const Engine::Duty duty(*engine);
  if (id == nullptr || interface_of(duty.core(), ni_handle) == nullptr) return PTL_ARG_INVALID;
  id->phys.nid = engine->self().nid;
  id->phys.pid = engine->self().pid;
  return PTL_OK;
}
