// The counts of STags: they outlive the owner of a queue, and not the last process that has had one.

#include "engine/segment/stag_counts.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/segment/own_segments.h"
#include "engine/segment/segment_creation.h"
#include "engine/segment/segment_view.h"
#include "tests/unit/segment/segment_directory.h"

namespace portofu {
namespace {

constexpr std::uint32_t kJob = 7;
constexpr std::uint64_t kQueue = 0x5000000000000300;

struct StagCountsTest : ::testing::Test {
  bool open(StagCounts& counts, std::uint32_t job = kJob) const {
    const OwnSegmentsLock lock;
    return counts.open(directory.path(), job);
  }
  static void close(StagCounts& counts) {
    const OwnSegmentsLock lock;
    counts.close();
  }

  /// What another process, which dies then, finds given; it gives one more.
  int give_in_child(std::uint32_t job = kJob) const {
    return in_dying_child([&] {
      StagCounts theirs;
      return open(theirs, job) ? static_cast<int>(theirs.of(kQueue).fetch_add(1)) : 100;
    });
  }

  SegmentDirectory directory;
  StagCounts counts;
};

TEST_F(StagCountsTest, Queue__goes_on_where_another_owner_has_ended_as_long_as_somebody_is_left) {
  ASSERT_TRUE(open(counts));
  EXPECT_EQ(counts.of(kQueue).fetch_add(5), 0u);
  EXPECT_EQ(give_in_child(), 5);
  EXPECT_EQ(give_in_child(), 6);
  EXPECT_EQ(counts.of(kQueue), 7u);
  EXPECT_EQ(counts.of(kQueue + 256), 0u) << "another queue";
  close(counts);
}

TEST_F(StagCountsTest, Last_one_that_ends__removes_the_file) {
  StagCounts other;
  ASSERT_TRUE(open(counts));
  ASSERT_TRUE(open(other));
  counts.of(kQueue) = 5;
  close(other);
  EXPECT_EQ(directory.name_count(), 1u);
  close(counts);
  EXPECT_EQ(directory.name_count(), 0u);
  ASSERT_TRUE(open(other));
  EXPECT_EQ(other.of(kQueue), 0u);
  close(other);
}

TEST_F(StagCountsTest, Count__may_be_used_after_the_end_and_counts_for_nobody) {
  StagCounts other;
  ASSERT_TRUE(open(counts));
  ASSERT_TRUE(open(other));
  std::atomic<std::uint64_t>& given = counts.of(kQueue);
  close(counts);
  given = 5;
  EXPECT_EQ(given, 5u);
  EXPECT_EQ(other.of(kQueue), 0u);
  close(other);
}

TEST_F(StagCountsTest, What_the_dead_have_left__is_forgotten_by_the_next_one) {
  EXPECT_EQ(give_in_child(), 0);
  EXPECT_EQ(directory.name_count(), 1u);
  EXPECT_EQ(give_in_child(), 0);
  ASSERT_TRUE(open(counts));
  EXPECT_EQ(counts.of(kQueue), 0u);
  close(counts);
}

TEST_F(StagCountsTest, What_the_dead_have_left__is_swept) {
  EXPECT_EQ(give_in_child(), 0);
  EXPECT_EQ(remove_dead_segments(directory.path()), 1);
  EXPECT_EQ(directory.name_count(), 0u);
}

TEST_F(StagCountsTest, File_in_use__is_not_swept_and_is_no_segment) {
  ASSERT_TRUE(open(counts));
  EXPECT_EQ(remove_dead_segments(directory.path()), 0);
  EXPECT_EQ(in_dying_child([&] { return remove_dead_segments(directory.path()); }), 0);
  EXPECT_EQ(directory.name_count(), 1u);
  std::vector<SegmentView> views;
  ASSERT_TRUE(view_segments(directory.path(), &views));
  EXPECT_TRUE(views.empty());
  close(counts);
}

TEST_F(StagCountsTest, Jobs__have_counts_of_their_own) {
  ASSERT_TRUE(open(counts));
  counts.of(kQueue) = 5;
  EXPECT_EQ(give_in_child(kJob + 1), 0);
  close(counts);
}

TEST_F(StagCountsTest, File__belongs_to_its_user_alone_whatever_the_umask) {
  const mode_t mask = umask(0777);
  const bool is_open = open(counts);
  umask(mask);
  ASSERT_TRUE(is_open);
  struct stat status {};
  ASSERT_EQ(stat(stag_counts_path(directory.path(), kJob).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0600u);
  close(counts);
}

/// Two processes without any count may begin at the same place, but hardly do.
TEST_F(StagCountsTest, Queue_that_cannot_be_counted__begins_at_a_drawn_place) {
  EXPECT_FALSE([&] {
    const OwnSegmentsLock lock;
    return counts.open(directory.path() + "/none", kJob);
  }());
  StagCounts other;
  EXPECT_NE(counts.of(kQueue), other.of(kQueue));
  EXPECT_EQ(&counts.of(kQueue), &counts.of(kQueue));
}

TEST_F(StagCountsTest, More_queues_than_there_is_room_for__begin_at_a_drawn_place) {
  ASSERT_TRUE(open(counts));
  for (std::uint64_t i = 0; i < kStagCounts; ++i) {
    ASSERT_EQ(counts.of(kQueue + 256 * i), 0u);
    counts.of(kQueue + 256 * i) = i + 1;
  }
  EXPECT_NE(counts.of(kQueue + 256 * kStagCounts), 0u);
  EXPECT_EQ(counts.of(kQueue + 256 * 17), 18u);
  close(counts);
}

TEST_F(StagCountsTest, Child_of_a_fork__keeps_nobody_counted) {
  ASSERT_TRUE(open(counts));
  counts.of(kQueue) = 5;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    ::close(ends[1]);
    _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
  }
  close(counts);
  EXPECT_EQ(directory.name_count(), 0u);
  ::close(ends[0]);
  ::close(ends[1]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
}

TEST_F(StagCountsTest, Name__is_told_from_that_of_a_segment) {
  const std::string path = stag_counts_path(directory.path(), kJob);
  EXPECT_TRUE(is_stag_counts_name(path.substr(directory.path().size() + 1)));
  EXPECT_FALSE(is_stag_counts_name(segment_path(directory.path(), {1, 2}).substr(directory.path().size() + 1)));
}

}  // namespace
}  // namespace portofu
