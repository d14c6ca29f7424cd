// What ptl_top makes of two looks at the processes of a node.

#include "lib/tools/ptl_top/rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace portofu::tools {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kSecondNs = 1'000'000'000;

ProcessLook process_of(std::uint32_t os_pid, std::uint32_t pid, std::int64_t rank) {
  ProcessLook process;
  process.os_pid = os_pid;
  process.rank = rank;
  process.job_key = 77;
  process.task.name = "solver";
  process.task.state = 'R';
  process.pids = {pid};
  return process;
}

ProcessLook& set(ProcessLook& process, Counter counter, std::uint64_t value) {
  process.counters[static_cast<std::size_t>(counter)] = value;
  return process;
}

/// Two looks, half a second apart: rank 0 has sent, rank 1 is stopped and has not taken what came.
class Rates : public ::testing::Test {
 protected:
  Rates() {
    before_.time_ns = 3 * kSecondNs;
    now_.time_ns = before_.time_ns + kSecondNs / 2;
    ProcessLook sender = process_of(100, 5000, 0);
    set(sender, Counter::kPutsSent, 10);
    before_.processes.push_back(sender);
    set(set(set(sender, Counter::kPutsSent, 510), Counter::kGetsSent, 100), Counter::kBytesSent, 1'000'000);
    sender.task.cpu_ns = kSecondNs / 4;
    PeerPicture peer;
    peer.id.pid = 6000;
    peer.outstanding = 3;
    peer.state = PeerState::kConnected;
    sender.peers = {peer};
    sender.queues = {{QueueLook::Kind::kEventQueue, 0x14, 1, 100}, {QueueLook::Kind::kEventQueue, 0x15, 30, 40}};
    now_.processes.push_back(sender);
    ProcessLook stopped = process_of(200, 6000, 1);
    before_.processes.push_back(stopped);
    stopped.task.state = 'T';
    stopped.waiting = {{5000, 6000, 7}};
    stopped.queues = {{QueueLook::Kind::kMrq, 0x99, 8, 16}, {QueueLook::Kind::kTcq, 0x99, 1, 16}};
    now_.processes.push_back(stopped);
  }
  std::vector<Row> rows(Order order = Order::kRank, std::uint32_t job_key = 0) const {
    return rows_between(before_, now_, job_key, order);
  }
  Look before_;
  Look now_;
};

TEST_F(Rates, Counts__are_per_second) {
  const auto both = rows();
  ASSERT_EQ(both.size(), 2u);
  EXPECT_DOUBLE_EQ(both[0].sent, 1200);
  EXPECT_DOUBLE_EQ(both[0].bytes_out, 2e6);
  EXPECT_DOUBLE_EQ(both[0].cpu_percent, 50);
  EXPECT_EQ(both[0].waiting, 0u);
  EXPECT_DOUBLE_EQ(both[1].sent, 0);
  EXPECT_EQ(both[1].waiting, 7u);
}

/// Also where another process has the number of one that was there before.
TEST_F(Rates, Process_that_was_not_there_before__has_none) {
  before_.processes[0].pids = {5001};
  EXPECT_DOUBLE_EQ(rows()[0].sent, 0);
  before_.processes.clear();
  EXPECT_DOUBLE_EQ(rows()[0].sent, 0);
}

