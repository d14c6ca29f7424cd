#pragma once
// Runs a program whose processes write all their steps into a directory.

#include <string>
#include <vector>

namespace portofu::tools {

/// Files of steps begin so in that directory.
inline constexpr const char* kStepFilePrefix = "steps-";

/// A directory of its own under TMPDIR, or /tmp; removed with all it holds.
class StepDirectory {
 public:
  StepDirectory();
  ~StepDirectory();
  StepDirectory(const StepDirectory&) = delete;
  StepDirectory& operator=(const StepDirectory&) = delete;

  /// Empty if it could not be made; that was said.
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Runs it to its end. SIGINT and SIGQUIT of the terminal reach it, and SIGTERM and SIGHUP are passed on.
/// @param captures  whether its processes capture their packets there, too (PORTOFU_PCAPNG)
/// @return its exit status; 128 + N if signal N ended it; 126 or 127 if it cannot be run
int run_traced(const std::vector<std::string>& command, const std::string& directory, bool captures);

}  // namespace portofu::tools
