// What may go wrong while a segment is made, and what is swept before.

#include "engine/segment/segment_creation.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <thread>

#include "engine/observe/counters.h"
#include "engine/segment/own_segments.h"
#include "engine/segment/segment_file.h"
#include "tests/unit/segment/segment_directory.h"

namespace portofu {
namespace {

struct SegmentCreationTest : ::testing::Test {
  std::unique_ptr<ProcessSegment> create(const SegmentOptions& options) {
    return ProcessSegment::create(options, &error, &why);
  }
  SegmentDirectory directory;
  SegmentError error{};
  std::string why;
};

TEST_F(SegmentCreationTest, Sizes_without_sense__are_refused) {
  SegmentOptions options = directory.options();
  options.channel_count = 0;
  EXPECT_EQ(create(options), nullptr);
  EXPECT_EQ(error, SegmentError::kSystem);
  options = directory.options(kMaxPid + 1);
  EXPECT_EQ(create(options), nullptr);
  EXPECT_EQ(error, SegmentError::kSystem);
  EXPECT_EQ(directory.name_count(), 0u);
}

TEST_F(SegmentCreationTest, Directory_that_is_not_there__is_named) {
  SegmentOptions options = directory.options();
  options.directory = directory.path() + "/nowhere";
  EXPECT_EQ(create(options), nullptr);
  EXPECT_EQ(error, SegmentError::kSystem);
  EXPECT_NE(why.find("nowhere"), std::string::npos);
}

/// What the kernel does with pages that somebody else touches first: those of a ring, which its sender writes.
TEST_F(SegmentCreationTest, Memory_node__holds_for_rings_that_others_touch_first) {
  int policy = -1;
  const auto policy_of = [&policy](const SegmentOptions& options, unsigned long* nodes) {
    SegmentError why_not{};
    const auto segment = ProcessSegment::create(options, &why_not, nullptr);
    const Mapping ring = segment->map_ring(7);
    return syscall(SYS_get_mempolicy, &policy, nodes, 1025, ring.at(0), MPOL_F_ADDR);
  };
  unsigned long nodes[16] = {};
  SegmentOptions options = directory.options();
  if (policy_of(options, nodes) != 0) GTEST_SKIP() << "get_mempolicy: " << std::strerror(errno);
  EXPECT_EQ(policy, MPOL_DEFAULT);
  options.memory_node = 0;
  ASSERT_EQ(policy_of(options, nodes), 0);
  EXPECT_EQ(policy, MPOL_PREFERRED);
  EXPECT_EQ(nodes[0], 1UL);
  options.memory_node = 1023;
  ASSERT_EQ(policy_of(options, nodes), 0) << "no machine has this node, and it is done without";
  EXPECT_EQ(policy, MPOL_DEFAULT);
}

TEST_F(SegmentCreationTest, Limit_of_file_sizes__is_no_signal) {
  const int status = in_dying_child([this] {
    const rlimit limit{1 << 20, 1 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    return create(directory.options()) == nullptr && error == SegmentError::kNoMemory ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
}

TEST_F(SegmentCreationTest, Full_file_system__is_an_error_and_leaves_nothing) {
  constexpr int kNoRights = 77;
  // In a mount name space of its own, which ends with the child.
  const int status = in_dying_child([this] {
    if (unshare(CLONE_NEWNS | (geteuid() == 0 ? 0 : CLONE_NEWUSER)) != 0) return kNoRights;
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return kNoRights;
    if (mount("tmpfs", directory.path().c_str(), "tmpfs", 0, "size=64k") != 0) return kNoRights;
    if (create(directory.options()) != nullptr) return 1;
    if (error != SegmentError::kNoMemory || why.find("143360 bytes") == std::string::npos) return 2;
    return directory.name_count() == 0 ? 0 : 3;
  });
  if (status == kNoRights) GTEST_SKIP() << "may not mount a file system";
  EXPECT_EQ(status, 0);
}

// There a mapping does not hold a lock: living processes looked dead, and what went to them was UNDELIVERABLE.
TEST_F(SegmentCreationTest, File_system_where_nobody_could_see_that_we_live__is_an_error) {
  constexpr int kNoRights = 77;
  const int status = in_dying_child([this] {
    const std::string at = directory.path();
    if (unshare(CLONE_NEWNS | (geteuid() == 0 ? 0 : CLONE_NEWUSER)) != 0) return kNoRights;
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return kNoRights;
    if (mount("tmpfs", at.c_str(), "tmpfs", 0, "") != 0) return kNoRights;
    for (const char* name : {"/lower", "/upper", "/work"}) mkdir((at + name).c_str(), 0700);
    const std::string places = "lowerdir=" + at + "/lower,upperdir=" + at + "/upper,workdir=" + at + "/work";
    if (mount("overlay", at.c_str(), "overlay", 0, places.c_str()) != 0) return kNoRights;
    if (create(directory.options()) != nullptr) return 1;
    if (error != SegmentError::kSystem || why.find("mount a tmpfs there") == std::string::npos) return 2;
    return directory.name_count() == 0 ? 0 : 3;
  });
  if (status == kNoRights) GTEST_SKIP() << "may not mount an overlay file system";
  EXPECT_EQ(status, 0);
}

// Messages to a process that has died reached another program's, which had got its PID.
TEST_F(SegmentCreationTest, Any_pid__is_hardly_ever_that_of_one_before) {
  std::set<std::uint32_t> pids;
  for (int i = 0; i < 100; ++i) {
    const auto segment = create(directory.options());
    ASSERT_NE(segment, nullptr) << why;
    EXPECT_GE(segment->id().pid, 1024u) << "lower ones, as ports, need privileges";
    pids.insert(segment->id().pid);
  }
  EXPECT_GE(pids.size(), 95u);
}

TEST_F(SegmentCreationTest, Dead_segments__are_swept) {
  for (const std::uint32_t pid : {1u, 2u, 3u}) leave_dead_segment(directory, pid);
  // Each one has swept its predecessor; make three at once to leave them all.
  EXPECT_EQ(directory.name_count(), 1u);
  in_dying_child([this] {
    for (const std::uint32_t pid : {4u, 5u, 6u}) directory.create(pid).release();
    return 0;
  });
  EXPECT_EQ(directory.name_count(), 3u);
  const auto segment = directory.create();
  EXPECT_EQ(directory.name_count(), 1u);
  EXPECT_EQ(Counters(segment->counters()).get(Counter::kSegmentsRemoved), 3u);
}

/// A thousand processes that start together would look at a million names otherwise.
TEST_F(SegmentCreationTest, Sweep__of_a_new_segment_ends_at_so_many_that_stay) {
  constexpr std::uint32_t kPairs = 128;
  in_dying_child([this] {
    for (std::uint32_t i = 0; i < 2 * kPairs; ++i) directory.create(2000 + i, i % 2 == 0).release();
    return 0;
  });
  ASSERT_EQ(directory.name_count(), 2 * kPairs);
  const auto one = directory.create();
  EXPECT_GT(directory.name_count(), 1 + kPairs) << "it has not looked at all";
  EXPECT_LT(directory.name_count(), 1 + 2 * kPairs) << "but at some";
  const OwnSegmentsLock lock;
  sweep_dead_segments(directory.path());
  EXPECT_EQ(directory.name_count(), 1 + kPairs) << "whoever wants all gets all";
}

TEST_F(SegmentCreationTest, Sweep__leaves_the_living_and_the_strange_alone) {
  const auto living = directory.create(5);
  std::ofstream(directory.path() + "/other-file") << "x";
  const OwnSegmentsLock lock;
  EXPECT_EQ(sweep_dead_segments(directory.path()), 0);
  EXPECT_EQ(directory.name_count(), 2u);
}

TEST_F(SegmentCreationTest, Dead__that_shall_be_kept_stay_until_somebody_wants_their_pid_or_removes_them) {
  leave_dead_segment(directory, 77, true);
  leave_dead_segment(directory, 78, true);
  leave_dead_segment(directory, 79);
  const auto other = directory.create();
  EXPECT_EQ(directory.name_count(), 3u) << "77, 78 and itself";
  const auto wants_it = directory.create(77);
  ASSERT_NE(wants_it, nullptr);
  EXPECT_EQ(directory.name_count(), 3u);
  EXPECT_EQ(remove_dead_segments(directory.path()), 1) << "78";
  EXPECT_EQ(directory.name_count(), 2u);
}

TEST_F(SegmentCreationTest, Wanted_pid_of_a_dead_process__is_taken_over) {
  leave_dead_segment(directory, 77);
  const auto segment = directory.create(77);
  ASSERT_NE(segment, nullptr);
  EXPECT_EQ(directory.name_count(), 1u);
}

TEST_F(SegmentCreationTest, Wanted_pid_of_a_dead_process__is_waited_for_while_somebody_removes_its_name) {
  leave_dead_segment(directory, 77);
  const std::string path = segment_path(directory.path(), {kTestNid, 77});
  std::atomic<bool> locked{false};
  std::thread remover([&] {
    const SegmentFile file(::open(path.c_str(), O_RDWR | O_CLOEXEC), FileOwner::kOtherProcess);
    locked = file.lock();
    locked.notify_all();
    usleep(20'000);  // It tells others meanwhile.
    EXPECT_EQ(::unlink(path.c_str()), 0);
  });
  locked.wait(false);
  EXPECT_NE(directory.create(77), nullptr);
  remover.join();
}

// Who reads the memory of a process keeps it for a moment when that has died, and with it the lock.
TEST_F(SegmentCreationTest, Wanted_pid_of_a_process_that_is_gone__is_waited_for_while_its_lock_is_there) {
  leave_dead_segment(directory, 77);
  const int fd = ::open(segment_path(directory.path(), {kTestNid, 77}).c_str(), O_RDWR | O_CLOEXEC);
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  ASSERT_EQ(fcntl(fd, F_OFD_SETLK, &whole), 0);
  std::thread reader([fd] {
    usleep(20'000);
    ::close(fd);
  });
  EXPECT_NE(directory.create(77), nullptr);
  reader.join();
}

TEST_F(SegmentCreationTest, Threads_that_want_the_same_pid__get_it_one_at_a_time) {
  std::atomic<int> owners{0};
  std::atomic<int> got{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        const auto segment = directory.create(77);
        if (segment == nullptr) continue;
        EXPECT_EQ(owners.fetch_add(1), 0);
        got.fetch_add(1);
        owners.fetch_sub(1);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_GT(got.load(), 0);
  EXPECT_EQ(directory.name_count(), 0u);
}

}  // namespace
}  // namespace portofu
