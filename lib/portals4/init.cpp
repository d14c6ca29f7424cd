// 3.5 Initialization and cleanup.

#include "lib/portals4/library.h"

using namespace portofu::portals;

int PtlInit(void) {
  return guarded([] { return initialise(); });
}

void PtlFini(void) {
  guarded([] {
    finalise();
    return PTL_OK;
  });
}

void PtlAbort(void) { abort_waits(); }
