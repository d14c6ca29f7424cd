#include "engine/memory/earlier_action.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>

namespace portofu {
namespace {

bool is_function(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 || (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

bool is_same(const struct sigaction& one, const struct sigaction& other) {
  const bool as_handlers = one.sa_handler == other.sa_handler;  // A union: also if they take information.
  return as_handlers && ((one.sa_flags ^ other.sa_flags) & SA_SIGINFO) == 0;
}

struct sigaction default_action() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  return action;
}

/// The instruction runs again and ends the process at its place, as the kernel does also where the signal was ignored.
void fault_again_by_default(int signal_number) {
  const struct sigaction none = default_action();
  sigaction(signal_number, &none, nullptr);
}

/// A signal that was sent would have ended the process. It survives only where the kernel does not let it die, as the
/// first process of a container, or a debugger; then our handler stays.
void end_by_default(int signal_number, siginfo_t* info) {
  const struct sigaction none = default_action();
  struct sigaction ours {};
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal_number);
  sigaction(signal_number, &none, &ours);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);  // Blocked only where somebody else's handler calls ours.
  const long process = getpid();
  const long thread = syscall(SYS_gettid);
  if (syscall(SYS_rt_tgsigqueueinfo, process, thread, signal_number, info) != 0)
    syscall(SYS_tgkill, process, thread, signal_number);
  sigaction(signal_number, &ours, nullptr);
}

/// What the kernel adds to the mask of the interrupted thread while a handler runs. Our own handler adds nothing, and
/// the thread gets its mask back when that returns.
void take_mask(const struct sigaction& action, int signal_number) {
  sigset_t more = action.sa_mask;
  if ((action.sa_flags & SA_NODEFER) == 0) sigaddset(&more, signal_number);
  pthread_sigmask(SIG_BLOCK, &more, nullptr);
}

}  // namespace

bool is_of_instruction(int signal_number, const siginfo_t* info) {
  if (info == nullptr) return true;  // Called by a handler that hands nothing on.
  return info->si_code > 0 && !(signal_number == SIGBUS && info->si_code == BUS_MCEERR_AO);
}

void EarlierActions::remember(const struct sigaction& present) {
  const std::size_t count = count_.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_same(actions_[i].action, present)) continue;
    // It is in place again, so what was put in front of it is gone.
    actions_[i].action = present;
    actions_[i].spent.store(false, std::memory_order_relaxed);
    count_.store(i + 1, std::memory_order_release);
    return;
  }
  const std::size_t index = std::min(count, kMostActions - 1);
  actions_[index].action = present;
  actions_[index].spent.store(false, std::memory_order_relaxed);
  count_.store(index + 1, std::memory_order_release);
}

void EarlierActions::stand_before(int signal_number, SignalHandler handler) {
  struct sigaction present {};
  sigaction(signal_number, nullptr, &present);
  if ((present.sa_flags & SA_SIGINFO) != 0 && present.sa_sigaction == handler) return;
  remember(present);
  struct sigaction ours {};
  ours.sa_sigaction = handler;
  ours.sa_flags = SA_SIGINFO | SA_NODEFER;
  // The stack is chosen, and what a signal interrupts goes on or not, before we can ask who the signal is for.
  if (!is_function(present) || (present.sa_flags & SA_ONSTACK) != 0) ours.sa_flags |= SA_ONSTACK;
  if (!is_function(present) || (present.sa_flags & SA_RESTART) != 0) ours.sa_flags |= SA_RESTART;
  sigaction(signal_number, &ours, nullptr);
}

void EarlierActions::call(Earlier& earlier, int signal_number, siginfo_t* info, void* context) {
  const struct sigaction action = earlier.action;
  const bool is_gone = (action.sa_flags & SA_RESETHAND) != 0 && is_function(action) && earlier.spent.exchange(true);
  if (is_function(action) && !is_gone) {
    take_mask(action, signal_number);
    if ((action.sa_flags & SA_SIGINFO) != 0) return action.sa_sigaction(signal_number, info, context);
    return action.sa_handler(signal_number);
  }
  if (is_of_instruction(signal_number, info)) return fault_again_by_default(signal_number);
  if (action.sa_handler != SIG_IGN || is_gone) end_by_default(signal_number, info);
}

void EarlierActions::act(int signal_number, siginfo_t* info, void* context) {
  auto* interrupted = static_cast<ucontext_t*>(context);
  std::size_t index = count_.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < index && interrupted != nullptr; ++i) {
    if (interrupted->uc_link == reinterpret_cast<ucontext_t*>(&actions_[i])) index = i;
  }
  if (index == 0) {  // Whoever came first, and calls us: before it was the default.
    if (is_of_instruction(signal_number, info)) return fault_again_by_default(signal_number);
    return end_by_default(signal_number, info);
  }
  if (interrupted == nullptr) return call(actions_[index - 1], signal_number, info, context);
  ucontext_t* const before = interrupted->uc_link;
  interrupted->uc_link = reinterpret_cast<ucontext_t*>(&actions_[index - 1]);
  call(actions_[index - 1], signal_number, info, context);
  interrupted->uc_link = before;
}

}  // namespace portofu
