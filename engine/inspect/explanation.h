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

/// Looks at all processes of this user whose segments lie in a directory. Takes kBetweenLooksNs and a little more.
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
