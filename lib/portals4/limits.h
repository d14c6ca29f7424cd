#pragma once
// Desired and actual limits of an interface. @spec Portals 4.3, 3.6.1, 3.6.2

#include <portals4.h>

#include "engine/door/portals.h"

namespace portofu::portals {

/// What is granted for what is desired: what is asked for, up to what the engine can give; 0 and less ask for nothing
/// and give the most.
/// @param desired  nullptr: everything at its most
Limits grant_limits(const ptl_ni_limits_t* desired);

/// The same for the application. Features are all that Portofu has; they are always on.
ptl_ni_limits_t actual_limits(const Limits& granted);

}  // namespace portofu::portals
