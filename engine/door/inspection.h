#pragma once
// The door of the tools: segments of other processes as a reader sees them, hosts, and what both print.

#include "engine/core/interface.h"  // Limits.
#include "engine/inspect/explanation.h"
#include "engine/inspect/picture_archive.h"
#include "engine/inspect/process_picture.h"
#include "engine/inspect/system_task.h"
#include "engine/observe/counters.h"
#include "engine/observe/hex_text.h"
#include "engine/observe/step_record.h"
#include "engine/observe/system_failure.h"
#include "engine/queue/clock.h"
#include "engine/queue/cpu.h"
#include "engine/queue/random_bytes.h"
#include "engine/segment/process_segment.h"
#include "engine/segment/segment_creation.h"
#include "engine/segment/segment_view.h"
#include "engine/segment/step_file.h"
#include "engine/topology/host_file.h"
#include "engine/topology/node_id.h"
#include "engine/topology/node_shape.h"
#include "engine/wire/capture/pcapng.h"
#include "engine/wire/header.h"
#include "engine/wire/shm/channel_directory.h"
#include "engine/wire/sim/virtual_page.h"  // What ptl_sim shares with its ranks.