TEST_F(Rates, Counter_that_went_back__is_no_huge_rate) {
  set(before_.processes[0], Counter::kPutsSent, 100'000);
  EXPECT_DOUBLE_EQ(rows()[0].sent, 0);
}

TEST_F(Rates, Rows__are_those_of_a_job_in_the_order_that_was_chosen) {
  EXPECT_EQ(rows(Order::kWaiting)[0].process.rank, 1);
  EXPECT_EQ(rows(Order::kSent)[0].process.rank, 0);
  EXPECT_EQ(rows(Order::kCpu)[0].process.rank, 0);
  now_.processes[0].job_key = 78;
  const auto others = rows(Order::kRank, 78);
  ASSERT_EQ(others.size(), 1u);
  EXPECT_EQ(others[0].process.rank, 0);
}

TEST_F(Rates, Order__goes_round) {
  Order order = Order::kRank;
  for (int i = 0; i < 4; ++i) order = order_after(order);
  EXPECT_EQ(order, Order::kRank);
}

TEST_F(Rates, Table__has_a_line_for_each_and_tells_of_the_stopped) {
  const auto lines = table_of(rows());
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(lines[0], HasSubstr("SENT/s"));
  EXPECT_THAT(lines[1], HasSubstr("1.20 k"));
  EXPECT_THAT(lines[2], HasSubstr("STOPPED"));
}

TEST_F(Rates, Details__tell_who_waits_for_whom) {
  const auto all = rows();
  EXPECT_THAT(details_of(all[1], all), ::testing::Contains(HasSubstr("rank 0 waits: 7 packets for PID 6000")));
  EXPECT_THAT(details_of(all[0], all), ::testing::Contains(HasSubstr("it waits for rank 1, which has not taken 7")));
  EXPECT_THAT(details_of(all[0], all), ::testing::Contains(HasSubstr("puts_sent")));
}

TEST_F(Rates, Table__has_the_fullest_queue_of_each_kind_and_whom_a_process_waits_for) {
  const auto lines = table_of(rows());
  EXPECT_THAT(lines[0], HasSubstr(" EQ% MRQ% WAITING WAITS FOR "));
  EXPECT_THAT(lines[1], HasSubstr("  75    -       0 rank 1 "));
  EXPECT_THAT(lines[2], HasSubstr("   -   50       7 - "));
}

TEST_F(Rates, Process__waits_for_who_owes_an_answer_and_for_who_has_not_taken_its_packets) {
  EXPECT_EQ(rows()[0].waits_for, std::vector<std::uint32_t>{6000}) << "once, though for two reasons";
  EXPECT_TRUE(rows()[1].waits_for.empty());
  now_.processes[0].peers[0].outstanding = 0;
  EXPECT_EQ(rows()[0].waits_for, std::vector<std::uint32_t>{6000}) << "its packets";
  now_.processes[1].waiting.clear();
  EXPECT_TRUE(rows()[0].waits_for.empty());
  now_.processes[0].peers[0].waiting_requests = 1;
  EXPECT_EQ(rows()[0].waits_for, std::vector<std::uint32_t>{6000}) << "room there";
}

TEST_F(Rates, Peers__are_told_with_what_is_open_between_them) {
  const auto all = rows();
  const auto lines = peers_of(all[0], all);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[1], HasSubstr("rank 1 "));
  EXPECT_THAT(lines[1], HasSubstr(" 3 not answered"));
  EXPECT_THAT(lines[1], HasSubstr(" 7 packets wait there"));
  EXPECT_THAT(lines[1], ::testing::Not(HasSubstr("NOT CONNECTED")));
  EXPECT_THAT(peers_of(all[1], all), ::testing::Contains(HasSubstr("none")));
}

TEST_F(Rates, Queues__are_in_the_details) {
  const auto all = rows();
  EXPECT_THAT(details_of(all[0], all), ::testing::Contains(HasSubstr("event queue 0x15: 30 of 40 unread, 75 %")));
  EXPECT_THAT(details_of(all[1], all), ::testing::Contains(HasSubstr("MRQ of VCQ 0x99: 8 of 16 unread, 50 %")));
  EXPECT_THAT(details_of(all[1], all), ::testing::Contains(HasSubstr("TCQ of VCQ 0x99: 1 of 16")));
  now_.processes[0].sight = Sight::kForbidden;
  EXPECT_THAT(details_of(rows()[0], rows()), ::testing::Contains(HasSubstr("ptrace_scope")));
}

TEST_F(Rates, Json__says_the_same) {
  now_.processes[0].rank = ProcessLook::kNoRank;
  now_.processes[0].task.name = "\xff is no UTF-8";
  const auto all = nlohmann::json::parse(json_of(rows()));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_TRUE(all[0]["rank"].is_null());
  EXPECT_EQ(all[0]["per_second"]["sent"], 1200.0);
  EXPECT_EQ(all[0]["counters"]["puts_sent"], 510);
  EXPECT_EQ(all[1]["rank"], 1);
  EXPECT_EQ(all[1]["state"], "T");
  EXPECT_EQ(all[1]["waiting"][0]["packets"], 7);
  EXPECT_EQ(all[0]["lanes"], 1);
  EXPECT_EQ(all[0]["eq_percent"], 75.0);
  EXPECT_TRUE(all[0]["mrq_percent"].is_null());
  EXPECT_EQ(all[1]["mrq_percent"], 50.0);
  EXPECT_EQ(all[0]["queues"][1]["unread"], 30);
  EXPECT_EQ(all[1]["queues"][0]["kind"], "mrq");
  EXPECT_EQ(all[0]["waits_for_pids"][0], 6000);
  EXPECT_EQ(all[0]["peers"][0]["not_answered"], 3);
}

TEST(InShort, Numbers__have_three_digits_or_a_few_more) {
  EXPECT_EQ(in_short(0), "0");
  EXPECT_EQ(in_short(999), "999");
  EXPECT_EQ(in_short(999.7), "1.00 k");
  EXPECT_EQ(in_short(1234), "1.23 k");
  EXPECT_EQ(in_short(12'340), "12.3 k");
  EXPECT_EQ(in_short(999'600), "1.00 M");
  EXPECT_EQ(in_short(4.2e15), "4200 T");
}

}  // namespace
}  // namespace portofu::tools
