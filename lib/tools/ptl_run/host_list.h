#pragma once
// The hosts of a job, as the user names them: a list "a,b:4,c", or a file with a host a line. Before it: the command
// line. After it: the job starts each host's ranks. Knows no network.

#include <optional>
#include <string>
#include <vector>

#include "engine/door/inspection.h"

namespace portofu::tools {

/// One host, and its share of the ranks.
struct JobHost {
  std::string name;  ///< What the launch agent is given: a name, USER@NAME, or an IPv4 address.
  int count = 0;     ///< Ranks; 0: the user has not said.
  std::optional<Coordinates> at;

  friend bool operator==(const JobHost&, const JobHost&) = default;
};

/// Reads "NAME[:COUNT],...". @param why  names the part that is wrong. @return nothing if there is one
std::optional<std::vector<JobHost>> parse_host_list(const std::string& text, std::string* why);

/// Reads lines "NAME[:COUNT] [X,Y,Z,A,B,C]"; `#` begins a comment.
/// @param why  names the line that is wrong. @return nothing if there is one, or no host at all
std::optional<std::vector<JobHost>> parse_host_lines(const std::string& text, std::string* why);

/// What --hosts was given: a text with a slash is the path of a file, any other one a list.
std::optional<std::vector<JobHost>> read_hosts(const std::string& given, std::string* why);

/// Gives each host its block of ranks, in the order of the hosts; those that get none are removed. A host without a
/// count has one rank; where no host has one, `wanted` ranks are spread evenly, the first hosts getting one more.
/// @param wanted  ranks of the job; 0: as many as the hosts have
/// @return false, with the reason, if the hosts have fewer
bool place_ranks(std::vector<JobHost>* hosts, int wanted, std::string* why);

}  // namespace portofu::tools
