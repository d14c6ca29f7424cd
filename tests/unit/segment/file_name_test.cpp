// Names of files that are open.

#include "engine/segment/file_name.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "tests/unit/segment/segment_directory.h"

namespace portofu {
namespace {

class FileNameTest : public testing::Test {
 protected:
  ~FileNameTest() override { close(fd); }
  SegmentDirectory directory;
  std::string path = directory.path() + "/name";
  int fd = open(directory.path().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
};

TEST_F(FileNameTest, Name__is_given_once_and_is_the_files) {
  ASSERT_GE(fd, 0);
  EXPECT_FALSE(is_at(path, fd));
  ASSERT_EQ(give_name(fd, path), 0);
  EXPECT_TRUE(is_at(path, fd));
  EXPECT_EQ(give_name(fd, path), EEXIST);
  unlink(path.c_str());
  EXPECT_FALSE(is_at(path, fd));
  EXPECT_EQ(give_name(fd, path), ENOENT) << "its last name is gone";
}

TEST_F(FileNameTest, Name_of_another_file_or_a_link_to_this__is_not_its_own) {
  ASSERT_EQ(give_name(fd, path), 0);
  const std::string link = directory.path() + "/link";
  ASSERT_EQ(symlink(path.c_str(), link.c_str()), 0);
  EXPECT_FALSE(is_at(link, fd));
  const int other = open((directory.path() + "/other").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  EXPECT_FALSE(is_at(path, other));
  close(other);
}

}  // namespace
}  // namespace portofu
