#include "engine/inspect/wait_graph.h"

#include <algorithm>
#include <queue>

namespace portofu {
namespace {

std::vector<std::size_t> way_to(std::size_t last, std::size_t start,
                                const std::map<std::size_t, std::size_t>& came_from) {
  std::vector<std::size_t> way;
  for (std::size_t at = last; at != start; at = came_from.at(at)) way.push_back(at);
  way.push_back(start);
  std::ranges::reverse(way);
  return way;
}

bool has_unfinished_to(const ProcessPicture& process, ProcessId id) {
  const auto is_to = [id](const OperationPicture& operation) { return operation.target == id; };
  const auto lasts_to = [id](const OperationPicture& operation) { return operation.lasts && operation.target == id; };
  // A loop of operations has one under way at most looks, and each time another one.
  const bool passes =
      std::ranges::any_of(process.core.operations, is_to) && std::ranges::none_of(process.core.operations, lasts_to);
  return std::ranges::any_of(process.core.peers, [&](const PeerPicture& peer) {
    const bool waits = peer.waiting_requests != 0 || peer.waiting_answers != 0;
    return peer.id == id && (waits || (peer.outstanding != 0 && !passes));
  });
}

}  // namespace

WaitGraph::WaitGraph(const JobView& job) : job_(job) {
  for (std::size_t i = 0; i < job.processes().size(); ++i) places_[process_key(job.processes()[i].id())] = i;
  for (std::size_t i = 0; i < job.processes().size(); ++i) add_edges_of(i);
  for (const ProcessPicture& owner : job.processes()) add_locks(owner);
}

bool WaitGraph::awaits(std::size_t place, const InterfacePicture& from, const TriggerPicture& trigger) const {
  const auto found = awaited_.find(place);
  return found != awaited_.end() && std::ranges::any_of(found->second, [&](const Awaited& awaited) {
           const MatchCriteria& criteria = awaited.entry->criteria;
           return awaited.ni->index == from.index && awaited.pt_index == trigger.pt_index &&
                  ((criteria.match_bits ^ trigger.match_bits) & ~criteria.ignore_bits) == 0;
         });
}

const std::size_t* WaitGraph::place_of(ProcessId id) const {
  const auto found = places_.find(process_key(id));
  return found != places_.end() ? &found->second : nullptr;
}

std::string WaitGraph::waiters(std::size_t place) const {
  std::string names;
  for (const ProcessPicture& other : job_.processes()) {
    if (waits_for(other, place)) names += (names.empty() ? "" : ", ") + job_.name(other.id());
  }
  return names;
}

bool WaitGraph::waits_for(const ProcessPicture& process, std::size_t place) const {
  const std::size_t* const from = place_of(process.id());
  const auto out = from != nullptr ? edges_.find(*from) : edges_.end();
  return (out != edges_.end() && out->second.contains(place)) ||
         has_unfinished_to(process, job_.processes()[place].id());
}

std::vector<std::size_t> WaitGraph::circle_of(std::size_t start) const {
  std::map<std::size_t, std::size_t> came_from;
  std::queue<std::size_t> next;
  for (next.push(start); !next.empty(); next.pop()) {
    const auto out = edges_.find(next.front());
    if (out == edges_.end()) continue;
    for (const auto& [to, edge] : out->second) {
      if (to == start) return way_to(next.front(), start, came_from);
      if (to > start && came_from.try_emplace(to, next.front()).second) next.push(to);
    }
  }
  return {};
}

void WaitGraph::add_edges_of(std::size_t from) {
  const ProcessPicture& process = job_.processes()[from];
  for (const OperationPicture& operation : process.core.operations) {
    if (operation.lasts) add(from, operation.target, {"an answer", 0});
  }
  for (const SleepPicture& sleep : process.core.sleeps) {
    const auto objects = sleep.subject.objects();
    if (objects.size() == 1) add_sources(from, sleep.subject.kind, objects.front().handle);
  }
  if (process.core.sleeps.empty() && process.polls) add_polled(from);
  const auto is_gate = [](const PollPicture& poll) { return poll.goes_on && poll.seen.kind == WaitKind::kGate; };
  if (process.polls && std::ranges::any_of(process.core.polls, is_gate)) add_gates(from);
}

/// Gates that have their signal, so that the barrier has begun here, and lack a packet.
void WaitGraph::add_gates(std::size_t from) {
  for (const GatePicture& gate : job_.processes()[from].core.gates) {
    const bool lacks = gate.remote_source != BarrierGate::kNoGate && !gate.has_packet;
    const bool has_begun = gate.is_start ? gate.started : gate.has_signal;
    if (lacks && has_begun)
      add(from, job_.owner_of_gate(gate.remote_source), {"a packet of a barrier gate", gate.rounds_passed});
  }
}

/// Words in the memory of a process that others compare and swap in vain, because somebody has changed them.
void WaitGraph::add_locks(const ProcessPicture& owner) {
  for (const HeldWord& held : held_words_of(owner)) {
    const std::size_t* const from = place_of(held.who);
    if (from != nullptr) add(*from, held.holder, {"a lock", held.changed});
  }
}

/// A message that may come from several processes makes nobody wait for one of them.
void WaitGraph::add_sources(std::size_t from, WaitKind kind, Handle handle) {
  const ProcessPicture& process = job_.processes()[from];
  const InterfacePicture* const ni = interface_of(process, handle);
  if (ni == nullptr) return;
  const Feeders feeders = feeders_of(process, *ni, kind, handle);
  const auto is_anybodys = [&](const EntryPicture* entry) {
    return JobView::wanted_source(*ni, entry->criteria) == ProcessId{};
  };
  for (std::size_t i = 0; i < feeders.entries.size(); ++i)
    awaited_[from].push_back({ni, feeders.portals[i]->pt_index, feeders.entries[i]});
  if (std::ranges::any_of(feeders.entries, is_anybodys)) return;
  for (const EntryPicture* entry : feeders.entries) {
    add(from, JobView::wanted_source(*ni, entry->criteria), {expected_at(*entry), progress_of(*ni, kind, handle)});
  }
}

/// A loop of looks may be content with any of what it looks for. So it waits for somebody only if all that it can get
/// is of that one. What an entry gets that stays is awaited, or not; one that is used once was posted to be used.
void WaitGraph::add_polled(std::size_t from) {
  const ProcessPicture& process = job_.processes()[from];
  std::map<std::uint64_t, std::pair<ProcessId, Edge>> sources;
  for (const PollPicture& poll : process.core.polls) {
    const auto handle = static_cast<Handle>(poll.seen.object);
    const bool is_portals = poll.seen.kind == WaitKind::kEventQueue || poll.seen.kind == WaitKind::kCounters;
    const InterfacePicture* const ni = is_portals && poll.goes_on ? interface_of(process, handle) : nullptr;
    if (ni == nullptr) continue;
    Feeders feeders = feeders_of(process, *ni, poll.seen.kind, handle);
    if (poll.seen.kind == WaitKind::kEventQueue && !feeders.has_used_once()) continue;
    feeders.keep_used_once();
    for (std::size_t i = 0; i < feeders.entries.size(); ++i) {
      const EntryPicture* const entry = feeders.entries[i];
      awaited_[from].push_back({ni, feeders.portals[i]->pt_index, entry});
      const ProcessId source = JobView::wanted_source(*ni, entry->criteria);
      const Edge edge{expected_at(*entry), progress_of(*ni, poll.seen.kind, handle)};
      sources.insert_or_assign(process_key(source), std::pair(source, edge));
    }
  }
  if (sources.size() != 1) return;
  const auto& [source, edge] = sources.begin()->second;
  if (source != ProcessId{}) add(from, source, edge);
}

void WaitGraph::add(std::size_t from, ProcessId to, const Edge& edge) {
  const auto place = places_.find(process_key(to));
  if (place != places_.end() && place->second != from) edges_[from].try_emplace(place->second, edge);
}

}  // namespace portofu
