#pragma once
// The entry that most tests of processes append: it takes what anybody sends.

#include <portals4.h>

namespace portofu {

/// @param options  PTL_ME_OP_PUT and the like
inline ptl_me_t entry_for_all(void* start, ptl_size_t length, unsigned int options) {
  ptl_me_t me{};
  me.start = start;
  me.length = length;
  me.ct_handle = PTL_CT_NONE;
  me.uid = PTL_UID_ANY;
  me.options = options;
  me.match_id.phys = {PTL_NID_ANY, PTL_PID_ANY};
  return me;
}

}  // namespace portofu
