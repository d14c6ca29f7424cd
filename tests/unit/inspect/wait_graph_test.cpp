#include "engine/inspect/wait_graph.h"

#include <gtest/gtest.h>

#include "tests/unit/support/made_up_job.h"

namespace portofu {
namespace {

/// Rank 0 looks again and again at its queue, where it has posted something to be used once.
class WaitGraphLoops : public testing::Test {
 protected:
  WaitGraphLoops() {
    portal_.eq_handle = kJobQueue;
    add_loop(job_[0], WaitKind::kEventQueue, kJobQueue);
    add(job_id(1));
  }
  EntryPicture& add(ProcessId source) {
    EntryPicture& entry = add_entry(portal_, 0x10, source);
    entry.options = kEntryUseOnce | kEntryOpPut;
    return entry;
  }
  WaitGraph::Edges edges() const { return WaitGraph(JobView(job_)).edges(); }

  std::vector<ProcessPicture> job_ = made_up_job(3);
  PortalPicture& portal_ = add_portal(job_[0], 4);
};

TEST_F(WaitGraphLoops, Receive_of_one__waits_for_that_one) {
  ASSERT_TRUE(edges().contains(0));
  EXPECT_STREQ(edges().at(0).at(1).what, "a message");
  portal_.priority.items[0].options = kEntryUseOnce | kEntryOpGet;
  EXPECT_STREQ(edges().at(0).at(1).what, "a get");
  job_[0].core.polls[0].goes_on = false;
  EXPECT_TRUE(edges().empty());
}

TEST_F(WaitGraphLoops, Receives_of_several__wait_for_none_of_them) {
  add(job_id(2));
  EXPECT_TRUE(edges().empty()) << "either may be enough";
  portal_.priority.items.pop_back();
  add({});
  EXPECT_TRUE(edges().empty()) << "it may be of anybody";
  portal_.priority.items.back().options = kEntryOpPut;
  EXPECT_EQ(edges().size(), 1u) << "one that stays is no receive";
}

TEST_F(WaitGraphLoops, Triggered_operation__is_awaited_where_it_goes) {
  const JobView view(job_);
  const WaitGraph graph(view);
  const InterfacePicture& ni = interface_in(job_[1]);
  EXPECT_TRUE(graph.awaits(0, ni, {1, PacketType::kPut, 0, kJobMd, job_id(0), 4, 0x10}));
  EXPECT_FALSE(graph.awaits(0, ni, {1, PacketType::kPut, 0, kJobMd, job_id(0), 5, 0x10}));
  EXPECT_FALSE(graph.awaits(0, ni, {1, PacketType::kPut, 0, kJobMd, job_id(0), 4, 0x11}));
  EXPECT_FALSE(graph.awaits(2, ni, {1, PacketType::kPut, 0, kJobMd, job_id(2), 4, 0x10}));
  ASSERT_NE(graph.place_of(job_id(2)), nullptr);
  EXPECT_EQ(*graph.place_of(job_id(2)), 2u);
  EXPECT_EQ(graph.place_of(job_id(9)), nullptr);
}

TEST(WaitGraphGates, Barrier_that_has_begun__waits_for_the_process_whose_packet_lacks) {
  std::vector<ProcessPicture> job = made_up_job(2);
  add_loop(job[0], WaitKind::kGate, 1);
  GatePicture& gate = job[0].core.gates.emplace_back();
  gate.id = 1;
  gate.remote_source = 2;
  job[1].core.gates.emplace_back().id = 2;
  const auto edges = [&] { return WaitGraph(JobView(job)).edges(); };
  EXPECT_TRUE(edges().empty()) << "it has not begun";
  gate.has_signal = true;
  ASSERT_TRUE(edges().contains(0));
  EXPECT_STREQ(edges().at(0).at(1).what, "a packet of a barrier gate");
  gate.has_packet = true;
  EXPECT_TRUE(edges().empty());
}

TEST(WaitGraphOperations, Loop_of_operations__waits_for_no_answer) {
  std::vector<ProcessPicture> job = made_up_job(2);
  job[0].core.peers.push_back({job_id(1), PeerState::kConnected, 0, 0, 1});
  EXPECT_EQ(WaitGraph(JobView(job)).waiters(1), "rank 0");
  job[0].core.operations.emplace_back().target = job_id(1);
  EXPECT_EQ(WaitGraph(JobView(job)).waiters(1), "") << "another one at each look";
  job[0].core.operations[0].lasts = true;
  EXPECT_EQ(WaitGraph(JobView(job)).waiters(1), "rank 0");
}

}  // namespace
}  // namespace portofu
