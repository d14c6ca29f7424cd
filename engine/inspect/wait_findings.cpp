// Who waits for what: counters that lack events, answers that nobody owes, peers that stand still, circles.

#include <algorithm>
#include <map>
#include <queue>
#include <set>

#include "engine/inspect/job_view.h"

namespace portofu {
namespace {

constexpr const char* kWasAckAskedFor = "was an ACK asked for? A message that is dropped gives none";

std::string counter_name(Handle handle) { return "counter " + hex_text(handle); }

const CounterPicture* find_counter(const InterfacePicture& ni, Handle handle) {
  const auto found = std::ranges::find(ni.counters, handle, &CounterPicture::handle);
  return found != ni.counters.end() ? &*found : nullptr;
}

/// " messages at portal table entry 4 with bits 0x10 of rank 2"
std::string entries_text(const JobView& job, const InterfacePicture& ni, const Feeders& feeders) {
  if (feeders.entries.empty()) return "";
  const MatchCriteria& criteria = feeders.entries.front()->criteria;
  std::string text = " messages at portal table entry " + std::to_string(feeders.portals.front()->pt_index);
  const ProcessId source = JobView::wanted_source(ni, criteria);
  if (ni.is_matching()) text += " with bits " + hex_text(criteria.match_bits);
  if (source != ProcessId{}) text += " of " + job.name(source);
  if (feeders.entries.size() > 1) text += ", and of " + std::to_string(feeders.entries.size() - 1) + " entries more";
  return text;
}

/// " bytes of messages at ...", if that is what the entries count.
std::string counted_text(const JobView& job, const InterfacePicture& ni, const Feeders& feeders) {
  const bool bytes = (feeders.entries.front()->options & kEntryEventCtBytes) != 0;
  return (bytes ? " bytes of" : "") + entries_text(job, ni, feeders);
}

/// "the entry at portal table entry 4 with bits 0x10"
std::string mute_text(const InterfacePicture& ni, const Feeders& feeders) {
  return "the entry at portal table entry " + std::to_string(feeders.mute_portal->pt_index) +
         (ni.is_matching() ? " with bits " + hex_text(feeders.mute_entry->criteria.match_bits) : "");
}

/// An operation that would tell of itself waits for another counter.
std::string trigger_text(const CounterPicture& other) {
  return "; an operation would raise it that waits for " + counter_name(other.handle) + ", which has " +
         std::to_string(other.success) + " of " + std::to_string(other.waiting.items.front().threshold);
}

/// A thread that sleeps until a counter has its test.
class CounterWait {
 public:
  CounterWait(const JobView& job, const ProcessPicture& process, const SleepPicture& sleep)
      : job_(job), process_(process), sleep_(sleep) {}

  void judge(const InterfacePicture& ni, const CounterPicture& counter, std::uint64_t test,
             std::vector<Finding>* findings) const {
    if (counter.success >= test) return;
    const Feeders feeders = feeders_of_counter(process_, ni, counter.handle);
    Finding finding;
    finding.kind = kind_of(feeders);
    finding.where = process_.id();
    finding.object = counter_name(counter.handle);
    finding.lacks = test - counter.success;
    finding.sentence = job_.name(process_.id()) + " has been waiting " + since_text(sleep_.since_ns) + " until " +
                       finding.object + " reaches " + std::to_string(test) + "; it has " +
                       std::to_string(counter.success) + " and lacks " + std::to_string(finding.lacks) +
                       cause_text(ni, feeders);
    findings->push_back(std::move(finding));
  }

 private:
  static FindingKind kind_of(const Feeders& feeders) {
    if (!feeders.entries.empty() || !feeders.triggered_by.empty() || feeders.overflow || feeders.answers_due)
      return FindingKind::kCounterLacks;
    const bool nothing = feeders.descriptors.empty() || feeders.mute_entry != nullptr;
    return nothing ? FindingKind::kNothingCounts : FindingKind::kNoAnswerDue;
  }

  std::string cause_text(const InterfacePicture& ni, const Feeders& feeders) const {
    if (!feeders.entries.empty()) return "; it counts" + counted_text(job_, ni, feeders);
    if (!feeders.triggered_by.empty()) return trigger_text(*feeders.triggered_by.front());
    if (feeders.overflow) return "; it counts messages of an overflow list";
    if (feeders.mute_entry != nullptr && !feeders.answers_due)
      return "; " + mute_text(ni, feeders) + " names it, but without PTL_ME_EVENT_CT_COMM: messages there do not count";
    if (feeders.descriptors.empty()) return "; no entry, memory descriptor or triggered operation raises it";
    const std::string md = "memory descriptor " + hex_text(feeders.descriptors.front()->handle);
    if (feeders.answers_due) return "; it counts for operations of " + md + ", some of which are not answered";
    const bool hears_acks = (feeders.descriptors.front()->options & kMdEventCtAck) != 0;
    return "; it counts for operations of " + md +
           (hears_acks ? std::string(", and none of them waits for an answer: ") + kWasAckAskedFor
                       : ", and none of them is under way");
  }

