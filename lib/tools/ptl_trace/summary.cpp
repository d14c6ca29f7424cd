#include "lib/tools/ptl_trace/summary.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <utility>
#include <vector>

#include "lib/tools/ptl_trace/chrome_json.h"
#include "lib/tools/ptl_trace/step_names.h"

namespace portofu::tools {
namespace {

constexpr std::size_t kSlowest = 10;

/// Several lanes may be of one process.
void name_processes(const Timeline& timeline, Summary* summary) {
  std::map<std::pair<std::string, std::uint32_t>, std::size_t> known;
  for (const LaneSteps& lane : timeline.lanes) {
    const auto [place, is_new] = known.emplace(std::pair(lane.machine, lane.os_pid), summary->processes.size());
    if (is_new) summary->processes.emplace_back().label = process_label(lane);
    summary->process_of.push_back(place->second);
  }
}

/// @param from  lane
/// @param to    lane; kNoStep: it is not recorded
void count_message(std::uint32_t from, const StepRecord& step, std::uint32_t to, Summary* summary) {
  ++summary->messages;
  summary->bytes += step.amount;
  ++summary->sizes[size_class(step.amount)];
  if (to == kNoStep) return;
  PairTraffic& traffic = summary->traffic[{summary->process_of[from], summary->process_of[to]}];
  ++traffic.messages;
  traffic.bytes += step.amount;
}

/// Where a packet came in says whose it was. Of one that did not, and of what went without, the PID does.
void count_messages(const Timeline& timeline, Summary* summary) {
  std::vector<std::vector<std::uint32_t>> came_to;  // Lanes, by lane and step.
  for (const LaneSteps& lane : timeline.lanes) came_to.emplace_back(lane.steps.size(), kNoStep);
  for (const Flow& flow : timeline.flows) came_to[flow.out.lane][flow.out.index] = flow.in.lane;
  for (std::uint32_t lane = 0; lane < timeline.lanes.size(); ++lane) {
    for (std::uint32_t i = 0; i < timeline.lanes[lane].steps.size(); ++i) {
      const StepRecord& step = timeline.step({lane, i});
      const bool is_direct = step.step == Step::kDirect;
      if (!is_direct && (step.step != Step::kPacketOut || !is_request(step))) continue;
      if (is_direct) ++summary->direct;
      std::uint32_t to = came_to[lane][i];
      if (to == kNoStep) to = timeline.lane_of({step.nid, step.pid}, timeline.ns({lane, i}));
      count_message(lane, step, to, summary);
    }
  }
}

/// A process has a lane after the other if it closes its interfaces and opens new ones.
void measure_lives(const Timeline& timeline, Summary* summary) {
  std::map<std::size_t, std::pair<std::int64_t, std::int64_t>> lives;
  for (std::uint32_t lane = 0; lane < timeline.lanes.size(); ++lane) {
    if (timeline.lanes[lane].steps.empty()) continue;
    const std::int64_t begin = timeline.at_ns[lane].front();
    const std::int64_t end = std::max(timeline.seen_ns[lane], timeline.at_ns[lane].back());
    const auto [life, is_new] = lives.try_emplace(summary->process_of[lane], begin, end);
    auto& [first, last] = life->second;
    first = std::min(first, begin);
    last = std::max(last, end);
  }
  for (const auto& [process, life] : lives) summary->processes[process].lived_ns = life.second - life.first;
}

void count_steps(const Timeline& timeline, Summary* summary) {
  for (std::uint32_t lane = 0; lane < timeline.lanes.size(); ++lane) {
    const LaneSteps& one = timeline.lanes[lane];
    summary->steps += one.steps.size();
    summary->lost_steps += one.lost;
    summary->late_steps += one.left_out;
    for (const StepRecord& step : one.steps) {
      if (step.step != Step::kMatch) continue;
      const std::uint32_t depth = step.more & ~kUnexpected;
      ++summary->matches;
      ++summary->depths[size_class(depth)];
      summary->deepest = std::max(summary->deepest, depth);
      if ((step.more & kUnexpected) != 0) ++summary->unexpected;
    }
  }
}

void add_times(const Timeline& timeline, Summary* summary) {
  for (const Span& span : timeline.spans) {
    ProcessSummary& process = summary->processes[summary->process_of[span.lane]];
    const std::int64_t took = span.end_ns - span.begin_ns;
    switch (span.kind) {
      case Span::Kind::kCall: process.in_calls_ns += took; break;
      case Span::Kind::kWait:
        process.waited[wait_cause(timeline.lanes[span.lane].steps[span.begin].kind)] += took;
        break;
      case Span::Kind::kSleep: process.asleep_ns += took; break;
    }
  }
}

/// And those that have no end.
void find_slowest(const Timeline& timeline, Summary* summary) {
  for (std::size_t i = 0; i < timeline.flows.size(); ++i) {
    const Flow& flow = timeline.flows[i];
    if (!is_request(timeline.step(flow.out))) continue;
    if (flow.deliver == kNoStep) {
      summary->untaken.push_back(i);
      continue;
    }
    summary->slowest.push_back({i, timeline.ns({flow.in.lane, flow.deliver}) - timeline.ns(flow.out)});
  }
  const auto kept = std::min(summary->slowest.size(), kSlowest);
  std::ranges::partial_sort(summary->slowest, summary->slowest.begin() + static_cast<std::ptrdiff_t>(kept),
                            std::ranges::greater(), &SlowMessage::took_ns);
  summary->slowest.resize(kept);
}

std::string share_text(std::uint64_t part, std::uint64_t whole) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%",
                whole != 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0.0);
  return text;
}

