#include "lib/tools/ptl_run/signals.h"

#include <fcntl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace portofu::tools {
namespace {

/// Signals that ask for the end of the job. Whoever ignored one of them when starting us wants it ignored.
constexpr int kEndingSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
/// Signals that only pass through.
constexpr int kPassedSignals[] = {SIGUSR1, SIGUSR2, SIGWINCH};

bool is_ignored(int number) {
  struct sigaction action {};
  return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

bool is_ending_signal(int number) {
  return number == SIGKILL ||
         std::find(std::begin(kEndingSignals), std::end(kEndingSignals), number) != std::end(kEndingSignals);
}

std::string signal_text(int number) { return "signal " + std::to_string(number) + " (" + strsignal(number) + ')'; }

int take_over_signals(LaunchContext* context) {
  // Below are stdin, stdout and stderr; were one of them closed, a channel would get its number.
  for (int fd = 0; fd >= 0 && fd <= STDERR_FILENO;) fd = open("/dev/null", O_RDWR);
  rlimit open_files{};
  getrlimit(RLIMIT_NOFILE, &open_files);
  rlimit more = open_files;
  more.rlim_cur = more.rlim_max;  // Three descriptors a rank; the ranks get the old limit back.
  setrlimit(RLIMIT_NOFILE, &more);
  signal(SIGPIPE, SIG_IGN);
  sigset_t taken;
  sigemptyset(&taken);
  for (const int number : kEndingSignals) {
    if (!is_ignored(number)) sigaddset(&taken, number);
  }
  for (const int number : kPassedSignals) sigaddset(&taken, number);
  for (const int number : {SIGCHLD, SIGTSTP}) sigaddset(&taken, number);
  signal(SIGCHLD, SIG_DFL);  // Were it ignored, the kernel would take ended ranks away.
  sigset_t signal_mask;
  sigprocmask(SIG_BLOCK, &taken, &signal_mask);
  // Ranks of a second job of this process get back what it had before the first one.
  static const rlimit kFilesAtFirst = open_files;
  static const sigset_t kMaskAtFirst = signal_mask;
  context->open_files = kFilesAtFirst;
  context->signal_mask = kMaskAtFirst;
  return signalfd(-1, &taken, SFD_NONBLOCK | SFD_CLOEXEC);
}

}  // namespace portofu::tools
