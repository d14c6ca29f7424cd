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

TEST(Explanation, Awaited__is_what_is_slept_for_and_what_a_loop_looks_at_again) {
  ProcessPicture process;
  EXPECT_EQ(awaited_text(process), "");
  SleepPicture sleep;
  sleep.subject.kind = WaitKind::kCounters;
  sleep.subject.add(0xa1, 1);
  sleep.subject.add(0xa, 1);
  process.core.sleeps = {sleep};
  const auto polled = [](WaitKind kind, std::uint64_t object, bool goes_on) {
    return PollPicture{{kind, object, 1}, goes_on};
  };
  process.core.polls = {polled(WaitKind::kEventQueue, 0x84, true), polled(WaitKind::kEventQueue, 0x85, false),
                        polled(WaitKind::kMrq, 0x3, true),         polled(WaitKind::kTcq, 0x3, true),
                        polled(WaitKind::kGate, 0x7, true),        polled(WaitKind::kCounters, 0xa1, true)};
  EXPECT_EQ(awaited_text(process),
            "counter 0xa1, counter 0xa, event queue 0x84, the MRQ of VCQ 0x3, the TCQ of VCQ 0x3, barrier gate 0x7");
}

}  // namespace
}  // namespace portofu
