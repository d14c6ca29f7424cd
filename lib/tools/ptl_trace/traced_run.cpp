#include "lib/tools/ptl_trace/traced_run.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "lib/tools/arguments.h"

namespace portofu::tools {
namespace {

std::atomic<pid_t> program{0};

/// Signals of whoever wants to end the program, or to say something to it.
constexpr int kPassedSignals[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

/// The terminal tells all of its foreground, so the program has its signals already.
void pass_on(int number, siginfo_t* from, void*) {
  if (const pid_t to = program.load(); to > 0 && from->si_code != SI_KERNEL) kill(to, number);
}

/// Signals that are ignored stay so, as under nohup. They are blocked until program is known.
/// @return as the mask was
sigset_t take_signals() {
  sigset_t taken;
  sigset_t before;
  sigemptyset(&taken);
  for (const int number : kPassedSignals) sigaddset(&taken, number);
  sigprocmask(SIG_BLOCK, &taken, &before);
  for (const int number : kPassedSignals) {
    struct sigaction action {};
    if (sigaction(number, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_sigaction = pass_on;
    action.sa_flags = SA_SIGINFO;
    sigaction(number, &action, nullptr);
  }
  return before;
}

/// Whoever has a handler gets what the system does by itself, so that no signal is lost before exec.
void leave_signals(const sigset_t& before) {
  for (const int number : kPassedSignals) {
    struct sigaction action {};
    if (sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) signal(number, SIG_DFL);
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

int status_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

[[noreturn]] void become(const std::vector<std::string>& command, const std::string& directory, bool captures) {
  setenv("PORTOFU_RECORD", directory.c_str(), 1);
  if (captures) setenv("PORTOFU_PCAPNG", directory.c_str(), 1);
  const std::vector<char*> words = argument_pointers(command);
  execvp(words[0], words.data());
  const int error = errno;
  std::fprintf(stderr, "ptl_trace: %s: %s\n", words[0], std::strerror(error));
  _exit(error == ENOENT ? 127 : 126);
}

}  // namespace

StepDirectory::StepDirectory() {
  const char* const wanted = std::getenv("TMPDIR");
  std::string pattern = std::string(wanted != nullptr && *wanted != '\0' ? wanted : "/tmp") + "/portofu-trace-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) {
    std::fprintf(stderr, "ptl_trace: %s: %s\n", pattern.c_str(), std::strerror(errno));
    return;
  }
  path_ = pattern;
}

StepDirectory::~StepDirectory() {
  std::error_code error;
  if (!path_.empty()) std::filesystem::remove_all(path_, error);
}

int run_traced(const std::vector<std::string>& command, const std::string& directory, bool captures) {
  const sigset_t before = take_signals();
  const pid_t child = fork();
  if (child == 0) {
    leave_signals(before);
    become(command, directory, captures);
  }
  if (child > 0) program.store(child);
  if (child < 0) std::fprintf(stderr, "ptl_trace: fork: %s\n", std::strerror(errno));
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (child < 0) return 125;
  siginfo_t end{};
  while (waitid(P_PID, static_cast<id_t>(child), &end, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  program.store(0);  // While it is a zombie nobody else has its number.
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status_of(status);
}

}  // namespace portofu::tools
