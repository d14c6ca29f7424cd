// What a lane remembers, and who may go in. The threads' rules are tested with enter_on_duty
// (tests/unit/initiator/tofu_direct_test.cpp).

#include "engine/core/direct_lane.h"

#include <gtest/gtest.h>

namespace portofu {
namespace {

class DirectLaneTest : public testing::Test {
 protected:
  DirectLaneTest() { lane.stadds = &stadds; }

  TransmitCompleteQueue tcq{16};
  MessageReceiveQueue mrq{16};
  StaddTable stadds;
  DirectLane lane{tcq, mrq};
};

/// A structure that nobody has filled in names VCQ ID 0 and STADD 0.
TEST_F(DirectLaneTest, Nothing_remembered__is_found_by_no_name_not_by_0_either) {
  for (const std::uint64_t vcq_id : {std::uint64_t{0}, std::uint64_t{1}, UINT64_MAX}) {
    for (const std::uint64_t stadd : {std::uint64_t{0}, std::uint64_t{8}, make_stadd(1), UINT64_MAX}) {
      for (const std::uint64_t bytes : {0, 1, 8}) {
        EXPECT_EQ(lane.find_remote(vcq_id, stadd, bytes, true, false), nullptr) << vcq_id << " " << stadd;
        EXPECT_EQ(lane.find_remote(vcq_id, stadd, bytes, false, true), nullptr) << vcq_id << " " << stadd;
        EXPECT_EQ(lane.find_local(stadd, bytes, false), nullptr) << stadd;
      }
    }
  }
  lane.forget();
  EXPECT_EQ(lane.find_remote(0, 0, 8, true, false), nullptr);
}

TEST_F(DirectLaneTest, Door__that_is_shut_lets_nobody_in) {
  LaneDoor door;
  EXPECT_EQ(LaneUse(door, 0).lane(), nullptr);
  door.lane = &lane;
  door.handle.store(7);
  EXPECT_EQ(LaneUse(door, 7).lane(), nullptr) << "nobody is its user";
}

TEST_F(DirectLaneTest, Door__lets_its_user_in_for_the_right_vcq_and_says_that_he_is_inside) {
  LaneDoor door;
  LaneSeat seat;
  LaneSeat* const before = own_seat;
  own_seat = &seat;
  door.lane = &lane;
  door.handle.store(7);
  door.user.store(&seat);
  {
    const LaneUse use(door, 7);
    EXPECT_EQ(use.lane(), &lane);
    EXPECT_TRUE(seat.busy.load());
  }
  EXPECT_FALSE(seat.busy.load());
  EXPECT_EQ(LaneUse(door, 8).lane(), nullptr);
  EXPECT_FALSE(seat.busy.load());
  own_seat = before;
}

}  // namespace
}  // namespace portofu
