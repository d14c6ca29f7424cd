#include "lib/tools/ptl_sim/critical_path.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "lib/tools/ptl_sim/spent_names.h"

namespace portofu::tools {
namespace {

/// Goes back from the end. Where it stands is a rank at a time, or a message that has just arrived, or left.
class WayBack {
 public:
  WayBack(const History& history, CriticalPath* path) : history_(history), path_(*path), came_(history.ranks.size()) {
    for (std::uint32_t i = 0; i < history.messages.size(); ++i) {
      const MessageTimes& message = history.messages[i];
      if (message.to < came_.size()) came_[message.to].push_back({message.arrived_ps, i});
      if (message.is_told && message.from < came_.size()) came_[message.from].push_back({message.left_ps, i});
    }
    for (auto& came : came_) std::ranges::sort(came);
  }

  /// From the end of a rank, or from the arrival of a message there that nobody waited for in a call.
  void go(std::uint32_t rank, std::uint64_t end_ps, std::uint32_t message) {
    rank_ = rank;
    now_ps_ = end_ps;
    if (message != kNoMessage) pass_message(message, VirtualSpent::kWait);
    while (now_ps_ > 0) pass_span();
    std::ranges::reverse(path_.segments);
  }

 private:
  struct Arrival {
    std::uint64_t time_ps;
    std::uint32_t message;
    auto operator<=>(const Arrival&) const = default;
  };

  /// Up to now, from a time before.
  void add(PathKind kind, std::uint64_t from_ps, std::uint32_t message, VirtualSpent spent = VirtualSpent::kWait) {
    if (from_ps >= now_ps_) return;
    path_.segments.push_back({kind, from_ps, now_ps_, rank_, message, spent});
    path_.sums_ps[static_cast<std::size_t>(kind)] += now_ps_ - from_ps;
    now_ps_ = from_ps;
  }

  /// What the rank has done last before now.
  void pass_span() {
    const auto& spans = history_.ranks[rank_].spans;
    const auto at = std::ranges::lower_bound(spans, now_ps_, {}, &VirtualSpan::to_ps);
    if (at == spans.end() || at->from_ps >= now_ps_) {
      // Nobody knows what it did here.
      add(PathKind::kTimer, at == spans.begin() ? 0 : std::prev(at)->to_ps, kNoMessage);
      return;
    }
    const auto spent = static_cast<VirtualSpent>(at->what);
    std::optional<std::uint32_t> message;
    if (spent == VirtualSpent::kWait || spent == VirtualSpent::kMemory) {
      message = waker(at->to_ps);
    } else if (spent == VirtualSpent::kLook && at->is_empty != 0) {
      message = latest_between(at->from_ps, now_ps_);
    }
    if (message) return pass_message(*message, spent);
    const bool waits = spent == VirtualSpent::kWait || spent == VirtualSpent::kMemory;
    const PathKind own = spent == VirtualSpent::kCompute ? PathKind::kCompute : PathKind::kCall;
    add(waits ? PathKind::kTimer : own, at->from_ps, kNoMessage, spent);
  }

  /// Because of what the rank went on now. What comes later on the way can only be the effect of earlier messages.
  std::optional<std::uint32_t> waker(std::uint64_t end_ps) const {
    const auto& wakes = history_.ranks[rank_].wakes;
    const auto past = std::ranges::upper_bound(wakes, end_ps, {}, &Wake::time_ps);
    if (end_ps != now_ps_ || past == wakes.begin()) return std::nullopt;
    const Wake& wake = *std::prev(past);
    if (wake.time_ps != end_ps || wake.message >= limit_) return std::nullopt;
    return wake.message;
  }

  /// What has arrived or left while the rank looked in vain, so that its next look found it. At the very beginning it
  /// may have been too late for this one.
  std::optional<std::uint32_t> latest_between(std::uint64_t from_ps, std::uint64_t to_ps) const {
    const auto& came = came_[rank_];
    auto at = std::ranges::upper_bound(came, to_ps, {}, &Arrival::time_ps);
    while (at != came.begin() && std::prev(at)->time_ps >= from_ps) {
      --at;
      if (at->message < limit_) return at->message;
    }
    return std::nullopt;
  }

  /// When the message has done what is the reason of now: its sender may have waited for no more than that it leaves.
  std::uint64_t end_of(const MessageTimes& message) const {
    return now_ps_ < message.arrived_ps && message.is_told ? message.left_ps : message.arrived_ps;
  }

