#pragma once
// What a process that launches ranks does with signals: it takes them all from a descriptor.

#include <string>

#include "lib/tools/ptl_run/rank_process.h"

namespace portofu::tools {

/// Whether a signal asks for the end of the job, as SIGTERM does; SIGKILL is one of them.
bool is_ending_signal(int number);

/// "signal 6 (Aborted)".
std::string signal_text(int number);

/// Makes this process one that launches: standard descriptors are open, many others may be, and signals come from a
/// descriptor. What the ranks get back is noted in `context`.
/// @return the descriptor; -1, with errno, on failure
int take_over_signals(LaunchContext* context);

}  // namespace portofu::tools
