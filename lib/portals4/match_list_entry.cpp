// 3.12 Match list entries.

#include "lib/portals4/list_entry.h"

using namespace portofu::portals;

int PtlMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t* me, ptl_list_t ptl_list,
                void* user_ptr, ptl_handle_me_t* me_handle) {
  return append({ni_handle, pt_index, me, true, user_ptr}, ptl_list, me_handle);
}

int PtlMEUnlink(ptl_handle_me_t me_handle) { return portofu::portals::unlink(me_handle, true); }

int PtlMESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t* me, ptl_search_op_t ptl_search_op,
                void* user_ptr) {
  return search({ni_handle, pt_index, me, true, user_ptr}, ptl_search_op);
}
