#include "lib/tools/ptl_sim/virtual_timeline.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "lib/tools/ptl_sim/uses.h"
#include "lib/tools/ptl_trace/step_names.h"

namespace portofu::tools {
namespace {

constexpr std::uint64_t kPsPerNs = 1000;

std::int64_t ns(std::uint64_t ps) { return static_cast<std::int64_t>(ps / kPsPerNs); }

bool sends(const VirtualSpan& span) { return span.what < kVirtualCallCount; }
bool is_a(const VirtualSpan& span, VirtualSpent what) { return span.what == static_cast<std::uint8_t>(what); }
bool waits(const VirtualSpan& span) {
  return is_a(span, VirtualSpent::kLook) || is_a(span, VirtualSpent::kWait) || is_a(span, VirtualSpent::kMemory);
}

/// The steps of one rank, which are not in their order at first: each knows its place when they are.
class LaneBuilder {
 public:
  LaneBuilder(const History& history, std::uint32_t rank) : history_(history), rank_(rank) {}

  std::size_t add(std::uint64_t time_ps, const StepRecord& step) {
    steps_.push_back(step);
    times_ps_.push_back(time_ps);
    return steps_.size() - 1;
  }

  /// Calls that send, and waits: from the first look that found nothing to what was found.
  /// @param sent  messages that calls of the rank have sent, in order
  void add_spans(const std::vector<std::uint32_t>& sent) {
    const auto& spans = history_.ranks[rank_].spans;
    std::size_t next_sent = 0;
    for (std::size_t i = 0; i < spans.size();) {
      const VirtualSpan& span = spans[i];
      if (sends(span)) {
        const std::uint64_t sent_ps = span.to_ps;
        while (next_sent < sent.size() && history_.messages[sent[next_sent]].sent_ps < sent_ps) ++next_sent;
        const bool is_known = next_sent < sent.size() && history_.messages[sent[next_sent]].sent_ps == sent_ps;
        add_call(span, is_known ? &history_.messages[sent[next_sent]] : nullptr);
        ++i;
      } else if (waits(span)) {
        i = add_wait(i);
      } else {
        ++i;
      }
    }
  }

  /// Puts the steps in order.
  void finish(std::uint32_t lane, LaneSteps* steps, std::vector<std::int64_t>* at_ns, std::vector<Span>* spans) {
    std::vector<std::size_t> order(steps_.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [this](std::size_t one) { return times_ps_[one]; });
    places_.resize(order.size());
    for (std::size_t place = 0; place < order.size(); ++place) {
      places_[order[place]] = static_cast<std::uint32_t>(place);
      steps->steps.push_back(steps_[order[place]]);
      at_ns->push_back(ns(times_ps_[order[place]]));
    }
    for (const Stretch& one : stretches_) {
      spans->push_back({one.kind, lane, places_[one.begin], ns(times_ps_[one.begin]), ns(times_ps_[one.end]),
                        kCallingThread, one.empty_looks});
    }
  }

  /// After finish: of a step that was added.
  std::uint32_t place(std::size_t step) const { return places_[step]; }

 private:
  struct Stretch {
    Span::Kind kind;
    std::size_t begin;
    std::size_t end;
    std::uint64_t empty_looks;
  };

  static StepRecord of_thread(Step step, std::uint8_t kind, std::uint64_t amount) {
    StepRecord record{};
    record.step = step;
    record.kind = kind;
    record.amount = amount;
    record.nid = kCallingThread;
    return record;
  }

  void add_call(const VirtualSpan& span, const MessageTimes* message) {
    const std::uint8_t kind = message != nullptr ? message->type : 0;
    const std::uint64_t bytes = message != nullptr ? message->bytes : 0;
    const std::size_t begin = add(span.from_ps, of_thread(Step::kCall, kind, bytes));
    stretches_.push_back({Span::Kind::kCall, begin, add(span.to_ps, of_thread(Step::kReturn, kind, 0)), 0});
  }

  /// @return index of the span behind it
  std::size_t add_wait(std::size_t first) {
    const auto& spans = history_.ranks[rank_].spans;
    std::uint64_t empty_looks = 0;
    bool in_memory = false;
    std::size_t past = first;
    for (bool found = false; past < spans.size() && waits(spans[past]) && !found; ++past) {
      const bool is_look = is_a(spans[past], VirtualSpent::kLook);
      if (is_look && spans[past].is_empty != 0) ++empty_looks;
      found = is_look && spans[past].is_empty == 0;
      in_memory = in_memory || is_a(spans[past], VirtualSpent::kMemory);
    }
    const std::uint8_t other = empty_looks != 0 ? kWaitsByPolls : std::uint8_t{0};
    const std::uint8_t kind = in_memory ? kWaitsInMemory : other;
    const std::size_t begin = add(spans[first].from_ps, of_thread(Step::kWait, kind, 0));
    const std::size_t end = add(spans[past - 1].to_ps, of_thread(Step::kWaitEnd, kind, empty_looks));
    stretches_.push_back({Span::Kind::kWait, begin, end, empty_looks});
    return past;
  }

