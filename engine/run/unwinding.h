#pragma once
// A thread that ends by unwinding its stack (pthread_exit(3), cancellation) runs the destructors of our frames, too. In
// the middle of a call, which only a signal handler can leave in this way, they would give the duty and locks back with
// what they guard half made, and the next thread would work with that. So the process ends before the first of them
// runs, and says why; so it does where a function lets nothing out (noexcept, a destructor), because the C++ library
// would end it there without a word. A thread that holds nothing, as one that sleeps in a wait, leaves as it likes.
//
// A destructor cannot tell why it runs. So our libraries are linked with a personality routine of their own
// (portofu_watch_unwinding in PortofuCompile.cmake): the unwinder asks it about each frame before it touches it. Calls
// that return pay nothing.

namespace portofu {

/// Whether the calling thread holds what others need: a duty, a lock, a lane. Async-signal-safe.
bool holds_what_others_need();

/// Loads what the C library needs to unwind, once. It would do so when a thread ends for the first time, and then wait
/// for ever if that thread, or one that is gone, has the lock of malloc().
void prepare_unwinding();

}  // namespace portofu
