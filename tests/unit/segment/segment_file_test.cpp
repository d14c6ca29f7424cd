// Liveness by lock, and the rule by which names are removed.

#include "engine/segment/segment_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/segment/own_segments.h"
#include "tests/unit/segment/segment_directory.h"

namespace portofu {
namespace {

class SegmentFileTest : public ::testing::Test {
 protected:
  int open_file(const std::string& name = "file") {
    return ::open((directory.path() + "/" + name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  }
  bool remove(const std::string& path) {
    const OwnSegmentsLock lock;
    return remove_if_dead(path);
  }

  SegmentDirectory directory;
};

TEST_F(SegmentFileTest, Path__follows_from_user_nid_and_pid) {
  EXPECT_EQ(segment_path("/dev/shm", {0x7f000001, 12}),
            "/dev/shm/portofu-" + std::to_string(geteuid()) + "-7f000001-12");
  EXPECT_EQ(segment_path("/dev/shm", {0x1, 65535}),
            "/dev/shm/portofu-" + std::to_string(geteuid()) + "-00000001-65535");
}

TEST_F(SegmentFileTest, Unlocked_file__is_dead) {
  const SegmentFile file(open_file(), FileOwner::kOtherProcess);
  EXPECT_FALSE(file.is_alive());
}

TEST_F(SegmentFileTest, Owner__lives_until_it_ends_its_life) {
  SegmentFile file(open_file(), FileOwner::kThisProcess);
  ASSERT_TRUE(file.lock());
  EXPECT_TRUE(file.is_alive());
  const auto alive_from_outside = [this] {
    return in_dying_child([this] { return SegmentFile(open_file(), FileOwner::kOtherProcess).is_alive() ? 1 : 0; });
  };
  EXPECT_EQ(alive_from_outside(), 1);
  file.end_life();
  EXPECT_FALSE(file.is_alive());
  EXPECT_EQ(alive_from_outside(), 0);
}

TEST_F(SegmentFileTest, Zombie_owner__is_dead) {
  const SegmentFile file(open_file(), FileOwner::kOtherProcess);
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const SegmentFile mine(open_file(), FileOwner::kThisProcess);
    const char locked = mine.lock() ? 1 : 0;
    if (write(ready[1], &locked, 1) != 1) _exit(1);
    pause();
    _exit(0);
  }
  char locked = 0;
  ASSERT_EQ(read(ready[0], &locked, 1), 1);
  EXPECT_EQ(locked, 1);
  EXPECT_TRUE(file.is_alive());
  EXPECT_FALSE(file.lock());
  kill(child, SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(file.is_alive()) << "killed and not reaped yet";
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
}

TEST_F(SegmentFileTest, Forked_child__does_not_keep_its_parent_alive) {
  const SegmentFile file(open_file(), FileOwner::kOtherProcess);
  int hold[2];
  ASSERT_EQ(pipe(hold), 0);
  in_dying_child([&] {
    const int fd = open_file();
    SegmentFile mine(fd, FileOwner::kThisProcess);
    if (!mine.lock()) return 1;
    if (fork() == 0) {  // Inherits the descriptor and outlives the owner.
      char byte = 0;
      close(hold[1]);
      _exit(static_cast<int>(read(hold[0], &byte, 1)));
    }
    _exit(0);
  });
  EXPECT_FALSE(file.is_alive());
  close(hold[0]);
  close(hold[1]);
}

TEST_F(SegmentFileTest, Descriptor_that_the_program_closes__is_opened_anew_and_the_lock_stays) {
  const std::string path = directory.path() + "/file";
  SegmentFile mine(open_file(), FileOwner::kThisProcess);
  ASSERT_EQ(ftruncate(mine.fd(), 8192), 0);
  mine.set_path(path);
  ASSERT_TRUE(mine.lock());
  const SegmentFile seen(open_file(), FileOwner::kOtherProcess, path);
  const int numbers[] = {mine.fd(), seen.fd()};
  int theirs[2];
  ASSERT_EQ(pipe(theirs), 0);
  for (const int number : numbers) ASSERT_EQ(dup2(theirs[0], number), number);
  EXPECT_TRUE(mine.is_alive());
  EXPECT_TRUE(seen.is_alive()) << "the lock has not ended with a descriptor";
  EXPECT_TRUE(mine.allocate(0, 8192));
  EXPECT_TRUE(mine.clear(0, 8192));
  for (const int number : numbers) {
    EXPECT_NE(mine.fd(), number);
    EXPECT_NE(seen.fd(), number);
    EXPECT_GE(fcntl(number, F_GETFD), 0) << "the program's";
    close(number);
  }
  mine.end_life();
  EXPECT_FALSE(seen.is_alive());
  for (const int number : theirs) close(number);
}

TEST_F(SegmentFileTest, Descriptor_that_the_program_closes__of_a_file_without_name_is_gone) {
  const std::string path = directory.path() + "/file";
  const SegmentFile file(open_file(), FileOwner::kOtherProcess, path);
  close(file.fd());
  ASSERT_EQ(unlink(path.c_str()), 0);
  close(open_file());  // Another file of that name.
  EXPECT_EQ(file.fd(), -1);
  EXPECT_FALSE(file.allocate(0, 4096));
}

// Two copies of the library in one process know nothing of each other.
TEST_F(SegmentFileTest, Lock__is_seen_by_others_of_the_same_process) {
  const SegmentFile mine(open_file(), FileOwner::kThisProcess);
  ASSERT_TRUE(mine.lock());
  const SegmentFile other(open_file(), FileOwner::kOtherProcess);
  EXPECT_TRUE(other.is_alive());
  EXPECT_FALSE(other.lock());
  close(open_file());
  EXPECT_TRUE(other.is_alive()) << "closing some descriptor of the file ends nothing";
}

TEST_F(SegmentFileTest, Who_removes_it__is_alone_and_not_taken_for_the_owner) {
  const SegmentFile remover(open_file(), FileOwner::kOtherProcess);
  ASSERT_TRUE(remover.lock());
  const SegmentFile other(open_file(), FileOwner::kOtherProcess);
  EXPECT_FALSE(other.lock());
  EXPECT_FALSE(other.is_alive());
}

TEST_F(SegmentFileTest, Allocate_and_clear__give_and_take_memory) {
  const SegmentFile file(open_file(), FileOwner::kThisProcess);
  ASSERT_EQ(ftruncate(file.fd(), 16384), 0);
  struct stat status {};
  ASSERT_TRUE(file.allocate(4096, 8192));
  ASSERT_EQ(fstat(file.fd(), &status), 0);
  EXPECT_EQ(status.st_blocks * 512, 8192);
  ASSERT_EQ(pwrite(file.fd(), "x", 1, 4096), 1);
  ASSERT_TRUE(file.clear(4096, 8192));
  ASSERT_EQ(fstat(file.fd(), &status), 0);
  EXPECT_EQ(status.st_blocks, 0);
  EXPECT_EQ(status.st_size, 16384);
  char byte = 1;
  ASSERT_EQ(pread(file.fd(), &byte, 1, 4096), 1);
  EXPECT_EQ(byte, 0);
}

TEST_F(SegmentFileTest, Remove_if_dead__removes_the_dead_only) {
  leave_dead_segment(directory, 7);
  const auto living = directory.create(8);
  ASSERT_NE(living, nullptr);
  // Making the living one has swept the dead one.
  EXPECT_EQ(directory.name_count(), 1u);
  leave_dead_segment(directory, 9);
  EXPECT_EQ(directory.name_count(), 2u);
  EXPECT_TRUE(remove(segment_path(directory.path(), {kTestNid, 9})));
  EXPECT_FALSE(remove(segment_path(directory.path(), {kTestNid, 9}))) << "gone already";
  EXPECT_FALSE(remove(segment_path(directory.path(), {kTestNid, 8}))) << "our own";
  EXPECT_EQ(in_dying_child([this] { return remove(segment_path(directory.path(), {kTestNid, 8})) ? 1 : 0; }), 0);
  EXPECT_EQ(directory.name_count(), 1u);
}

TEST_F(SegmentFileTest, Remove_if_dead__leaves_strange_things_alone) {
  ASSERT_EQ(mkfifo((directory.path() + "/fifo").c_str(), 0600), 0);
  ASSERT_EQ(mkdir((directory.path() + "/dir").c_str(), 0700), 0);
  ASSERT_EQ(symlink("file", (directory.path() + "/link").c_str()), 0);
  close(open_file());
  for (const char* name : {"fifo", "dir", "link", "nothing"}) {
    EXPECT_FALSE(remove(directory.path() + "/" + name)) << name;
  }
  EXPECT_EQ(directory.name_count(), 4u);
}

}  // namespace
}  // namespace portofu
