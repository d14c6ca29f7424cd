// 3.17 Deferred communication and 3.18 operations on handles.

#include "lib/portals4/library.h"

using namespace portofu;
using namespace portofu::portals;

namespace {

/// Operations leave as they are posted, which 3.17 allows: a bundle changes nothing, and only its argument is checked.
int check_bundle(ptl_handle_ni_t ni_handle) {
  return with_interface(ni_handle, [](const Core&, const Interface&) { return PTL_OK; });
}

}  // namespace

int PtlStartBundle(ptl_handle_ni_t ni_handle) { return check_bundle(ni_handle); }

int PtlEndBundle(ptl_handle_ni_t ni_handle) { return check_bundle(ni_handle); }

int PtlHandleIsEqual(ptl_handle_any_t handle1, ptl_handle_any_t handle2) { return handle1 == handle2 ? 1 : 0; }
