#include "engine/inspect/system_task.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "engine/topology/launcher.h"

namespace portofu {
namespace {

std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream contents;
  contents << file.rdbuf();  // Unlike an iterator it does not throw if the process has ended since the file was opened.
  return contents.str();
}

std::string environment_of(std::uint32_t os_pid) { return contents_of("/proc/" + std::to_string(os_pid) + "/environ"); }

/// A variable of /proc/PID/environ, whose entries end with zeros.
const char* variable_in(const std::string& environment, const std::string& name) {
  for (std::size_t at = 0; at < environment.size();) {
    if (environment.compare(at, name.size() + 1, name + "=") == 0) return environment.data() + at + name.size() + 1;
    const std::size_t end = environment.find('\0', at);
    if (end == std::string::npos) break;
    at = end + 1;
  }
  return nullptr;
}

}  // namespace

SystemTask look_at_task(const std::string& directory) {
  static const auto ticks_per_second = static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
  SystemTask task;
  task.name = contents_of(directory + "/comm");
  while (!task.name.empty() && task.name.back() == '\n') task.name.pop_back();
  read_stat(contents_of(directory + "/stat"), ticks_per_second, &task);
  return task;
}

bool read_stat(const std::string& text, std::uint64_t ticks_per_second, SystemTask* task) {
  // Numbers of the fields in proc(5).
  constexpr int kAfterState = 4;
  constexpr int kUserTime = 14;
  constexpr int kSystemTime = 15;
  constexpr int kProcessor = 39;
  // The name of the program stands in parentheses and may have any character in it, further ones, too.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || ticks_per_second == 0) return false;
  std::istringstream fields(text.substr(name_end + 1));
  SystemTask read;
  fields >> read.state;
  std::uint64_t ticks = 0;
  std::string word;
  for (int field = kAfterState; field <= kProcessor && fields >> word; ++field) {
    if (field == kUserTime || field == kSystemTime) ticks += std::strtoull(word.c_str(), nullptr, 10);
    if (field == kProcessor) read.cpu = std::atoi(word.c_str());
  }
  if (!fields) return false;
  task->state = read.state;
  task->cpu_ns = ticks * 1'000'000'000 / ticks_per_second;
  task->cpu = read.cpu;
  return true;
}

std::string variable_of_process(std::uint32_t os_pid, const std::string& name) {
  const std::string environment = environment_of(os_pid);
  const char* const value = variable_in(environment, name);
  return value != nullptr ? value : "";
}

std::int64_t rank_of_process(std::uint32_t os_pid) {
  const std::string environment = environment_of(os_pid);
  return rank_of_launcher([&environment](const char* name) { return variable_in(environment, name); });
}

}  // namespace portofu
