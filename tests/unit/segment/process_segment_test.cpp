// The owner's view of its segment: identity, exclusiveness of the PID, memory, fork.

#include "engine/segment/process_segment.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>

#include "engine/segment/peer_segment.h"
#include "tests/unit/segment/segment_directory.h"

namespace portofu {
namespace {

struct ProcessSegmentTest : ::testing::Test {
  SegmentDirectory directory;
  SegmentError error{};
  std::string why;
};

TEST_F(ProcessSegmentTest, Wanted_pid__is_given) {
  const auto segment = ProcessSegment::create(directory.options(77), &error, &why);
  ASSERT_NE(segment, nullptr) << why;
  EXPECT_EQ(error, SegmentError::kNone);
  EXPECT_EQ(segment->id(), (ProcessId{kTestNid, 77}));
  EXPECT_NE(segment->incarnation(), 0u);
  EXPECT_TRUE(segment->in_owner_process());
}

TEST_F(ProcessSegmentTest, Any_pid__is_another_one_each_time_and_never_0) {
  std::vector<std::unique_ptr<ProcessSegment>> segments;
  for (int i = 0; i < 20; ++i) {
    segments.push_back(directory.create());
    ASSERT_NE(segments.back(), nullptr);
    EXPECT_NE(segments.back()->id().pid, 0u);
    for (int j = 0; j < i; ++j) EXPECT_NE(segments[j]->id().pid, segments.back()->id().pid);
  }
}

TEST_F(ProcessSegmentTest, Pid_of_a_living_process__is_refused) {
  const auto first = directory.create(77);
  EXPECT_EQ(ProcessSegment::create(directory.options(77), &error, &why), nullptr);
  EXPECT_EQ(error, SegmentError::kPidInUse);
  EXPECT_NE(why.find("77"), std::string::npos);
  EXPECT_EQ(in_dying_child([&] { return directory.create(77) == nullptr ? 0 : 1; }), 0) << "from outside as well";
}

TEST_F(ProcessSegmentTest, Pid_of_a_closed_segment__is_free_again) {
  const auto first_incarnation = directory.create(77)->incarnation();
  EXPECT_EQ(directory.name_count(), 0u);
  const auto second = directory.create(77);
  ASSERT_NE(second, nullptr);
  EXPECT_NE(second->incarnation(), first_incarnation);
}

TEST_F(ProcessSegmentTest, Same_pid_on_another_node__is_another_process) {
  const auto first = directory.create(77);
  SegmentOptions options = directory.options(77);
  options.nid = kTestNid + 1;
  EXPECT_NE(ProcessSegment::create(options, &error, &why), nullptr);
}

TEST_F(ProcessSegmentTest, File__is_private_whatever_the_umask) {
  const mode_t before = umask(0777);
  const auto segment = directory.create(77);
  umask(before);
  ASSERT_NE(segment, nullptr);
  struct stat status {};
  ASSERT_EQ(stat(segment_path(directory.path(), segment->id()).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
}

TEST_F(ProcessSegmentTest, Memory__is_taken_for_the_head_and_for_used_rings_only) {
  const auto segment = directory.create(77);
  const auto used_bytes = [&] {
    struct stat status {};
    EXPECT_EQ(stat(segment_path(directory.path(), segment->id()).c_str(), &status), 0);
    return static_cast<std::uint64_t>(status.st_blocks) * 512;
  };
  EXPECT_EQ(used_bytes(), segment->layout().rings_offset());
  {
    const Mapping ring = segment->map_ring(3);
    ASSERT_TRUE(ring);
    EXPECT_EQ(used_bytes(), segment->layout().rings_offset() + segment->layout().ring_stride_bytes());
    std::memset(ring.at(0), 0xff, 64);
  }
  segment->clear_ring(3);
  EXPECT_EQ(used_bytes(), segment->layout().rings_offset());
  EXPECT_EQ(*segment->map_ring(3).at(0), std::byte{0});
}

TEST_F(ProcessSegmentTest, New_segment__is_zero) {
  const auto segment = directory.create(77);
  EXPECT_EQ(segment->control().directory_epoch.load(), 0u);
  EXPECT_EQ(segment->control().slots_used.load(), 0u);
  EXPECT_EQ(segment->doorbell().sleepers.load(), 0u);
  for (std::uint32_t i = 0; i < segment->layout().channel_count; ++i) EXPECT_EQ(segment->slot(i).word.load(), 0u);
}

TEST_F(ProcessSegmentTest, Forked_child__lets_go_without_harm) {
  auto segment = directory.create(77);
  const int status = in_dying_child([&] {
    if (segment->in_owner_process()) return 1;
    segment.reset();
    return 0;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(directory.name_count(), 1u);
  std::shared_ptr<PeerSegment> peer;
  EXPECT_EQ(in_dying_child([&] {
              return PeerSegment::attach(directory.path(), {kTestNid, 77}, &peer) == AttachResult::kAttached ? 0 : 1;
            }),
            0)
      << "the parent still lives for everybody";
}

TEST_F(ProcessSegmentTest, Without_membarrier__fences) {
  SegmentOptions options = directory.options();
  options.membarrier = false;
  EXPECT_EQ(ProcessSegment::create(options, &error, &why)->node_guard(), NodeGuard::kFence);
}

}  // namespace
}  // namespace portofu
