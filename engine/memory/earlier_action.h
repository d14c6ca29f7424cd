#pragma once
// What the application does with a signal that the engine's fault handler (guarded_copy.cpp) stands in front of, and
// calling it as the kernel would have without us: with its mask and its flags, once if it asked for that, and ending
// the process where the kernel would end it.

#include <signal.h>

#include <array>
#include <atomic>
#include <cstddef>

namespace portofu {

using SignalHandler = void (*)(int, siginfo_t*, void*);

/// Whether an instruction of the interrupted thread has caused the signal, and not a process that sent it
/// (sigaction(2): kill, tgkill, sigqueue and timers have no positive code) or the kernel that tells of memory gone bad
/// elsewhere.
bool is_of_instruction(int signal_number, const siginfo_t* info);

/// The actions that were in place before our handler, for one signal. More than one: an application may have put a
/// handler in front of ours, which calls ours for what it does not know; when we go in front of that again, a call of
/// ours by it must not come back to it.
class EarlierActions {
 public:
  /// Puts `handler` in front of what is in place, unless it is there. One thread at a time.
  void stand_before(int signal_number, SignalHandler handler);

  /// Does what the kernel would have done. In the handler, any thread.
  /// @param context  a ucontext_t; tells by its `uc_link`, which the kernel sets to nullptr and never reads, who calls
  void act(int signal_number, siginfo_t* info, void* context);

 private:
  struct Earlier {
    struct sigaction action {};
    std::atomic<bool> spent{false};  ///< SA_RESETHAND, and it was called: the default action is left.
  };
  void remember(const struct sigaction& present);
  void call(Earlier& earlier, int signal_number, siginfo_t* info, void* context);

  /// Handlers that are told apart. With more of them the newest takes the place of the one before.
  static constexpr std::size_t kMostActions = 8;

  std::array<Earlier, kMostActions> actions_;
  std::atomic<std::size_t> count_{0};  ///< Of `actions_`, oldest first. Writer: stand_before. Readers: handlers.
};

}  // namespace portofu
