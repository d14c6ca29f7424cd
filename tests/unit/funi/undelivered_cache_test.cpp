// Thesis, 2.9, 5.2.4, 5.3.

#include "lib/funi/undelivered_cache.h"

#include <gtest/gtest.h>

namespace portofu::funi {
namespace {

void fill(UndeliveredCache& cache, unsigned count) {
  for (unsigned i = 0; i < count; ++i) cache.keep(cache.free_line());
}

TEST(FuniUndeliveredCache, Six_lines__are_for_all_and_two_for_replies) {
  UndeliveredCache cache;
  fill(cache, 5);
  EXPECT_TRUE(cache.has_room_for(kRequest));
  fill(cache, 1);
  EXPECT_TRUE(cache.is_for_replies_only());
  EXPECT_FALSE(cache.has_room_for(kRequest));
  EXPECT_TRUE(cache.has_room_for(kReply));
  EXPECT_EQ(cache.free_line(), 6u);
  fill(cache, 2);
  EXPECT_TRUE(cache.is_full());
  EXPECT_FALSE(cache.has_room_for(kReply));
  EXPECT_EQ(cache.ticket(), 0u);
}

TEST(FuniUndeliveredCache, A_rejected_line__waits_for_dispatch_again) {
  UndeliveredCache cache;
  fill(cache, 2);
  EXPECT_EQ(cache.line_to_dispatch(), 0u);
  cache.mark_sent(0);
  EXPECT_EQ(cache.line_to_dispatch(), 1u);
  cache.mark_sent(1);
  EXPECT_EQ(cache.line_to_dispatch(), kLines) << "both are outstanding";
  cache.acknowledge(1, /*accepted=*/false);
  EXPECT_EQ(cache.line_to_dispatch(), 1u);
  EXPECT_EQ(cache.ticket(), 0xfcu) << "neither is free";
  cache.acknowledge(0, /*accepted=*/true);
  EXPECT_EQ(cache.ticket(), 0xfdu);
  EXPECT_FALSE(cache.has_outstanding());
}

TEST(FuniUndeliveredCache, Packets__leave_in_the_order_in_which_they_came) {
  UndeliveredCache cache;
  fill(cache, 3);
  for (unsigned line = 0; line < 3; ++line) cache.mark_sent(line);
  cache.acknowledge(0, /*accepted=*/true);
  fill(cache, 1);  // Into line 0, which is free.
  cache.acknowledge(2, /*accepted=*/false);
  EXPECT_EQ(cache.line_to_dispatch(), 2u);
  cache.mark_sent(2);
  EXPECT_EQ(cache.line_to_dispatch(), 0u);
}

TEST(FuniUndeliveredCache, Contexts__have_lines_of_their_own) {
  UndeliveredCache cache;
  cache.set_context(1);
  cache.line(3).words[0] = 11;
  const Line& line = cache.line(3);
  EXPECT_EQ(cache.number_of(line), 3u);
  cache.set_context(2);
  EXPECT_EQ(cache.number_of(line), kLines) << "of another context";
  cache.line(3).words[0] = 22;
  cache.set_context(1 + 3 * kContexts);
  EXPECT_EQ(cache.line(3).words[0], 11u) << "the lower five bits";
}

}  // namespace
}  // namespace portofu::funi
