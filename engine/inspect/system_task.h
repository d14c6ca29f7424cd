#pragma once
// What the kernel and the launcher say of another process, or of one of its threads.

#include <cstdint>
#include <string>

namespace portofu {

/// A process or a thread, from its directory in /proc.
struct SystemTask {
  std::string name;          ///< Of the program or the thread; empty: it is gone.
  char state = '?';          ///< As proc(5) has it: R, S, D, T or t (stopped), Z, X ...
  std::uint64_t cpu_ns = 0;  ///< Processor time; of a process that of all its threads.
  int cpu = -1;              ///< Where it ran last; -1: nobody tells.
};

/// @param directory  "/proc/PID" or "/proc/PID/task/TID"
/// @return with an empty name if the task is gone
SystemTask look_at_task(const std::string& directory);

/// Reads what /proc/PID/stat says: state, processor time and CPU. @return false if the text is no such thing
/// @param ticks_per_second  sysconf(_SC_CLK_TCK)
bool read_stat(const std::string& text, std::uint64_t ticks_per_second, SystemTask* task);

/// A variable of the environment that a process began with; empty: it has none, or it may not be read.
std::string variable_of_process(std::uint32_t os_pid, const std::string& name);

/// The rank that a launcher has given a process in its environment (rank_of_launcher); -1: none, or it may not be read.
std::int64_t rank_of_process(std::uint32_t os_pid);

}  // namespace portofu
