#include "engine/inspect/explanation.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <utility>

#include "engine/segment/process_segment.h"
#include "tests/unit/support/made_up_job.h"

namespace portofu {
namespace {

TEST(Explanation, Jobs__are_told_apart_by_their_keys) {
  char directory[] = "/tmp/portofu-explanation-XXXXXX";
  ASSERT_NE(mkdtemp(directory), nullptr);
  SegmentOptions options;
  options.nid = kJobNid;
  options.directory = directory;
  SegmentError error = SegmentError::kNone;
  std::string why;
  options.job_key = 7;
  const auto one = ProcessSegment::create(options, &error, &why);
  ASSERT_NE(one, nullptr) << why;
  options.job_key = 5;
  auto other = ProcessSegment::create(options, &error, &why);
  ASSERT_NE(other, nullptr) << why;
  Looks looks;
  ASSERT_TRUE(look_twice(directory, &looks));
  const std::vector<Explanation> jobs = explain_looks(std::move(looks));
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].job_key, 5u);
  ASSERT_EQ(jobs[1].processes.size(), 1u);
  EXPECT_EQ(jobs[1].processes[0].id(), one->id());
  EXPECT_EQ(jobs[1].processes[0].sight, Sight::kNothing) << "no engine has it";
  EXPECT_TRUE(jobs[1].findings.empty());
  one->end();
  other->end();
  EXPECT_EQ(rmdir(directory), 0);
  Looks none;
  EXPECT_FALSE(look_twice(directory, &none));
}

TEST(Explanation, Finding__concerns_both_processes_that_it_names_and_a_circle_all) {
  Finding finding;
  finding.where = job_id(0);
  finding.other = job_id(1);
  EXPECT_TRUE(concerns(finding, job_id(0).pid));
  EXPECT_TRUE(concerns(finding, job_id(1).pid));
  EXPECT_FALSE(concerns(finding, job_id(2).pid));
  finding.kind = FindingKind::kCircle;
  EXPECT_TRUE(concerns(finding, job_id(2).pid));
}

using Names = std::vector<std::string>;

TEST(Explanation, Awaited__is_what_a_thread_sleeps_for_or_what_a_loop_looks_at_again) {
  constexpr Stall kLoop;
  ProcessPicture process;
  EXPECT_EQ(awaited_in(process, kLoop).own, Names());
  const auto asleep = [](std::int32_t thread, bool tells_itself, WaitKind kind, std::vector<Handle> handles) {
    SleepPicture sleep;
    sleep.thread = thread;
    sleep.tells_itself = tells_itself;
    sleep.subject.kind = kind;
    for (const Handle handle : handles) sleep.subject.add(handle, 1);
    return sleep;
  };
  process.core.sleeps = {asleep(7, true, WaitKind::kCounters, {0xa1, 0xa}),
                         asleep(8, true, WaitKind::kEventQueue, {0x81, 0x82}),
                         asleep(9, false, WaitKind::kCounters, {0xa2})};  // Of a loop of such calls.
  const auto polled = [](WaitKind kind, std::uint64_t object, bool goes_on) {
    return PollPicture{{kind, object, 1}, goes_on};
  };
  process.core.polls = {polled(WaitKind::kEventQueue, 0x84, true), polled(WaitKind::kEventQueue, 0x85, false),
                        polled(WaitKind::kMrq, 0x3, true),         polled(WaitKind::kTcq, 0x3, true),
                        polled(WaitKind::kGate, 0x7, true),        polled(WaitKind::kCounters, 0xa1, true)};
  const Awaited looped = awaited_in(process, kLoop);
  EXPECT_EQ(looped.own, (Names{"counter 0xa2", "event queue 0x84", "the MRQ of VCQ 0x3", "the TCQ of VCQ 0x3",
                               "barrier gate 0x7"}));
  EXPECT_EQ(looped.others,
            (Names{"counter 0xa1", "counter 0xa", "event queue 0x81", "event queue 0x82", "event queue 0x81, 0x82"}));
  const Awaited slept = awaited_in(process, Stall{.thread = 8});
  EXPECT_EQ(slept.own, (Names{"event queue 0x81", "event queue 0x82"}));
  EXPECT_EQ(slept.others.size(), 7u);
}

TEST(Explanation, Loop__at_what_a_call_sleeps_for_has_that_to_tell) {
  ProcessPicture process;
  SleepPicture sleep;
  sleep.subject.kind = WaitKind::kCounters;
  sleep.subject.add(0xa1, 1);
  sleep.tells_itself = true;
  process.core.sleeps = {sleep};
  process.core.polls = {PollPicture{{WaitKind::kCounters, 0xa1, 1}, true}};
  EXPECT_EQ(awaited_in(process, Stall{}).own, Names{"counter 0xa1"});
}

}  // namespace
}  // namespace portofu
