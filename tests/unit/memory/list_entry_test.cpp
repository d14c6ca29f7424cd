// Headers that are used again.

#include "engine/memory/list_entry.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace portofu {
namespace {

TEST(SpareHeaders, Take__gives_a_header_as_new) {
  SpareHeaders spare;
  UnexpectedHeader* header = spare.take();
  ASSERT_NE(header, nullptr);
  header->complete = true;
  header->claimed = true;
  header->mlength = 7;
  spare.give(header);
  UnexpectedHeader* again = spare.take();
  EXPECT_EQ(again, header);
  EXPECT_FALSE(again->complete);
  EXPECT_FALSE(again->claimed);
  EXPECT_FALSE(again->is_linked());
  EXPECT_EQ(again->mlength, 0u);
  spare.give(again);
}

TEST(SpareHeaders, Take__never_gives_one_twice) {
  SpareHeaders spare;
  constexpr std::size_t kCount = 3000;  // Of many blocks.
  for (int round = 0; round < 2; ++round) {
    std::vector<UnexpectedHeader*> taken;
    for (std::size_t i = 0; i < kCount; ++i) taken.push_back(spare.take());
    EXPECT_EQ(std::set(taken.begin(), taken.end()).size(), kCount);
    for (UnexpectedHeader* header : taken) spare.give(header);
  }
}

}  // namespace
}  // namespace portofu
