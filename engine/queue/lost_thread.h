#pragma once
// Threads of this process that end in the middle of a call, without giving back what they hold: by pthread_exit(3) or
// cancellation in a signal handler, by the system call. What they had half made cannot be set right. So every wait for
// another thread of the process asks now and then whether that thread lives; if not, the process ends and says why.

#include <sys/types.h>

#include <cstdint>

namespace portofu {

/// How long a thread waits for another one before it asks whether that one lives.
inline constexpr std::uint64_t kLostThreadLookNs = 250'000'000;

/// The TID of the calling thread. One load; a system call in a thread that asks for the first time, and in the only
/// thread of a child that fork has made. A child that was made past the handlers of fork (clone(2), the system call)
/// calls forget_thread_id first.
pid_t this_thread_id();
void forget_thread_id();

/// Whether no thread of this process has that TID any more. Some system calls. False if the system does not tell.
bool is_thread_gone(pid_t thread);

/// Whether the first thread has ended (pthread_exit in main), after which the process ends with its last thread.
bool has_main_thread_ended();

/// Says that the thread has taken with it what others wait for, and ends the process.
[[noreturn]] void end_without(pid_t thread);

/// To be called now and then by who waits for another thread of this process. Does not return if that one is gone.
/// @param holder  pid_t(): for whom it waits; 0: for nobody any more, or for one that is not known. Who gives back what
///                it holds is not named any more before it ends.
template <class Holder>
void expect_living(Holder&& holder) {
  const pid_t thread = holder();
  // Named behind the look, too: it has not given it back in between and then ended.
  if (thread != 0 && is_thread_gone(thread) && holder() == thread) end_without(thread);
}

}  // namespace portofu
