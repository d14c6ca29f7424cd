#pragma once
// What LEs and MEs have in common: an ME is an LE with match criteria. @spec Portals 4.3, 3.11, 3.12

#include "engine/door/portals.h"
#include "lib/portals4/library.h"

namespace portofu::portals {

/// An LE or ME call, before its arguments are checked.
struct EntryCall {
  ptl_handle_ni_t ni_handle;
  ptl_pt_index_t pt_index;
  const ptl_me_t* me;  ///< An LE is handed on as an ME that matches everything; nullptr if the caller gave none.
  bool is_matching;    ///< Which kind of interface the call is for.
  void* user_ptr;
};

/// An LE as the ME that means the same.
ptl_me_t as_me(const ptl_le_t& le);

int append(const EntryCall& call, ptl_list_t ptl_list, ptl_handle_any_t* handle);
int unlink(ptl_handle_any_t handle, bool is_matching);
int search(const EntryCall& call, ptl_search_op_t operation);

}  // namespace portofu::portals
