#pragma once
// The door that every frontend goes through: the engine of the process, and what all of them need around a call. Beside
// it a frontend includes the door of its own API, and config/ for its settings; the layers test allows no more. What
// the doors declare is what libportofu.map exports.

#include "engine/check/checker.h"           // Is told of calls, where the user wants it.
#include "engine/observe/log.h"             // What is said on standard error.
#include "engine/observe/system_failure.h"  // The line for a call that fails for a reason of the system.
#include "engine/queue/asymmetric_guard.h"
#include "engine/queue/cancellation.h"  // Threads that are cancelled in the middle of a call.
#include "engine/queue/clock.h"
#include "engine/queue/cpu.h"  // What depends on the processor.
#include "engine/queue/fork_mutex.h"
#include "engine/queue/fresh_line.h"    // Copies of what was just written, without waiting for it.
#include "engine/queue/lost_thread.h"   // Waits for threads that may have ended.
#include "engine/queue/no_signals.h"    // Handlers that run in the middle of a call.
#include "engine/run/engine.h"          // Duty, waits, polls.
#include "engine/run/lane_choice.h"     // Which engine of the process something goes to.
#include "engine/run/look_into.h"       // Polls of threads that use several engines.
#include "engine/run/process_engine.h"  // The one engine of the process: held, released, ended.
#include "engine/segment/shared_heap.h"
#include "engine/topology/launcher.h"  // What the launcher of a job says of a process.
#include "engine/topology/local_place.h"
#include "engine/topology/node_id.h"
#include "engine/topology/node_map.h"
