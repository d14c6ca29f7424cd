#include <gtest/gtest.h>

#include "engine/observe/hex_text.h"
#include "engine/queue/clock.h"
#include "tests/unit/support/made_up_job.h"

namespace portofu {
namespace {

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
      "it has 4 and lacks 1; it counts messages at portal table entry 4 with bits 0x10 of "
      "PID 102; no process of this job has that PID now: it has ended, has closed its interface, has not begun, or "
      "has another PORTOFU_JOB_KEY"))
      << found[0].sentence;
  entry.options |= kEntryEventCtBytes;
  entry.length = 32;
  EXPECT_TRUE(found_in(job, find_lacking)
                  .at(0)
                  .sentence.ends_with("PORTOFU_JOB_KEY; the entry has room for 32 bytes, and cuts longer messages"));
  EXPECT_NE(found_in(job, find_lacking).at(0).sentence.find("; it counts bytes of messages at"), std::string::npos);
}

TEST(WaitFindings, Wait__that_began_between_the_looks_is_one_of_a_loop) {
  std::vector<ProcessPicture> job = made_up_job(1);
  add_counter(job[0], 4);
  add_sleep(job[0], WaitKind::kCounters, 5);
  job[0].core.sleeps[0].since_ns = monotonic_ns();
  EXPECT_NE(found_in(job, find_lacking).at(0).sentence.find("rank 0 waits again and again until counter 0x"),
            std::string::npos);
  job[0].core.sleeps[0].since_ns = monotonic_ns() - 2'000'000'000;
  EXPECT_NE(found_in(job, find_lacking).at(0).sentence.find("rank 0 has been waiting for 2 s until counter 0x"),
            std::string::npos);
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

TEST(WaitFindings, Counters__that_raise_each_other_are_a_circle) {
  std::vector<ProcessPicture> job = made_up_job(2);
  add_counter(job[0], 0).waiting.items.push_back({1, PacketType::kCountIncrement, kJobCounter + 2});
  CounterPicture second{kJobCounter + 1, 0, 0, {}};
  second.waiting.items.push_back({3, PacketType::kCountIncrement, kJobCounter});
  CounterPicture third{kJobCounter + 2, 2, 0, {}};
  third.waiting.items.push_back({4, PacketType::kCountIncrement, kJobCounter + 1});
  add_sleep(job[0], WaitKind::kCounters, 1);
  interface_in(job[0]).counters.insert(interface_in(job[0]).counters.end(), {second, third});
  std::vector<Finding> found = found_in(job, find_lacking);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].kind, FindingKind::kNothingCounts);
  EXPECT_TRUE(found[0].sentence.ends_with("which has 0 of 3, and that one that waits for " +
                                          counter_name(kJobCounter + 2) +
                                          ", which has 2 of 4, and that one that "
                                          "waits for " +
                                          counter_name(kJobCounter) + ": a circle of counters"))
      << found[0].sentence;
  add_entry(add_portal(job[0], 4), 0x10).ct_handle = kJobCounter + 2;
  interface_in(job[0]).portals[0].priority.items[0].options = kEntryOpPut | kEntryEventCtComm;
  found = found_in(job, find_lacking);
  EXPECT_EQ(found[0].kind, FindingKind::kCounterLacks) << "messages raise the third";
  EXPECT_TRUE(found[0].sentence.ends_with("which has 2 of 4")) << found[0].sentence;
}

TEST(WaitFindings, Descriptor__that_names_a_counter_and_counts_nothing_is_told) {
  std::vector<ProcessPicture> job = made_up_job(1);
  interface_in(job[0]).descriptors.push_back({kJobMd, 0, kJobCounter, 0, 0});
  add_counter(job[0], 0);
  add_sleep(job[0], WaitKind::kCounters, 1);
  const std::vector<Finding> found = found_in(job, find_lacking);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::kNothingCounts);
  EXPECT_NE(found[0].sentence.find("names it, but with none of PTL_MD_EVENT_CT_SEND"), std::string::npos);
}

