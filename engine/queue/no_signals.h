#pragma once
// Where no signal handler of the application may run in the middle. A handler may call exit(3), which runs destructors
// of the program. They wait for ever for a lock that the call holds which the handler has interrupted, of malloc(3) or
// the loader, and they find the memory of malloc() half changed. Nothing that the library does at the end of the
// process comes before them.

#include <pthread.h>
#include <signal.h>

#include <initializer_list>

namespace portofu {

/// While it lives, signals of this thread wait, but for those by which the kernel says what the thread itself has done.
/// For stretches that open or close something, which cost more than this does. A thread that is made meanwhile gets no
/// signals either: they belong to the application's threads.
class NoSignals {
 public:
  NoSignals() {
    sigfillset(&added_);
    for (const int own : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS}) sigdelset(&added_, own);
    sigset_t before;
    pthread_sigmask(SIG_BLOCK, &added_, &before);
    for (int number = 1; number < NSIG; ++number) {
      if (sigismember(&before, number) == 1) sigdelset(&added_, number);
    }
  }
  /// Handlers of what has come meanwhile run here. What was unblocked meanwhile stays so.
  ~NoSignals() { pthread_sigmask(SIG_UNBLOCK, &added_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t added_;
};

}  // namespace portofu
