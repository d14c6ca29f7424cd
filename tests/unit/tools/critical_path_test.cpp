// The critical path of jobs that are written down by hand.

#include "lib/tools/ptl_sim/critical_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace portofu::tools {
namespace {

using ::testing::ElementsAre;

VirtualSpan span(std::uint64_t from_ps, std::uint64_t to_ps, VirtualSpent what, bool is_empty = false) {
  return {from_ps, to_ps, static_cast<std::uint8_t>(what), static_cast<std::uint8_t>(is_empty ? 1 : 0), 0, 0};
}

/// 10 ps in the sender's interface, 20 in the receiver's.
MessageTimes message(std::uint32_t from, std::uint32_t to, std::uint64_t sent_ps, std::uint64_t arrived_ps) {
  MessageTimes one{};
  one.from = from;
  one.to = to;
  one.sent_ps = sent_ps;
  one.arrived_ps = arrived_ps;
  one.before_ps = 10;
  one.after_ps = 20;
  one.waited_for = sim::kNoStage;
  one.answers = kNoMessage;
  return one;
}

/// "rank 0: put 0-100"
std::vector<std::string> texts(const History& history) {
  std::vector<std::string> found;
  for (const PathSegment& one : find_critical_path(history).segments) {
    CriticalPath single;
    single.segments = {one};
    const auto parts = parts_of(single, history, [](std::uint32_t stage) { return "link " + std::to_string(stage); });
    found.push_back(parts.front().name + ' ' + std::to_string(one.from_ps) + '-' + std::to_string(one.to_ps));
  }
  return found;
}

/// Rank 0 computes and puts; rank 1 waits for it, and does something behind it.
History put_and_wait() {
  History history;
  history.ranks.resize(2);
  history.ranks[0].spans = {span(0, 400, VirtualSpent::kCompute), span(400, 500, VirtualSpent::kPut)};
  history.messages = {message(0, 1, 500, 900)};
  history.ranks[1].spans = {span(0, 50, VirtualSpent::kLook, true), span(50, 900, VirtualSpent::kWait),
                            span(900, 950, VirtualSpent::kLook), span(950, 1000, VirtualSpent::kAtomic)};
  history.ranks[1].wakes = {{900, 0}};
  return history;
}

TEST(CriticalPath, Wait__leads_to_who_has_sent) {
  const History history = put_and_wait();
  EXPECT_THAT(texts(history),
              ElementsAre("rank 0: compute 0-400", "rank 0: put 400-500", "rank 0 to rank 1: in interfaces 500-510",
                          "rank 0 to rank 1: on the wire 510-880", "rank 0 to rank 1: in interfaces 880-900",
                          "rank 1: look 900-950", "rank 1: atomic 950-1000"));
  const CriticalPath path = find_critical_path(history);
  EXPECT_EQ(path.last_rank, 1u);
  EXPECT_EQ(path.time_ps(), 1000u);
  EXPECT_THAT(path.sums_ps, ElementsAre(400, 100 + 50 + 50, 10 + 20, 370, 0, 0));
}

/// Rank 0 puts, waits until that has left, and puts again.
TEST(CriticalPath, Wait__for_a_departure_ends_where_the_message_has_left) {
  History history;
  history.ranks.resize(2);
  history.ranks[0].spans = {span(0, 100, VirtualSpent::kPut), span(100, 300, VirtualSpent::kWait),
                            span(300, 400, VirtualSpent::kPut)};
  history.ranks[0].wakes = {{300, 0}};
  history.messages = {message(0, 1, 100, 900)};
  history.messages[0].left_ps = 300;
  history.messages[0].is_told = true;
  history.ranks[1].spans = {span(0, 10, VirtualSpent::kLook)};
  history.messages[0].arrived_ps = 390;
  EXPECT_THAT(texts(history), ElementsAre("rank 0: put 0-100", "rank 0 to rank 1: in interfaces 100-110",
                                          "rank 0 to rank 1: on the wire 110-300", "rank 0: put 300-400"));
  history.ranks[0].spans[1] = span(100, 300, VirtualSpent::kLook, true);
  history.ranks[0].wakes.clear();
  EXPECT_THAT(texts(history), ::testing::Contains("rank 0 to rank 1: on the wire 110-300")) << "it has looked in vain";
}

TEST(CriticalPath, Link_in_use__is_told_with_its_name) {
  History history = put_and_wait();
  history.messages[0].waited_ps = 300;
  EXPECT_THAT(texts(history), ::testing::Contains("rank 0 to rank 1: behind an earlier message 510-810"));
  history.messages[0].waited_for = 7;
  EXPECT_THAT(texts(history), ::testing::Contains("link 7: in use 510-810"));
  EXPECT_EQ(find_critical_path(history).sums_ps[static_cast<std::size_t>(PathKind::kWire)], 70u);
}

/// Nothing that the rank waited for is on the way if it came while the rank did something else.
TEST(CriticalPath, Own_time__counts_where_nothing_was_waited_for) {
  History history = put_and_wait();
  history.ranks[1].spans = {span(0, 1100, VirtualSpent::kCompute), span(1100, 1200, VirtualSpent::kPut)};
  history.ranks[1].wakes.clear();
  EXPECT_THAT(texts(history), ElementsAre("rank 1: compute 0-1100", "rank 1: put 1100-1200"));
}

TEST(CriticalPath, Look_in_vain__leads_to_what_came_meanwhile) {
  History history = put_and_wait();
  history.ranks[1].spans = {span(0, 500, VirtualSpent::kLook, true), span(500, 1000, VirtualSpent::kLook, true),
                            span(1000, 1100, VirtualSpent::kPut)};
  history.ranks[1].wakes.clear();
  EXPECT_THAT(texts(history), ::testing::IsSupersetOf({"rank 0: put 400-500", "rank 1: look 900-1000"}));
  history.ranks[1].spans[1].is_empty = 0;
  EXPECT_THAT(texts(history), ElementsAre("rank 1: look 0-500", "rank 1: look 500-1000", "rank 1: put 1000-1100"))
      << "the first look ended before it came, and the second found something else";
}

/// A get: the answer is sent when the request arrives, and costs rank 1 nothing.
TEST(CriticalPath, Answer__leads_to_what_it_answers) {
  History history;
  history.ranks.resize(2);
  history.ranks[0].spans = {span(0, 100, VirtualSpent::kGet), span(100, 600, VirtualSpent::kMemory)};
  history.ranks[0].wakes = {{600, 1}};
  history.ranks[1].spans = {span(0, 90, VirtualSpent::kCompute)};
  history.messages = {message(0, 1, 100, 300), message(1, 0, 300, 550)};
  history.messages[1].answers = 0;
  EXPECT_THAT(texts(history),
              ElementsAre("rank 0: get 0-100", "rank 0 to rank 1: in interfaces 100-110",
                          "rank 0 to rank 1: on the wire 110-280", "rank 0 to rank 1: in interfaces 280-300",
                          "rank 1 to rank 0: in interfaces 300-310", "rank 1 to rank 0: on the wire 310-530",
                          "rank 1 to rank 0: in interfaces 530-550", "rank 0: memory 550-600"));
}

/// Rank 1 polls its memory, and calls nothing more when it has seen the last word.
TEST(CriticalPath, Last_message__may_be_the_end) {
  History history = put_and_wait();
  history.ranks[1].spans = {span(0, 90, VirtualSpent::kCompute)};
  history.ranks[1].wakes.clear();
  EXPECT_THAT(texts(history),
              ElementsAre("rank 0: compute 0-400", "rank 0: put 400-500", "rank 0 to rank 1: in interfaces 500-510",
                          "rank 0 to rank 1: on the wire 510-880", "rank 0 to rank 1: in interfaces 880-900"));
  EXPECT_EQ(find_critical_path(history).last_rank, 1u);
}

TEST(CriticalPath, Timeout__is_time_that_nobody_uses) {
  History history;
  history.ranks.resize(1);
  history.ranks[0].spans = {span(0, 700, VirtualSpent::kWait), span(800, 900, VirtualSpent::kPut)};
  EXPECT_THAT(texts(history),
              ElementsAre("rank 0: waits for a time 0-700", "rank 0: waits for a time 700-800", "rank 0: put 800-900"));
}

TEST(CriticalPath, No_time_at_all__ends_too) {
  History history;
  history.ranks.resize(2);
  // Messages that take no time, and ranks that wait for each other: the earlier one is the cause.
  history.messages = {message(0, 1, 500, 500), message(1, 0, 500, 500)};
  for (MessageTimes& one : history.messages) one.before_ps = one.after_ps = 0;
  history.ranks[0].spans = history.ranks[1].spans = {span(0, 500, VirtualSpent::kWait)};
  history.ranks[0].wakes = {{500, 1}};
  history.ranks[1].wakes = {{500, 0}};
  EXPECT_THAT(texts(history), ElementsAre("rank 0: waits for a time 0-500"));
}

TEST(CriticalPath, No_history__has_none) {
  History history = put_and_wait();
  history.is_cut = true;
  EXPECT_TRUE(find_critical_path(history).segments.empty());
  EXPECT_TRUE(find_critical_path({}).segments.empty());
}

TEST(CriticalPath, Parts__are_the_longest_first_and_make_the_whole) {
  const History history = put_and_wait();
  const CriticalPath path = find_critical_path(history);
  const auto parts = parts_of(path, history, [](std::uint32_t) { return ""; });
  std::uint64_t sum_ps = 0;
  for (const PathPart& part : parts) sum_ps += part.time_ps;
  EXPECT_EQ(sum_ps, path.time_ps());
  EXPECT_EQ(parts.front().name, "rank 0: compute");
  EXPECT_TRUE(std::ranges::is_sorted(parts, std::ranges::greater(), &PathPart::time_ps));
  const auto interfaces = std::ranges::find(parts, "rank 0 to rank 1: in interfaces", &PathPart::name);
  ASSERT_NE(interfaces, parts.end());
  EXPECT_EQ(interfaces->segments, 2u);
}

}  // namespace
}  // namespace portofu::tools
