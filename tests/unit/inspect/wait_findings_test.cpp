#include <gtest/gtest.h>

#include "tests/unit/support/made_up_job.h"

namespace portofu {
namespace {

std::vector<Finding> found_in(const std::vector<ProcessPicture>& job,
                              void (*find)(const JobView&, std::vector<Finding>*)) {
  std::vector<Finding> findings;
  find(JobView(job), &findings);
  return findings;
}

TEST(WaitFindings, Counter__lacks_what_its_test_wants_more) {
  std::vector<ProcessPicture> job = made_up_job(1);
  EntryPicture& entry = add_entry(add_portal(job[0], 4), 0x10, job_id(2));
  entry.ct_handle = kJobCounter;
  entry.options = kEntryEventCtComm;
  add_counter(job[0], 4);
  add_sleep(job[0], WaitKind::kCounters, 5);
  const std::vector<Finding> found = found_in(job, find_lacking);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::kCounterLacks);
  EXPECT_EQ(found[0].lacks, 1u);
  EXPECT_TRUE(found[0].sentence.ends_with(
      "it has 4 and lacks 1; it counts messages at portal table entry 4 with bits 0x10 of PID 102"))
      << found[0].sentence;
  entry.options |= kEntryEventCtBytes;
  EXPECT_NE(found_in(job, find_lacking).at(0).sentence.find("; it counts bytes of messages at"), std::string::npos);
}

TEST(WaitFindings, Entry__that_names_a_counter_and_does_not_count_there_is_told) {
  std::vector<ProcessPicture> job = made_up_job(1);
  add_entry(add_portal(job[0], 4), 0x10).ct_handle = kJobCounter;
  add_counter(job[0], 0);
  add_sleep(job[0], WaitKind::kCounters, 1);
  const std::vector<Finding> found = found_in(job, find_lacking);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::kNothingCounts);
  EXPECT_NE(found[0].sentence.find("entry 4 with bits 0x10 names it, but without PTL_ME_EVENT_CT_COMM"),
            std::string::npos)
      << found[0].sentence;
}

TEST(WaitFindings, Queue__that_gets_events_of_messages_lacks_one_and_one_that_does_not_is_told) {
  std::vector<ProcessPicture> job = made_up_job(1);
  add_sleep(job[0], WaitKind::kEventQueue);
  PortalPicture& portal = add_portal(job[0], 4);
  portal.eq_handle = kJobQueue;
  EXPECT_EQ(found_in(job, find_lacking).at(0).kind, FindingKind::kNoAnswerDue) << "no entry is there";
  EntryPicture& entry = add_entry(portal, 0x10);
  std::vector<Finding> found = found_in(job, find_lacking);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::kEventLacks);
  EXPECT_TRUE(found[0].sentence.ends_with("; it logs messages at portal table entry 4 with bits 0x10"));
  for (const std::uint32_t option : {kEntryEventCommDisable, kEntryEventSuccessDisable}) {
    entry.options = option;
    found = found_in(job, find_lacking);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].kind, FindingKind::kNothingCounts);
    EXPECT_NE(found[0].sentence.find("entry 4 with bits 0x10 makes no event of a message"), std::string::npos);
  }
  job[0].core.operations.emplace_back().md_handle = kJobMd;
  job[0].core.operations[0].ack_req = AckRequest::kFull;
  interface_in(job[0]).descriptors.push_back({kJobMd, kJobQueue, 0, 0, 0});
  EXPECT_TRUE(found_in(job, find_lacking).empty()) << "an answer is due there";
}

TEST(WaitFindings, Descriptor__that_hides_success_is_told) {
  std::vector<ProcessPicture> job = made_up_job(1);
  add_sleep(job[0], WaitKind::kEventQueue);
  interface_in(job[0]).descriptors.push_back({kJobMd, kJobQueue, 0, kMdEventSuccessDisable, 0});
  const std::vector<Finding> found = found_in(job, find_lacking);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::kNothingCounts);
  EXPECT_TRUE(found[0].sentence.ends_with("PTL_MD_EVENT_SUCCESS_DISABLE")) << found[0].sentence;
}

