#include "lib/tools/ptl_trace/timeline.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "lib/tools/ptl_trace/clock_map.h"

namespace portofu::tools {
namespace {

/// One end of a packet. Equal keys at both ends: the same packet, or one that looks the same.
struct PacketEnd {
  std::uint64_t key;
  StepPlace place;
};

std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 32;
}

std::uint64_t key_of(ProcessId from, ProcessId to, const StepRecord& step) {
  std::uint64_t key = mix(mix(1, process_key(from)), process_key(to));
  key = mix(key, std::uint64_t{step.id} << 32 | step.more);
  key = mix(key, step.amount);
  return mix(key, step.kind);
}

void collect_ends(const Timeline& timeline, std::vector<PacketEnd>* outs, std::vector<PacketEnd>* ins) {
  for (std::uint32_t lane = 0; lane < timeline.lanes.size(); ++lane) {
    const LaneSteps& one = timeline.lanes[lane];
    for (std::uint32_t index = 0; index < one.steps.size(); ++index) {
      const StepRecord& step = one.steps[index];
      const ProcessId peer{step.nid, step.pid};
      if (step.step == Step::kPacketOut) outs->push_back({key_of(one.id, peer, step), {lane, index}});
      if (step.step == Step::kPacketIn) ins->push_back({key_of(peer, one.id, step), {lane, index}});
    }
  }
  // Those that look the same are in the order of their lanes, whose lives follow each other, and of their steps.
  std::ranges::stable_sort(*outs, {}, &PacketEnd::key);
  std::ranges::stable_sort(*ins, {}, &PacketEnd::key);
}

/// The first of equal packets that goes out is the first that comes in.
void pair_ends(Timeline* timeline) {
  std::vector<PacketEnd> outs;
  std::vector<PacketEnd> ins;
  collect_ends(*timeline, &outs, &ins);
  auto out = outs.begin();
  auto in = ins.begin();
  while (out != outs.end() && in != ins.end()) {
    if (out->key == in->key) {
      timeline->flows.push_back({out++->place, in++->place});
    } else if (out->key < in->key) {
      ++timeline->packets_without_target, ++out;
    } else {
      ++timeline->packets_without_source, ++in;
    }
  }
  timeline->packets_without_target += static_cast<std::uint64_t>(outs.end() - out);
  timeline->packets_without_source += static_cast<std::uint64_t>(ins.end() - in);
}

/// Gives each match and delivery of a lane to the request that it is of: requests of a peer come one after the other.
void find_deliveries(Timeline* timeline) {
  std::vector<std::vector<Flow*>> by_in(timeline->lanes.size());
  for (std::size_t lane = 0; lane < by_in.size(); ++lane) by_in[lane].resize(timeline->lanes[lane].steps.size());
  for (Flow& flow : timeline->flows) by_in[flow.in.lane][flow.in.index] = &flow;
  for (std::uint32_t lane = 0; lane < timeline->lanes.size(); ++lane) {
    const auto& steps = timeline->lanes[lane].steps;
    std::map<std::uint64_t, Flow*> latest;                                        // By peer.
    std::map<std::pair<std::uint64_t, std::uint8_t>, std::deque<Flow*>> matched;  // By peer and kind.
    for (std::uint32_t index = 0; index < steps.size(); ++index) {
      const StepRecord& step = steps[index];
      const std::uint64_t peer = process_key({step.nid, step.pid});
      if (step.step == Step::kPacketIn && is_request(step)) latest[peer] = by_in[lane][index];
      if (step.step == Step::kMatch) {
        Flow* const flow = std::exchange(latest[peer], nullptr);
        if (flow != nullptr) flow->match = index;
        matched[{peer, step.kind}].push_back(flow);
      } else if (step.step == Step::kDeliver) {
        auto& waiting = matched[{peer, step.kind}];
        Flow* flow = nullptr;
        if (!waiting.empty()) {
          flow = waiting.front();
          waiting.pop_front();
        } else {
          flow = std::exchange(latest[peer], nullptr);  // Of uTofu, which matches nothing.
        }
        if (flow != nullptr) flow->deliver = index;
      }
    }
  }
}

void find_spans(Timeline* timeline) {
  for (std::uint32_t lane = 0; lane < timeline->lanes.size(); ++lane) {
    const auto& steps = timeline->lanes[lane].steps;
    const auto& at = timeline->at_ns[lane];
    std::map<std::pair<std::uint32_t, Span::Kind>, std::uint32_t> open;
    const auto begins = [&](Span::Kind kind, std::uint32_t index) { open[{steps[index].nid, kind}] = index; };
    const auto ends = [&](Span::Kind kind, std::uint32_t thread, std::uint32_t index, std::uint64_t looks) {
      const auto found = open.find({thread, kind});
      if (found == open.end()) return;
      timeline->spans.push_back({kind, lane, found->second, at[found->second], at[index], thread, looks});
      open.erase(found);
    };
    for (std::uint32_t index = 0; index < steps.size(); ++index) {
      const StepRecord& step = steps[index];
      switch (step.step) {
        case Step::kCall: begins(Span::Kind::kCall, index); break;
        case Step::kWait: begins(Span::Kind::kWait, index); break;
        case Step::kSleep: begins(Span::Kind::kSleep, index); break;
        case Step::kReturn: ends(Span::Kind::kCall, step.nid, index, 0); break;
        case Step::kWaitEnd: ends(Span::Kind::kWait, step.nid, index, step.amount); break;
        case Step::kWake: ends(Span::Kind::kSleep, step.nid, index, 0); break;
        default: break;
      }
    }
    while (!open.empty()) {
      const auto [thread, kind] = open.begin()->first;
      ends(kind, thread, static_cast<std::uint32_t>(steps.size() - 1), 0);
      timeline->spans.back().end_ns = timeline->seen_ns[lane];
      timeline->end_ns = std::max(timeline->end_ns, timeline->seen_ns[lane]);
    }
  }
}

/// The last count of the same counter that reaches the threshold.
void find_triggers(Timeline* timeline) {
  for (std::uint32_t lane = 0; lane < timeline->lanes.size(); ++lane) {
    const auto& steps = timeline->lanes[lane].steps;
    std::map<std::uint32_t, std::uint32_t> latest;  // By counter.
    for (std::uint32_t index = 0; index < steps.size(); ++index) {
      const StepRecord& step = steps[index];
      if (step.step == Step::kCount) latest[step.id] = index;
      if (step.step != Step::kTrigger) continue;
      const auto count = latest.find(step.id);
      if (count != latest.end() && steps[count->second].amount >= step.amount)
        timeline->triggers.push_back({lane, count->second, index});
    }
  }
}

/// The least that a packet from one machine to the other took, by clocks that need not agree.
std::optional<std::int64_t> least_delay(const Timeline& timeline, const std::map<std::string, ClockMap>& clocks,
                                        const std::string& from, const std::string& to) {
  std::optional<std::int64_t> least;
  for (const Flow& flow : timeline.flows) {
    if (timeline.lanes[flow.out.lane].machine != from || timeline.lanes[flow.in.lane].machine != to) continue;
    const std::int64_t took =
        clocks.at(to).ns_of(timeline.step(flow.in).ticks) - clocks.at(from).ns_of(timeline.step(flow.out).ticks);
    if (!least || took < *least) least = took;
  }
  return least;
}

/// Sets the clocks of the other machines by the first one's, or by one that is set already.
void set_clocks(const Timeline& timeline, std::map<std::string, ClockMap>* clocks) {
  std::vector<std::string> set;
  std::vector<std::string> left;
  for (const auto& [machine, clock] : *clocks) left.push_back(machine);
  while (!left.empty()) {
    auto next = left.begin();
    for (auto one = left.begin(); one != left.end() && !set.empty(); ++one) {
      for (const std::string& known : set) {
        const auto there = least_delay(timeline, *clocks, known, *one);
        const auto back = least_delay(timeline, *clocks, *one, known);
        if (!there || !back) continue;
        (*clocks)[*one].shift_ns -= (*there - *back) / 2;
        next = one;
        break;
      }
    }
    set.push_back(*next);
    left.erase(next);
  }
}

void set_times(Timeline* timeline) {
  std::map<std::string, ClockMap> clocks = clocks_of_machines(timeline->lanes);
  set_clocks(*timeline, &clocks);
  std::int64_t first = INT64_MAX;
  for (const LaneSteps& lane : timeline->lanes) {
    std::vector<std::int64_t>& at = timeline->at_ns.emplace_back();
    at.reserve(lane.steps.size());
    const ClockMap& clock = clocks.at(lane.machine);
    for (const StepRecord& step : lane.steps) at.push_back(clock.ns_of(step.ticks));
    timeline->seen_ns.push_back(lane.last.ticks != 0 ? clock.ns_of(lane.last.ticks) : INT64_MIN);
    for (const std::int64_t ns : at) first = std::min(first, ns);
  }
  for (auto& at : timeline->at_ns) {
    for (std::int64_t& ns : at) timeline->end_ns = std::max(timeline->end_ns, ns -= first);
  }
  for (std::size_t lane = 0; lane < timeline->lanes.size(); ++lane) {
    std::int64_t& seen = timeline->seen_ns[lane];
    if (seen != INT64_MIN) seen -= first;
    if (!timeline->at_ns[lane].empty()) seen = std::max(seen, timeline->at_ns[lane].back());
  }
}

}  // namespace

