#pragma once
// The view in a terminal, until somebody presses q.

#include <cstdint>
#include <string>

namespace portofu::tools {

struct TopOptions {
  std::string directory;      ///< Of the segments.
  double interval_s = 1;      ///< Between two looks.
  std::uint32_t job_key = 0;  ///< 0: all jobs.
};

/// @return exit status: 0, or 1 if the directory cannot be read or there is no terminal
int show_on_screen(const TopOptions& options);

}  // namespace portofu::tools
