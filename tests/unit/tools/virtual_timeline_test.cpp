// Jobs in virtual time, written down by hand, as timelines.

#include "lib/tools/ptl_sim/virtual_timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

#include "lib/tools/ptl_sim/uses.h"
#include "lib/tools/ptl_trace/chrome_json.h"
#include "lib/tools/ptl_trace/report.h"
#include "lib/tools/ptl_trace/step_names.h"
#include "lib/tools/ptl_trace/summary.h"

namespace portofu::tools {
namespace {

constexpr std::uint64_t kUs = 1'000'000;

VirtualSpan span_us(std::uint64_t from_us, std::uint64_t to_us, VirtualSpent what, bool is_empty = false) {
  return {
      from_us * kUs, to_us * kUs, static_cast<std::uint8_t>(what), static_cast<std::uint8_t>(is_empty ? 1 : 0), 0, 0};
}

/// Rank 0 computes, gets, and looks for the answer in vain until it comes; rank 1 waits in a call.
History get_from_rank_1() {
  History history;
  history.ranks.resize(2);
  history.ranks[0].spans = {span_us(0, 10, VirtualSpent::kCompute),     span_us(10, 11, VirtualSpent::kGet),
                            span_us(11, 12, VirtualSpent::kLook, true), span_us(12, 13, VirtualSpent::kLook, true),
                            span_us(13, 20, VirtualSpent::kWait),       span_us(20, 21, VirtualSpent::kLook),
                            span_us(21, 24, VirtualSpent::kMemory)};
  history.ranks[1].spans = {span_us(0, 15, VirtualSpent::kWait)};
  MessageTimes request{};
  request.from = 0;
  request.to = 1;
  request.type = static_cast<std::uint8_t>(PacketType::kTofuGet);
  request.bytes = 8;
  request.sent_ps = 11 * kUs;
  request.arrived_ps = 15 * kUs;
  request.answers = kNoMessage;
  MessageTimes answer = request;
  std::swap(answer.from, answer.to);
  answer.type = static_cast<std::uint8_t>(PacketType::kAnswer);
  answer.sent_ps = 15 * kUs;
  answer.arrived_ps = 20 * kUs;
  answer.answers = 0;
  history.messages = {request, answer};
  return history;
}

Timeline timeline_of(const History& history) { return virtual_timeline(history, {{1, 7}, {1, 8}}, "program"); }

const Span* find(const Timeline& timeline, std::uint32_t lane, Span::Kind kind, std::int64_t begin_ns) {
  const auto found = std::ranges::find_if(timeline.spans, [&](const Span& one) {
    return one.lane == lane && one.kind == kind && one.begin_ns == begin_ns;
  });
  return found != timeline.spans.end() ? &*found : nullptr;
}

TEST(VirtualTimeline, Calls__have_the_names_of_what_they_send) {
  const Timeline timeline = timeline_of(get_from_rank_1());
  const Span* const call = find(timeline, 0, Span::Kind::kCall, 10'000);
  ASSERT_NE(call, nullptr);
  EXPECT_EQ(call->end_ns, 11'000);
  EXPECT_EQ(call_name(timeline.lanes[0].steps[call->begin]), "utofu_get");
  EXPECT_EQ(timeline.lanes[0].steps[call->begin].amount, 8u);
  EXPECT_EQ(timeline.end_ns, 24'000);
}

TEST(VirtualTimeline, Waits__last_until_something_is_found) {
  const Timeline timeline = timeline_of(get_from_rank_1());
  const auto cause = [&](const Span* wait) {
    return std::string(wait_cause(timeline.lanes[wait->lane].steps[wait->begin].kind));
  };
  const Span* const looks = find(timeline, 0, Span::Kind::kWait, 11'000);
  ASSERT_NE(looks, nullptr);
  EXPECT_EQ(looks->end_ns, 21'000) << "with the look that has found it";
  EXPECT_EQ(looks->empty_looks, 2u);
  EXPECT_EQ(cause(looks), "looks");
  const Span* const memory = find(timeline, 0, Span::Kind::kWait, 21'000);
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(cause(memory), "memory");
  const Span* const call = find(timeline, 1, Span::Kind::kWait, 0);
  ASSERT_NE(call, nullptr);
  EXPECT_EQ(cause(call), "other");
}

TEST(VirtualTimeline, Messages__have_both_ends) {
  const Timeline timeline = timeline_of(get_from_rank_1());
  ASSERT_EQ(timeline.flows.size(), 2u);
  EXPECT_EQ(timeline.ns(timeline.flows[0].out), 11'000);
  EXPECT_EQ(timeline.ns(timeline.flows[0].in), 15'000);
  EXPECT_EQ(timeline.flows[0].in.lane, 1u);
  EXPECT_EQ(timeline.step(timeline.flows[1].out).step, Step::kPacketOut);
  EXPECT_EQ(timeline.ns(timeline.flows[1].in), 20'000);
  for (std::size_t lane = 0; lane < 2; ++lane) EXPECT_TRUE(std::ranges::is_sorted(timeline.at_ns[lane])) << lane;
  const Summary summary = summarize(timeline);
  EXPECT_EQ(summary.messages, 1u) << "one is an answer";
  EXPECT_EQ(summary.processes[0].in_calls_ns, 1000);
  EXPECT_EQ(summary.processes[0].waited.at("looks"), 10'000);
}

TEST(VirtualTimeline, Rank_that_does_nothing__has_an_empty_lane) {
  History history;
  history.ranks.resize(2);
  const Timeline timeline = timeline_of(history);
  EXPECT_EQ(timeline.lanes.size(), 2u);
  EXPECT_EQ(timeline.end_ns, 0);
  EXPECT_NE(report_html(timeline, summarize(timeline)).find("rank 1"), std::string::npos);
}

sim::Network busy_network() {
  sim::Machine machine;
  machine.topology.kind = sim::TopologyKind::kCrossbar;
  machine.links = {.lanes = 1, .lane_gb_s = 1, .mtu_bytes = 1000};
  machine.interfaces = {.count = 1, .gb_s = 1};
  std::string why;
  sim::Network network(machine, *sim::lay_out(machine, "3", &why));
  for (int i = 0; i < 1000; ++i) {
    network.send(0, {.from_node = 0, .to_node = 2, .bytes = 1000});
    network.send(0, {.from_node = 1, .to_node = 2, .bytes = 500});
  }
  return network;
}

TEST(LinkUses, Over_time__are_shares_of_each_stretch) {
  const sim::Network network = busy_network();
  const auto links = link_uses(network);
  ASSERT_FALSE(links.empty());
  EXPECT_EQ(links.size(), busiest(network).size());
  for (const LinkUse& link : links) {
    EXPECT_LE(link.busy_percent.size(), kMostStretches);
    EXPECT_EQ(link.busy_percent.size(), link.waiting.size());
    for (const double percent : link.busy_percent) EXPECT_LE(percent, 100.001);
  }
  EXPECT_GE(std::accumulate(links[0].busy_percent.begin(), links[0].busy_percent.end(), 0.0),
            std::accumulate(links.back().busy_percent.begin(), links.back().busy_percent.end(), 0.0));
  // 1500 KB at 1 GB/s reach node 2, and all but the first packet wait for it.
  EXPECT_NEAR(links[0].busy_percent[5], 100, 0.001);
  EXPECT_GT(std::ranges::max(links[0].waiting), 1.0);
}

TEST(LinkUses, In_a_trace__are_counters) {
  Timeline timeline = timeline_of(get_from_rank_1());
  timeline.links = {{"X+ of node 5", 12'000, {25.0, 50.0}, {0.0, 2.5}}};
  char* text = nullptr;
  std::size_t bytes = 0;
  std::FILE* const file = open_memstream(&text, &bytes);
  EXPECT_TRUE(write_chrome_json(timeline, 100, file));
  std::fclose(file);
  const auto trace = nlohmann::json::parse(text);
  free(text);
  std::vector<double> busy;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "C") continue;
    EXPECT_EQ(event["name"], "X+ of node 5");
    EXPECT_EQ(event["ts"], 12.0 * static_cast<double>(busy.size()));
    EXPECT_EQ(event["args"]["waiting"], busy.size() == 1 ? 2.5 : 0.0);
    busy.push_back(event["args"]["busy %"]);
  }
  EXPECT_EQ(busy, (std::vector<double>{25, 50, 0})) << "and nothing behind the last stretch";
}

TEST(LinkUses, In_a_report__are_rows) {
  Timeline timeline = timeline_of(get_from_rank_1());
  timeline.links = {{"X+ of node 5", 12'000, {25.0, 50.0}, {0.0, 2.5}}};
  const std::string page = report_html(timeline, summarize(timeline), "<p>and more</p>");
  EXPECT_NE(page.find("X+ of node 5"), std::string::npos);
  EXPECT_NE(page.find("12.000 us: 50.00 %"), std::string::npos);
  EXPECT_NE(page.find("12.000 us: 2.50 packets"), std::string::npos);
  EXPECT_NE(page.find("<p>and more</p>"), std::string::npos);
  EXPECT_EQ(page.find("Matches by entries"), std::string::npos) << "nobody has recorded them";
}

}  // namespace
}  // namespace portofu::tools
