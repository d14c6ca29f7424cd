#pragma once
// The end of a logical interface: everything that still refers to it lets go. @spec Portals 4.3, 3.6.3

#include "engine/core/core.h"

namespace portofu {

/// Frees all objects of the interface. Messages that are arriving for it are dropped; answers that still read its
/// memory end as failed; operations under way end without an event.
void close_interface_on_duty(Core& core, std::uint32_t index);

}  // namespace portofu