TEST(WaitFindings, Message__that_waits_at_another_rank_is_told_with_who_waits_for_it) {
  std::vector<ProcessPicture> job = made_up_job(3);
  PortalPicture& portal = add_portal(job[1], 4);
  portal.eq_handle = kJobQueue;
  add_entry(portal, 0x10, job_id(0));
  add_sleep(job[1], WaitKind::kEventQueue);
  add_header(add_portal(job[2], 4), 0x11, job_id(0));
  EXPECT_TRUE(found_in(job, find_lacking).at(0).sentence.ends_with("with bits 0x10 of rank 0"));
  add_header(interface_in(job[2]).portals[0], 0x10, job_id(0));
  EXPECT_TRUE(
      found_in(job, find_lacking).at(0).sentence.ends_with("; one with such bits of it waits unexpected at rank 2"));
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

TEST(WaitFindings, Triggered_operation__that_others_wait_for_is_told_before_its_counter_begins) {
  std::vector<ProcessPicture> job = made_up_job(2);
  CounterPicture& counter = add_counter(job[0], 0);
  TriggerPicture trigger{1, PacketType::kPut, 0, kJobMd, job_id(1), 4, 0x11};
  counter.waiting.items.push_back(trigger);
  counter.waiting.size = 1;
  EntryPicture& input = add_entry(add_portal(job[0], 6), 0x20, job_id(1));
  input.ct_handle = kJobCounter;
  input.options = kEntryEventCtComm;
  EXPECT_TRUE(found_in(job, find_lacking).empty()) << "nobody waits for it";
  EntryPicture& entry = add_entry(add_portal(job[1], 4), 0x10, job_id(0));
  entry.ct_handle = kJobCounter;
  entry.options = kEntryEventCtComm;
  add_counter(job[1], 0);
  add_sleep(job[1], WaitKind::kCounters, 1);
  EXPECT_EQ(found_in(job, find_lacking).size(), 1u) << "it brings other bits";
  entry.criteria.match_bits = 0x11;
  const std::vector<Finding> found = found_in(job, find_lacking);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].where, job_id(0));
  EXPECT_EQ(found[0].other, job_id(1)) << "who should raise the counter";
  EXPECT_NE(found[0].sentence.find("triggered operations of rank 0 that wait for counter"), std::string::npos);
}

TEST(WaitFindings, Source__that_all_entries_want_is_named_and_whether_it_is_there) {
  std::vector<ProcessPicture> job = made_up_job(2);
  PortalPicture& portal = add_portal(job[0], 4);
  portal.eq_handle = kJobQueue;
  add_entry(portal, 0x10, job_id(1));
  add_sleep(job[0], WaitKind::kEventQueue);
  EXPECT_EQ(found_in(job, find_lacking).at(0).other, job_id(1));
  add_entry(portal, 0x11, job_id(0));
  EXPECT_EQ(found_in(job, find_lacking).at(0).other, ProcessId{});
  portal.priority.items[0].criteria.match_id = job_id(7);
  EXPECT_TRUE(found_in(job, find_lacking)
                  .at(0)
                  .sentence.ends_with(
                      "; no process of this job has that PID now: it has ended, has closed its interface, has not "
                      "begun, or has another PORTOFU_JOB_KEY"));
}

TEST(WaitFindings, Loop__of_looks_at_a_counter_is_told_like_a_wait_for_it) {
  std::vector<ProcessPicture> job = made_up_job(1);
  interface_in(job[0]).descriptors.push_back({kJobMd, 0, kJobCounter, kMdEventCtAck, 0});
  CounterPicture& counter = add_counter(job[0], 3);
  add_loop(job[0], WaitKind::kCounters, kJobCounter).goes_on = false;
  EXPECT_TRUE(found_in(job, find_lacking).empty()) << "it has looked there before, and now no more";
  job[0].core.polls[0].goes_on = true;
  const std::vector<Finding> found = found_in(job, find_lacking);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::kNoAnswerDue);
  EXPECT_NE(found[0].sentence.find("rank 0 looks again and again at counter 0x"), std::string::npos);
  EXPECT_NE(found[0].sentence.find(", which has 3; it counts for operations of"), std::string::npos);
  counter.failure = 2;
  ASSERT_EQ(found_in(job, find_lacking).size(), 1u);
  EXPECT_EQ(found_in(job, find_lacking)[0].kind, FindingKind::kCounterFailed);
  EXPECT_EQ(found_in(job, find_lacking)[0].lacks, 2u);
}

