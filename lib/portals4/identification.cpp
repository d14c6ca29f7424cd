// 3.8 Usage identification and 3.9 process identification.

#include "lib/portals4/library.h"

using namespace portofu;
using namespace portofu::portals;

int PtlGetUid(ptl_handle_ni_t ni_handle, ptl_uid_t* uid) {
  return with_interface(ni_handle, [uid](const Core& core, const Interface&) {
    if (uid == nullptr) return PTL_ARG_INVALID;
    *uid = core.uid;
    return PTL_OK;
  });
}

int PtlGetId(ptl_handle_ni_t ni_handle, ptl_process_t* id) {
  return with_interface(ni_handle, [id](const Core& core, const Interface& ni) {
    if (id == nullptr) return PTL_ARG_INVALID;
    if (ni.is_logical()) {
      if (ni.map.own_rank() == RankMap::kNoRank) return PTL_ARG_INVALID;  // No map yet, or we are not in it.
      *id = {};
      id->rank = ni.map.own_rank();
      return PTL_OK;
    }
    id->phys.nid = core.self.nid;
    id->phys.pid = core.self.pid;
    return PTL_OK;
  });
}

int PtlGetPhysId(ptl_handle_ni_t ni_handle, ptl_process_t* id) {
  return with_interface(ni_handle, [id](const Core& core, const Interface&) {
    if (id == nullptr) return PTL_ARG_INVALID;
    id->phys.nid = core.self.nid;
    id->phys.pid = core.self.pid;
    return PTL_OK;
  });
}
