#pragma once
// Where the ranks of a job add their findings (PORTOFU_CHECK), and what is made of them when all have ended.

#include <string>

namespace portofu::tools {

class CheckFile {
 public:
  /// Empties the file, and names it to the ranks.
  /// @param wanted  what follows --check: "true" if nothing does, and then it is one of its own, which goes again
  explicit CheckFile(const std::string& wanted);
  ~CheckFile();
  CheckFile(const CheckFile&) = delete;
  CheckFile& operator=(const CheckFile&) = delete;

  bool is_open() const { return why_.empty(); }
  const std::string& why() const { return why_; }

  /// Says how many findings there are. @return exit status of a job that has this one
  int tell(int job_status) const;

 private:
  std::string name_;
  bool is_own_;
  std::string why_;  ///< Why it cannot be written; empty: it can.
};

}  // namespace portofu::tools
