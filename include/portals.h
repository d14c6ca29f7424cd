/// The second name under which the spec wants the interface of portals4.h.
/// @spec Portals 4.3, 3.1
#ifndef PORTALS_H
#define PORTALS_H

#include "portals4.h"

#endif  // PORTALS_H
