#include "engine/inspect/core_picture.h"

#include <array>
#include <cstddef>
#include <new>
#include <thread>

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
  core.sleeping_calls.link(second);
  core.sleeping_calls.link(first);
  const CorePicture picture = look();
  ASSERT_EQ(picture.sleeps.size(), 2u);
  EXPECT_EQ(picture.sleeps[0].thread, 7);
  EXPECT_EQ(picture.sleeps[0].subject.objects().front().test, 12u);
  EXPECT_EQ(picture.sleeps[1].subject.kind, WaitKind::kOther);
  core.sleeping_calls.unlink(first);
  core.sleeping_calls.unlink(second);
  EXPECT_TRUE(look().sleeps.empty());
}

TEST_F(CorePictureTest, Loops__are_seen_by_what_they_look_at) {
  EXPECT_TRUE(look().polls.empty());
  for (std::uint32_t i = 0; i < PolledObjects::kPeriod; ++i) core.polled.note(WaitKind::kCounters, ct);
  const CorePicture picture = look();
  ASSERT_EQ(picture.polls.size(), 1u);
  EXPECT_EQ(picture.polls[0].seen.kind, WaitKind::kCounters);
  EXPECT_EQ(picture.polls[0].seen.object, ct);
  EXPECT_EQ(picture.polls[0].seen.looks, 1u);
}

/// Of any bits: the place of a call that has ended.
struct Stack {
  alignas(SleepingCall) std::array<std::byte, sizeof(SleepingCall)> bytes;

  Stack() { spoil(); }
  void spoil() { bytes.fill(std::byte{0x5a}); }
  SleepingCall& call() { return *std::launder(reinterpret_cast<SleepingCall*>(bytes.data())); }
};

TEST(WaitSubject, Bits__that_nobody_wrote_name_no_more_objects_than_there_are) {
  Stack stack;
  EXPECT_EQ(stack.call().subject.objects().size(), WaitSubject::kMostObjects);
}

TEST_F(CorePictureTest, Call__that_ends_under_the_look_is_seen_whole_or_not_at_all) {
  const std::jthread caller([this](const std::stop_token& stop) {
    Stack stack;
    while (!stop.stop_requested()) {
      auto& call = *new (stack.bytes.data()) SleepingCall;
      call.subject.kind = WaitKind::kCounters;
      call.subject.add(ct, 12);
      call.thread = 7;
      core.sleeping_calls.link(call);
      std::this_thread::yield();
      core.sleeping_calls.unlink(call);
      stack.spoil();
    }
  });
  std::size_t seen = 0;
  for (int looks = 0; looks < 3000; ++looks) {
    const std::vector<SleepPicture> sleeps = look().sleeps;
    for (const SleepPicture& sleep : sleeps) {
      ++seen;
      EXPECT_EQ(sleep.thread, 7);
      ASSERT_EQ(sleep.subject.objects().size(), 1u);
      EXPECT_EQ(sleep.subject.objects().front().test, 12u);
    }
    ASSERT_LE(sleeps.size(), 1u);
  }
  RecordProperty("sleeps_seen", static_cast<int>(seen));
}

TEST_F(CorePictureTest, Core__that_is_not_there_is_no_picture) {
  CorePicture picture;
  EXPECT_FALSE(look_at_core(*own_, nullptr, &picture));
}

}  // namespace
}  // namespace portofu
