// What ends with a peer.

#include "engine/run/death.h"

#include <gtest/gtest.h>

#include "engine/initiator/send.h"
#include "engine/mailbox/connect.h"
#include "engine/target/answer_out.h"
#include "tests/unit/support/peer_fixture.h"

namespace portofu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class DeathOfPeerTest : public PeerTest {};

TEST_F(DeathOfPeerTest, Lose__Connected_to_Unconnected_gives_the_link_back) {
  reach();
  lose_peer(core, peer());
  EXPECT_EQ(peer().state, PeerState::kUnconnected);
  EXPECT_EQ(peer().link, nullptr);
  EXPECT_EQ(wire.disconnect_count, 1);
  EXPECT_EQ(counted(Counter::kPeersLost), 1u);
  EXPECT_EQ(reach(), Reach::kNow) << "a later operation connects anew";
}

TEST_F(DeathOfPeerTest, Lose__without_a_link_gives_none_back) {
  wire.connect_result = ConnectResult::kInProgress;
  reach();
  lose_peer(core, peer());
  lose_peer(core, peer());
  EXPECT_EQ(wire.disconnect_count, 0);
  EXPECT_EQ(counted(Counter::kPeersLost), 0u);
  EXPECT_EQ(peer().state, PeerState::kUnconnected);
}

TEST_F(DeathOfPeerTest, Leave__ends_also_what_would_go_with_the_next_link) {
  wire.connect_result = ConnectResult::kInProgress;
  start(PacketType::kGet, 8);
  start(PacketType::kGet, 8);
  leave_peer(core, peer());
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kReply, EventKind::kReply));
  EXPECT_TRUE(peer().requests.waiting.empty());
}

// The peer may live, and would wait for ever.
TEST_F(DeathOfPeerTest, Lose__without_a_link_tells_the_wire_that_answers_were_dropped) {
  wire.connect_result = ConnectResult::kInProgress;
  reach();
  lose_peer(core, peer());
  EXPECT_EQ(wire.give_up_count, 0) << "nobody waits for anything";
  send_answer(core, peer(), {});
  ASSERT_EQ(peer().answers.waiting.size(), 1u);
  lose_peer(core, peer());
  EXPECT_EQ(wire.give_up_count, 1);
  EXPECT_EQ(peer().answers.waiting.size(), 0u);
}

TEST_F(DeathOfPeerTest, Lose__ends_what_waits_for_an_answer) {
  start(PacketType::kPut, 8, AckRequest::kFull);
  start(PacketType::kGet, 8);
  start(PacketType::kFetchAtomic, 8);
  ASSERT_EQ(peer().outstanding, 3u);
  lose_peer(core, peer());
  EXPECT_THAT(kinds(), testing::UnorderedElementsAre(EventKind::kSend, EventKind::kAck, EventKind::kReply,
                                                     EventKind::kSend, EventKind::kReply));
  EXPECT_EQ(md().pending, 0u);
  EXPECT_EQ(peer().outstanding, 0u);
  EXPECT_EQ(ni.outstanding, 0u);
  EXPECT_EQ(core.outstanding.open_count(), 0u);
}

TEST_F(DeathOfPeerTest, Lose__ends_what_has_not_left_or_only_partly_in_order) {
  wire.room = 1;
  start(PacketType::kPut, 2 * kPacketBytes, AckRequest::kFull);
  start(PacketType::kGet, 8);
  start(PacketType::kPut, 8);
  start(PacketType::kFetchAtomic, 8);
  ASSERT_EQ(peer().requests.waiting.size(), 4u);
  lose_peer(core, peer());
  std::vector<EventKind> told;
  for (int i = 0; i < 6; ++i) {
    const Event event = next_event();
    EXPECT_EQ(event.ni_fail_type, NiFail::kUndeliverable);
    told.push_back(event.type);
  }
  EXPECT_THAT(told, ElementsAre(EventKind::kSend, EventKind::kAck, EventKind::kReply, EventKind::kSend,
                                EventKind::kSend, EventKind::kReply));
  EXPECT_THAT(kinds(), IsEmpty());
  EXPECT_TRUE(peer().requests.waiting.empty());
  EXPECT_EQ(md().pending, 0u);
  EXPECT_EQ(core.outstanding.open_count(), 0u);
}

TEST_F(DeathOfPeerTest, Lose__of_a_request_beyond_the_window_that_has_no_operation_yet) {
  for (std::uint32_t i = 0; i < kWindow + 2; ++i) start(PacketType::kGet, 8);
  ASSERT_EQ(peer().requests.waiting.size(), 2u);
  lose_peer(core, peer());
  EXPECT_EQ(kinds().size(), kWindow + 2u);
  EXPECT_EQ(md().pending, 0u);
}

TEST_F(DeathOfPeerTest, Lose__in_the_middle_of_a_reply) {
  start(PacketType::kGet, 2 * kPacketBytes);
  receive(answer_header(next_sent().operation_id, 2 * kPacketBytes, kPacketBytes));
  lose_peer(core, peer());
  const Event event = next_event();
  EXPECT_EQ(event.type, EventKind::kReply);
  EXPECT_EQ(event.ni_fail_type, NiFail::kUndeliverable);
  EXPECT_EQ(event.mlength, 0u);
  EXPECT_EQ(peer().answer_stream.mode, ArrivalMode::kIdle);
  EXPECT_EQ(md().pending, 0u);
  receive(data_header(kPacketBytes, kPacketBytes, kFlagAnswerStream));
  EXPECT_EQ(refused(), 1u);
}

TEST_F(DeathOfPeerTest, Lose__leaves_other_peers_alone) {
  Descriptor d = descriptor(PacketType::kGet, 8);
  d.portals.target = kOther;
  d.portals.md_handle = md().handle;
  start_descriptor(core, d);
  start(PacketType::kGet, 8);
  lose_peer(core, peer());
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kReply));
  EXPECT_EQ(core.peer(kOther).outstanding, 1u);
  EXPECT_EQ(md().pending, 1u);
}

}  // namespace
}  // namespace portofu