bool is_request(const StepRecord& packet) {
  switch (static_cast<PacketType>(packet.kind)) {
    case PacketType::kPut:
    case PacketType::kGet:
    case PacketType::kAtomic:
    case PacketType::kFetchAtomic:
    case PacketType::kSwap:
    case PacketType::kTofuPut:
    case PacketType::kTofuGet:
    case PacketType::kTofuArmw: return true;
    default: return false;
  }
}

std::uint32_t Timeline::lane_of(ProcessId id, std::int64_t then_ns) const {
  std::uint32_t found = kNoStep;
  for (std::uint32_t lane = 0; lane < lanes.size(); ++lane) {
    if (lanes[lane].id != id) continue;
    const bool has_begun = at_ns[lane].empty() || at_ns[lane].front() <= then_ns;
    if (found == kNoStep || has_begun) found = lane;
  }
  return found;
}

Timeline merge(std::vector<LaneSteps> lanes) {
  Timeline timeline;
  timeline.lanes = std::move(lanes);
  pair_ends(&timeline);
  set_times(&timeline);
  std::ranges::sort(timeline.flows, {},
                    [&](const Flow& flow) { return std::tuple(timeline.ns(flow.out), flow.out.lane, flow.out.index); });
  find_deliveries(&timeline);
  find_spans(&timeline);
  find_triggers(&timeline);
  return timeline;
}

}  // namespace portofu::tools
