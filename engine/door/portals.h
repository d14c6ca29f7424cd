#pragma once
// The door of Portals: interfaces and their objects, list entries, and operations as descriptors.

#include "engine/atomic/atomic_unit.h"  // Which pairs of operation and datatype are legal.
#include "engine/core/interface.h"      // Portal table, memory descriptors, queues, counters, limits.
#include "engine/core/steps.h"          // Calls that are recorded.
#include "engine/descriptor/status.h"
#include "engine/initiator/send.h"  // Starts a descriptor.
#include "engine/target/close_interface.h"
#include "engine/target/list_entries.h"  // Append, unlink, search.
#include "engine/target/published_entry.h"
