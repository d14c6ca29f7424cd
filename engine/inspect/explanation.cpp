#include "engine/inspect/explanation.h"

#include <time.h>

#include <algorithm>
#include <map>
#include <utility>

#include "engine/inspect/process_picture.h"
#include "engine/observe/log.h"

namespace portofu {
namespace {

using Jobs = std::map<std::uint32_t, std::vector<ProcessPicture>>;

Jobs by_job(std::vector<ProcessPicture> pictures) {
  Jobs jobs;
  std::ranges::stable_sort(pictures, {}, &ProcessPicture::rank);  // Of several hosts.
  for (ProcessPicture& picture : pictures) jobs[picture.descriptor.job_key].push_back(std::move(picture));
  return jobs;
}

/// @param object  its handle or ID
/// @return empty: it has no name
std::string awaited_name(WaitKind kind, std::uint64_t object) {
  switch (kind) {
    case WaitKind::kCounters: return counter_name(static_cast<Handle>(object));
    case WaitKind::kEventQueue: return event_queue_name(static_cast<Handle>(object));
    case WaitKind::kTcq: return "the TCQ of " + vcq_name(object);
    case WaitKind::kMrq: return "the MRQ of " + vcq_name(object);
    case WaitKind::kGate: return gate_name(object);
    case WaitKind::kOther: break;
  }
  return "";
}

void pause_between_looks() {
  const timespec pause{0, static_cast<long>(kBetweenLooksNs)};
  nanosleep(&pause, nullptr);
}

}  // namespace

bool look_twice(const std::string& directory, Looks* looks) {
  if (!look_at_processes(directory, &looks->before)) return false;
  pause_between_looks();
  return look_at_processes(directory, &looks->now);
}

void add_looks(Looks&& others, Looks* looks) {
  const auto add = [](std::vector<ProcessPicture>&& from, std::vector<ProcessPicture>* to) {
    const auto life = [](const ProcessPicture& process) { return process.descriptor.incarnation; };
    for (ProcessPicture& process : from) {
      if (std::ranges::find(*to, life(process), life) == to->end()) to->push_back(std::move(process));
    }
  };
  add(std::move(others.before), &looks->before);
  add(std::move(others.now), &looks->now);
}

std::vector<Explanation> explain_looks(Looks&& looks) {
  note_changes(looks.before, &looks.now);
  note_changes(looks.now, &looks.before);  // What polls or lasts did so at both looks.
  Jobs earlier = by_job(std::move(looks.before));
  std::vector<Explanation> explanations;
  for (auto& [key, processes] : by_job(std::move(looks.now))) {
    std::vector<Finding> findings = keep_lasting(find_causes(earlier[key]), find_causes(processes));
    explanations.push_back({key, std::move(processes), std::move(findings)});
  }
  return explanations;
}

bool concerns(const Finding& finding, std::uint32_t pid) {
  return finding.where.pid == pid || finding.other.pid == pid || finding.kind == FindingKind::kCircle;
}

std::string awaited_text(const ProcessPicture& process) {
  std::vector<std::string> names;
  const auto add = [&names](WaitKind kind, std::uint64_t object) {
    const std::string name = awaited_name(kind, object);
    if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  for (const SleepPicture& sleep : process.core.sleeps) {
    for (const WaitObject& object : sleep.subject.objects()) add(sleep.subject.kind, object.handle);
  }
  for (const PollPicture& poll : process.core.polls) {
    if (poll.goes_on) add(poll.seen.kind, poll.seen.object);
  }
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

void tell_stall(Looks&& looks, const Stall& stall) {
  int told = 0;
  std::string awaited;
  for (const Explanation& job : explain_looks(std::move(looks))) {
    if (job.job_key != stall.job_key) continue;
    for (const Finding& finding : job.findings) {
      if (concerns(finding, stall.self.pid)) log_warning("%d: %s", ++told, finding.sentence.c_str());
    }
    const auto self = std::ranges::find(job.processes, stall.self, &ProcessPicture::id);
    if (self != job.processes.end()) awaited = awaited_text(*self);
  }
  log_warning("%s of PID %u has been waiting for %llu s%s%s; causes found: %d; it goes on waiting", stall.waiter,
              stall.self.pid, static_cast<unsigned long long>(stall.waited_ns / 1'000'000'000),
              awaited.empty() ? "" : " at ", awaited.c_str(), told);
}

}  // namespace portofu