  const History& history_;
  std::uint32_t rank_;
  std::vector<StepRecord> steps_;
  std::vector<std::uint64_t> times_ps_;  ///< Of each.
  std::vector<Stretch> stretches_;       ///< By indices of steps_.
  std::vector<std::uint32_t> places_;    ///< Of each of steps_, once they are in order.
};

StepRecord of_packet(Step step, const MessageTimes& message, ProcessId peer) {
  StepRecord record{};
  record.step = step;
  record.kind = message.type;
  record.amount = message.bytes;
  record.nid = peer.nid;
  record.pid = static_cast<std::uint16_t>(peer.pid);
  return record;
}

}  // namespace

Timeline virtual_timeline(const History& history, const std::vector<ProcessId>& ids, const std::string& program) {
  const auto rank_count = static_cast<std::uint32_t>(history.ranks.size());
  Timeline timeline;
  std::vector<LaneBuilder> lanes;
  std::vector<std::vector<std::uint32_t>> sent(rank_count);  // By calls of each rank.
  for (std::uint32_t i = 0; i < history.messages.size(); ++i) {
    const MessageTimes& message = history.messages[i];
    if (message.answers == kNoMessage) sent[message.from].push_back(i);
  }
  for (std::uint32_t rank = 0; rank < rank_count; ++rank) lanes.emplace_back(history, rank).add_spans(sent[rank]);
  std::vector<std::pair<std::size_t, std::size_t>> ends;  // Steps of each message, out and in.
  for (const MessageTimes& message : history.messages) {
    ends.emplace_back(
        lanes[message.from].add(message.sent_ps, of_packet(Step::kPacketOut, message, ids[message.to])),
        lanes[message.to].add(message.arrived_ps, of_packet(Step::kPacketIn, message, ids[message.from])));
  }
  for (std::uint32_t rank = 0; rank < rank_count; ++rank) {
    LaneSteps& lane = timeline.lanes.emplace_back();
    lane.id = ids[rank];
    lane.os_pid = rank + 1;
    lane.rank = static_cast<std::int32_t>(rank);
    lane.program = program;
    lanes[rank].finish(rank, &lane, &timeline.at_ns.emplace_back(), &timeline.spans);
    timeline.seen_ns.push_back(timeline.at_ns.back().empty() ? 0 : timeline.at_ns.back().back());
    if (!timeline.at_ns.back().empty()) timeline.end_ns = std::max(timeline.end_ns, timeline.at_ns.back().back());
  }
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const MessageTimes& message = history.messages[i];
    timeline.flows.push_back({{message.from, lanes[message.from].place(ends[i].first)},
                              {message.to, lanes[message.to].place(ends[i].second)},
                              kNoStep,
                              kNoStep});
  }
  std::ranges::stable_sort(timeline.flows, {}, [&](const Flow& flow) { return timeline.ns(flow.out); });
  return timeline;
}

std::vector<LinkUse> link_uses(const sim::Network& network) {
  const std::uint64_t merged = slices_to_merge(network, kMostStretches);
  const std::uint64_t stretch_ps = network.slice_ps() * merged;
  std::vector<LinkUse> links;
  for (const auto& one : busiest(network)) {
    if (links.size() == kMostTimelineLinks) break;
    LinkUse& link = links.emplace_back();
    link.name = one.name;
    link.stretch_ns = ns(stretch_ps);
    const auto share = [&](std::uint64_t ps) { return static_cast<double>(ps) / static_cast<double>(stretch_ps); };
    for (const std::uint64_t ps : merge_slices(one.use->busy_by_slice, merged))
      link.busy_percent.push_back(100 * share(ps));
    for (const std::uint64_t ps : merge_slices(one.use->waited_by_slice, merged)) link.waiting.push_back(share(ps));
    const std::size_t count = std::max(link.busy_percent.size(), link.waiting.size());
    link.busy_percent.resize(count);
    link.waiting.resize(count);
  }
  return links;
}

}  // namespace portofu::tools