  const JobView& job_;
  const ProcessPicture& process_;
  const SleepPicture& sleep_;
};

/// A thread that sleeps until an event queue gets an event.
class QueueWait {
 public:
  QueueWait(const JobView& job, const ProcessPicture& process) : job_(job), process_(process) {}

  void judge(const SleepPicture& sleep, std::vector<Finding>* findings) const {
    Finding finding;
    finding.kind = FindingKind::kNoAnswerDue;
    finding.where = process_.id();
    std::string cause;
    for (const auto& [handle, test] : sleep.subject.objects()) {
      const InterfacePicture* const ni = interface_of(process_, handle);
      if (ni == nullptr || ni->index == kFabricInterface) return;
      const Feeders feeders = feeders_of_queue(process_, *ni, handle);
      if (feeders.answers_due) return;
      finding.object += (finding.object.empty() ? "event queue " : ", ") + hex_text(handle);
      if (cause.empty()) cause = cause_of(*ni, feeders, &finding.kind);
    }
    if (finding.object.empty()) return;
    if (cause.empty())
      cause = std::string("no portal table entry logs there, and no operation waits for an answer: ") + kWasAckAskedFor;
    finding.sentence = job_.name(process_.id()) + " has been waiting " + since_text(sleep.since_ns) +
                       " for an event of " + finding.object + "; " + cause;
    findings->push_back(std::move(finding));
  }

 private:
  /// @return "" if nothing has to do with the queue
  std::string cause_of(const InterfacePicture& ni, const Feeders& feeders, FindingKind* kind) const {
    *kind = FindingKind::kEventLacks;
    if (!feeders.entries.empty()) return "it logs" + entries_text(job_, ni, feeders);
    if (feeders.overflow) return "it logs messages of an overflow list";
    *kind = FindingKind::kNothingCounts;
    if (feeders.mute_entry != nullptr)
      return mute_text(ni, feeders) +
             " makes no event of a message that succeeds: PTL_ME_EVENT_COMM_DISABLE or PTL_ME_EVENT_SUCCESS_DISABLE";
    const auto is_mute = [](const DescriptorPicture* md) { return (md->options & kMdEventSuccessDisable) != 0; };
    if (!feeders.descriptors.empty() && std::ranges::all_of(feeders.descriptors, is_mute))
      return "memory descriptor " + hex_text(feeders.descriptors.front()->handle) +
             " makes no event of an operation that succeeds: PTL_MD_EVENT_SUCCESS_DISABLE";
    *kind = FindingKind::kNoAnswerDue;
    if (feeders.portals.empty()) return "";
    return "portal table entry " + std::to_string(feeders.portals.front()->pt_index) +
           " logs there, where no entry is posted" +
           (feeders.descriptors.empty() ? ""
                                        : std::string(", and no operation waits for an answer: ") + kWasAckAskedFor);
  }

  const JobView& job_;
  const ProcessPicture& process_;
};

/// Operations that wait for a counter that has begun to count, or that a thread waits for by way of them.
void find_lacking_triggers(const JobView& job, const ProcessPicture& process, const InterfacePicture& ni,
                           std::vector<Finding>* findings) {
  for (const CounterPicture& counter : ni.counters) {
    if (counter.waiting.items.empty() || counter.success == 0) continue;
    const std::uint64_t threshold = counter.waiting.items.front().threshold;
    if (threshold <= counter.success) continue;
    Finding finding;
    finding.kind = FindingKind::kCounterLacks;
    finding.where = process.id();
    finding.object = counter_name(counter.handle);
    finding.lacks = threshold - counter.success;
    const Feeders feeders = feeders_of_counter(process, ni, counter.handle);
    finding.sentence = "triggered operations of " + job.name(process.id()) + " that wait for " + finding.object + ": " +
                       std::to_string(counter.waiting.size) + "; the next needs " + std::to_string(threshold) +
                       ", it has " + std::to_string(counter.success) + " and lacks " + std::to_string(finding.lacks);
    if (!feeders.entries.empty()) finding.sentence += "; it counts" + counted_text(job, ni, feeders);
    findings->push_back(std::move(finding));
  }
}

/// Who waits for whom, and for what: "a message", "an answer".
using Edges = std::map<std::size_t, std::map<std::size_t, const char*>>;

class WaitGraph {
 public:
  explicit WaitGraph(const JobView& job) : job_(job) {
    for (std::size_t i = 0; i < job.processes().size(); ++i) places_[process_key(job.processes()[i].id())] = i;
    for (std::size_t i = 0; i < job.processes().size(); ++i) add_edges_of(i);
  }

  const Edges& edges() const { return edges_; }

