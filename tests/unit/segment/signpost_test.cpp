// A segment whose name somebody removes: it is found again, its PID stays its own, and nothing is left of it.

#include "engine/segment/signpost.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "engine/segment/file_pointer.h"
#include "engine/segment/peer_segment.h"
#include "engine/segment/segment_alias.h"
#include "tests/unit/segment/segment_directory.h"

namespace portofu {
namespace {

constexpr std::uint64_t kKey = 5;

struct SignpostTest : ::testing::Test {
  void sweep() const {
    for (const auto& entry : std::filesystem::directory_iterator(directory.path())) std::filesystem::remove(entry);
  }
  std::string path() const { return segment_path(directory.path(), segment->id()); }

  /// What another process sees. @return bit 0: the segment can be attached; bit 1: it is the right life; bit 2: its
  ///         PID is free
  int seen_from_outside() const {
    return in_dying_child([this] {
      std::shared_ptr<PeerSegment> peer;
      int seen = 0;
      if (PeerSegment::attach(directory.path(), segment->id(), &peer) == AttachResult::kAttached) seen |= 1;
      if (peer != nullptr && peer->incarnation() == segment->incarnation() && peer->check_alive()) seen |= 2;
      if (directory.create(segment->id().pid) != nullptr) seen |= 4;
      return seen;
    });
  }

  SegmentDirectory directory;
  std::unique_ptr<ProcessSegment> segment = directory.create(7);
};

TEST_F(SignpostTest, Names_that_are_there__are_left_alone) {
  ASSERT_EQ(claim_alias(*segment, kKey), AliasResult::kClaimed);
  look_after_names(*segment);
  EXPECT_EQ(directory.name_count(), 2u);
  EXPECT_TRUE(segment->lost_names().signposts.empty());
  release_alias(*segment, kKey);
  look_after_names(*segment);
  EXPECT_EQ(directory.name_count(), 1u);
}

TEST_F(SignpostTest, Name_that_was_removed__leads_to_the_segment_again_and_the_pid_is_its_own) {
  for (int round = 0; round < 3; ++round) {
    sweep();
    EXPECT_EQ(directory.name_count(), 0u);
    look_after_names(*segment);
    EXPECT_EQ(directory.name_count(), 1u);
    EXPECT_EQ(seen_from_outside(), 3);
  }
  segment.reset();
  EXPECT_EQ(directory.name_count(), 0u);
}

TEST_F(SignpostTest, Alias__is_put_back_too_and_leads_to_its_owner) {
  ASSERT_EQ(claim_alias(*segment, kKey), AliasResult::kClaimed);
  for (const bool all : {false, true}) {
    if (all) sweep();
    if (!all) std::filesystem::remove(alias_path(directory.path(), segment->job_key(), kKey));
    look_after_names(*segment);
    EXPECT_EQ(directory.name_count(), 2u);
    const int found = in_dying_child([this] {
      const auto other = directory.create(8);
      NameOwner owner;
      return find_alias(*other, kKey, &owner) && owner == segment->id() ? 0 : 1;
    });
    EXPECT_EQ(found, 0);
    std::filesystem::remove(segment_path(directory.path(), {kTestNid, 8}));
  }
  release_alias(*segment, kKey);
  segment.reset();
  EXPECT_EQ(directory.name_count(), 0u);
}

TEST_F(SignpostTest, Signpost_of_the_dead__leads_nowhere_and_is_removed_like_a_segment) {
  in_dying_child([this] {
    auto dying = directory.create(9);
    std::filesystem::remove(segment_path(directory.path(), {kTestNid, 9}));
    look_after_names(*dying);
    return dying.release() != nullptr ? 0 : 1;
  });
  ASSERT_EQ(directory.name_count(), 2u);
  std::shared_ptr<PeerSegment> peer;
  EXPECT_EQ(PeerSegment::attach(directory.path(), {kTestNid, 9}, &peer), AttachResult::kNoSuchSegment);
  EXPECT_NE(directory.create(9), nullptr);
}

TEST_F(SignpostTest, Name_that_another_process_has_taken__is_left_to_it) {
  sweep();
  std::ofstream(path()) << "another segment";
  look_after_names(*segment);
  look_after_names(*segment);
  EXPECT_EQ(segment->lost_names().given_up.size(), 1u);
  segment.reset();
  EXPECT_EQ(directory.name_count(), 1u) << "not ours to remove";
}

TEST_F(SignpostTest, Name_that_is_free_again__is_taken_again) {
  sweep();
  std::ofstream(path()) << "another segment";
  look_after_names(*segment);
  std::filesystem::remove(path());
  look_after_names(*segment);
  EXPECT_EQ(seen_from_outside(), 3);
  EXPECT_TRUE(segment->lost_names().given_up.empty());
}

TEST_F(SignpostTest, Signpost_to_another_file__is_not_followed) {
  sweep();
  look_after_names(*segment);
  ASSERT_EQ(segment->lost_names().signposts.size(), 1u);
  FilePointerShared says;
  const int fd = segment->lost_names().signposts[0]->fd();
  ASSERT_EQ(pread(fd, &says, sizeof says, 0), static_cast<ssize_t>(sizeof says));
  ++says.inode;
  ASSERT_EQ(pwrite(fd, &says, sizeof says, 0), static_cast<ssize_t>(sizeof says));
  EXPECT_EQ(seen_from_outside(), 0);
}

}  // namespace
}  // namespace portofu
