#include "engine/inspect/findings.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/support/made_up_job.h"

namespace portofu {
namespace {

TEST(Findings, Bits__are_told_as_ranges) {
  EXPECT_EQ(bits_text(1), "bit 0");
  EXPECT_EQ(bits_text(0xf00), "bits 8-11");
  EXPECT_EQ(bits_text(0xf05), "bits 0, 2, 8-11");
  EXPECT_EQ(bits_text(1ull << 63), "bit 63");
}

TEST(Findings, Names__are_all_there) {
  for (int kind = 0; kind <= static_cast<int>(FindingKind::kWordHeld); ++kind)
    EXPECT_STRNE(finding_name(static_cast<FindingKind>(kind)), "unknown") << kind;
}

TEST(Findings, What_passes__is_not_kept) {
  Finding stays, passes;
  stays.object = "counter 1";
  passes.object = "counter 2";
  Finding counts_on = stays;
  counts_on.lacks = 4;
  const std::vector<Finding> kept = keep_lasting({stays, passes}, {counts_on, stays});
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].object, "counter 1");
  EXPECT_EQ(kept[0].lacks, 0u);
  EXPECT_TRUE(keep_lasting({}, {stays}).empty());
  EXPECT_TRUE(keep_lasting({stays}, {}).empty());
}

TEST(Findings, Changes__say_who_looks_and_what_lasts) {
  std::vector<ProcessPicture> before = made_up_job(2), now = before;
  now[0].application_looks = 9;
  before[1].core.operations.emplace_back().id = 5;
  now[1].core.operations.emplace_back().id = 5;
  now[1].core.operations.emplace_back().id = 6;
  note_changes(before, &now);
  EXPECT_TRUE(now[0].polls);
  EXPECT_FALSE(now[1].polls);
  EXPECT_TRUE(now[1].core.operations[0].lasts);
  EXPECT_FALSE(now[1].core.operations[1].lasts);
}

TEST(Findings, Changes__say_what_loops_look_at) {
  std::vector<ProcessPicture> before = made_up_job(1);
  add_loop(before[0], WaitKind::kMrq, 1).goes_on = false;
  add_loop(before[0], WaitKind::kMrq, 2).goes_on = false;
  add_portal(before[0], 4).missed_searches = 3;
  add_portal(before[0], 5).missed_searches = 3;
  std::vector<ProcessPicture> now = before;
  now[0].core.polls[1].seen.looks += 1;
  add_loop(now[0], WaitKind::kTcq, 2).goes_on = false;
  interface_in(now[0]).portals[1].missed_searches = 9;
  note_changes(before, &now);
  EXPECT_FALSE(now[0].core.polls[0].goes_on);
  EXPECT_TRUE(now[0].core.polls[1].goes_on);
  EXPECT_FALSE(now[0].core.polls[2].goes_on) << "it is new";
  EXPECT_FALSE(interface_in(now[0]).portals[0].searches);
  EXPECT_TRUE(interface_in(now[0]).portals[1].searches);
}

/// Two ranks that send each other messages wait for each other at each look. `go_on` is what happens between two looks.
template <class GoOn>
void expect_found_until(std::vector<ProcessPicture> job, FindingKind kind, GoOn go_on) {
  const auto kept = [&job](const std::vector<Finding>& before) {
    std::vector<FindingKind> kinds;
    for (const Finding& finding : keep_lasting(before, find_causes(job))) kinds.push_back(finding.kind);
    return kinds;
  };
  const std::vector<Finding> before = find_causes(job);
  EXPECT_NE(std::ranges::count(kept(before), kind), 0) << finding_name(kind);
  go_on(job[0]);
  EXPECT_EQ(std::ranges::count(kept(before), kind), 0) << finding_name(kind);
}

TEST(Findings, Wait_for_a_count__is_no_hang_if_counts_come) {
  std::vector<ProcessPicture> job = made_up_job(2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    EntryPicture& entry = add_entry(add_portal(job[rank], 4), 0x10, job_id(1 - rank));
    entry.ct_handle = kJobCounter;
    entry.options = kEntryEventCtComm | kEntryOpPut;
    add_counter(job[rank], 6).waiting = {{{7, PacketType::kPut, 0}}, 1, false};
    add_sleep(job[rank], WaitKind::kCounters, 7);
  }
  const auto counts = [](ProcessPicture& process) {
    CounterPicture& counter = interface_in(process).counters[0];
    counter.success = 7;
    counter.waiting.items[0].threshold = 8;
    process.core.sleeps.clear();
    add_sleep(process, WaitKind::kCounters, 8);
  };
  const auto sets = [](ProcessPicture& process) { interface_in(process).counters[0].sets = 1; };
  for (std::vector<ProcessPicture> one : {job, std::vector{job[0]}}) {
    const FindingKind kind = one.size() == 2 ? FindingKind::kCircle : FindingKind::kCounterLacks;
    expect_found_until(one, kind, counts);
    expect_found_until(one, kind, sets);
  }
  job.pop_back();
  job[0].core.sleeps.clear();
  add_loop(job[0], WaitKind::kCounters, kJobCounter);
  expect_found_until(job, FindingKind::kCounterLacks, sets);
}

