// Each peer is attached once per life, and forgotten when nobody uses it.

#include "engine/wire/shm/peer_table.h"

#include <gtest/gtest.h>

#include "tests/unit/segment/segment_directory.h"

namespace portofu {
namespace {

constexpr ProcessId kPeer{kTestNid, 77};

struct PeerTableTest : ::testing::Test {
  SegmentDirectory directory;
  PeerTable table{directory.path()};
  std::shared_ptr<PeerSegment> peer;
};

TEST_F(PeerTableTest, Same_life__is_attached_once) {
  const auto own = directory.create(77);
  ASSERT_EQ(table.attach(kPeer, 0, &peer), AttachResult::kAttached);
  std::shared_ptr<PeerSegment> again;
  ASSERT_EQ(table.attach(kPeer, own->incarnation(), &again), AttachResult::kAttached);
  EXPECT_EQ(peer, again);
}

TEST_F(PeerTableTest, Other_life__is_not_there) {
  const auto own = directory.create(77);
  EXPECT_EQ(table.attach(kPeer, own->incarnation() + 2, &peer), AttachResult::kNoSuchSegment);
  EXPECT_EQ(peer, nullptr);
}

TEST_F(PeerTableTest, Next_life__is_attached_anew) {
  auto own = directory.create(77);
  ASSERT_EQ(table.attach(kPeer, 0, &peer), AttachResult::kAttached);
  own.reset();
  own = directory.create(77);
  std::shared_ptr<PeerSegment> next;
  ASSERT_EQ(table.attach(kPeer, 0, &next), AttachResult::kAttached);
  EXPECT_NE(peer, next);
  EXPECT_EQ(next->incarnation(), own->incarnation());
  EXPECT_TRUE(peer->is_dead());
}

TEST_F(PeerTableTest, Check_alive__finds_the_dead) {
  auto own = directory.create(77);
  const auto other = directory.create(78);
  std::shared_ptr<PeerSegment> living;
  ASSERT_EQ(table.attach(kPeer, 0, &peer), AttachResult::kAttached);
  ASSERT_EQ(table.attach(other->id(), 0, &living), AttachResult::kAttached);
  table.check_alive();
  EXPECT_FALSE(peer->is_dead());
  own.reset();
  EXPECT_FALSE(peer->is_dead()) << "nobody has asked";
  table.check_alive();
  EXPECT_TRUE(peer->is_dead());
  EXPECT_FALSE(living->is_dead());
}

}  // namespace
}  // namespace portofu
