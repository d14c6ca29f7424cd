#include "lib/tools/ptl_run/host_link.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "engine/config/settings.h"
#include "lib/tools/arguments.h"
#include "lib/tools/ptl_run/agent.h"
#include "lib/tools/ptl_run/host_helper.h"
#include "lib/tools/ptl_run/job.h"

namespace portofu::tools {
namespace {

/// An agent ends when its helper does; one that does not is killed after this time.
constexpr int kAgentEndsMs = 2000;

[[noreturn]] void become(const std::vector<std::string>& words, const LaunchContext& context, int input, int output) {
  setpgid(0, 0);  // What the terminal sends to our group is not for the agent.
  dup2(input, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  setrlimit(RLIMIT_NOFILE, &context.open_files);
  signal(SIGPIPE, SIG_DFL);
  sigprocmask(SIG_SETMASK, &context.signal_mask, nullptr);
  const std::vector<char*> arguments = argument_pointers(words);
  execvp(arguments[0], arguments.data());
  say("cannot start '" + words.front() + "': " + std::strerror(errno));
  _exit(127);
}

}  // namespace

int HostLink::start(const std::vector<std::string>& agent_words, const LaunchContext& context) {
  const std::vector<std::string> words = command_on_host(agent_words, host.name, kHelperOption);
  int to[2] = {-1, -1};
  int from[2] = {-1, -1};
  if (pipe2(to, O_CLOEXEC) != 0) return errno;
  if (pipe2(from, O_CLOEXEC) == 0) agent = fork();
  const int error = agent < 0 ? errno : 0;
  if (agent == 0) become(words, context, to[0], from[1]);
  close(to[0]);
  if (from[1] >= 0) close(from[1]);
  stream = std::make_unique<FrameStream>(from[0], to[1], true);
  if (error != 0) return error;
  setpgid(agent, agent);
  in_addr parsed{};
  const bool is_address = inet_pton(AF_INET, host.name.c_str(), &parsed) == 1;
  const Settings settings = read_settings();
  stream->send(FrameKind::kHost, 0, pack_strings({is_address ? host.name : "", settings.interface}));
  return 0;
}

bool HostLink::reap_agent() {
  if (agent <= 0 || waitpid(agent, nullptr, WNOHANG) != agent) return false;
  agent = -1;
  return true;
}

void HostLink::end() {
  if (stream != nullptr) stream->close_both();
  for (int waited = 0; agent > 0 && !reap_agent(); ++waited) {
    if (waited == kAgentEndsMs) kill(-agent, SIGKILL);
    usleep(1000);
  }
}

}  // namespace portofu::tools
