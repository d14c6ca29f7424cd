#include "engine/inspect/findings.h"

#include <gtest/gtest.h>

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
  for (int kind = 0; kind <= static_cast<int>(FindingKind::kOutside); ++kind)
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

TEST(Findings, Job__in_which_nothing_waits_has_none) { EXPECT_TRUE(find_causes(made_up_job(3)).empty()); }

}  // namespace
}  // namespace portofu
