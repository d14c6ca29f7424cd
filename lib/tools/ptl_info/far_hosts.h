#pragma once
// What the ptl_info of other hosts sees of a job.

#include <string>
#include <vector>

#include "engine/door/inspection.h"

namespace portofu::tools {

/// The option by which ptl_info looks for one on another host: it writes its looks to standard output.
inline constexpr const char* kLooksOption = "--looks";

/// @return exit status
int write_looks();

/// The other nodes of the jobs that run here, as their hosts files (PORTOFU_HOSTS) name them.
std::vector<std::string> hosts_of_jobs_here(const std::string& directory);

/// Whom to ask.
struct FarHosts {
  std::vector<std::string> names;
  std::vector<std::string> agent;  ///< Its words.
};

/// Asks all hosts at once, looks here meanwhile, and puts all together.
/// @param silent  set to the hosts that did not answer within kAnswerMs
/// @return false if the directory of this node cannot be read
bool look_everywhere(const std::string& directory, const FarHosts& hosts, Looks* looks,
                     std::vector<std::string>* silent);

inline constexpr int kAnswerMs = 15'000;

}  // namespace portofu::tools