TEST(WaitFindings, Counter__that_has_failures_is_told_while_somebody_waits) {
  std::vector<ProcessPicture> job = made_up_job(2);
  CounterPicture& counter = add_counter(job[0], 0);
  counter.failure = 1;
  counter.waiting.items.push_back({1, PacketType::kPut, 0, kJobMd, {}, 0, 0});
  EXPECT_TRUE(found_in(job, find_lacking).empty());
  job[1].polls = true;
  const std::vector<Finding> found = found_in(job, find_lacking);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::kCounterFailed);
  EXPECT_TRUE(found[0].sentence.ends_with("and failures do not start them")) << found[0].sentence;
}

TEST(WaitFindings, Loop__over_several_queues_is_told_by_what_was_posted_to_be_used_once) {
  std::vector<ProcessPicture> job = made_up_job(2);
  constexpr Handle kOther = kJobQueue + 1;
  PortalPicture& stays = add_portal(job[0], 16);
  stays.eq_handle = kOther;
  add_entry(stays, 0);
  add_loop(job[0], WaitKind::kEventQueue, kOther);
  add_loop(job[0], WaitKind::kEventQueue, kJobQueue);
  EXPECT_EQ(found_in(job, find_lacking).at(0).kind, FindingKind::kEventLacks);
  PortalPicture& receives = add_portal(job[0], 12);
  receives.eq_handle = kJobQueue;
  add_entry(receives, 0x5);
  add_entry(receives, 0x7, job_id(1)).options = kEntryUseOnce;
  const std::vector<Finding> found = found_in(job, find_lacking);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].other, job_id(1));
  EXPECT_EQ(found[0].object, "event queue " + hex_text(kJobQueue));
  EXPECT_TRUE(found[0].sentence.ends_with("; it logs messages at portal table entry 12 with bits 0x7 of rank 1"))
      << found[0].sentence;
  receives.priority.items.clear();
  add_counter(job[0], 0);
  add_loop(job[0], WaitKind::kCounters, kJobCounter);
  ASSERT_EQ(found_in(job, find_lacking).size(), 1u) << "what it waits for is the counter";
  EXPECT_EQ(found_in(job, find_lacking)[0].kind, FindingKind::kNothingCounts);
}

TEST(WaitFindings, Events__that_a_waiting_program_does_not_read_are_told) {
  std::vector<ProcessPicture> job = made_up_job(2);
  QueuePicture& queue = interface_in(job[0]).queues.emplace_back();
  queue.handle = kJobQueue;
  queue.size = 2;
  queue.oldest_type = EventKind::kPut;
  queue.oldest_bits = 0x10;
  queue.oldest_from = job_id(1);
  EXPECT_TRUE(found_in(job, find_lacking).empty()) << "it does something else";
  add_loop(job[0], WaitKind::kEventQueue, kJobQueue + 1);
  const std::vector<Finding> found = found_in(job, find_lacking);
  ASSERT_EQ(found.size(), 1u) << "that it looks where nothing logs follows";
  EXPECT_EQ(found[0].kind, FindingKind::kEventsUnread);
  EXPECT_EQ(found[0].lacks, 2u);
  EXPECT_EQ(found[0].other, job_id(1));
  EXPECT_TRUE(found[0].sentence.ends_with("; the oldest is PTL_EVENT_PUT of rank 1 (bits 0x10)")) << found[0].sentence;
  add_loop(job[0], WaitKind::kEventQueue, kJobQueue);
  for (const Finding& finding : found_in(job, find_lacking)) EXPECT_NE(finding.kind, FindingKind::kEventsUnread);
}

TEST(WaitFindings, Error__in_a_completion_queue_of_libfabric_is_told_whoever_waits) {
  std::vector<ProcessPicture> job = made_up_job(1);
  interface_in(job[0]).index = kFabricInterface;
  QueuePicture& queue = interface_in(job[0]).queues.emplace_back();
  queue.handle = make_handle(HandleKind::kEventQueue, kFabricInterface, 0, 0);
  queue.size = 1;
  EXPECT_TRUE(found_in(job, find_lacking).empty());
  queue.oldest_fail = NiFail::kNoMatch;
  ASSERT_EQ(found_in(job, find_lacking).size(), 1u);
  EXPECT_TRUE(found_in(job, find_lacking)[0].sentence.ends_with("(fi_cq_readerr)"));
}

