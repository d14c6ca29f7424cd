#include "engine/inspect/job_view.h"

#include <gtest/gtest.h>

#include "tests/unit/support/made_up_job.h"

namespace portofu {
namespace {

TEST(JobView, Names__are_ranks_where_they_are_known) {
  std::vector<ProcessPicture> job = made_up_job(2);
  job[1].rank = -1;
  const JobView view(job);
  EXPECT_EQ(view.name(job_id(0)), "rank 0");
  EXPECT_EQ(view.name(job_id(1)), "PID 101");
  EXPECT_EQ(view.name({kJobNid + 1, 7}), "PID 7 of 10.0.0.2");
  EXPECT_EQ(view.find({kJobNid, 7}), nullptr);
}

TEST(JobView, Sources__are_processes_on_every_interface) {
  InterfacePicture ni;
  ni.index = 1;
  EXPECT_EQ(JobView::physical(ni, job_id(3)), job_id(3));
  EXPECT_EQ(JobView::wanted_source(ni, {0, 0, job_id(3), false, false}), job_id(3));
  EXPECT_EQ(JobView::wanted_source(ni, {0, 0, job_id(3), false, true}), ProcessId{});
  ni.index = 3;
  ni.ranks = {job_id(5), job_id(6)};
  EXPECT_EQ(JobView::physical(ni, {1, 0}), job_id(6));
  EXPECT_EQ(JobView::physical(ni, {2, 0}), ProcessId{});
  EXPECT_EQ(JobView::wanted_source(ni, {0, 0, {0, 0}, false, true}), job_id(5));
}

TEST(JobView, Feeders__of_a_counter_are_entries_descriptors_and_triggers) {
  std::vector<ProcessPicture> job = made_up_job(1);
  EntryPicture& entry = add_entry(add_portal(job[0], 4), 1);
  entry.ct_handle = kJobCounter;
  entry.options = kEntryEventCtComm;
  interface_in(job[0]).descriptors.push_back({kJobMd, kJobQueue, kJobCounter, kMdEventCtAck, 0});
  CounterPicture other{kJobCounter + 1, 0, 0, {}};
  other.waiting.items.push_back({1, PacketType::kCountIncrement, kJobCounter});
  interface_in(job[0]).counters.push_back(other);
  const Feeders feeders = feeders_of(job[0], interface_in(job[0]), WaitKind::kCounters, kJobCounter);
  EXPECT_EQ(feeders.entries.size(), 1u);
  EXPECT_EQ(feeders.descriptors.size(), 1u);
  EXPECT_EQ(feeders.triggered_by.size(), 1u);
  EXPECT_FALSE(feeders.answers_due);
  OperationPicture operation;
  operation.md_handle = kJobMd;
  job[0].core.operations.push_back(operation);
  EXPECT_FALSE(feeders_of(job[0], interface_in(job[0]), WaitKind::kCounters, kJobCounter).answers_due)
      << "no ACK is due";
  job[0].core.operations[0].ack_req = AckRequest::kCount;
  EXPECT_TRUE(feeders_of(job[0], interface_in(job[0]), WaitKind::kCounters, kJobCounter).answers_due);
}

TEST(JobView, Feeders__of_a_queue_are_portal_table_entries_and_descriptors) {
  std::vector<ProcessPicture> job = made_up_job(1);
  EXPECT_TRUE(feeders_of(job[0], interface_in(job[0]), WaitKind::kEventQueue, kJobQueue).bare_portal == nullptr);
  PortalPicture& portal = add_portal(job[0], 4);
  portal.eq_handle = kJobQueue;
  EXPECT_EQ(feeders_of(job[0], interface_in(job[0]), WaitKind::kEventQueue, kJobQueue).bare_portal, &portal);
  add_entry(portal, 1).options = kEntryEventCommDisable;
  const Feeders feeders = feeders_of(job[0], interface_in(job[0]), WaitKind::kEventQueue, kJobQueue);
  EXPECT_TRUE(feeders.entries.empty());
  EXPECT_EQ(feeders.mute_portal, &portal);
}

TEST(JobView, Entry__is_where_it_is_posted_though_others_of_its_queue_have_none) {
  std::vector<ProcessPicture> job = made_up_job(1);
  for (std::uint32_t index = 4; index < 8; ++index) add_portal(job[0], index).eq_handle = kJobQueue;
  add_entry(interface_in(job[0]).portals[1], 1);
  add_entry(interface_in(job[0]).portals[3], 1).options = kEntryUseOnce;
  Feeders feeders = feeders_of(job[0], interface_in(job[0]), WaitKind::kEventQueue, kJobQueue);
  ASSERT_EQ(feeders.portals.size(), feeders.entries.size());
  ASSERT_EQ(feeders.portals.size(), 2u);
  EXPECT_EQ(feeders.portals[0]->pt_index, 5u);
  EXPECT_EQ(feeders.portals[1]->pt_index, 7u);
  feeders.keep_used_once();
  ASSERT_EQ(feeders.portals.size(), 1u);
  EXPECT_EQ(feeders.portals[0]->pt_index, 7u);
}

TEST(JobView, Entries__of_libfabric_tell_without_options) {
  std::vector<ProcessPicture> job = made_up_job(1);
  interface_in(job[0]).index = kFabricInterface;
  add_entry(add_portal(job[0], 4), 1).ct_handle = kJobCounter;
  const Feeders feeders = feeders_of(job[0], interface_in(job[0]), WaitKind::kCounters, kJobCounter);
  EXPECT_EQ(feeders.entries.size(), 1u);
  EXPECT_EQ(feeders.mute_entry, nullptr);
}

TEST(JobView, Somebody__waits_who_sleeps_or_polls) {
  std::vector<ProcessPicture> job = made_up_job(2);
  EXPECT_FALSE(JobView(job).anybody_waits());
  job[1].polls = true;
  EXPECT_TRUE(JobView(job).anybody_waits());
  EXPECT_TRUE(ago_text(0).ends_with(" s ago"));
}

}  // namespace
}  // namespace portofu
