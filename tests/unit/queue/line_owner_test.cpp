// Hints are hints: whatever the CPU makes of them, memory says the same as before.

#include "engine/queue/line_owner.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <numeric>

namespace portofu {
namespace {

void throw_if_known(const void* line) {
  if (kThrowsLinesAway) throw_away(line);
}

TEST(LineOwner, Hints__change_nothing_in_the_line_and_its_neighbours) {
  alignas(64) std::array<std::uint32_t, 64> lines;
  std::iota(lines.begin(), lines.end(), 1u);
  const auto before = lines;
  for (int i = 0; i < 3; ++i) {
    throw_if_known(&lines[20]);
    ask_to_own(&lines[20]);
    hand_over(&lines[20]);
    EXPECT_EQ(lines, before);
    ask_to_own(&lines[40]);
    throw_if_known(&lines[40]);
    EXPECT_EQ(lines, before);
  }
}

TEST(LineOwner, Line_that_was_sent_away__can_be_used_at_once) {
  alignas(64) std::array<std::uint64_t, 8> line{};
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    line[i % 8] = i;
    throw_if_known(line.data());
    line[(i + 1) % 8] = ~i;
    hand_over(line.data());
    ASSERT_EQ(line[i % 8], i);
    ASSERT_EQ(line[(i + 1) % 8], ~i);
  }
}

}  // namespace
}  // namespace portofu
