#pragma once
// The door of libfabric: endpoints as portal table entries of an interface of their own, and operations as descriptors.

#include "engine/atomic/atomic_unit.h"
#include "engine/core/interface.h"
#include "engine/core/steps.h"  // Calls that are recorded.
#include "engine/descriptor/portal_use.h"
#include "engine/initiator/send.h"
#include "engine/target/close_interface.h"
#include "engine/target/complete.h"
#include "engine/target/list_entries.h"
#include "engine/target/published_entry.h"
#include "engine/topology/process_id.h"
