#pragma once
// How a tool starts itself on another host: by an agent, a command as ssh, that is given the host and a command line.

#include <string>
#include <vector>

namespace portofu::tools {

/// The words of an agent: of what the command line says, else of PORTOFU_LAUNCH_AGENT, else "ssh -x".
/// @param given  true if the user has named one, in either way
std::vector<std::string> agent_words(const std::string& from_command_line, bool* given);

/// The command that starts this very program on a host, with one option.
/// @param agent  its words; empty: here, without one
std::vector<std::string> command_on_host(const std::vector<std::string>& agent, const std::string& host,
                                         const std::string& option);

/// Whether a name means the machine that this process runs on.
bool is_this_host(const std::string& name);

}  // namespace portofu::tools
