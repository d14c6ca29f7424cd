// Steps of several lanes become one timeline: both ends of packets, clocks of machines, deliveries, triggers.

#include "lib/tools/ptl_trace/timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/tools/ptl_trace/chrome_json.h"
#include "lib/tools/ptl_trace/summary.h"

namespace portofu::tools {
namespace {

constexpr ProcessId kA{0x0a000001, 1};
constexpr ProcessId kB{0x0a000002, 2};

/// A lane whose clock counts nanoseconds.
/// @param os_pid  of the process; 0: as in its id
LaneSteps lane(ProcessId id, const std::string& machine, std::uint32_t os_pid = 0) {
  LaneSteps made;
  made.id = id;
  made.os_pid = os_pid != 0 ? os_pid : id.pid;
  made.machine = machine;
  made.first = {1, 1};
  made.last = {1'000'001, 1'000'001};
  return made;
}

StepRecord packet(Step step, std::uint64_t ns, ProcessId peer, std::uint32_t operation,
                  PacketType type = PacketType::kPut) {
  StepRecord record{};
  record.ticks = ns;
  record.step = step;
  record.kind = static_cast<std::uint8_t>(type);
  record.nid = peer.nid;
  record.pid = static_cast<std::uint16_t>(peer.pid);
  record.amount = 8;
  record.id = operation;
  return record;
}

StepRecord of_thread(Step step, std::uint64_t ns, std::uint32_t thread, std::uint8_t kind = 0) {
  StepRecord record{};
  record.ticks = ns;
  record.step = step;
  record.kind = kind;
  record.nid = thread;
  return record;
}

StepRecord of_counter(Step step, std::uint64_t ns, std::uint32_t counter, std::uint64_t amount) {
  StepRecord record{};
  record.ticks = ns;
  record.step = step;
  record.id = counter;
  record.amount = amount;
  return record;
}

TEST(Timeline, Packets__are_paired_by_direction_and_in_order) {
  LaneSteps a = lane(kA, "one");
  LaneSteps b = lane(kB, "one");
  a.steps = {packet(Step::kPacketOut, 100, kB, 7), packet(Step::kPacketOut, 200, kB, 7),
             packet(Step::kPacketIn, 900, kB, 7)};
  b.steps = {packet(Step::kPacketIn, 300, kA, 7), packet(Step::kPacketIn, 400, kA, 7),
             packet(Step::kPacketOut, 500, kA, 7)};
  const Timeline timeline = merge({a, b});
  ASSERT_EQ(timeline.flows.size(), 3u);
  EXPECT_EQ(timeline.flows[0].out, (StepPlace{0, 0}));
  EXPECT_EQ(timeline.flows[0].in, (StepPlace{1, 0}));
  EXPECT_EQ(timeline.flows[1].out, (StepPlace{0, 1}));
  EXPECT_EQ(timeline.flows[1].in, (StepPlace{1, 1}));
  EXPECT_EQ(timeline.flows[2].out, (StepPlace{1, 2}));
  EXPECT_EQ(timeline.flows[2].in, (StepPlace{0, 2}));
  EXPECT_EQ(timeline.end_ns, 800);
}

/// The trace of a timeline, as its readers take it apart.
nlohmann::json events_of(const Timeline& timeline, std::uint64_t most_flows = UINT64_MAX) {
  char* text = nullptr;
  std::size_t bytes = 0;
  std::FILE* const memory = open_memstream(&text, &bytes);
  EXPECT_TRUE(write_chrome_json(timeline, most_flows, memory));
  std::fclose(memory);
  nlohmann::json whole = nlohmann::json::parse(text, nullptr, false);
  std::free(text);
  return whole["traceEvents"];
}

TEST(Timeline, Use_of_memory_of_others__has_an_arrow_to_whoever_had_the_id_then) {
  LaneSteps a = lane(kA, "one");
  LaneSteps earlier = lane(kB, "one", 11);
  LaneSteps later = lane(kB, "one", 12);
  later.steps = {packet(Step::kPacketIn, 500, kA, 3)};
  earlier.steps = {packet(Step::kPacketIn, 90, kA, 3)};
  a.steps = {packet(Step::kDirect, 100, kB, 0, PacketType::kSwap), packet(Step::kDirect, 101, kB, 0),
             packet(Step::kDirect, 600, kB, 0), packet(Step::kDirect, 700, {5, 5}, 0)};
  const nlohmann::json events = events_of(merge({a, earlier, later}));
  std::vector<nlohmann::json> drawn;
  std::vector<nlohmann::json> ends;
  for (const nlohmann::json& event : events) {
    if (event["name"] == "direct_in") drawn.push_back(event);
    if (event["ph"] == "f") ends.push_back(event);
  }
  ASSERT_EQ(drawn.size(), 3u) << "nobody has recorded what 5:5 has";
  ASSERT_EQ(ends.size(), 3u);
  EXPECT_EQ(drawn[0]["dur"], 0.001) << "it ends where the next begins";
  EXPECT_EQ(drawn[0]["pid"], drawn[1]["pid"]);
  EXPECT_NE(drawn[0]["pid"], drawn[2]["pid"]);
  for (std::size_t i = 0; i < ends.size(); ++i) {
    for (const char* key : {"pid", "tid", "ts"}) EXPECT_EQ(ends[i][key], drawn[i][key]) << key;
  }
  EXPECT_NE(drawn[0]["args"]["what"].get<std::string>().find("direct swap, 8 bytes"), std::string::npos) << drawn[0];
}

TEST(Timeline, What_goes_without_packets__counts_where_a_trace_is_cut) {
  LaneSteps a = lane(kA, "one");
  LaneSteps b = lane(kB, "one");
  a.steps = {packet(Step::kDirect, 100, kB, 0), packet(Step::kPacketOut, 200, kB, 1),
             packet(Step::kDirect, 300, kB, 0)};
  b.steps = {packet(Step::kPacketIn, 250, kA, 1)};
  const Timeline timeline = merge({a, b});
  EXPECT_EQ(count_flows(timeline), 3u);
  const auto arrows_of = [&timeline](std::uint64_t most) {
    const nlohmann::json events = events_of(timeline, most);
    return std::ranges::count_if(events, [](const nlohmann::json& event) { return event["ph"] == "f"; });
  };
  EXPECT_EQ(arrows_of(1), 1);
  EXPECT_EQ(arrows_of(2), 2);
  EXPECT_EQ(arrows_of(3), 3);
}

TEST(Timeline, Packets_with_one_end__are_counted_and_are_no_flows) {
  LaneSteps a = lane(kA, "one");
  LaneSteps b = lane(kB, "one");
  a.steps = {packet(Step::kPacketOut, 100, kB, 1), packet(Step::kPacketOut, 200, kB, 2)};
  b.steps = {packet(Step::kPacketIn, 300, kA, 2), packet(Step::kPacketIn, 300, kA, 3)};
  const Timeline timeline = merge({a, b});
  ASSERT_EQ(timeline.flows.size(), 1u);
  EXPECT_EQ(timeline.step(timeline.flows[0].out).id, 2u);
  EXPECT_EQ(timeline.packets_without_target, 1u);
  EXPECT_EQ(timeline.packets_without_source, 1u);
}

TEST(Timeline, Clocks_of_two_machines__are_set_by_what_messages_took) {
  constexpr std::uint64_t kAhead = 5'000'000;
  LaneSteps a = lane(kA, "one");
  LaneSteps b = lane(kB, "other");
  a.steps = {packet(Step::kPacketOut, 1000, kB, 1), packet(Step::kPacketIn, 9400, kB, 2)};
  b.steps = {packet(Step::kPacketIn, 2000 + kAhead, kA, 1), packet(Step::kPacketOut, 8000 + kAhead, kA, 2)};
  const Timeline timeline = merge({a, b});
  ASSERT_EQ(timeline.flows.size(), 2u);
  // It took 1000 ns there and 1400 ns back: both are taken for 1200.
  for (const Flow& flow : timeline.flows) EXPECT_NEAR(timeline.ns(flow.in) - timeline.ns(flow.out), 1200, 2);
}

TEST(Timeline, Lanes_of_one_machine__have_one_clock) {
  LaneSteps a = lane(kA, "one");
  LaneSteps b = lane(kB, "one");
  // Its pairs of times were taken a little late, which says nothing of the clock.
  b.first = {500, 600};
  b.last = {700, 750};
  a.steps = {of_counter(Step::kCount, 10'000, 1, 1)};
  b.steps = {of_counter(Step::kCount, 20'000, 1, 1)};
  const Timeline timeline = merge({a, b});
  EXPECT_EQ(timeline.end_ns, 10'000);
}

TEST(Timeline, Delivery__belongs_to_the_message_that_was_matched) {
  LaneSteps a = lane(kA, "one");
  LaneSteps b = lane(kB, "one");
  a.steps = {packet(Step::kPacketOut, 100, kB, 1), packet(Step::kPacketOut, 110, kB, 2),
             packet(Step::kPacketOut, 120, kB, 3)};
  b.steps = {packet(Step::kPacketIn, 200, kA, 1), packet(Step::kMatch, 210, kA, 0), packet(Step::kPacketIn, 300, kA, 2),
             packet(Step::kPacketIn, 400, kA, 3), packet(Step::kMatch, 410, kA, 0), packet(Step::kDeliver, 500, kA, 1),
             packet(Step::kDeliver, 600, kA, 3)};
  const Timeline timeline = merge({a, b});
  ASSERT_EQ(timeline.flows.size(), 3u);
  EXPECT_EQ(timeline.flows[0].match, 1u);
  EXPECT_EQ(timeline.flows[0].deliver, 5u);
  EXPECT_EQ(timeline.flows[1].match, kNoStep) << "refused";
  EXPECT_EQ(timeline.flows[1].deliver, kNoStep);
  EXPECT_EQ(timeline.flows[2].deliver, 6u);
  const Summary summary = summarize(timeline);
  EXPECT_EQ(summary.messages, 3u);
  EXPECT_EQ(summary.matches, 2u);
  ASSERT_EQ(summary.slowest.size(), 2u) << "one that was refused takes no time";
  EXPECT_EQ(summary.slowest[0].took_ns, 480);
  EXPECT_EQ(summary.untaken, std::vector<std::size_t>{1});
  EXPECT_NE(summary_text(timeline, summary).find("refused, or never complete: 1\n    put of 8 bytes"),
            std::string::npos)
      << summary_text(timeline, summary);
  EXPECT_EQ(summary.traffic.at({0, 1}).bytes, 24u);
}

TEST(Timeline, Trigger__comes_from_the_count_that_reached_its_threshold) {
  LaneSteps a = lane(kA, "one");
  a.steps = {of_counter(Step::kCount, 100, 5, 1), of_counter(Step::kCount, 200, 6, 2),
             of_counter(Step::kCount, 300, 5, 2), of_counter(Step::kTrigger, 400, 5, 2),
             of_counter(Step::kTrigger, 500, 7, 1)};
  const Timeline timeline = merge({a});
  ASSERT_EQ(timeline.triggers.size(), 1u) << "of counter 7 no count is known";
  EXPECT_EQ(timeline.triggers[0].count, 2u);
  EXPECT_EQ(timeline.triggers[0].trigger, 3u);
}

TEST(Timeline, Spans__are_of_threads_and_end_with_the_lane_at_last) {
  LaneSteps a = lane(kA, "one");
  a.steps = {of_thread(Step::kCall, 100, 11),   of_thread(Step::kWait, 150, 12, kWaitsByPolls),
             of_thread(Step::kReturn, 200, 11), of_thread(Step::kWaitEnd, 300, 12, kWaitsByPolls),
             of_thread(Step::kSleep, 400, 11),  of_counter(Step::kCount, 1000, 1, 1)};
  EXPECT_EQ(merge({a}).spans.at(2).end_ns, 999'901) << "when it was last seen";
  EXPECT_EQ(merge({a}).end_ns, 999'901);
  a.last = {900, 900};
  const Timeline timeline = merge({a});
  ASSERT_EQ(timeline.spans.size(), 3u);
  EXPECT_EQ(timeline.spans[0].kind, Span::Kind::kCall);
  EXPECT_EQ(timeline.spans[0].end_ns - timeline.spans[0].begin_ns, 100);
  EXPECT_EQ(timeline.spans[1].thread, 12u);
  EXPECT_EQ(timeline.spans[1].end_ns - timeline.spans[1].begin_ns, 150);
  EXPECT_EQ(timeline.spans[2].kind, Span::Kind::kSleep);
  EXPECT_EQ(timeline.spans[2].end_ns - timeline.spans[2].begin_ns, 600);
  const Summary summary = summarize(timeline);
  EXPECT_EQ(summary.processes.at(0).waited.at("looks"), 150);
  EXPECT_EQ(summary.processes.at(0).asleep_ns, 600);
}

TEST(Summary, Process_with_a_lane_after_the_other__has_lived_from_the_first_to_the_last) {
  LaneSteps before = lane(kA, "one");
  LaneSteps after = lane(kA, "one");
  before.steps = {of_thread(Step::kCall, 100, 11), of_thread(Step::kReturn, 300, 11)};
  before.last = {300, 300};
  after.steps = {of_thread(Step::kCall, 1000, 11), of_thread(Step::kReturn, 1200, 11)};
  after.last = {1250, 1250};
  const Summary summary = summarize(merge({before, after}));
  ASSERT_EQ(summary.processes.size(), 1u);
  EXPECT_EQ(summary.processes[0].lived_ns, 1150);
  EXPECT_EQ(summary.processes[0].in_calls_ns, 400);
}

TEST(Summary, Messages__are_counted_for_whoever_had_the_id_then) {
  LaneSteps a = lane(kA, "one");
  LaneSteps earlier = lane(kB, "one", 11);
  LaneSteps later = lane(kB, "one", 12);
  a.steps = {packet(Step::kPacketOut, 100, kB, 1), packet(Step::kDirect, 200, kB, 0),
             packet(Step::kPacketOut, 600, kB, 2), packet(Step::kDirect, 700, kB, 0),
             packet(Step::kPacketOut, 800, kB, 3)};
  earlier.steps = {packet(Step::kPacketIn, 150, kA, 1)};
  later.steps = {packet(Step::kPacketIn, 650, kA, 2)};
  const Summary summary = summarize(merge({a, earlier, later}));
  EXPECT_EQ(summary.messages, 5u);
  EXPECT_EQ(summary.traffic.at({0, 1}).messages, 2u);
  EXPECT_EQ(summary.traffic.at({0, 2}).messages, 3u) << "also the one that nobody took";
}

TEST(Summary, Size_classes__are_powers_of_two) {
  EXPECT_EQ(class_text(size_class(0)), "0");
  EXPECT_EQ(class_text(size_class(1)), "1");
  EXPECT_EQ(class_text(size_class(3)), "2..3");
  EXPECT_EQ(class_text(size_class(4)), "4..7");
  EXPECT_EQ(class_text(size_class(8192)), "8192..16383");
}

}  // namespace
}  // namespace portofu::tools