  /// From now back to the call that has sent it. Some are answers: to what has arrived when they were sent.
  void pass_message(std::uint32_t index, VirtualSpent spent) {
    add(PathKind::kCall, end_of(history_.messages[index]), kNoMessage, spent);
    for (; index < limit_; index = history_.messages[index].answers) {
      limit_ = index;
      const MessageTimes& message = history_.messages[index];
      rank_ = message.from;
      // Nobody knows what lies between, if it was not the one after the other.
      const std::uint64_t end_ps = end_of(message);
      add(PathKind::kTimer, end_ps, kNoMessage);
      const std::uint64_t sent_ps = message.sent_ps;
      const auto back = [&](std::uint64_t by_ps) { return now_ps_ - sent_ps > by_ps ? now_ps_ - by_ps : sent_ps; };
      if (end_ps == message.arrived_ps) add(PathKind::kInterface, back(message.after_ps), index);
      const std::uint64_t before_wire_ps = std::min(now_ps_, sent_ps + message.before_ps + message.waited_ps);
      add(PathKind::kWire, before_wire_ps, index);
      add(PathKind::kBusy, back(message.waited_ps), index);
      add(PathKind::kInterface, sent_ps, index);
    }
  }

  const History& history_;
  CriticalPath& path_;
  std::vector<std::vector<Arrival>> came_;  ///< By rank, by time.
  std::uint32_t rank_ = 0;
  std::uint64_t now_ps_ = 0;
  std::uint32_t limit_ = kNoMessage;  ///< Messages of the rest of the way are earlier than this one.
};

std::string part_name(const PathSegment& segment, const History& history,
                      const std::function<std::string(std::uint32_t)>& stage_name) {
  const auto rank_name = [](std::uint32_t rank) { return "rank " + std::to_string(rank); };
  if (segment.message == kNoMessage) {
    if (segment.kind == PathKind::kTimer) return rank_name(segment.rank) + ": waits for a time";
    return rank_name(segment.rank) + ": " + kSpentNames[static_cast<std::size_t>(segment.spent)];
  }
  const MessageTimes& message = history.messages[segment.message];
  if (segment.kind == PathKind::kBusy && message.waited_for != sim::kNoStage)
    return stage_name(message.waited_for) + ": in use";
  const std::string pair = rank_name(message.from) + " to " + rank_name(message.to);
  switch (segment.kind) {
    case PathKind::kInterface: return pair + ": in interfaces";
    case PathKind::kBusy: return pair + ": behind an earlier message";
    default: return pair + ": on the wire";
  }
}

}  // namespace

CriticalPath find_critical_path(const History& history) {
  CriticalPath path;
  if (history.is_cut) return path;
  std::uint64_t end_ps = 0;
  for (std::uint32_t rank = 0; rank < history.ranks.size(); ++rank) {
    const auto& spans = history.ranks[rank].spans;
    if (spans.empty() || spans.back().to_ps <= end_ps) continue;
    end_ps = spans.back().to_ps;
    path.last_rank = rank;
  }
  std::uint32_t last_message = kNoMessage;
  for (std::uint32_t i = 0; i < history.messages.size(); ++i) {
    if (history.messages[i].arrived_ps <= end_ps) continue;
    end_ps = history.messages[i].arrived_ps;
    path.last_rank = history.messages[i].to;
    last_message = i;
  }
  if (end_ps > 0) WayBack(history, &path).go(path.last_rank, end_ps, last_message);
  return path;
}

std::vector<PathPart> parts_of(const CriticalPath& path, const History& history,
                               const std::function<std::string(std::uint32_t)>& stage_name) {
  std::map<std::string, PathPart> by_name;
  for (const PathSegment& segment : path.segments) {
    const std::string name = part_name(segment, history, stage_name);
    PathPart& part = by_name.try_emplace(name, PathPart{name, segment.kind, 0, 0}).first->second;
    part.time_ps += segment.to_ps - segment.from_ps;
    ++part.segments;
  }
  std::vector<PathPart> parts;
  parts.reserve(by_name.size());
  for (auto& [name, part] : by_name) parts.push_back(std::move(part));
  std::ranges::stable_sort(parts, std::ranges::greater(), &PathPart::time_ps);
  return parts;
}

}  // namespace portofu::tools
