// The key of a user on a node: drawn once, the same for all, and believed only from a file of one's own.

#include "engine/segment/user_key.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <set>

#include "tests/unit/segment/segment_directory.h"

namespace portofu {
namespace {

class UserKeyTest : public testing::Test {
 protected:
  std::uint32_t find() { return find_user_key(directory.path(), &why); }
  void write_file(const std::string& text, mode_t mode) const {
    std::ofstream(path()) << text;
    ASSERT_EQ(chmod(path().c_str(), mode), 0);
  }
  std::string path() const { return user_key_path(directory.path()); }

  SegmentDirectory directory;
  std::string why;
};

TEST_F(UserKeyTest, First_process__draws_it_and_all_find_the_same) {
  const std::uint32_t key = find();
  EXPECT_NE(key, 0u) << why;
  EXPECT_EQ(find(), key);
  EXPECT_EQ(in_dying_child([&] { return find() == key ? 0 : 1; }), 0);
  const SegmentDirectory other;
  EXPECT_NE(find_user_key(other.path(), &why), key) << "once in 4294967295 times";
}

TEST_F(UserKeyTest, File__is_for_this_user_only_whatever_the_umask_says) {
  const mode_t before = umask(0377);
  EXPECT_NE(find(), 0u) << why;
  umask(before);
  struct stat status {};
  ASSERT_EQ(stat(path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  EXPECT_EQ(status.st_uid, geteuid());
  EXPECT_EQ(directory.name_count(), 1u);
}

TEST_F(UserKeyTest, Processes_that_begin_together__agree) {
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  constexpr int kProcesses = 16;
  for (int i = 0; i < kProcesses; ++i) {
    if (fork() != 0) continue;
    const std::uint32_t key = find();
    _exit(write(fds[1], &key, sizeof key) == sizeof key ? 0 : 1);
  }
  std::set<std::uint32_t> keys;
  for (int i = 0; i < kProcesses; ++i) {
    std::uint32_t key = 0;
    ASSERT_EQ(read(fds[0], &key, sizeof key), static_cast<ssize_t>(sizeof key));
    keys.insert(key);
    wait(nullptr);
  }
  EXPECT_EQ(keys.size(), 1u);
  EXPECT_FALSE(keys.contains(0));
  close(fds[0]);
  close(fds[1]);
}

TEST_F(UserKeyTest, File_that_others_may_read__is_not_believed) {
  write_file("abcd", 0640);
  EXPECT_EQ(find(), 0u);
  EXPECT_NE(why.find(path()), std::string::npos) << why;
}

TEST_F(UserKeyTest, File_of_another_user__is_not_believed) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  write_file("abcd", 0600);
  ASSERT_EQ(chown(path().c_str(), 12345, 12345), 0);
  EXPECT_EQ(find(), 0u);
}

TEST_F(UserKeyTest, What_is_no_key__is_not_believed) {
  for (const std::string& text : {std::string(), std::string("abc"), std::string("abcde"), std::string(4, '\0')}) {
    write_file(text, 0600);
    EXPECT_EQ(find(), 0u) << text.size();
    unlink(path().c_str());
  }
  ASSERT_EQ(symlink("/etc/hostname", path().c_str()), 0);
  EXPECT_EQ(find(), 0u);
  unlink(path().c_str());
  ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
  EXPECT_EQ(find(), 0u) << "and nobody hangs";
}

TEST_F(UserKeyTest, Directory_that_is_not_there__is_told) {
  EXPECT_EQ(find_user_key("/no/such/directory", &why), 0u);
  EXPECT_NE(why.find("/no/such/directory"), std::string::npos) << why;
}

}  // namespace
}  // namespace portofu
