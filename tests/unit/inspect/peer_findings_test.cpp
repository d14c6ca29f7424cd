#include <gtest/gtest.h>

#include "tests/unit/support/made_up_job.h"

namespace portofu {
namespace {

TEST(PeerFindings, Circle__needs_everybody_to_wait_for_one) {
  std::vector<ProcessPicture> job = made_up_job(4);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    EntryPicture& entry = add_entry(add_portal(job[rank], 4), 1, job_id((rank + 1) % 3));
    entry.ct_handle = kJobCounter;
    entry.options = kEntryEventCtComm;
    add_counter(job[rank], 0);
    add_sleep(job[rank], WaitKind::kCounters, 1);
  }
  std::vector<Finding> found = found_in(job, find_circles);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].object, "rank 0, rank 1, rank 2");
  interface_in(job[2]).portals[0].priority.items[0].criteria.any_pid = true;
  EXPECT_TRUE(found_in(job, find_circles).empty()) << "rank 2 takes messages of others, too";
}

TEST(PeerFindings, Circle__of_answers_needs_operations_that_last) {
  std::vector<ProcessPicture> job = made_up_job(2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) job[rank].core.operations.emplace_back().target = job_id(1 - rank);
  EXPECT_TRUE(found_in(job, find_circles).empty());
  for (ProcessPicture& process : job) process.core.operations[0].lasts = true;
  const std::vector<Finding> found = found_in(job, find_circles);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].sentence,
            "rank 0 waits for an answer of rank 1, which waits for an answer of rank 0: a circle of 2");
}

TEST(PeerFindings, Peers__that_do_nothing_are_told_with_who_waits) {
  std::vector<ProcessPicture> job = made_up_job(3);
  job[1].run_state = RunState::kStopped;
  job[2].sight = Sight::kDead;
  std::vector<Finding> found = found_in(job, find_silent_peers);
  ASSERT_EQ(found.size(), 1u) << "nobody misses the dead one";
  EXPECT_EQ(found[0].kind, FindingKind::kPeerStopped);
  job[0].core.peers.push_back({job_id(2), PeerState::kConnected, 0, 0, 2});
  found = found_in(job, find_silent_peers);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1].kind, FindingKind::kPeerDead);
  EXPECT_TRUE(found[1].sentence.ends_with("is dead; it is waited for by rank 0")) << found[1].sentence;
}

TEST(PeerFindings, Rank__that_is_dead_is_missed_by_who_waits_unless_another_process_has_it) {
  std::vector<ProcessPicture> job = made_up_job(2);
  job[1].sight = Sight::kDead;
  EXPECT_TRUE(found_in(job, find_silent_peers).empty()) << "nobody waits";
  add_sleep(job[0], WaitKind::kOther);
  const std::vector<Finding> found = found_in(job, find_silent_peers);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::kPeerDead);
  EXPECT_EQ(found[0].where, job_id(1));
  job.push_back(made_up_job(3)[2]);
  job[2].rank = 1;
  EXPECT_TRUE(found_in(job, find_silent_peers).empty()) << "of an earlier job";
}

TEST(PeerFindings, Operations_and_messages__are_told_by_peer) {
  std::vector<ProcessPicture> job = made_up_job(2);
  OperationPicture get;
  get.kind = PacketType::kGet;
  get.target = job_id(1);
  get.length = 12;
  get.lasts = true;
  job[0].core.operations = {get, get};
  job[1].core.peers.push_back({job_id(0), PeerState::kConnecting, 3, 0, 0});
  const std::vector<Finding> found = found_in(job, find_silent_peers);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].kind, FindingKind::kNotAnswered);
  EXPECT_EQ(found[0].lacks, 2u);
  EXPECT_TRUE(found[0].sentence.ends_with("the first is to a get of 12 bytes"));
  EXPECT_EQ(found[1].kind, FindingKind::kNotSent);
  EXPECT_TRUE(found[1].sentence.ends_with("that wait until it can be reached: 3"));
}

TEST(PeerFindings, Operation_of_utofu__has_the_name_of_its_function) {
  std::vector<ProcessPicture> job = made_up_job(2);
  OperationPicture& get = job[0].core.operations.emplace_back();
  get.kind = PacketType::kTofuGet;
  get.target = job_id(1);
  get.lasts = true;
  EXPECT_TRUE(found_in(job, find_silent_peers).at(0).sentence.ends_with("the first is to a utofu_get of 0 bytes"));
}

TEST(PeerFindings, Process__that_is_in_no_call_is_told_if_somebody_waits_for_it) {
  std::vector<ProcessPicture> job = made_up_job(3);
  EXPECT_TRUE(found_in(job, find_outside).empty()) << "nobody waits";
  PortalPicture& portal = add_portal(job[0], 4);
  portal.eq_handle = kJobQueue;
  add_entry(portal, 0x10);
  add_sleep(job[0], WaitKind::kEventQueue);
  EXPECT_EQ(found_in(job, find_outside).size(), 2u) << "it may wait for either";
  portal.priority.items[0].criteria = {0x10, 0, job_id(1), false, false};
  std::vector<Finding> found = found_in(job, find_outside);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].where, job_id(1));
  EXPECT_TRUE(found[0].sentence.ends_with("is in no call of the library while rank 0 waits; its first thread computes"))
      << found[0].sentence;
  job[1].run_state = RunState::kSleeps;
  EXPECT_TRUE(found_in(job, find_outside).at(0).sentence.ends_with("sleeps elsewhere"));
  job[1].core.vcqs.emplace_back().mrq_unread = 2;
  add_portal(job[1], 5).unexpected.size = 1;
  EXPECT_TRUE(
      found_in(job, find_outside).at(0).sentence.ends_with("; there lie unread MRQ notices: 2, unexpected headers: 1"));
  Finding cause;
  cause.kind = FindingKind::kHeaderWaits;
  cause.other = job_id(1);
  found = {cause};
  find_outside(JobView(job), &found);
  EXPECT_EQ(found.size(), 1u) << "it has done its part, though wrongly";
  job[1].polls = true;
  EXPECT_TRUE(found_in(job, find_outside).empty());
}

TEST(PeerFindings, Lanes__of_a_process_are_told_as_one) {
  std::vector<ProcessPicture> job = made_up_job(4);
  job[2].rank = job[1].rank;
  job[2].descriptor.os_pid = job[1].descriptor.os_pid;
  PortalPicture& portal = add_portal(job[0], 4);
  portal.eq_handle = kJobQueue;
  add_entry(portal, 0x10);
  add_sleep(job[0], WaitKind::kEventQueue);
  EXPECT_EQ(found_in(job, find_outside).size(), 2u) << "rank 1, and rank 3";
  job[2].polls = true;
  const std::vector<Finding> found = found_in(job, find_outside);
  ASSERT_EQ(found.size(), 1u) << "rank 1 is in a call of its other lane";
  EXPECT_EQ(found[0].where, job_id(3));
  job[2].polls = false;
  for (const std::size_t lane : {1, 2}) job[lane].run_state = RunState::kStopped;
  EXPECT_EQ(found_in(job, find_silent_peers).size(), 1u);
}

}  // namespace
}  // namespace portofu
