#include "engine/inspect/explanation.h"

#include <time.h>

#include <algorithm>
#include <map>
#include <utility>

#include "engine/inspect/process_picture.h"
#include "engine/observe/hex_text.h"
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

void add_name(WaitKind kind, std::uint64_t object, std::vector<std::string>* names) {
  const std::string name = awaited_name(kind, object);
  if (!name.empty() && std::ranges::find(*names, name) == names->end()) names->push_back(name);
}

bool holds(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

/// Of a call that waits at several: as the finding about it calls them.
std::string queues_name(const WaitSubject& subject) {
  std::string name;
  for (const WaitObject& queue : subject.objects())
    name += name.empty() ? event_queue_name(queue.handle) : ", " + hex_text(queue.handle);
  return name;
}

std::string list_text(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
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

Awaited awaited_in(const ProcessPicture& process, const Stall& stall) {
  Awaited awaited;
  const bool is_loop = stall.thread == 0;
  for (const SleepPicture& sleep : process.core.sleeps) {
    const bool is_own = is_loop ? !sleep.tells_itself : sleep.thread == stall.thread;
    for (const WaitObject& object : sleep.subject.objects())
      add_name(sleep.subject.kind, object.handle, is_own ? &awaited.own : &awaited.others);
    if (!is_own && sleep.subject.kind == WaitKind::kEventQueue) awaited.others.push_back(queues_name(sleep.subject));
  }
  for (const PollPicture& poll : process.core.polls) {
    if (!poll.goes_on) continue;
    const bool is_own = is_loop && !holds(awaited.others, awaited_name(poll.seen.kind, poll.seen.object));
    add_name(poll.seen.kind, poll.seen.object, is_own ? &awaited.own : &awaited.others);
  }
  std::erase_if(awaited.others, [&awaited](const std::string& name) { return holds(awaited.own, name); });
  if (awaited.own.empty()) std::swap(awaited.own, awaited.others);
  return awaited;
}

void tell_stall(Looks&& looks, const Stall& stall) {
  int told = 0;
  Awaited awaited;
  for (const Explanation& job : explain_looks(std::move(looks))) {
    if (job.job_key != stall.job_key) continue;
    const auto self = std::ranges::find(job.processes, stall.self, &ProcessPicture::id);
    if (self != job.processes.end()) awaited = awaited_in(*self, stall);
    for (const Finding& finding : job.findings) {
      const bool is_named = holds(awaited.others, finding.object) || holds(awaited.others, "the " + finding.object);
      const bool is_of_others = finding.where == stall.self && is_named;
      if (concerns(finding, stall.self.pid) && !is_of_others) log_warning("%d: %s", ++told, finding.sentence.c_str());
    }
  }
  log_warning("%s of PID %u has been waiting for %llu s%s%s; causes found: %d; it goes on waiting",
              stall.thread != 0 ? "a call" : "a loop of calls", stall.self.pid,
              static_cast<unsigned long long>(stall.waited_ns / 1'000'000'000), awaited.own.empty() ? "" : " at ",
              list_text(awaited.own).c_str(), told);
}

}  // namespace portofu
