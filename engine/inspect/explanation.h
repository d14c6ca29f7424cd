#pragma once
// Why the processes of a job hang: two looks at them, and what was wrong both times. For tools, and for a wait of the
// library that has lasted long.

#include <string>
#include <vector>

#include "engine/inspect/findings.h"

namespace portofu {

/// One job.
struct Explanation {
  std::uint32_t job_key = 0;
  std::vector<ProcessPicture> processes;
  std::vector<Finding> findings;
};

/// Two looks at the same processes.
struct Looks {
  std::vector<ProcessPicture> before;
  std::vector<ProcessPicture> now;
};

/// Looks at all processes of this user whose segments lie in a directory. Takes kBetweenLooksNs and a little more.
/// @return false if the directory cannot be read
bool look_twice(const std::string& directory, Looks* looks);

/// Adds what was seen elsewhere at about the same time. Processes that both have seen are there once.
void add_looks(Looks&& others, Looks* looks);

/// @return what was found, by job key
std::vector<Explanation> explain_looks(Looks&& looks);

/// Between the two looks; messages, and answers, need microseconds.
inline constexpr std::uint64_t kBetweenLooksNs = 300'000'000;

/// Whether a finding is about a process, too. A circle is about its whole job.
bool concerns(const Finding& finding, std::uint32_t pid);

/// A wait of this process that does not end: a call, or a loop of calls.
struct Stall {
  std::uint32_t job_key = 0;
  ProcessId self{};
  std::uint64_t waited_ns = 0;  ///< How long it has lasted.
  std::int32_t thread = 0;      ///< Whose call it is; 0: it is a loop, of whichever threads.
};

/// What a wait is at, and what others of its process are at, who tell it themselves: names of objects.
struct Awaited {
  std::vector<std::string> own;
  std::vector<std::string> others;
};
Awaited awaited_in(const ProcessPicture& process, const Stall& stall);

/// Writes to standard error what it waits for, and why that does not come.
void tell_stall(Looks&& looks, const Stall& stall);

}  // namespace portofu
