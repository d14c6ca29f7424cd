#pragma once
// ptl_info --explain: what each process waits for, and why, as text and as JSON.

#include <cstdint>
#include <string>

namespace portofu::tools {

struct ExplainOptions {
  std::uint32_t pid = 0;  ///< Portals PID: this process, and what concerns it; 0: all.
  bool json = false;
};

/// Looks twice at all processes of this user, and says what was there both times.
/// @return exit status
int explain(const ExplainOptions& options);

}  // namespace portofu::tools
