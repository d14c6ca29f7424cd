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

/// All of this for the processes of this node.
/// @param explanations  by job key
/// @return false if the directory cannot be read
bool explain_jobs(const std::string& directory, std::vector<Explanation>* explanations);

/// Between the two looks; messages, and answers, need microseconds.
inline constexpr std::uint64_t kBetweenLooksNs = 300'000'000;

/// Whether a finding is about a process, too. A circle is about its whole job.
bool concerns(const Finding& finding, std::uint32_t pid);

/// Writes to standard error why a wait of this process does not end.
/// @param job_key    of the job
/// @param waited_ns  how long it has lasted
void tell_stall(const std::string& directory, std::uint32_t job_key, ProcessId self, std::uint64_t waited_ns);

}  // namespace portofu
