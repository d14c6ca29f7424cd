#include "lib/tools/ptl_info/explain.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <thread>
#include <vector>

#include "engine/door/inspection.h"
#include "lib/tools/ptl_info/explanation_json.h"
#include "lib/tools/ptl_info/explanation_text.h"

namespace portofu::tools {
namespace {

/// Between the two looks. Messages, and answers, need microseconds.
constexpr std::chrono::milliseconds kPause(300);

using Jobs = std::map<std::uint32_t, std::vector<ProcessPicture>>;

Jobs by_job(std::vector<ProcessPicture> pictures) {
  Jobs jobs;
  for (ProcessPicture& picture : pictures) jobs[picture.descriptor.job_key].push_back(std::move(picture));
  return jobs;
}

bool has_pid(const std::vector<ProcessPicture>& job, std::uint32_t pid) {
  return std::ranges::any_of(job, [pid](const ProcessPicture& process) { return process.descriptor.pid == pid; });
}

/// A circle concerns all of its job.
bool concerns(const Finding& finding, std::uint32_t pid) {
  return finding.where.pid == pid || finding.other.pid == pid || finding.kind == FindingKind::kCircle;
}

void leave_only(std::uint32_t pid, Explanation* explanation) {
  std::erase_if(explanation->processes, [pid](const ProcessPicture& one) { return one.descriptor.pid != pid; });
  std::erase_if(explanation->findings, [pid](const Finding& finding) { return !concerns(finding, pid); });
}

/// @return false if the directory of segments cannot be read
bool look(const std::string& directory, std::vector<ProcessPicture>* pictures) {
  if (look_at_processes(directory, pictures)) return true;
  std::fprintf(stderr, "ptl_info: cannot read %s\n", directory.c_str());
  return false;
}

}  // namespace

int explain(const ExplainOptions& options) {
  const std::string directory = SegmentOptions{}.directory;
  std::vector<ProcessPicture> before, now;
  if (!look(directory, &before)) return 1;
  std::this_thread::sleep_for(kPause);
  if (!look(directory, &now)) return 1;
  note_changes(before, &now);
  Jobs earlier = by_job(std::move(before));
  std::vector<Explanation> explanations;
  for (auto& [key, processes] : by_job(std::move(now))) {
    if (options.pid != 0 && !has_pid(processes, options.pid)) continue;
    Explanation explanation{key, std::move(processes), {}};
    // The earlier look has nothing earlier to compare with, so it may find more, never less.
    note_changes(explanation.processes, &earlier[key]);
    explanation.findings = keep_lasting(find_causes(earlier[key]), find_causes(explanation.processes));
    if (options.pid != 0) leave_only(options.pid, &explanation);
    explanations.push_back(std::move(explanation));
  }
  const std::string said = options.json ? json_text(explanations) : plain_text(explanations);
  std::fputs(said.c_str(), stdout);
  return 0;
}

}  // namespace portofu::tools
