#include "stacks.h"

#include <cstdio>

namespace conformance {
namespace {

/// Of what gdb prints: it tells much of the libraries that it finds, too.
bool is_of_stack(const std::string& line) {
  return line.starts_with("#") || line.starts_with("Thread ") || line.find("ptrace") != std::string::npos;
}

}  // namespace

std::string stacks_of(pid_t process) {
  const std::string limit = std::to_string(kStacksSeconds);
  const std::string command = "timeout --kill-after=2 " + limit + " gdb -nx -batch -p " + std::to_string(process) +
                              " -ex 'set width 0' -ex 'thread apply all backtrace 16' 2>&1 < /dev/null";
  FILE* const gdb = popen(command.c_str(), "re");
  if (gdb == nullptr) return "no stacks: no process for gdb\n";
  std::string stacks;
  std::string line;
  for (int c = std::fgetc(gdb); c != EOF; c = std::fgetc(gdb)) {
    line += static_cast<char>(c);
    if (c != '\n') continue;
    if (is_of_stack(line)) stacks += line;
    line.clear();
  }
  pclose(gdb);
  return stacks.empty() ? "no stacks: gdb is not here, or took too long\n" : stacks;
}

}  // namespace conformance
