#pragma once
// The engine of this process, which Portals and uTofu share: opened by the first of them that needs one, closed with
// the last. Beside it may be further ones, each with a duty, a segment and a progress thread of its own, for what has
// nothing to do with the rest: threads that use different engines do not wait for each other. To other processes, and
// to each other, they are processes of the node. These are the only engines that are process-wide. Any thread.

#include <cstdint>
#include <string>

#include "engine/run/engine.h"

namespace portofu {

/// Takes a reference to the engine; opens it if there is none.
/// @param pid  wanted PID, 0 for any; an engine that is open with another one gives OpenError::kPidInUse
/// @return nullptr on failure, with reason
Engine* hold_process_engine(std::uint32_t pid, OpenError* error, std::string* why);

/// Engines of a process, that one included.
inline constexpr std::uint32_t kMostEngines = 16;

/// How many engines are of use to this process: PORTOFU_LANES, or one for each of its cores; or one where the job spans
/// nodes, and each would take an endpoint with connections. Always one without progress threads, because nobody would
/// look after one whose thread is away.
/// @pre the caller has a reference
std::uint32_t most_process_engines();

/// Opens a further engine, unless it is open. It stays open as long as the first one: who wants another one soon, as
/// programs that make and free VCQs in turn do, need not wait for it. If other nodes reach the first, they reach it.
/// @param number  1..kMostEngines - 1
/// @pre the caller has a reference
/// @return nullptr on failure, with reason
Engine* open_further_engine(std::uint32_t number, std::string* why);

/// Runs a cycle of each engine that is open. Does nothing while another thread does so, or opens or closes one, and in
/// a handler that has interrupted a call of this thread.
void step_process_engines();

/// Tells people why hold_process_engine gave none: one line, if it is not what they were told last. That a PID is in
/// use is no news for people, but for those who want to know everything.
/// @param call  of the application
void tell_why_not_open(const char* call, OpenError error, const std::string& why);

/// Gives one reference back. With the last one the engine is closed; its memory stays for a while if another thread may
/// be in the middle of a call.
/// @param waiting  whether some call waits in the engine
void release_process_engine(bool waiting = false);

/// The same for a process that ends, or a library that is unloaded: bounded in time whatever the calling thread and the
/// others are in the middle of. What it does not get at is left to whoever finds this process dead.
/// @return whether the caller has to forget the engine; else it stays for the calls of other threads, which must not
///         end with errors because the process ends
bool end_process_engine(bool waiting = false);

/// Ends the effect of Engine::abort, if the engine is still open.
void forget_process_abort();

}  // namespace portofu
