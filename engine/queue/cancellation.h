#pragma once
// Where a thread of the application may be cancelled (pthread_cancel(3)) inside the library: while it waits for an
// event or a count, holding nothing, and nowhere else. Many functions of the C library are such places, too; a thread
// that holds the duty, or has half made something, must not leave from there.

#include <pthread.h>

namespace portofu {

/// While it lives, this thread is not cancelled. For stretches with system calls, which cost more than this does.
class NoCancellation {
 public:
  NoCancellation() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NoCancellation() { pthread_setcancelstate(before_, nullptr); }
  NoCancellation(const NoCancellation&) = delete;
  NoCancellation& operator=(const NoCancellation&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

/// A wait in which this thread may be cancelled. It has no destructor, because what sets the type of cancellation back
/// may end the thread, and destructors must not.
class CancellationPlace {
 public:
  /// To be called before and after each sleep, holding nothing. From the first time on nothing else of the wait is a
  /// place, also where the thread has asked to be cancelled between any two instructions.
  void pass() {
    if (!entered_) pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &before_);
    entered_ = true;
    pthread_testcancel();
  }
  /// The wait is over.
  void leave() {
    if (before_ != PTHREAD_CANCEL_DEFERRED) [[unlikely]]
      pthread_setcanceltype(before_, nullptr);
  }

 private:
  bool entered_ = false;
  int before_ = PTHREAD_CANCEL_DEFERRED;
};

}  // namespace portofu
