#include "engine/inspect/process_picture.h"

#include <gtest/gtest.h>

#include <bit>

#include "engine/inspect/inspection_root.h"
#include "tests/unit/support/core_fixture.h"

namespace portofu {
namespace {

/// This process, with a segment that is made up.
class ProcessPictureTest : public CoreTest {
 protected:
  ProcessPictureTest() {
    view_.life = SegmentLife::kLiving;
    view_.descriptor.os_pid = static_cast<std::uint32_t>(getpid());
    view_.descriptor.incarnation = incarnation_;
    view_.descriptor.probe_address = std::bit_cast<std::uint64_t>(&incarnation_);
    view_.inspection_root = std::bit_cast<std::uint64_t>(&root_);
  }

  std::uint64_t incarnation_ = 0x5555;
  std::atomic<std::uint64_t> looks_{3};
  InspectionRoot root_{layout_stamp(), &core, &looks_};
  SegmentView view_;
};

TEST_F(ProcessPictureTest, Process__is_seen_behind_its_root) {
  const ProcessPicture seen = look_at_process(view_);
  EXPECT_EQ(seen.sight, Sight::kWhole);
  EXPECT_EQ(seen.run_state, RunState::kRuns);
  EXPECT_EQ(seen.application_looks, 3u);
  EXPECT_FALSE(seen.program.empty());
  EXPECT_EQ(seen.core.interfaces.size(), 1u);
}

TEST_F(ProcessPictureTest, Queues_only__are_what_a_quick_look_sees) {
  append(entry());
  const ProcessPicture all = look_at_process(view_);
  const ProcessPicture quick = look_at_process(view_, Depth::kQueues);
  EXPECT_EQ(quick.sight, Sight::kWhole);
  ASSERT_EQ(quick.core.interfaces.size(), 1u);
  ASSERT_FALSE(all.core.interfaces[0].portals.empty());
  EXPECT_TRUE(quick.core.interfaces[0].portals.empty());
  EXPECT_TRUE(quick.core.interfaces[0].counters.empty());
  ASSERT_FALSE(all.core.interfaces[0].queues.empty());
  ASSERT_EQ(quick.core.interfaces[0].queues.size(), all.core.interfaces[0].queues.size());
  EXPECT_EQ(quick.core.interfaces[0].queues[0].capacity, all.core.interfaces[0].queues[0].capacity);
}

TEST_F(ProcessPictureTest, What_cannot_be_read__is_said) {
  root_.stamp ^= 1;
  EXPECT_EQ(look_at_process(view_).sight, Sight::kOtherBuild);
  root_.stamp ^= 1;
  view_.inspection_root = 0;
  EXPECT_EQ(look_at_process(view_).sight, Sight::kNothing);
  view_.inspection_root = 16;
  EXPECT_EQ(look_at_process(view_).sight, Sight::kNothing);
  view_.inspection_root = std::bit_cast<std::uint64_t>(&root_);
  view_.descriptor.incarnation ^= 1;
  EXPECT_EQ(look_at_process(view_).sight, Sight::kNothing) << "a stranger has its number now";
  view_.life = SegmentLife::kDead;
  EXPECT_EQ(look_at_process(view_).sight, Sight::kDead);
}

}  // namespace
}  // namespace portofu
