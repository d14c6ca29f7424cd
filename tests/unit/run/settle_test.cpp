// Acknowledgements that come without a packet: only from the one who owes them, only once.

#include "engine/run/settle.h"

#include <gtest/gtest.h>

#include "engine/initiator/send.h"
#include "engine/run/death.h"
#include "engine/run/loop.h"
#include "tests/unit/support/peer_fixture.h"

namespace portofu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class SettleTest : public AnswerTest {};

TEST_F(SettleTest, Without_a_packet__closes_the_operation_and_tells_ACK) {
  Descriptor d = descriptor(PacketType::kPut, 8);
  d.portals.ack_req = AckRequest::kFull;
  d.portals.md_handle = md().handle;
  d.remote_offset = 40;
  start_descriptor(core, d);
  wire.acks = {next_sent().operation_id};
  EXPECT_EQ(take_acknowledgements(core), 1);
  EXPECT_EQ(next_event().type, EventKind::kSend);
  const Event ack = next_event();
  EXPECT_EQ(ack.type, EventKind::kAck);
  EXPECT_EQ(ack.ni_fail_type, NiFail::kOk);
  EXPECT_EQ(ack.mlength, 8u);
  EXPECT_EQ(ack.remote_offset, 40u);
  EXPECT_EQ(ack.ptl_list, ListKind::kPriority);
  EXPECT_EQ(core.outstanding.open_count(), 0u);
  EXPECT_EQ(md().pending, 0u);
  EXPECT_THAT(core.awaited_peers, IsEmpty());
  EXPECT_EQ(take_acknowledgements(core), 0);
}

TEST_F(SettleTest, Without_a_packet__is_looked_for_while_the_peer_owes_an_answer) {
  const std::uint32_t first = start_put();
  const std::uint32_t second = start_put();
  EXPECT_THAT(core.awaited_peers, ElementsAre(&peer()));
  wire.acks = {first};
  take_acknowledgements(core);
  EXPECT_THAT(core.awaited_peers, ElementsAre(&peer()));
  receive(answer_header(second, 8));
  take_acknowledgements(core);
  EXPECT_THAT(core.awaited_peers, IsEmpty());
  start_get(8);
  EXPECT_THAT(core.awaited_peers, ElementsAre(&peer()));
}

TEST_F(SettleTest, Without_a_packet__of_what_nobody_waits_for_is_refused) {
  const std::uint32_t id = start_put();
  const std::uint32_t get = start_get(8);
  const std::uint32_t fetching = start(PacketType::kFetchAtomic, 8);
  wire.acks = {id + 3, get, fetching, id + OutstandingTable::kMaxOperations};
  EXPECT_EQ(take_acknowledgements(core), 4);
  EXPECT_EQ(refused(), 4u);
  EXPECT_EQ(core.outstanding.open_count(), 3u);
  wire.acks = {id, id};
  take_acknowledgements(core);
  EXPECT_EQ(refused(), 5u) << "once";
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend, EventKind::kSend, EventKind::kAck));
}

TEST_F(SettleTest, Without_a_packet__of_somebody_elses_operation_is_refused) {
  const std::uint32_t id = start_put();
  Descriptor other = descriptor(PacketType::kPut, 8);
  other.portals.target.pid += 1;
  other.portals.ack_req = AckRequest::kFull;
  other.portals.md_handle = md().handle;
  start_descriptor(core, other);
  wire.acks = {id};
  Peer& liar = core.peer(other.portals.target);
  EXPECT_EQ(take_acknowledgements(core, liar), 1);
  EXPECT_EQ(refused(), 1u);
  EXPECT_NE(core.outstanding.find(id), nullptr);
}

TEST_F(SettleTest, Without_a_packet__so_many_are_taken_that_nobody_else_waits) {
  start_put();
  wire.acks.assign(1000, 12345);
  EXPECT_EQ(take_acknowledgements(core), 64);
  EXPECT_EQ(wire.acks.size(), 936u);
}

TEST_F(SettleTest, Without_a_packet__before_all_has_left_waits_for_the_last_packet) {
  wire.room = 1;
  const std::uint32_t id = start_put(3 * kPacketBytes);
  wire.acks = {id};
  take_acknowledgements(core);
  EXPECT_THAT(kinds(), IsEmpty());
  wire.room = FakeWire::kPlentyOfRoom;
  advance_peer(core, peer());
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend, EventKind::kAck));
}

/// What the peer has done before it died is done.
TEST_F(SettleTest, Without_a_packet__comes_before_the_death_of_the_peer) {
  wire.acks = {start_put()};
  const std::uint32_t undone = start_put();
  EXPECT_NE(undone, 0u);
  lose_peer(core, peer());
  for (const NiFail fail : {NiFail::kOk, NiFail::kUndeliverable}) {
    next_event();
    EXPECT_EQ(next_event().ni_fail_type, fail);
  }
  EXPECT_THAT(core.awaited_peers, ElementsAre(&peer()));
  EXPECT_EQ(take_acknowledgements(core), 0) << "there is no link";
  EXPECT_THAT(core.awaited_peers, IsEmpty());
}

}  // namespace
}  // namespace portofu
