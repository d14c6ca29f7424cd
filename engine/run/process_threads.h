#pragma once
// Who runs in this process, for decisions at its end. Each question costs several system calls.

#include <sys/types.h>

namespace portofu {

/// Whether some thread lives in this process besides the calling one and `ours`. True also if the system does not tell.
/// @param ours  a thread of the library; 0: there is none
bool has_other_threads(pid_t ours);

/// Whether the first thread has ended (pthread_exit in main), after which the process ends with its last thread.
bool has_main_thread_ended();

}  // namespace portofu
