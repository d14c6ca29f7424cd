#include "lib/tools/ptl_trace/chrome_json.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "lib/tools/ptl_trace/step_names.h"

namespace portofu::tools {
namespace {

using nlohmann::json;

/// A step is drawn as long as this at most; what comes behind it on its lane cuts it short.
constexpr std::int64_t kStepNs = 100;

/// The format wants microseconds.
double us(std::int64_t ns) { return static_cast<double>(ns) / 1000; }

class Writer {
 public:
  Writer(const Timeline& timeline, std::uint64_t most_flows, std::FILE* file) : timeline_(timeline), file_(file) {
    find_direct();
    if (most_flows < count_flows(timeline)) until_ns_ = time_of_flow(most_flows) - 1;
    for (const LaneSteps& lane : timeline.lanes) {
      const auto key = std::pair(lane.machine, lane.os_pid);
      process_of_.push_back(processes_.emplace(key, static_cast<int>(processes_.size()) + 1).first->second);
    }
  }

  bool write() {
    std::fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", file_);
    name_all();
    for (const Span& span : timeline_.spans) write_span(span);
    for (std::uint32_t lane = 0; lane < timeline_.lanes.size(); ++lane) write_steps(lane);
    for (const Flow& flow : timeline_.flows) {
      const StepRecord& packet = timeline_.step(flow.out);
      if (static_cast<PacketType>(packet.kind) == PacketType::kData) continue;
      const bool is_of_gate = static_cast<PacketType>(packet.kind) == PacketType::kTofuGate;
      const char* const category = is_of_gate ? "barrier" : is_request(packet) ? "message" : "answer";
      write_arrow(category, packet_name(packet.kind), flow.out, flow.in);
    }
    for (const TriggerArrow& arrow : timeline_.triggers)
      write_arrow("trigger", "trigger", {arrow.lane, arrow.count}, {arrow.lane, arrow.trigger});
    write_direct();
    write_links();
    return std::fputs("\n]}\n", file_) >= 0 && std::fflush(file_) == 0;
  }

 private:
  void emit(const json& event) {
    if (written_++ != 0) std::fputs(",\n", file_);
    const std::string text = event.dump(-1, ' ', false, json::error_handler_t::replace);
    std::fwrite(text.data(), 1, text.size(), file_);
  }

