// What counts as plenty, and that the kernel is asked.

#include "engine/segment/shared_room.h"

#include <gtest/gtest.h>

namespace portofu {
namespace {

TEST(SharedRoom, Plenty__leaves_half_of_a_small_file_system) {
  const SharedRoom room{64 << 20, 40 << 20};
  EXPECT_TRUE(room.is_plenty_for(8 << 20));
  EXPECT_FALSE(room.is_plenty_for((8 << 20) + 1));
  EXPECT_FALSE((SharedRoom{64 << 20, 1 << 20}.is_plenty_for(2 << 20))) << "more than there is";
}

TEST(SharedRoom, Plenty__leaves_what_jobs_need_of_a_large_one) {
  constexpr std::uint64_t kGibibyte = 1ull << 30;
  EXPECT_TRUE((SharedRoom{1024 * kGibibyte, kGibibyte}.is_plenty_for(2 << 20)));
  EXPECT_FALSE((SharedRoom{1024 * kGibibyte, SharedRoom::kKeptBytes}.is_plenty_for(1)));
}

TEST(SharedRoom, Plenty__is_everything_without_a_bound) { EXPECT_TRUE((SharedRoom{}.is_plenty_for(1 << 30))); }

TEST(SharedRoom, Kernel__is_asked_and_need_not_answer) {
  const SharedRoom room = shared_room("/dev/shm");
  EXPECT_LE(room.free, room.total);
  EXPECT_EQ(shared_room("/no/such/directory").total, 0u);
}

}  // namespace
}  // namespace portofu
