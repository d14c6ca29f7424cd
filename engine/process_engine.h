#pragma once
// The engine of this process, which Portals and uTofu share: opened by the first of them that needs one, closed with
// the last. The only engine that is process-wide. Any thread.

#include <cstdint>
#include <string>

#include "engine/engine.h"

namespace portofu {

/// Takes a reference to the engine; opens it if there is none.
/// @param pid  wanted PID, 0 for any; an engine that is open with another one gives OpenError::kPidInUse
/// @return nullptr on failure, with reason
Engine* hold_process_engine(std::uint32_t pid, OpenError* error, std::string* why);

/// Gives one reference back.
void release_process_engine();

/// Ends the effect of Engine::abort, if the engine is still open.
void forget_process_abort();

}  // namespace portofu