std::string short_name(const LaneSteps& lane) {
  return lane.rank >= 0 ? "rank " + std::to_string(lane.rank) : process_text(lane.id);
}

void add_classes(const char* title, const std::map<int, std::uint64_t>& classes, std::string* text) {
  if (classes.empty()) return;
  text->append(title);
  for (const auto& [size, count] : classes) {
    char line[80];
    std::snprintf(line, sizeof line, "    %22s %12llu\n", class_text(size).c_str(),
                  static_cast<unsigned long long>(count));
    text->append(line);
  }
}

std::string process_times(const ProcessSummary& process) {
  std::string text =
      process.label + "\n    in calls " + time_text(process.in_calls_ns) + " of " + time_text(process.lived_ns);
  for (const auto& [cause, ns] : process.waited) text += "; waiting for " + cause + " " + time_text(ns);
  if (process.asleep_ns != 0) text += "; asleep " + time_text(process.asleep_ns);
  return text + "\n";
}

}  // namespace

int size_class(std::uint64_t amount) { return std::bit_width(amount); }

std::string class_text(int size_class) {
  if (size_class < 2) return std::to_string(size_class);
  const std::uint64_t low = std::uint64_t{1} << (size_class - 1);
  return std::to_string(low) + ".." + std::to_string(2 * low - 1);
}

std::string time_text(std::int64_t ns) {
  char text[40];
  const auto value = static_cast<double>(ns);
  if (ns < 1'000'000) {
    std::snprintf(text, sizeof text, "%.3f us", value / 1e3);
  } else if (ns < 1'000'000'000) {
    std::snprintf(text, sizeof text, "%.3f ms", value / 1e6);
  } else {
    std::snprintf(text, sizeof text, "%.3f s", value / 1e9);
  }
  return text;
}

std::string message_text(const Timeline& timeline, const Flow& flow) {
  const StepRecord& out = timeline.step(flow.out);
  return packet_name(out.kind) + " of " + std::to_string(out.amount) + " bytes, " +
         short_name(timeline.lanes[flow.out.lane]) + " to " + short_name(timeline.lanes[flow.in.lane]);
}

Summary summarize(const Timeline& timeline) {
  Summary summary;
  name_processes(timeline, &summary);
  count_steps(timeline, &summary);
  count_messages(timeline, &summary);
  measure_lives(timeline, &summary);
  add_times(timeline, &summary);
  find_slowest(timeline, &summary);
  return summary;
}

std::vector<std::string> gaps_text(const Summary& summary) {
  std::vector<std::string> gaps;
  if (summary.lost_steps != 0)
    gaps.push_back("LOST for want of room: " + std::to_string(summary.lost_steps) + " steps");
  if (summary.late_steps != 0)
    gaps.push_back("LEFT OUT behind these, for want of memory: " + std::to_string(summary.late_steps) +
                   " later steps (--steps)");
  return gaps;
}

std::string summary_text(const Timeline& timeline, const Summary& summary) {
  std::string text = std::to_string(summary.processes.size()) + " processes, " + std::to_string(timeline.lanes.size()) +
                     " lanes, " + std::to_string(summary.steps) + " steps in " + time_text(timeline.end_ns) + "\n";
  for (const std::string& gap : gaps_text(summary)) text += gap + "\n";
  const std::uint64_t single = timeline.packets_without_target + timeline.packets_without_source;
  text +=
      "packets with both ends " + std::to_string(timeline.flows.size()) + ", with one " + std::to_string(single) + "\n";
  text += "messages " + std::to_string(summary.messages) + ", " + std::to_string(summary.bytes) +
          " bytes; without a packet " + std::to_string(summary.direct) + "\n";
  add_classes("  by bytes\n", summary.sizes, &text);
  text += "matches " + std::to_string(summary.matches) + ", unexpected " +
          share_text(summary.unexpected, summary.matches) + ", deepest " + std::to_string(summary.deepest) + "\n";
  add_classes("  by entries passed over\n", summary.depths, &text);
  for (const ProcessSummary& process : summary.processes) text += process_times(process);
  if (!summary.untaken.empty())
    text += "messages that were refused, or never complete: " + std::to_string(summary.untaken.size()) + "\n";
  for (std::size_t i = 0; i < std::min(summary.untaken.size(), kSlowest); ++i) {
    const Flow& flow = timeline.flows[summary.untaken[i]];
    text += "    " + message_text(timeline, flow) + ", out at " + time_text(timeline.ns(flow.out)) + "\n";
  }
  if (!summary.slowest.empty()) text += "slowest messages, until they were delivered\n";
  for (const SlowMessage& slow : summary.slowest) {
    const Flow& flow = timeline.flows[slow.flow];
    text += "    " + time_text(slow.took_ns) + "  " + message_text(timeline, flow) + ", out at " +
            time_text(timeline.ns(flow.out)) + "\n";
  }
  return text;
}

}  // namespace portofu::tools
