// The file of a heap: who may map it, and what becomes of its name.

#include "engine/segment/heap_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/segment/file_pointer.h"
#include "engine/segment/heap_memory.h"
#include "engine/segment/own_segments.h"
#include "engine/segment/segment_creation.h"
#include "tests/unit/segment/segment_directory.h"

namespace portofu {
namespace {

constexpr std::uint64_t kHeapFileBytes = 1 << 20;

struct HeapFileTest : ::testing::Test {
  std::shared_ptr<SegmentFile> make() const {
    const int fd = open_heap_file(directory.path().c_str(), kHeapFileBytes);
    return fd >= 0 ? std::make_shared<SegmentFile>(fd, FileOwner::kThisProcess) : nullptr;
  }

  /// A process that names a heap and dies. @return the id of the heap
  std::uint64_t leave_dead_heap() const {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    in_dying_child([&] {
      const std::uint64_t id = name_heap_file(directory.path(), make());
      return write(ends[1], &id, sizeof id) == sizeof id ? 0 : 1;
    });
    std::uint64_t id = 0;
    EXPECT_EQ(read(ends[0], &id, sizeof id), static_cast<ssize_t>(sizeof id));
    close(ends[0]);
    close(ends[1]);
    return id;
  }

  SegmentDirectory directory;
};

TEST_F(HeapFileTest, New_file__has_no_name_and_belongs_to_its_user_alone) {
  const auto file = make();
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(directory.name_count(), 0u);
  struct stat status {};
  ASSERT_EQ(fstat(file->fd(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0600u);
  EXPECT_EQ(status.st_size, static_cast<off_t>(kHeapFileBytes));
  EXPECT_EQ(status.st_blocks, 0) << "it costs memory only when it is used";
}

TEST_F(HeapFileTest, Named_heap__is_mapped_by_another_process) {
  const auto file = make();
  const std::uint64_t id = name_heap_file(directory.path(), file);
  ASSERT_NE(id, 0u);
  const Mapping own = map_heap(directory.path(), {id, 0, kHeapFileBytes});
  ASSERT_TRUE(own);
  own.at(100)[0] = std::byte{1};
  EXPECT_EQ(in_dying_child([&] {
              const Mapping mapping = map_heap(directory.path(), {id, 0, kHeapFileBytes});
              if (!mapping || mapping.at(100)[0] != std::byte{1}) return 1;
              mapping.at(100)[1] = std::byte{2};
              return 0;
            }),
            0);
  EXPECT_EQ(own.at(100)[1], std::byte{2});
  unname_heap_file(directory.path(), id, *file);
  EXPECT_EQ(directory.name_count(), 0u);
}

TEST_F(HeapFileTest, Heap_of_memory_alone__is_found_by_its_pointer_as_long_as_its_owner_lives) {
  const int memory = open_heap_memory(kHeapFileBytes);
  if (memory < 0) GTEST_SKIP() << "not on this machine";
  EXPECT_GE(memory, 3);
  const auto pointer = make_file_pointer(directory.path(), memory);
  ASSERT_NE(pointer, nullptr);
  const std::uint64_t id = name_heap_file(directory.path(), pointer);
  const Mapping own = map_heap(directory.path(), {id, 0, kHeapFileBytes});
  ASSERT_TRUE(own);
  own.at(100)[0] = std::byte{1};
  EXPECT_EQ(in_dying_child([&] {
              const Mapping mapping = map_heap(directory.path(), {id, 0, kHeapFileBytes});
              if (!mapping || mapping.at(100)[0] != std::byte{1}) return 1;
              mapping.at(100)[1] = std::byte{2};
              return map_heap(directory.path(), {id, 0, 2 * kHeapFileBytes}) ? 2 : 0;
            }),
            0);
  EXPECT_EQ(own.at(100)[1], std::byte{2});
  const int another = open_heap_memory(kHeapFileBytes);
  ASSERT_EQ(dup2(another, memory), memory);
  close(another);
  EXPECT_FALSE(map_heap(directory.path(), {id, 0, kHeapFileBytes})) << "the descriptor is another file's";
  unname_heap_file(directory.path(), id, *pointer);
  EXPECT_EQ(directory.name_count(), 0u);
  close(memory);
}

TEST_F(HeapFileTest, Heap_that_is_not_as_published__is_not_mapped) {
  const auto file = make();
  const std::uint64_t id = name_heap_file(directory.path(), file);
  EXPECT_FALSE(map_heap(directory.path(), {}));
  EXPECT_FALSE(map_heap(directory.path(), {id ^ 2, 0, kHeapFileBytes})) << "no such name";
  EXPECT_FALSE(map_heap(directory.path(), {id, 0, 2 * kHeapFileBytes})) << "another length";
  EXPECT_FALSE(map_heap(directory.path(), {id, 0, kMaxHeapBytes + 1}));
  ASSERT_EQ(fchmod(file->fd(), 0660), 0);
  EXPECT_FALSE(map_heap(directory.path(), {id, 0, kHeapFileBytes})) << "others may write to it";
  ASSERT_EQ(fchmod(file->fd(), 0600), 0);
  EXPECT_TRUE(map_heap(directory.path(), {id, 0, kHeapFileBytes}));
  unname_heap_file(directory.path(), id, *file);
}

TEST_F(HeapFileTest, Heap_of_a_dead_process__is_not_mapped_and_its_name_is_swept) {
  const std::uint64_t id = leave_dead_heap();
  ASSERT_NE(id, 0u);
  EXPECT_EQ(directory.name_count(), 1u);
  EXPECT_FALSE(map_heap(directory.path(), {id, 0, kHeapFileBytes}));
  const OwnSegmentsLock lock;
  EXPECT_EQ(sweep_dead_segments(directory.path()), 1);
  EXPECT_EQ(directory.name_count(), 0u);
}

TEST_F(HeapFileTest, Heap_of_a_living_process__is_not_swept) {
  const auto file = make();
  const std::uint64_t id = name_heap_file(directory.path(), file);
  {
    const OwnSegmentsLock lock;
    EXPECT_EQ(sweep_dead_segments(directory.path()), 0);
  }
  in_dying_child([&] {
    const OwnSegmentsLock lock;
    return sweep_dead_segments(directory.path());
  });
  EXPECT_TRUE(map_heap(directory.path(), {id, 0, kHeapFileBytes}));
  unname_heap_file(directory.path(), id, *file);
}

TEST_F(HeapFileTest, Name__is_told_from_that_of_a_segment) {
  const std::string path = heap_path(directory.path(), 5);
  EXPECT_TRUE(is_heap_name(path.substr(directory.path().size() + 1)));
  EXPECT_FALSE(is_heap_name(segment_path(directory.path(), {1, 2}).substr(directory.path().size() + 1)));
}

}  // namespace
}  // namespace portofu
