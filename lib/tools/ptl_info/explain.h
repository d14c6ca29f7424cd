#pragma once
// ptl_info --explain: what each process waits for, and why, as text and as JSON.

#include <cstdint>
#include <string>

namespace portofu::tools {

struct ExplainOptions {
  std::uint32_t pid = 0;  ///< Portals PID: this process, and what concerns it; 0: all.
  bool json = false;
  bool on_hosts = false;  ///< Also on other hosts.
  std::string hosts;      ///< As ptl_run has them; empty: those of the hosts files of the jobs here.
  std::string agent;      ///< Empty: the usual one.
};

/// Looks twice at all processes of this user, and says what was there both times.
/// @return exit status
int explain(const ExplainOptions& options);

}  // namespace portofu::tools
