// Peers that stand still, that owe answers, that are elsewhere, and circles of those that wait for each other.

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "engine/inspect/wait_graph.h"

namespace portofu {
namespace {

/// Processes that are told of because they do something else.
constexpr std::size_t kMostOutside = 8;

/// "put", "utofu_get".
std::string operation_text(PacketType type) {
  const std::string name = packet_type_name(type);
  return name.starts_with("tofu_") ? 'u' + name : name;
}

/// Operations, and messages, that lead to one peer.
void find_unfinished(const JobView& job, const ProcessPicture& process, std::vector<Finding>* findings) {
  std::map<std::uint64_t, std::vector<const OperationPicture*>> by_target;
  for (const OperationPicture& operation : process.core.operations) {
    if (operation.lasts) by_target[process_key(operation.target)].push_back(&operation);
  }
  for (const auto& [key, operations] : by_target) {
    const OperationPicture& first = *operations.front();
    findings->push_back({FindingKind::kNotAnswered, process.id(), "operations", first.target, 0, 0, 0,
                         operations.size(),
                         "answers that " + job.name(first.target) + " owes " + job.name(process.id()) + ": " +
                             std::to_string(operations.size()) + "; the first is to a " + operation_text(first.kind) +
                             " of " + std::to_string(first.length) + " bytes"});
  }
  for (const PeerPicture& peer : process.core.peers) {
    if (peer.waiting_requests == 0 || by_target.contains(process_key(peer.id))) continue;
    const char* const until =
        peer.state == PeerState::kConnected ? " that wait for room there: " : " that wait until it can be reached: ";
    findings->push_back({FindingKind::kNotSent, process.id(), "messages", peer.id, 0, 0, 0, peer.waiting_requests,
                         "messages of " + job.name(process.id()) + " to " + job.name(peer.id) + until +
                             std::to_string(peer.waiting_requests)});
  }
}

std::string waiters_text(const WaitGraph& graph, std::size_t place) {
  const std::string names = graph.waiters(place);
  return names.empty() ? "" : "; it is waited for by " + names;
}

/// Whether a finding says why something does not come, and not only what.
bool is_cause(const Finding& finding) {
  switch (finding.kind) {
    case FindingKind::kCounterLacks:
    case FindingKind::kEventLacks:
    case FindingKind::kSearchLacks:
    case FindingKind::kNotAnswered:
    case FindingKind::kOutside: return false;
    default: return true;
  }
}

/// Whether others of the job wait, and none of them has the rank of a dead one.
bool is_missing(const JobView& job, const ProcessPicture& dead) {
  bool somebody_waits = false;
  for (const ProcessPicture& other : job.processes()) {
    if (other.sight == Sight::kDead) continue;
    if (other.rank == dead.rank) return false;
    somebody_waits = somebody_waits || other.is_waiting();
  }
  return somebody_waits && dead.rank >= 0;
}

/// What waits for a process that is elsewhere: "; unread there: 2 notices, 1 events".
std::string unread_text(const ProcessPicture& process) {
  std::uint64_t notices = 0;
  std::uint64_t events = 0;
  std::uint64_t headers = 0;
  for (const VcqPicture& vcq : process.core.vcqs) notices += vcq.mrq_unread;
  for (const InterfacePicture& ni : process.core.interfaces) {
    for (const QueuePicture& queue : ni.queues) events += queue.size;
    for (const PortalPicture& portal : ni.portals) headers += portal.unexpected.size;
  }
  std::string text;
  const auto add = [&text](std::uint64_t count, const char* what) {
    if (count != 0) text += (text.empty() ? "; there lie " : ", ") + (what + std::to_string(count));
  };
  add(notices, "unread MRQ notices: ");
  add(events, "unread events: ");
  add(headers, "unexpected headers: ");
  return text;
}

/// Whether another lane of the same process has a thread that waits.
bool waits_in_other_lane(const JobView& job, const ProcessPicture& process) {
  return std::ranges::any_of(job.processes(), [&process](const ProcessPicture& other) {
    const bool is_there = other.id().nid == process.id().nid && other.rank == process.rank;
    return is_there && other.descriptor.os_pid == process.descriptor.os_pid && other.is_waiting();
  });
}

/// What is so of a process is so of each of its lanes, and is told once. @return whether it is told here
bool add_once(Finding&& finding, std::vector<Finding>* findings) {
  const bool is_told = std::ranges::any_of(*findings, [&finding](const Finding& told) {
    return told.kind == finding.kind && told.sentence == finding.sentence;
  });
  if (!is_told) findings->push_back(std::move(finding));
  return !is_told;
}

}  // namespace

void find_silent_peers(const JobView& job, std::vector<Finding>* findings) {
  const WaitGraph graph(job);
  for (std::size_t i = 0; i < job.processes().size(); ++i) {
    const ProcessPicture& process = job.processes()[i];
    const std::string waiters = waiters_text(graph, i);
    Finding finding;
    finding.where = process.id();
    finding.kind = process.sight == Sight::kDead ? FindingKind::kPeerDead : FindingKind::kPeerStopped;
    const std::string number = " (process " + std::to_string(process.descriptor.os_pid) + ") is ";
    if (process.sight == Sight::kDead) {
      if (waiters.empty() && !is_missing(job, process)) continue;  // Of an earlier job, perhaps.
      finding.sentence = job.name(process.id()) + number + "dead" + waiters;
    } else if (process.run_state == RunState::kStopped) {
      finding.sentence = job.name(process.id()) + number + "stopped by a signal or a debugger" + waiters;
    } else {
      find_unfinished(job, process, findings);
      continue;
    }
    add_once(std::move(finding), findings);
  }
}

void find_circles(const JobView& job, std::vector<Finding>* findings) {
  const WaitGraph graph(job);
  std::set<std::size_t> told;
  for (std::size_t start = 0; start < job.processes().size(); ++start) {
    const std::vector<std::size_t> circle = graph.circle_of(start);
    const auto is_told = [&told](std::size_t place) { return told.contains(place); };
    if (circle.empty() || std::ranges::all_of(circle, is_told)) continue;
    told.insert(circle.begin(), circle.end());
    Finding finding;
    finding.kind = FindingKind::kCircle;
    finding.where = job.processes()[start].id();
    finding.lacks = circle.size();
    for (std::size_t i = 0; i < circle.size(); ++i) {
      const std::size_t next = circle[(i + 1) % circle.size()];
      finding.object += (i != 0 ? ", " : "") + job.name(job.processes()[circle[i]].id());
      finding.sentence += i == 0 ? job.name(job.processes()[start].id()) + " waits for " : ", which waits for ";
      const WaitGraph::Edge& edge = graph.edges().at(circle[i]).at(next);
      finding.sentence += edge.what + (" of " + job.name(job.processes()[next].id()));
      finding.progress += edge.progress;
    }
    finding.sentence += ": a circle of " + std::to_string(circle.size());
    findings->push_back(std::move(finding));
  }
}

void find_outside(const JobView& job, std::vector<Finding>* findings) {
  const WaitGraph graph(job);
  const bool is_explained = std::ranges::any_of(*findings, is_cause);
  std::size_t told = 0;
  for (std::size_t i = 0; i < job.processes().size() && told < kMostOutside; ++i) {
    const ProcessPicture& process = job.processes()[i];
    const bool is_there = process.run_state == RunState::kRuns || process.run_state == RunState::kSleeps;
    if (process.sight != Sight::kWhole || !is_there || process.is_waiting() || !job.anybody_waits()) continue;
    const auto names_it = [&](const Finding& finding) {
      return is_cause(finding) && (finding.where == process.id() || finding.other == process.id());
    };
    if (std::ranges::any_of(*findings, names_it)) continue;
    std::string waiters = graph.waiters(i);
    // If nobody's peer is known, everybody may be the one, unless there is another cause.
    if (waiters.empty() && (is_explained || !graph.edges().empty() || waits_in_other_lane(job, process))) continue;
    const bool is_one = !waiters.empty() && waiters.find(',') == std::string::npos;
    Finding finding;
    for (const ProcessPicture& other : job.processes()) {
      if (waiters.empty() ? other.is_waiting() : graph.waits_for(other, i)) finding.progress += progress_of(other);
    }
    if (waiters.empty()) waiters = "others";
    finding.kind = FindingKind::kOutside;
    finding.where = process.id();
    finding.sentence = job.name(process.id()) + " (process " + std::to_string(process.descriptor.os_pid) +
                       ") is in no call of the library while " + waiters + (is_one ? " waits" : " wait") +
                       "; its first thread " +
                       (process.run_state == RunState::kRuns ? "computes" : "sleeps elsewhere") + unread_text(process);
    told += add_once(std::move(finding), findings) ? 1 : 0;
  }
}

}  // namespace portofu
