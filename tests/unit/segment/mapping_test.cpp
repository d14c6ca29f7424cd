// A mapping is shared, is released, and stays behind at fork.

#include "engine/segment/mapping.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "tests/unit/segment/segment_directory.h"

namespace portofu {
namespace {

class MappingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fd = memfd_create("mapping_test", MFD_CLOEXEC);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(ftruncate(fd, 8192), 0);
  }
  void TearDown() override { close(fd); }

  /// @return true if a page is mapped at the address
  static bool is_mapped(void* page) {
    unsigned char resident = 0;
    return mincore(page, 4096, &resident) == 0 || errno != ENOMEM;
  }

  int fd = -1;
};

TEST_F(MappingTest, Two_mappings__see_each_other) {
  const Mapping one = Mapping::map(fd, 4096, 4096);
  const Mapping two = Mapping::map(fd, 0, 8192);
  ASSERT_TRUE(one && two);
  *one.at(5) = std::byte{42};
  EXPECT_EQ(*two.at(4096 + 5), std::byte{42});
}

TEST_F(MappingTest, Refusal__is_an_empty_mapping) { EXPECT_FALSE(Mapping::map(-1, 0, 4096)); }

TEST_F(MappingTest, End__unmaps) {
  void* page = nullptr;
  {
    const Mapping mapping = Mapping::map(fd, 0, 4096);
    page = mapping.at(0);
    EXPECT_TRUE(is_mapped(page));
  }
  EXPECT_FALSE(is_mapped(page));
}

TEST_F(MappingTest, Move__leaves_one_owner) {
  Mapping mapping = Mapping::map(fd, 0, 4096);
  std::byte* base = mapping.at(0);
  Mapping moved = std::move(mapping);
  EXPECT_EQ(moved.at(0), base);
  Mapping assigned;
  assigned = std::move(moved);
  EXPECT_EQ(assigned.at(0), base);
  EXPECT_TRUE(is_mapped(base));
}

TEST_F(MappingTest, Forked_child__has_not_inherited_it_and_leaves_the_range_alone) {
  auto mapping = std::make_unique<Mapping>(Mapping::map(fd, 0, 4096));
  void* page = mapping->at(0);
  const int status = in_dying_child([&] {
    if (is_mapped(page)) return 1;
    void* own = mmap(page, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (own != page) return 2;
    mapping.reset();
    return is_mapped(page) ? 0 : 3;
  });
  EXPECT_EQ(status, 0);
}

TEST_F(MappingTest, Protected_front__cannot_be_written) {
  Mapping mapping = Mapping::map(fd, 0, 8192);
  mapping.protect_front(4096);
  *mapping.at(4096) = std::byte{1};
  EXPECT_DEATH(*mapping.at(0) = std::byte{1}, "");
}

}  // namespace
}  // namespace portofu
