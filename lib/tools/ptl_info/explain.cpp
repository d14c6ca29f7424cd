#include "lib/tools/ptl_info/explain.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "engine/door/inspection.h"
#include "lib/tools/ptl_info/explanation_json.h"
#include "lib/tools/ptl_info/explanation_text.h"

namespace portofu::tools {
namespace {

bool has_pid(const Explanation& job, std::uint32_t pid) {
  return std::ranges::any_of(job.processes,
                             [pid](const ProcessPicture& process) { return process.descriptor.pid == pid; });
}

/// Leaves only what is about one process.
void leave_only(std::uint32_t pid, std::vector<Explanation>* jobs) {
  std::erase_if(*jobs, [pid](const Explanation& job) { return !has_pid(job, pid); });
  for (Explanation& job : *jobs) {
    std::erase_if(job.processes, [pid](const ProcessPicture& one) { return one.descriptor.pid != pid; });
    std::erase_if(job.findings, [pid](const Finding& finding) { return !concerns(finding, pid); });
  }
}

}  // namespace

int explain(const ExplainOptions& options) {
  const std::string directory = SegmentOptions{}.directory;
  std::vector<Explanation> jobs;
  if (!explain_jobs(directory, &jobs)) {
    std::fprintf(stderr, "ptl_info: cannot read %s\n", directory.c_str());
    return 1;
  }
  if (options.pid != 0) leave_only(options.pid, &jobs);
  std::fputs((options.json ? json_text(jobs) : plain_text(jobs)).c_str(), stdout);
  return 0;
}

}  // namespace portofu::tools
