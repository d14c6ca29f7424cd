#include "engine/inspect/core_picture.h"

#include "tests/unit/support/made_up_job.h"
#include "tests/unit/support/peer_fixture.h"

namespace portofu {
namespace {

class CorePictureTest : public PeerTest {
 protected:
  CorePicture look() {
    CorePicture picture;
    EXPECT_TRUE(look_at_core(*own_, &core, &picture));
    return picture;
  }

  OwnMemory own_;
};

TEST_F(CorePictureTest, Operation__that_is_not_answered_is_seen_with_its_peer) {
  start(PacketType::kPut, 8, AckRequest::kFull);
  const PacketHeader sent = next_sent();
  const CorePicture picture = look();
  ASSERT_EQ(picture.operations.size(), 1u);
  EXPECT_EQ(picture.operations[0].id, sent.operation_id);
  EXPECT_EQ(picture.operations[0].kind, PacketType::kPut);
  EXPECT_EQ(picture.operations[0].target, kPeer);
  EXPECT_EQ(picture.operations[0].length, 8u);
  EXPECT_TRUE(picture.operations[0].sent);
  ASSERT_EQ(picture.peers.size(), 1u);
  EXPECT_EQ(picture.peers[0].id, kPeer);
  EXPECT_EQ(picture.peers[0].outstanding, 1u);
  receive(answer_header(sent.operation_id, 8));
  EXPECT_TRUE(look().operations.empty());
}

TEST_F(CorePictureTest, Calls__that_sleep_are_seen) {
  SleepingCall first, second;
  first.subject.kind = WaitKind::kCounters;
  first.subject.add(ct, 12);
  first.thread = 7;
  first.next = &second;
  core.sleeping_calls = &first;
  const CorePicture picture = look();
  ASSERT_EQ(picture.sleeps.size(), 2u);
  EXPECT_EQ(picture.sleeps[0].thread, 7);
  EXPECT_EQ(picture.sleeps[0].subject.tests[0], 12u);
  EXPECT_EQ(picture.sleeps[1].subject.kind, WaitKind::kOther);
  core.sleeping_calls = nullptr;
}

TEST_F(CorePictureTest, Core__that_is_not_there_is_no_picture) {
  CorePicture picture;
  EXPECT_FALSE(look_at_core(*own_, nullptr, &picture));
}

}  // namespace
}  // namespace portofu
