// Every transition of a channel, and that no late step hits a later user.

#include "engine/wire/shm/channel_directory.h"

#include <gtest/gtest.h>

#include "tests/unit/segment/segment_directory.h"

namespace portofu {
namespace {

struct ChannelDirectoryTest : ::testing::Test {
  void SetUp() override {
    SegmentOptions options = directory.options(1);
    options.channel_count = 4;
    SegmentError error{};
    owner = ProcessSegment::create(options, &error, nullptr);
    ASSERT_NE(owner, nullptr);
    ASSERT_EQ(PeerSegment::attach(directory.path(), owner->id(), &peer), AttachResult::kAttached);
    claimer_segment = directory.create(2);
    claimer = {claimer_segment->id(), claimer_segment->incarnation(), directory.path()};
  }

  bool take(ChannelClaim* claim) { return claim_channel(*peer, claimer, claim, &repaired); }
  SlotState state(std::uint32_t slot_index) { return read_slot(owner->slot(slot_index)).state; }

  /// A slot as `other` has left it when it died in the middle of connecting.
  void leave_claimed(std::uint32_t slot_index, ProcessId other, std::uint64_t incarnation) {
    owner->slot(slot_index).word.store(SlotWord{SlotState::kClaimed, 1, other}.pack());
    owner->slot(slot_index).claimer_incarnation.store(incarnation);
  }

  SegmentDirectory directory;
  std::unique_ptr<ProcessSegment> owner;
  std::unique_ptr<ProcessSegment> claimer_segment;
  std::shared_ptr<PeerSegment> peer;
  Claimer claimer;
  std::uint64_t repaired = 0;
};

TEST(SlotWord, Pack_and_unpack__are_inverse) {
  const SlotWord word{SlotState::kEvicted, 0xab, {0xdeadbeef, 65535}};
  EXPECT_EQ(SlotWord::unpack(word.pack()), word);
  EXPECT_EQ(SlotWord::unpack(0).state, SlotState::kFree) << "a new segment is zero";
  EXPECT_STREQ(slot_state_name(SlotState::kEvicted), "evicted");
  EXPECT_STREQ(slot_state_name(SlotState{99}), "unknown");
}

TEST_F(ChannelDirectoryTest, Claim__names_the_claimer_at_once) {
  ChannelClaim claim;
  ASSERT_TRUE(take(&claim));
  const SlotWord word = read_slot(owner->slot(claim.slot_index));
  EXPECT_EQ(word.state, SlotState::kClaimed);
  EXPECT_EQ(word.claimer, claimer.id);
  EXPECT_EQ(owner->control().directory_epoch.load(), 0u) << "nothing to see for the owner yet";
}

TEST_F(ChannelDirectoryTest, Publish__tells_the_owner) {
  ChannelClaim claim;
  ASSERT_TRUE(take(&claim));
  ASSERT_TRUE(publish_channel(*peer, claimer, &claim));
  EXPECT_EQ(state(claim.slot_index), SlotState::kPublished);
  EXPECT_EQ(owner->slot(claim.slot_index).claimer_incarnation.load(), claimer.incarnation);
  EXPECT_EQ(owner->control().slots_used.load(), claim.slot_index + 1);
  EXPECT_EQ(owner->control().directory_epoch.load(), 1u);
  EXPECT_TRUE(channel_is_heard(*peer, claim));
}

TEST_F(ChannelDirectoryTest, Abandon__frees) {
  ChannelClaim claim;
  ASSERT_TRUE(take(&claim));
  abandon_channel(*peer, claim);
  EXPECT_EQ(state(claim.slot_index), SlotState::kFree);
}

TEST_F(ChannelDirectoryTest, Close__tells_the_owner) {
  ChannelClaim claim;
  ASSERT_TRUE(take(&claim));
  ASSERT_TRUE(publish_channel(*peer, claimer, &claim));
  close_channel(*peer, claim);
  EXPECT_EQ(state(claim.slot_index), SlotState::kClosed);
  EXPECT_EQ(owner->control().directory_epoch.load(), 2u);
  EXPECT_FALSE(channel_is_heard(*peer, claim));
}

TEST_F(ChannelDirectoryTest, Close__of_an_evicted_channel_is_seen_too) {
  ChannelClaim claim;
  ASSERT_TRUE(take(&claim));
  ASSERT_TRUE(publish_channel(*peer, claimer, &claim));
  ASSERT_TRUE(move_slot(owner->slot(claim.slot_index), claim.word, SlotState::kEvicted));
  EXPECT_FALSE(channel_is_heard(*peer, claim));
  close_channel(*peer, claim);
  EXPECT_EQ(state(claim.slot_index), SlotState::kClosed);
}

TEST_F(ChannelDirectoryTest, Late_step__does_not_hit_a_later_user) {
  ChannelClaim old_claim;
  ASSERT_TRUE(take(&old_claim));
  abandon_channel(*peer, old_claim);
  ChannelClaim claim;
  ASSERT_TRUE(take(&claim));
  ASSERT_EQ(claim.slot_index, old_claim.slot_index);
  EXPECT_FALSE(publish_channel(*peer, claimer, &old_claim));
  abandon_channel(*peer, old_claim);
  close_channel(*peer, old_claim);
  EXPECT_EQ(read_slot(owner->slot(claim.slot_index)), claim.word);
}

TEST_F(ChannelDirectoryTest, Full_directory__refuses) {
  ChannelClaim claim;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(take(&claim));
    ASSERT_TRUE(publish_channel(*peer, claimer, &claim));
  }
  EXPECT_FALSE(take(&claim));
  EXPECT_EQ(repaired, 0u);
}

TEST_F(ChannelDirectoryTest, Full_directory__is_repaired_where_claimers_have_died) {
  const auto living = directory.create(3);
  leave_claimed(0, living->id(), living->incarnation());
  leave_claimed(1, {kTestNid, 999}, 12345);
  leave_claimed(2, living->id(), living->incarnation() + 2);
  leave_claimed(3, {kTestNid, 998}, 0);
  ChannelClaim claim;
  ASSERT_TRUE(take(&claim));
  EXPECT_EQ(repaired, 3u);
  EXPECT_EQ(claim.slot_index, 1u);
  EXPECT_EQ(state(0), SlotState::kClaimed) << "its claimer lives and may be slow";
}

TEST_F(ChannelDirectoryTest, Own_claim_of_an_earlier_life__is_repaired) {
  for (std::uint32_t i = 0; i < 4; ++i) leave_claimed(i, claimer.id, 0);
  ChannelClaim claim;
  EXPECT_TRUE(take(&claim));
}

}  // namespace
}  // namespace portofu