TEST(WaitFindings, Completion__in_a_queue_of_libfabric_that_nobody_reads_is_told_who_waits) {
  std::vector<ProcessPicture> job = made_up_job(1);
  interface_in(job[0]).index = kFabricInterface;
  const Handle queues[] = {make_handle(HandleKind::kEventQueue, kFabricInterface, 0, 0),
                           make_handle(HandleKind::kEventQueue, kFabricInterface, 0, 1)};
  for (const Handle handle : queues) interface_in(job[0]).queues.emplace_back().handle = handle;
  add_loop(job[0], WaitKind::kEventQueue, queues[0]);
  std::vector<Finding> found = found_in(job, find_lacking);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].sentence.ends_with(
      "; no receive is posted, and no operation is under way, that completes there; was FI_COMPLETION asked for, if "
      "its endpoint has FI_SELECTIVE_COMPLETION?"))
      << found[0].sentence;
  interface_in(job[0]).queues[1].size = 1;
  found = found_in(job, find_lacking);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, FindingKind::kEventsUnread);
  EXPECT_TRUE(found[0].sentence.ends_with(", where completions wait: 1")) << found[0].sentence;
}

TEST(WaitFindings, Receives_of_libfabric__are_told_in_its_words_and_memory_is_none) {
  std::vector<ProcessPicture> job = made_up_job(2);
  interface_in(job[0]).index = kFabricInterface;
  const Handle queue = make_handle(HandleKind::kEventQueue, kFabricInterface, 0, 0);
  const auto sentence = [&job] { return found_in(job, find_lacking).at(0).sentence; };
  for (const std::uint32_t pt_index : {6, 4, 5}) add_portal(job[0], pt_index).eq_handle = queue;
  std::vector<PortalPicture>& portals = interface_in(job[0]).portals;
  add_entry(portals[0], 0x65).options = kEntryOpPut;
  add_loop(job[0], WaitKind::kEventQueue, queue);
  EXPECT_EQ(sentence(),
            "rank 0 looks again and again for an event of completion queue " + hex_text(queue) +
                "; no receive is posted, and no operation is under way, that completes there; was FI_COMPLETION "
                "asked for, if its endpoint has FI_SELECTIVE_COMPLETION? A write of another process would "
                "with FI_REMOTE_CQ_DATA, to memory of key 0x65");
  add_entry(portals[1], 0x10, job_id(1), 0xf).options = kEntryOpPut | kEntryTakesData | kEntryUseOnce;
  EXPECT_TRUE(sentence().ends_with("; it logs messages at fi_trecv of endpoint 1 with tag 0x10, ignore 0xf of rank 1"))
      << sentence();
  EXPECT_EQ(found_in(job, find_lacking).at(0).other, job_id(1));
  // FI_MULTI_RECV: it stays, and is awaited like the others.
  add_entry(portals[2], 0).options = kEntryOpPut | kEntryTakesData | kEntryManageLocal;
  EXPECT_TRUE(sentence().ends_with("of rank 1, and of one receive more")) << sentence();
  EXPECT_EQ(found_in(job, find_lacking).at(0).other, ProcessId{}) << "anybody may send";
  portals[1].priority.items.clear();
  EXPECT_TRUE(sentence().ends_with("; it logs messages at fi_recv of endpoint 1")) << sentence();
}

TEST(WaitFindings, Deferred_work_of_libfabric__is_told_with_the_counter_that_holds_it) {
  std::vector<ProcessPicture> job = made_up_job(1);
  interface_in(job[0]).index = kFabricInterface;
  const Handle queue = make_handle(HandleKind::kEventQueue, kFabricInterface, 0, 0);
  interface_in(job[0]).queues.emplace_back().handle = queue;
  add_loop(job[0], WaitKind::kEventQueue, queue);
  CounterPicture& counter = add_counter(job[0], 2);
  counter.waiting.items.push_back({.threshold = 3, .type = PacketType::kPut});
  counter.waiting.size = 1;
  const std::vector<Finding> found = found_in(job, find_lacking);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].sentence, "deferred work of rank 0 that waits for " + counter_name(kJobCounter) +
                                   ": 1; the next needs 3, it has 2 and lacks 1");
  EXPECT_TRUE(
      found[1].sentence.ends_with("; no receive is posted, and deferred work that may complete there waits "
                                  "for " +
                                  counter_name(kJobCounter)))
      << found[1].sentence;
}

}  // namespace
}  // namespace portofu