TEST(WaitFindings, Descriptor__of_an_operation_that_waits_for_its_trigger_lacks_no_ack) {
  std::vector<ProcessPicture> job = made_up_job(1);
  interface_in(job[0]).descriptors.push_back({kJobMd, 0, kJobCounter, kMdEventCtSend, 0});
  add_counter(job[0], 0);
  add_sleep(job[0], WaitKind::kCounters, 1);
  EXPECT_TRUE(found_in(job, find_lacking).at(0).sentence.ends_with("and none of them is under way"));
  CounterPicture other{kJobCounter + 1, 1, 0, {}};
  other.waiting.items.push_back({32, PacketType::kPut, 0, kJobMd});
  interface_in(job[0]).counters.push_back(other);
  const std::vector<Finding> found = found_in(job, find_lacking);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].kind, FindingKind::kCounterLacks);
  EXPECT_NE(found[0].sentence.find("an operation would raise it that waits for counter"), std::string::npos);
  EXPECT_TRUE(found[0].sentence.ends_with("which has 1 of 32")) << found[0].sentence;
}

TEST(WaitFindings, Ack__that_nobody_owes_is_told_at_counters_and_queues) {
  std::vector<ProcessPicture> job = made_up_job(1);
  interface_in(job[0]).descriptors.push_back({kJobMd, kJobQueue, kJobCounter, kMdEventCtAck, 0});
  add_counter(job[0], 0);
  add_sleep(job[0], WaitKind::kCounters, 1);
  add_sleep(job[0], WaitKind::kEventQueue);
  const std::vector<Finding> found = found_in(job, find_lacking);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].kind, FindingKind::kNoAnswerDue);
  EXPECT_EQ(found[1].kind, FindingKind::kNoAnswerDue);
  OperationPicture due;
  due.md_handle = kJobMd;
  due.ack_req = AckRequest::kFull;
  job[0].core.operations.push_back(due);
  EXPECT_EQ(found_in(job, find_lacking).at(0).kind, FindingKind::kCounterLacks);
  EXPECT_EQ(found_in(job, find_lacking).size(), 1u);
}

TEST(WaitFindings, Counter__that_nothing_raises_is_told) {
  std::vector<ProcessPicture> job = made_up_job(1);
  add_counter(job[0], 0);
  add_sleep(job[0], WaitKind::kCounters, 1);
  EXPECT_EQ(found_in(job, find_lacking).at(0).kind, FindingKind::kNothingCounts);
}

TEST(WaitFindings, Triggered_operations__are_told_once_their_counter_has_begun) {
  std::vector<ProcessPicture> job = made_up_job(1);
  CounterPicture& counter = add_counter(job[0], 0);
  counter.waiting.items.push_back({5, PacketType::kPut, 0});
  counter.waiting.size = 1;
  EXPECT_TRUE(found_in(job, find_lacking).empty());
  counter.success = 3;
  EXPECT_EQ(found_in(job, find_lacking).at(0).lacks, 2u);
}

TEST(WaitFindings, Circle__needs_everybody_to_wait_for_one) {
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

TEST(WaitFindings, Circle__of_answers_needs_operations_that_last) {
  std::vector<ProcessPicture> job = made_up_job(2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) job[rank].core.operations.emplace_back().target = job_id(1 - rank);
  EXPECT_TRUE(found_in(job, find_circles).empty());
  for (ProcessPicture& process : job) process.core.operations[0].lasts = true;
  const std::vector<Finding> found = found_in(job, find_circles);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].sentence,
            "rank 0 waits for an answer of rank 1, which waits for an answer of rank 0: a circle of 2");
}

TEST(WaitFindings, Peers__that_do_nothing_are_told_with_who_waits) {
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

TEST(WaitFindings, Rank__that_is_dead_is_missed_by_who_waits_unless_another_process_has_it) {
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

TEST(WaitFindings, Operations_and_messages__are_told_by_peer) {
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

}  // namespace
}  // namespace portofu
