#include "stacks.h"

#include <sstream>

#include "tests/process/command_output.h"

namespace conformance {
namespace {

/// Of what gdb prints: it tells much of the libraries that it finds, too.
bool is_of_stack(const std::string& line) {
  return line.starts_with("#") || line.starts_with("Thread ") || line.find("ptrace") != std::string::npos;
}

}  // namespace

std::string stacks_of(pid_t process) {
  std::istringstream said(portofu::output_of("timeout --kill-after=2 " + std::to_string(kStacksSeconds) +
                                             " gdb -nx -batch -p " + std::to_string(process) +
                                             " -ex 'set width 0' -ex 'thread apply all backtrace 16' < /dev/null"));
  std::string stacks;
  for (std::string line; std::getline(said, line);) {
    if (is_of_stack(line)) stacks += line + '\n';
  }
  return stacks.empty() ? "no stacks: gdb is not here, or took too long\n" : stacks;
}

}  // namespace conformance