  void name(const char* what, int process, std::uint32_t thread, const char* key, const json& value) {
    emit({{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", thread}, {"args", {{key, value}}}});
  }

  /// Threads of the kernel have their numbers, lanes have small ones.
  std::uint32_t track(std::uint32_t lane) const { return lane + 1; }

  void name_all() {
    std::set<int> named;
    std::set<std::pair<int, std::uint32_t>> threads;
    for (const Span& span : timeline_.spans) threads.insert({process_of_[span.lane], span.thread});
    for (std::uint32_t lane = 0; lane < timeline_.lanes.size(); ++lane) {
      const int process = process_of_[lane];
      const LaneSteps& one = timeline_.lanes[lane];
      name("thread_name", process, track(lane), "name", "lane of PID " + std::to_string(one.id.pid));
      if (!named.insert(process).second) continue;
      name("process_name", process, 0, "name", process_label(one));
      name("process_sort_index", process, 0, "sort_index", process);
    }
    for (const auto& [process, thread] : threads)
      name("thread_name", process, thread, "name",
           thread == kCallingThread ? "calls and waits" : "thread " + std::to_string(thread));
  }

  void find_direct() {
    for (std::uint32_t lane = 0; lane < timeline_.lanes.size(); ++lane) {
      const auto& steps = timeline_.lanes[lane].steps;
      for (std::uint32_t index = 0; index < steps.size(); ++index) {
        if (steps[index].step == Step::kDirect) direct_.push_back({lane, index});
      }
    }
    std::ranges::sort(direct_, {}, [this](StepPlace place) { return timeline_.ns(place); });
  }

  /// @param number  of a packet or of what was done without one, in the order of time
  std::int64_t time_of_flow(std::uint64_t number) const {
    std::vector<std::int64_t> times;
    for (const Flow& flow : timeline_.flows) times.push_back(timeline_.ns(flow.out));
    for (const StepPlace place : direct_) times.push_back(timeline_.ns(place));
    const auto wanted = times.begin() + static_cast<std::ptrdiff_t>(number);
    std::ranges::nth_element(times, wanted);
    return *wanted;
  }

  /// What initiators did in memory of others, at those, too, who have no step of it: on a track of its own.
  void write_direct() {
    std::vector<std::vector<StepPlace>> by_target(timeline_.lanes.size());
    for (const StepPlace place : direct_) {
      const StepRecord& step = timeline_.step(place);
      const std::uint32_t target = timeline_.lane_of({step.nid, step.pid}, timeline_.ns(place));
      if (target != kNoStep) by_target[target].push_back(place);
    }
    for (std::uint32_t target = 0; target < by_target.size(); ++target) write_direct_at(target, by_target[target]);
  }

  /// @param places  in the order of time
  void write_direct_at(std::uint32_t target, const std::vector<StepPlace>& places) {
    if (places.empty()) return;
    const LaneSteps& lane = timeline_.lanes[target];
    const std::uint32_t own_track = track(target) + static_cast<std::uint32_t>(timeline_.lanes.size());
    name("thread_name", process_of_[target], own_track, "name", "memory of PID " + std::to_string(lane.id.pid));
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::int64_t at_ns = timeline_.ns(places[i]);
      if (at_ns > until_ns_) return;
      const std::int64_t room = i + 1 < places.size() ? timeline_.ns(places[i + 1]) - at_ns : kStepNs;
      const StepRecord& step = timeline_.step(places[i]);
      emit({{"ph", "X"},
            {"pid", process_of_[target]},
            {"tid", own_track},
            {"ts", us(at_ns)},
            {"dur", us(std::clamp<std::int64_t>(room, 1, kStepNs))},
            {"cat", "step"},
            {"name", "direct_in"},
            {"args", {{"what", step_text(step) + ", by " + process_label(timeline_.lanes[places[i].lane])}}}});
      ++arrows_;
      emit(end_of_arrow("s", "message", packet_name(step.kind), places[i]));
      json end = end_of_arrow("f", "message", packet_name(step.kind), places[i]);
      end["pid"] = process_of_[target];
      end["tid"] = own_track;
      end["bp"] = "e";
      emit(end);
    }
  }

  /// A process of its own, with a counter for each link.
  void write_links() {
    if (timeline_.links.empty()) return;
    const int process = static_cast<int>(processes_.size()) + 1;
    name("process_name", process, 0, "name", "network");
    name("process_sort_index", process, 0, "sort_index", process);
    for (const LinkUse& link : timeline_.links) {
      for (std::size_t i = 0; i <= link.busy_percent.size(); ++i) {
        const std::int64_t at_ns = static_cast<std::int64_t>(i) * link.stretch_ns;
        if (at_ns > until_ns_) break;
        const bool is_end = i == link.busy_percent.size();
        emit({{"ph", "C"},
              {"pid", process},
              {"name", link.name},
              {"ts", us(at_ns)},
              {"args", {{"busy %", is_end ? 0 : link.busy_percent[i]}, {"waiting", is_end ? 0 : link.waiting[i]}}}});
      }
    }
  }

  void write_span(const Span& span) {
    if (span.begin_ns > until_ns_) return;
    const StepRecord& first = timeline_.lanes[span.lane].steps[span.begin];
    json event{{"ph", "X"},
               {"pid", process_of_[span.lane]},
               {"tid", span.thread},
               {"ts", us(span.begin_ns)},
               {"dur", us(span.end_ns - span.begin_ns)}};
    switch (span.kind) {
      case Span::Kind::kCall:
        event["cat"] = "call";
        event["name"] = call_name(first);
        event["args"] = {{"bytes", first.amount}};
        break;
      case Span::Kind::kWait:
        event["cat"] = "wait";
        event["name"] = std::string("wait: ") + wait_cause(first.kind);
        if (span.empty_looks != 0) event["args"] = {{"looks", span.empty_looks}};
        break;
      case Span::Kind::kSleep:
        event["cat"] = "sleep";
        event["name"] = "sleep";
        break;
    }
    emit(event);
  }

  void write_steps(std::uint32_t lane) {
    const auto& steps = timeline_.lanes[lane].steps;
    const auto& at = timeline_.at_ns[lane];
    for (std::uint32_t index = 0; index < steps.size() && at[index] <= until_ns_; ++index) {
      const StepRecord& step = steps[index];
      if (step.step < Step::kPacketOut) continue;
      const std::int64_t room =
          index + 1 < steps.size() ? std::max<std::int64_t>(at[index + 1] - at[index], 1) : kStepNs;
      emit({{"ph", "X"},
            {"pid", process_of_[lane]},
            {"tid", track(lane)},
            {"ts", us(at[index])},
            {"dur", us(std::min(room, kStepNs))},
            {"cat", "step"},
            {"name", step_name(step.step)},
            {"args", {{"what", step_text(step)}}}});
    }
  }

  void write_arrow(const char* category, const std::string& name, StepPlace from, StepPlace to) {
    if (timeline_.ns(from) > until_ns_ || timeline_.ns(to) > until_ns_) return;
    ++arrows_;
    emit(end_of_arrow("s", category, name, from));
    json event = end_of_arrow("f", category, name, to);
    event["bp"] = "e";
    emit(event);
  }

  json end_of_arrow(const char* phase, const char* category, const std::string& name, StepPlace place) const {
    return {{"ph", phase},
            {"cat", category},
            {"name", name},
            {"id", arrows_},
            {"pid", process_of_[place.lane]},
            {"tid", track(place.lane)},
            {"ts", us(timeline_.ns(place))}};
  }

  const Timeline& timeline_;
  std::FILE* file_;
  std::int64_t until_ns_ = INT64_MAX;
  std::map<std::pair<std::string, std::uint32_t>, int> processes_;
  std::vector<int> process_of_;    ///< Of each lane.
  std::vector<StepPlace> direct_;  ///< What was done without packets, in the order of time.
  std::uint64_t written_ = 0;
  std::uint64_t arrows_ = 0;
};

}  // namespace

std::string process_label(const LaneSteps& lane) {
  const std::string rank =
      lane.rank >= 0 ? "rank " + std::to_string(lane.rank) : "process " + std::to_string(lane.os_pid);
  return rank + ": " + lane.program + " (" + process_text(lane.id) + ")";
}

std::uint64_t count_flows(const Timeline& timeline) {
  std::uint64_t count = timeline.flows.size();
  for (const LaneSteps& lane : timeline.lanes)
    count += static_cast<std::uint64_t>(std::ranges::count(lane.steps, Step::kDirect, &StepRecord::step));
  return count;
}

bool write_chrome_json(const Timeline& timeline, std::uint64_t most_flows, std::FILE* file) {
  return Writer(timeline, most_flows, file).write();
}

}  // namespace portofu::tools
