// Headers that are used again, and those that a search has claimed.

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

TEST(UnexpectedHeader, Search__has_no_more_when_the_last_of_its_headers_leaves_in_any_order) {
  for (const std::vector<std::size_t>& order :
       {std::vector<std::size_t>{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}) {
    std::vector<UnexpectedHeader> headers(3);
    headers[0].join_search(nullptr);
    headers[1].join_search(&headers[0]);
    headers[2].join_search(&headers[1]);
    EXPECT_FALSE(headers[order[0]].leave_search());
    EXPECT_FALSE(headers[order[1]].leave_search());
    EXPECT_TRUE(headers[order[2]].leave_search());
  }
}

}  // namespace
}  // namespace portofu
