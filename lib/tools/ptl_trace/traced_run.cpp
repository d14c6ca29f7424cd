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

void pass_on(int number) {
  if (const pid_t to = program.load(); to > 0) kill(to, number);
}

void act_on(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigaction(number, &action, nullptr);
}

int status_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

[[noreturn]] void become(const std::vector<std::string>& command, const std::string& directory, bool captures) {
  for (const int number : {SIGINT, SIGQUIT, SIGTERM, SIGHUP}) act_on(number, SIG_DFL);
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
  // The terminal sends these to both; the program decides what becomes of it.
  act_on(SIGINT, SIG_IGN);
  act_on(SIGQUIT, SIG_IGN);
  const pid_t child = fork();
  if (child == 0) become(command, directory, captures);
  if (child < 0) {
    std::fprintf(stderr, "ptl_trace: fork: %s\n", std::strerror(errno));
    return 125;
  }
  program.store(child);
  act_on(SIGTERM, pass_on);
  act_on(SIGHUP, pass_on);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status_of(status);
}

}  // namespace portofu::tools
