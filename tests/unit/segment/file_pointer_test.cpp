// A file that stands for another one.

#include "engine/segment/file_pointer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>

#include "engine/segment/file_name.h"
#include "tests/unit/segment/segment_directory.h"

namespace portofu {
namespace {

class FilePointerTest : public ::testing::Test {
 protected:
  FilePointerTest() : memory(memfd_create("test", MFD_CLOEXEC)), pointer(make_file_pointer(directory.path(), memory)) {}
  ~FilePointerTest() override { close(memory); }

  FilePointerShared says() const {
    FilePointerShared all;
    EXPECT_TRUE(read_file_pointer(pointer->fd(), &all));
    return all;
  }

  SegmentDirectory directory;
  int memory;
  std::shared_ptr<SegmentFile> pointer;
};

TEST_F(FilePointerTest, Pointer__leads_to_the_file_and_is_locked) {
  ASSERT_NE(pointer, nullptr);
  EXPECT_GE(pointer->fd(), 3);
  EXPECT_EQ(directory.name_count(), 0u) << "no name yet";
  ASSERT_EQ(give_name(pointer->fd(), directory.path() + "/name"), 0);
  EXPECT_FALSE(
      SegmentFile(open((directory.path() + "/name").c_str(), O_RDWR | O_CLOEXEC), FileOwner::kOtherProcess).lock());
  ASSERT_EQ(pwrite(memory, "abc", 3, 0), 3);
  const int fd = follow_file_pointer(says());
  ASSERT_GE(fd, 0);
  char found[3];
  EXPECT_EQ(pread(fd, found, sizeof found, 0), 3);
  EXPECT_EQ(std::string(found, sizeof found), "abc");
  EXPECT_TRUE(leads_to(says(), fd));
  close(fd);
}

TEST_F(FilePointerTest, Descriptor_that_is_another_files_by_now__is_not_followed) {
  const int other = memfd_create("other", MFD_CLOEXEC);
  ASSERT_EQ(dup2(other, memory), memory);
  EXPECT_FALSE(leads_to(says(), other));
  close(other);
  EXPECT_EQ(follow_file_pointer(says()), -1);
  EXPECT_EQ(errno, ENOENT);
  close(memory);
  EXPECT_EQ(follow_file_pointer(says()), -1);
  memory = -1;
}

TEST_F(FilePointerTest, File_that_others_can_write_or_that_says_something_else__is_no_pointer) {
  FilePointerShared all;
  EXPECT_FALSE(read_file_pointer(memory, &all)) << "empty";
  ASSERT_EQ(fchmod(pointer->fd(), 0620), 0);
  EXPECT_FALSE(read_file_pointer(pointer->fd(), &all));
  ASSERT_EQ(fchmod(pointer->fd(), 0600), 0);
  ASSERT_EQ(pwrite(pointer->fd(), "x", 1, 0), 1);
  EXPECT_FALSE(read_file_pointer(pointer->fd(), &all));
}

TEST_F(FilePointerTest, Directory_or_file_that_is_not_there__is_told_by_errno) {
  EXPECT_EQ(make_file_pointer(directory.path() + "/none", memory), nullptr);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(make_file_pointer(directory.path(), -1), nullptr);
  EXPECT_EQ(errno, EBADF);
}

}  // namespace
}  // namespace portofu
