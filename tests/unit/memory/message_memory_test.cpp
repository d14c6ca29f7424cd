// Memory for messages that lie in nobody's buffer.

#include "engine/memory/message_memory.h"

#include <gtest/gtest.h>

#include <cstring>

namespace portofu {
namespace {

TEST(MessageMemory, Every_length__has_room) {
  MessageMemory memory;
  for (std::uint64_t bytes = 1; bytes < 1'000'000; bytes = bytes * 3 / 2 + 1) {
    std::byte* taken = memory.take(bytes);
    ASSERT_NE(taken, nullptr);
    std::memset(taken, 0x5a, bytes);
    memory.give(taken, bytes);
  }
}

TEST(MessageMemory, What_was_given_back__is_taken_again) {
  MessageMemory memory;
  std::byte* first = memory.take(100);
  memory.give(first, 100);
  EXPECT_EQ(memory.take(128), first);
  std::byte* other = memory.take(100);
  EXPECT_NE(other, first);
  memory.give(first, 128);
  memory.give(other, 100);
}

}  // namespace
}  // namespace portofu
