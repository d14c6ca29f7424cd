// What a process knows of its own segments, and what a forked child knows of them.

#include "engine/segment/own_segments.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/unit/segment/segment_directory.h"

namespace portofu {
namespace {

TEST(OwnSegments, Segment__is_known_from_creation_to_end) {
  SegmentDirectory directory;
  const std::string path = segment_path(directory.path(), {kTestNid, 5});
  const auto find = [&path] {
    const OwnSegmentsLock lock;
    return find_own_segment(path);
  };
  EXPECT_EQ(find(), nullptr);
  auto segment = directory.create(5);
  EXPECT_NE(find(), nullptr);
  segment.reset();
  EXPECT_EQ(find(), nullptr);
}

/// A simulation has several processes in one. The dead leave their names to whoever finds them.
TEST(OwnSegments, Other_list__is_that_of_another_process_which_may_die) {
  SegmentDirectory directory;
  const std::string path = segment_path(directory.path(), {kTestNid, 5});
  const auto other = make_own_segments();
  EXPECT_EQ(use_own_segments(other.get()), nullptr);
  auto segment = directory.create(5);
  EXPECT_EQ(use_own_segments(nullptr), other.get());
  {
    const OwnSegmentsLock lock;
    EXPECT_EQ(find_own_segment(path), nullptr);
    EXPECT_FALSE(remove_if_dead(path)) << "it lives, as far as we can see";
  }
  EXPECT_EQ(directory.create(5), nullptr);
  use_own_segments(other.get());
  segment->die();
  segment.reset();
  use_own_segments(nullptr);
  EXPECT_EQ(directory.name_count(), 1u) << "nobody has given the name back";
  EXPECT_NE(directory.create(5), nullptr);
}

TEST(OwnSegments, Forked_child__owns_nothing_and_may_make_its_own) {
  SegmentDirectory directory;
  const auto segment = directory.create(5);
  const std::uint64_t generation = fork_generation();
  const int status = in_dying_child([&] {
    if (fork_generation() == generation) return 1;
    {
      const OwnSegmentsLock lock;
      if (find_own_segment(segment_path(directory.path(), {kTestNid, 5})) != nullptr) return 2;
    }
    return directory.create(6) != nullptr ? 0 : 3;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(fork_generation(), generation);
}

TEST(OwnSegments, Fork_while_another_thread_holds_the_lock__does_not_hang_the_child) {
  SegmentDirectory directory;
  std::atomic<bool> end{false};
  std::thread busy([&] {
    while (!end.load()) directory.create(5);
  });
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(in_dying_child([] {
                const OwnSegmentsLock lock;
                return 0;
              }),
              0);
  }
  end.store(true);
  busy.join();
}

}  // namespace
}  // namespace portofu
