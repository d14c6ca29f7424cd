#include "lib/tools/ptl_run/agent.h"

#include <unistd.h>

#include <climits>
#include <sstream>

#include "engine/config/settings.h"

namespace portofu::tools {
namespace {

std::string own_path() {
  char path[PATH_MAX];
  const ssize_t bytes = readlink("/proc/self/exe", path, sizeof path);
  return std::string(path, bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
}

/// For the shell of the host.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

}  // namespace

std::vector<std::string> agent_words(const std::string& from_command_line, bool* given) {
  const std::string configured = read_settings().launch_agent;
  *given = !from_command_line.empty() || !configured.empty();
  const std::string& wanted = !from_command_line.empty() ? from_command_line : configured;
  std::istringstream words(*given ? wanted : "ssh -x");
  std::vector<std::string> agent;
  for (std::string word; words >> word;) agent.push_back(word);
  return agent;
}

std::vector<std::string> command_on_host(const std::vector<std::string>& agent, const std::string& host,
                                         const std::string& option) {
  const std::string path = own_path();
  if (agent.empty()) return {path, option};
  std::vector<std::string> words = agent;
  words.push_back(host);
  words.push_back("exec " + quoted(path) + ' ' + option);
  return words;
}

bool is_this_host(const std::string& name) {
  char own[HOST_NAME_MAX + 1] = {};
  gethostname(own, sizeof own - 1);
  return name == "localhost" || name == own;
}

}  // namespace portofu::tools
