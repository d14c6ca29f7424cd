#include "lib/tools/ptl_info/explain.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "engine/door/inspection.h"
#include "lib/tools/ptl_info/explanation_json.h"
#include "lib/tools/ptl_info/explanation_text.h"
#include "lib/tools/ptl_info/far_hosts.h"
#include "lib/tools/ptl_run/agent.h"
#include "lib/tools/ptl_run/host_list.h"

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

/// @return false if the hosts make no sense; that was said
bool find_hosts(const ExplainOptions& options, const std::string& directory, FarHosts* hosts) {
  if (!options.on_hosts) return true;
  bool agent_given = false;
  hosts->agent = agent_words(options.agent, &agent_given);
  if (options.hosts.empty()) {
    hosts->names = hosts_of_jobs_here(directory);
    return true;
  }
  std::string why;
  const auto named = read_hosts(options.hosts, &why);
  if (!named) {
    std::fprintf(stderr, "ptl_info: --hosts: %s\n", why.c_str());
    return false;
  }
  for (const JobHost& host : *named) {
    if (agent_given || !is_this_host(host.name)) hosts->names.push_back(host.name);
  }
  return true;
}

}  // namespace

int explain(const ExplainOptions& options) {
  const std::string directory = SegmentOptions{}.directory;
  FarHosts hosts;
  if (!find_hosts(options, directory, &hosts)) return 2;
  Looks looks;
  std::vector<std::string> silent;
  if (!look_everywhere(directory, hosts, &looks, &silent)) {
    std::fprintf(stderr, "ptl_info: cannot read %s\n", directory.c_str());
    return 1;
  }
  std::vector<Explanation> jobs = explain_looks(std::move(looks));
  if (options.pid != 0) leave_only(options.pid, &jobs);
  const bool is_there = options.pid == 0 || !jobs.empty();
  const std::vector<std::string> foreign = foreign_segments(directory);
  std::fputs((options.json ? json_text(jobs, foreign) : plain_text(jobs, foreign)).c_str(), stdout);
  for (const std::string& host : silent)
    std::fprintf(stderr, "ptl_info: host %s has not said what it sees: is this very ptl_info there?\n", host.c_str());
  return silent.empty() && is_there ? 0 : 1;
}

}  // namespace portofu::tools
