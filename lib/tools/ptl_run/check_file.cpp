#include "lib/tools/ptl_run/check_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "lib/tools/ptl_run/job.h"

namespace portofu::tools {

CheckFile::CheckFile(const std::string& wanted) : is_own_(wanted == "true") {
  std::error_code error;
  if (is_own_) {
    name_ = (std::filesystem::temp_directory_path(error) / "ptl_run-check-XXXXXX").string();
    const int fd = mkstemp(name_.data());
    if (fd < 0) why_ = name_ + ": " + std::strerror(errno);
    if (fd >= 0) close(fd);
  } else {
    name_ = std::filesystem::absolute(wanted, error).string();
    if (!std::ofstream(name_, std::ios::trunc)) why_ = name_ + ": " + std::strerror(errno);
  }
  setenv("PORTOFU_CHECK", name_.c_str(), 1);
}

CheckFile::~CheckFile() {
  if (is_own_) unlink(name_.c_str());
}

int CheckFile::tell(int job_status) const {
  std::ifstream lines(name_);
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("\"sentence\":") != std::string::npos) ++count;  // Others tell how often one was repeated.
  }
  if (count == 0) {
    say("the checker has found nothing");
    return job_status;
  }
  say("the checker has " + std::to_string(count) + (count == 1 ? " finding" : " findings") +
      (is_own_ ? "" : ", see " + name_));
  return job_status != 0 ? job_status : kCheckHasFindings;
}

}  // namespace portofu::tools
