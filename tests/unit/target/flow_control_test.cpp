// A resource of a portal table entry is used up.

#include "engine/target/flow_control.h"

#include <gtest/gtest.h>

#include "tests/unit/support/core_fixture.h"

namespace portofu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class FlowControlTest : public CoreTest {
 protected:
  static constexpr std::uint16_t kControlledPt = 9;
  PortalTableEntry& controlled = make_portal(ni, kControlledPt, eq, true);
  ListEntry matched;
};

TEST_F(FlowControlTest, Entry_without__stays_enabled_and_the_message_finds_nothing) {
  EXPECT_EQ(exhausted(core, ni, kPt, &matched), Refusal::kNoMatch);
  EXPECT_TRUE(portal.enabled);
  EXPECT_THAT(kinds(), IsEmpty());
  EXPECT_EQ(counted(Counter::kFlowControlEvents), 0u);
}

TEST_F(FlowControlTest, Entry_with__is_disabled_and_the_application_told) {
  const std::uint64_t activity = core.activity;
  EXPECT_EQ(exhausted(core, ni, kControlledPt, nullptr), Refusal::kFlowControl);
  EXPECT_FALSE(controlled.enabled);
  EXPECT_TRUE(portal.enabled) << "another entry";
  const Event event = next_event();
  EXPECT_EQ(event.type, EventKind::kPtDisabled);
  EXPECT_EQ(event.pt_index, kControlledPt);
  EXPECT_EQ(event.ni_fail_type, NiFail::kOk);
  EXPECT_EQ(counted(Counter::kFlowControlEvents), 1u);
  EXPECT_EQ(counted(Counter::kEventsPosted), 1u);
  EXPECT_GT(core.activity, activity);
}

TEST_F(FlowControlTest, List_entry_that_wants_no_event__disables_in_silence) {
  matched.options = kEntryEventFlowctrlDisable;
  EXPECT_EQ(exhausted(core, ni, kControlledPt, &matched), Refusal::kFlowControl);
  EXPECT_FALSE(controlled.enabled);
  EXPECT_THAT(kinds(), IsEmpty());
  EXPECT_EQ(counted(Counter::kFlowControlEvents), 1u);
}

TEST_F(FlowControlTest, Full_queue__keeps_its_events_and_takes_this_one_into_the_reserved_place) {
  const Handle small = make_eq(ni, 3);
  make_portal(ni, 10, small, true);
  for (int i = 0; i < 3; ++i) post_new_event(core, ni, small, [](Event&) {});
  EXPECT_EQ(exhausted(core, ni, 10, nullptr), Refusal::kFlowControl);
  EXPECT_THAT(kinds(small),
              ElementsAre(EventKind::kError, EventKind::kError, EventKind::kError, EventKind::kPtDisabled));
}

TEST_F(FlowControlTest, Two_entries_on_one_full_queue__both_tell) {
  const Handle small = make_eq(ni, 1);
  make_portal(ni, 10, small, true);
  make_portal(ni, 11, small, true);
  post_new_event(core, ni, small, [](Event&) {});
  exhausted(core, ni, 10, nullptr);
  exhausted(core, ni, 11, nullptr);
  EXPECT_THAT(kinds(small), ElementsAre(EventKind::kError, EventKind::kPtDisabled, EventKind::kPtDisabled));
}

TEST_F(FlowControlTest, Queue_that_was_freed__is_not_missed) {
  ni.eqs.find(eq)->close();
  ni.eqs.free(eq);
  EXPECT_EQ(exhausted(core, ni, kControlledPt, nullptr), Refusal::kFlowControl);
  EXPECT_FALSE(controlled.enabled);
  EXPECT_EQ(counted(Counter::kEventsPosted), 0u);
}

}  // namespace
}  // namespace portofu
