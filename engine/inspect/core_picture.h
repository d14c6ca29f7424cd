#pragma once
// Looks at the core of an engine in another process.

#include "engine/inspect/far_memory.h"
#include "engine/inspect/picture.h"

namespace portofu {

/// @param far  where it lies there
/// @return false if the beginning could not be read; what is missing behind it is missing in the picture
bool look_at_core(FarMemory& memory, const Core* far, CorePicture* picture, Depth depth = Depth::kAll);

/// The part of Portals and libfabric of one interface.
bool look_at_interface(FarMemory& memory, const Interface* far, InterfacePicture* picture, Depth depth = Depth::kAll);

/// The part of uTofu.
void look_at_tofu(FarMemory& memory, const Tofu* far, CorePicture* picture, Depth depth = Depth::kAll);

/// What waits for a counter. @param counter  a copy
Listed<TriggerPicture> look_at_triggers(FarMemory& memory, const CountingEvent& counter);

}  // namespace portofu