  /// The shortest way from a process back to itself, by processes behind it only, so that each circle is found once.
  /// @return empty if there is none
  std::vector<std::size_t> circle_of(std::size_t start) const {
    std::map<std::size_t, std::size_t> came_from;
    std::queue<std::size_t> next;
    for (next.push(start); !next.empty(); next.pop()) {
      const auto out = edges_.find(next.front());
      if (out == edges_.end()) continue;
      for (const auto& [to, what] : out->second) {
        if (to == start) return way_to(next.front(), start, came_from);
        if (to > start && came_from.try_emplace(to, next.front()).second) next.push(to);
      }
    }
    return {};
  }

 private:
  void add_edges_of(std::size_t from) {
    const ProcessPicture& process = job_.processes()[from];
    for (const OperationPicture& operation : process.core.operations) {
      if (operation.lasts) add(from, operation.target, "an answer");
    }
    for (const SleepPicture& sleep : process.core.sleeps) {
      const auto objects = sleep.subject.objects();
      if (objects.size() == 1) add_sources(from, sleep.subject.kind, objects.front().handle);
    }
  }

  /// A message that may come from several processes makes nobody wait for one of them.
  void add_sources(std::size_t from, WaitKind kind, Handle handle) {
    const ProcessPicture& process = job_.processes()[from];
    const InterfacePicture* const ni = interface_of(process, handle);
    if (ni == nullptr) return;
    const Feeders feeders =
        kind == WaitKind::kCounters ? feeders_of_counter(process, *ni, handle) : feeders_of_queue(process, *ni, handle);
    const auto is_anybodys = [&](const EntryPicture* entry) {
      return JobView::wanted_source(*ni, entry->criteria) == ProcessId{};
    };
    if (std::ranges::any_of(feeders.entries, is_anybodys)) return;
    for (const EntryPicture* entry : feeders.entries) {
      add(from, JobView::wanted_source(*ni, entry->criteria), "a message");
    }
  }

  void add(std::size_t from, ProcessId to, const char* what) {
    const auto place = places_.find(process_key(to));
    if (place != places_.end() && place->second != from) edges_[from].try_emplace(place->second, what);
  }

  static std::vector<std::size_t> way_to(std::size_t last, std::size_t start,
                                         const std::map<std::size_t, std::size_t>& came_from) {
    std::vector<std::size_t> way;
    for (std::size_t at = last; at != start; at = came_from.at(at)) way.push_back(at);
    way.push_back(start);
    std::ranges::reverse(way);
    return way;
  }

  const JobView& job_;
  std::map<std::uint64_t, std::size_t> places_;
  Edges edges_;
};

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
                             std::to_string(operations.size()) + "; the first is to a " + packet_type_name(first.kind) +
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

bool has_unfinished_to(const ProcessPicture& process, ProcessId id) {
  return std::ranges::any_of(process.core.peers, [id](const PeerPicture& peer) {
    return peer.id == id && (peer.outstanding != 0 || peer.waiting_requests != 0 || peer.waiting_answers != 0);
  });
}

/// Names of those that have something to do with a process that does nothing any more.
std::string waiters_text(const JobView& job, const WaitGraph& graph, std::size_t place) {
  const ProcessId id = job.processes()[place].id();
  std::string names;
  for (std::size_t i = 0; i < job.processes().size(); ++i) {
    const auto out = graph.edges().find(i);
    const bool waits =
        (out != graph.edges().end() && out->second.contains(place)) || has_unfinished_to(job.processes()[i], id);
    if (waits) names += (names.empty() ? "; it is waited for by " : ", ") + job.name(job.processes()[i].id());
  }
  return names;
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

}  // namespace

void find_lacking(const JobView& job, std::vector<Finding>* findings) {
  for (const ProcessPicture& process : job.processes()) {
    for (const SleepPicture& sleep : process.core.sleeps) {
      if (sleep.subject.kind == WaitKind::kEventQueue) QueueWait(job, process).judge(sleep, findings);
      if (sleep.subject.kind != WaitKind::kCounters) continue;
      for (const auto& [handle, test] : sleep.subject.objects()) {
        const InterfacePicture* const ni = interface_of(process, handle);
        const CounterPicture* const counter = ni != nullptr ? find_counter(*ni, handle) : nullptr;
        if (counter == nullptr) continue;
        CounterWait(job, process, sleep).judge(*ni, *counter, test, findings);
      }
    }
    for (const InterfacePicture& ni : process.core.interfaces) find_lacking_triggers(job, process, ni, findings);
  }
}

void find_silent_peers(const JobView& job, std::vector<Finding>* findings) {
  const WaitGraph graph(job);
  for (std::size_t i = 0; i < job.processes().size(); ++i) {
    const ProcessPicture& process = job.processes()[i];
    const std::string waiters = waiters_text(job, graph, i);
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
    findings->push_back(std::move(finding));
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
      finding.sentence += graph.edges().at(circle[i]).at(next) + (" of " + job.name(job.processes()[next].id()));
    }
    finding.sentence += ": a circle of " + std::to_string(circle.size());
    findings->push_back(std::move(finding));
  }
}

}  // namespace portofu
