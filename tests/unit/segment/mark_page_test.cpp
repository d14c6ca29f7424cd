#include "engine/segment/mark_page.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

namespace portofu {
namespace {

std::uint64_t word_at(std::uint64_t address) {
  std::uint64_t word = 0;
  std::memcpy(&word, reinterpret_cast<const void*>(address), sizeof word);
  return word;
}

TEST(MarkPage, Mark__lies_at_its_address_until_the_end) {
  std::uint64_t address = 0;
  {
    MarkPage page;
    EXPECT_EQ(page.address(), 0u);
    ASSERT_TRUE(page.take(0x0123'4567));
    address = page.address();
    EXPECT_EQ(word_at(address), 0x0123'4567u);
    EXPECT_FALSE(page.take(5)) << "once";
    EXPECT_EQ(word_at(address), 0x0123'4567u);
  }
  unsigned char there = 0;
  EXPECT_NE(mincore(reinterpret_cast<void*>(address), 4096, &there), 0) << "it is given back";
}

// An address that another program has, too, would let it be taken for this one.
TEST(MarkPage, Address__is_another_one_each_time) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "mmap of the sanitizers ignores addresses outside of their own ranges";
#endif
  std::uint64_t before = 0;
  for (int i = 0; i < 8; ++i) {
    MarkPage page;
    ASSERT_TRUE(page.take(1));
    EXPECT_NE(page.address(), before);
    before = page.address();
  }
}

}  // namespace
}  // namespace portofu