TEST(Findings, Wait_that_is_seen_asleep_and_awake__is_one) {
  std::vector<ProcessPicture> job = made_up_job(1);
  EntryPicture& entry = add_entry(add_portal(job[0], 4), 0x10, job_id(1));
  entry.ct_handle = kJobCounter;
  entry.options = kEntryEventCtComm | kEntryOpPut;
  add_counter(job[0], 6);
  std::vector<ProcessPicture> awake = job;
  add_sleep(job[0], WaitKind::kCounters, 7);
  add_loop(awake[0], WaitKind::kCounters, kJobCounter);
  EXPECT_EQ(keep_lasting(find_causes(job), find_causes(awake)).size(), 1u);
  EXPECT_EQ(keep_lasting(find_causes(awake), find_causes(job)).size(), 1u);
}

TEST(Findings, Wait_for_an_event__is_no_hang_if_events_come) {
  std::vector<ProcessPicture> job = made_up_job(2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    PortalPicture& portal = add_portal(job[rank], 4);
    portal.eq_handle = kJobQueue;
    add_entry(portal, 0x10, job_id(1 - rank)).options = kEntryOpPut;
    interface_in(job[rank]).queues.emplace_back().handle = kJobQueue;
    add_sleep(job[rank], WaitKind::kEventQueue);
  }
  const auto reads = [](ProcessPicture& process) { interface_in(process).queues[0].oldest_place = 1; };
  const auto gets = [](ProcessPicture& process) { interface_in(process).queues[0].size = 1; };
  expect_found_until(job, FindingKind::kCircle, reads);
  job.pop_back();
  expect_found_until(job, FindingKind::kEventLacks, reads);
  expect_found_until(job, FindingKind::kEventLacks, gets);
  interface_in(job[0]).queues[0].full = true;
  expect_found_until(job, FindingKind::kQueueFull, reads);
}

TEST(Findings, Rank_that_is_elsewhere__stops_nobody_who_goes_on) {
  std::vector<ProcessPicture> job = made_up_job(2);
  EntryPicture& entry = add_entry(add_portal(job[0], 4), 0x10, job_id(1));
  entry.ct_handle = kJobCounter;
  entry.options = kEntryEventCtComm | kEntryOpPut;
  add_counter(job[0], 6);
  add_sleep(job[0], WaitKind::kCounters, 7);
  interface_in(job[0]).queues.emplace_back();
  job[0].core.vcqs.emplace_back();
  job[0].core.gates.emplace_back();
  const auto expect = [&job](auto go_on) { expect_found_until(job, FindingKind::kOutside, go_on); };
  for (const bool is_known : {true, false}) {
    if (!is_known) interface_in(job[0]).portals[0].priority.items[0].criteria.any_nid = true;
    expect([](ProcessPicture& waiter) { interface_in(waiter).counters[0].sets = 1; });
    expect([](ProcessPicture& waiter) { interface_in(waiter).queues[0].size = 1; });
    expect([](ProcessPicture& waiter) { waiter.core.vcqs[0].tcq_progress = 1; });
    expect([](ProcessPicture& waiter) { waiter.core.gates[0].rounds_passed = 1; });
  }
}

TEST(Findings, Header_that_waits__is_another_one_if_it_has_another_place) {
  std::vector<ProcessPicture> job = made_up_job(1);
  add_header(add_portal(job[0], 4), 0x10, job_id(1));
  add_sleep(job[0], WaitKind::kEventQueue);
  expect_found_until(job, FindingKind::kHeaderWaits,
                     [](ProcessPicture& process) { interface_in(process).portals[0].unexpected.items[0].order = 2; });
}

TEST(Findings, Queues_and_gates_of_uTofu__are_no_hang_if_they_go_on) {
  std::vector<ProcessPicture> job = made_up_job(1);
  VcqPicture& vcq = job[0].core.vcqs.emplace_back();
  vcq.id = 0x44;
  add_loop(job[0], WaitKind::kMrq, 0x44);
  const auto mrq = [](ProcessPicture& process) { process.core.vcqs[0].mrq_progress = 2; };
  const auto tcq = [](ProcessPicture& process) { process.core.vcqs[0].tcq_progress = 2; };
  expect_found_until(job, FindingKind::kEventLacks, mrq);
  job[0].core.polls[0].seen.kind = WaitKind::kTcq;
  expect_found_until(job, FindingKind::kNoAnswerDue, tcq);
  vcq.mrq_entries = vcq.mrq_unread = vcq.delayed = 4;
  vcq.waiting = {{{3, PacketType::kPut, 0}}, 1, false};
  expect_found_until(job, FindingKind::kQueueFull, mrq);
  expect_found_until(job, FindingKind::kNoticesUnread, mrq);
  expect_found_until(job, FindingKind::kStartDelayed, tcq);
  expect_found_until(job, FindingKind::kSessionLacks, [](ProcessPicture& process) {
    process.core.vcqs[0].steps = 5;
    process.core.vcqs[0].waiting.items[0].threshold = 8;
  });
  GatePicture& gate = job[0].core.gates.emplace_back();
  gate.id = 1;
  gate.local_source = 2;
  gate.has_packet = true;
  expect_found_until(job, FindingKind::kGateLacks,
                     [](ProcessPicture& process) { process.core.gates[0].rounds_passed = 1; });
}

TEST(Findings, Job__in_which_nothing_waits_has_none) { EXPECT_TRUE(find_causes(made_up_job(3)).empty()); }

}  // namespace
}  // namespace portofu
