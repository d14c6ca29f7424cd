// Answers on their way out: at once if there is room, else in order and later; what a get still reads, what is cut, and
// what is forgotten with its peer.

#include "engine/target/answer_out.h"

#include <gtest/gtest.h>

#include "engine/mailbox/outbox.h"
#include "engine/memory/guarded_copy.h"
#include "engine/run/death.h"
#include "engine/run/loop.h"
#include "tests/unit/support/core_fixture.h"
#include "tests/unit/support/faulty_memory.h"

namespace portofu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class AnswerOutTest : public CoreTest {
 protected:
  void SetUp() override {
    install_fault_guard();
    memory = pattern_bytes(0, memory.size());
  }

  static AnswerContent content(std::uint32_t operation_id, std::uint64_t mlength = 0) {
    AnswerContent made;
    made.operation_id = operation_id;
    made.mlength = mlength;
    return made;
  }
  void answer(std::uint32_t operation_id) { send_answer(core, peer(), content(operation_id)); }

  /// Appends an entry over `start`, and lets the peer get `length` bytes of it.
  Handle get(std::byte* start, std::uint64_t length, std::uint32_t operation_id = 7) {
    EntryRequest request = entry(kPutsAndGets | kEntryUseOnce | kEntryEventUnlinkDisable);
    request.segment.describe(start, length);
    const Handle handle = append(std::move(request));
    receive(get_header(length, operation_id));
    return handle;
  }
  void make_room(std::uint32_t packets = FakeWire::kPlentyOfRoom) { wire.room = packets; }
  int advance() { return advance_peer(core, peer()); }

  std::vector<std::uint32_t> sent_ids() {
    std::vector<std::uint32_t> ids;
    for (const FakePacket& packet : wire.sent) ids.push_back(packet.header.operation_id);
    return ids;
  }

  FaultyMemory faulty;
};

TEST_F(AnswerOutTest, Room__the_answer_leaves_at_once_with_all_that_it_says) {
  AnswerContent said = content(7, 5);
  said.fail = NiFail::kPermViolation;
  said.list = ListKind::kOverflow;
  said.silent = true;
  said.remote_offset = 11;
  send_answer(core, peer(), said);
  const FakePacket packet = wire.take();
  EXPECT_EQ(packet.process, kPeer);
  EXPECT_EQ(packet.header.type, PacketType::kAnswer);
  EXPECT_EQ(packet.header.flags, kFlagOverflowList | kFlagSilent | kFlagUnordered);
  EXPECT_EQ(packet.header.operation_id, 7u);
  EXPECT_EQ(packet.header.ni_fail_type, static_cast<std::uint8_t>(NiFail::kPermViolation));
  EXPECT_EQ(packet.header.length, 5u);
  EXPECT_EQ(packet.header.remote_offset, 11u);
  EXPECT_EQ(packet.header.payload_bytes, 0u);
  EXPECT_EQ(counted(Counter::kAnswersSent), 1u);
  EXPECT_EQ(counted(Counter::kPacketsSent), 1u);
}

TEST_F(AnswerOutTest, No_room__answers_wait_and_leave_in_order) {
  make_room(0);
  for (std::uint32_t id = 1; id <= 3; ++id) answer(id);
  EXPECT_EQ(peer().answers.waiting.size(), 3u);
  EXPECT_THAT(core.waiting_peers, ElementsAre(&peer()));
  make_room(2);
  EXPECT_EQ(advance(), 2);
  EXPECT_THAT(sent_ids(), ElementsAre(1, 2));
  make_room();
  answer(4);  // May not overtake the one that waits.
  EXPECT_THAT(sent_ids(), ElementsAre(1, 2));
  EXPECT_EQ(advance(), 2);
  EXPECT_THAT(sent_ids(), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(peer().answers.waiting.size(), 0u);
  EXPECT_EQ(counted(Counter::kAnswersSent), 4u);
}

TEST_F(AnswerOutTest, Peer_that_is_connecting__answers_wait) {
  wire.connect_result = ConnectResult::kInProgress;
  answer(1);
  EXPECT_EQ(peer().state, PeerState::kConnecting);
  EXPECT_EQ(advance(), 0);
  wire.connect_result = ConnectResult::kConnected;
  EXPECT_EQ(advance(), 1);
  EXPECT_THAT(sent_ids(), ElementsAre(1));
}

TEST_F(AnswerOutTest, Peer_that_cannot_be_reached__answers_are_forgotten) {
  for (const ConnectResult result : {ConnectResult::kNoSuchPeer, ConnectResult::kRefused}) {
    wire.connect_result = result;
    answer(1);
    advance();
    EXPECT_TRUE(peer().answers.waiting.empty());
  }
  EXPECT_THAT(wire.sent, IsEmpty());
}

TEST_F(AnswerOutTest, Data__is_private_from_the_call_on) {
  std::vector<std::byte> data = pattern_bytes(3, 100);
  make_room(0);
  send_answer_data(core, peer(), content(7, 100), data.data());
  data.assign(100, std::byte{0});
  make_room();
  advance();
  EXPECT_EQ(wire.take().payload, pattern_bytes(3, 100));
}

TEST_F(AnswerOutTest, Data__of_no_bytes_is_a_header) {
  send_answer_data(core, peer(), content(7, 0), nullptr);
  EXPECT_THAT(wire.take().payload, IsEmpty());
}

/// 3.13.1: GET says that the data has left the entry, so it waits for whoever reads it there.
TEST_F(AnswerOutTest, Lent_reply__is_complete_when_it_is_taken) {
  wire.lends = true;
  get(memory.data(), kMemoryBytes);
  EXPECT_EQ(wire.lent_count, 1);
  const FakePacket packet = wire.take();
  EXPECT_EQ(packet.header.type, PacketType::kAnswer);
  EXPECT_EQ(packet.payload, pattern_bytes(0, kMemoryBytes));
  EXPECT_THAT(kinds(), IsEmpty());
  EXPECT_THAT(core.waiting_peers, ElementsAre(&peer()));
  advance();
  EXPECT_THAT(kinds(), IsEmpty());
  wire.taken_packets = 1;
  EXPECT_EQ(advance(), 1);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kGet));
}

/// Whoever has its reply and then puts is told of in that order.
TEST_F(AnswerOutTest, Lent_reply_that_is_taken__is_told_before_what_the_initiator_sends_next) {
  wire.lends = true;
  get(memory.data(), kMemoryBytes);
  append(entry(kPutsAndGets));
  receive(put_header(8));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPut)) << "it was sent before the reply was taken";
  wire.taken_packets = 1;
  receive(put_header(8));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kGet, EventKind::kPut));
}

TEST_F(AnswerOutTest, Lent_reply_that_had_to_wait__is_complete_when_it_is_taken) {
  wire.lends = true;
  make_room(0);
  get(memory.data(), kMemoryBytes);
  make_room();
  EXPECT_EQ(advance(), 1);
  EXPECT_EQ(peer().answers.waiting.size(), 0u);
  EXPECT_THAT(kinds(), IsEmpty());
  wire.taken_packets = 1;
  advance();
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kGet));
}

TEST_F(AnswerOutTest, Reply_whose_end_is_copied__is_complete_when_its_last_packet_that_was_lent_is_taken) {
  wire.lends = true;
  wire.shares_from = kMemoryBytes;
  make_room(1);
  get(memory.data(), kMemoryBytes);
  EXPECT_EQ(wire.lent_count, 1);
  wire.lends = false;
  make_room();
  EXPECT_GT(advance(), 0);
  EXPECT_EQ(wire.sent.size(), 3u);
  EXPECT_THAT(kinds(), IsEmpty());
  wire.taken_packets = 1;
  advance();
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kGet));
}

/// 2.7.1: a later put may not change what a short get brings.
TEST_F(AnswerOutTest, Reply_that_is_ordered_before_later_writes__is_not_lent) {
  wire.lends = true;
  get(memory.data(), kMaxWarOrderedBytes);
  EXPECT_EQ(wire.lent_count, 0);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kGet));
}

TEST_F(AnswerOutTest, Peer_that_dies_with_a_lent_reply__fails_it) {
  wire.lends = true;
  get(memory.data(), kMemoryBytes, 7);
  get(memory.data(), kMemoryBytes, 8);
  wire.taken_packets = 1;
  lose_peer(core, peer());
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kOk);
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kUndeliverable);
  EXPECT_EQ(peer().answers.waiting.size(), 0u);
}

TEST_F(AnswerOutTest, Interface_that_is_closed__forgets_its_lent_replies) {
  wire.lends = true;
  get(memory.data(), kMemoryBytes);
  close_interface(kMatchingPhysical);
  wire.taken_packets = 1;
  advance();
  EXPECT_TRUE(peer().answers.lent.empty());
}

TEST_F(AnswerOutTest, Reply__of_several_packets) {
  get(memory.data(), 2 * kPacketBytes + 5);
  ASSERT_EQ(wire.sent.size(), 3u);
  const FakePacket first = wire.take();
  const FakePacket second = wire.take();
  const FakePacket third = wire.take();
  EXPECT_EQ(first.header.type, PacketType::kAnswer);
  EXPECT_EQ(first.header.length, 2u * kPacketBytes + 5);
  EXPECT_EQ(first.payload, pattern_bytes(0, kPacketBytes));
  EXPECT_EQ(second.header.type, PacketType::kData);
  EXPECT_EQ(second.header.flags, kFlagAnswerStream);
  EXPECT_EQ(second.header.remote_offset, kPacketBytes);
  EXPECT_EQ(second.payload, pattern_bytes(kPacketBytes, kPacketBytes));
  EXPECT_EQ(third.payload, pattern_bytes(2 * kPacketBytes, 5));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kGet));
  EXPECT_EQ(counted(Counter::kBytesSent), 2u * kPacketBytes + 5);
}

TEST_F(AnswerOutTest, Reply__is_complete_when_its_last_byte_has_left) {
  make_room(0);
  const Handle handle = get(memory.data(), 3 * kPacketBytes);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(kinds(), IsEmpty());
    EXPECT_EQ(portal.in_progress, 1u);
    EXPECT_EQ(ni.entries.find(handle)->pending, 1u);
    make_room(1);
    advance();
  }
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kGet));
  EXPECT_EQ(ni.entries.find(handle), nullptr);
  EXPECT_EQ(portal.in_progress, 0u);
}

TEST_F(AnswerOutTest, Reply__that_is_long_leaves_the_duty_to_others_now_and_then) {
  memory = pattern_bytes(0, 100 * kPacketBytes);
  get(memory.data(), memory.size());
  const std::size_t at_once = wire.sent.size();
  EXPECT_LT(at_once, 100u);
  EXPECT_EQ(peer().answers.waiting.size(), 1u);
  for (int i = 0; i < 100 && !peer().answers.waiting.empty(); ++i) EXPECT_GT(advance(), 0);
  EXPECT_EQ(wire.sent.size(), 100u);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kGet));
}

TEST_F(AnswerOutTest, Short_reply_that_waits__has_read_its_data_when_it_was_matched) {
  make_room(0);
  get(memory.data(), kMaxWarOrderedBytes);
  std::fill(memory.begin(), memory.end(), std::byte{0});  // A later put of the same initiator.
  make_room();
  advance();
  EXPECT_EQ(wire.take().payload, pattern_bytes(0, kMaxWarOrderedBytes));
}

TEST_F(AnswerOutTest, Fault__before_anything_was_sent_is_told_in_the_header) {
  get(faulty.edge() - 10, 20);
  const FakePacket packet = wire.take();
  EXPECT_EQ(packet.header.ni_fail_type, static_cast<std::uint8_t>(NiFail::kSegv));
  EXPECT_EQ(packet.header.length, 0u);
  EXPECT_THAT(packet.payload, IsEmpty());
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kSegv);
}

TEST_F(AnswerOutTest, Fault__in_a_later_packet_cuts_the_reply) {
  get(faulty.edge() - kPacketBytes, 3 * kPacketBytes);
  ASSERT_EQ(wire.sent.size(), 2u);
  EXPECT_EQ(next_sent().ni_fail_type, static_cast<std::uint8_t>(NiFail::kOk));
  const PacketHeader cut = next_sent();
  EXPECT_EQ(cut.type, PacketType::kData);
  EXPECT_EQ(cut.flags, kFlagAnswerStream | kFlagCut);
  EXPECT_EQ(cut.ni_fail_type, static_cast<std::uint8_t>(NiFail::kSegv));
  EXPECT_EQ(cut.payload_bytes, 0u);
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kSegv);
  EXPECT_TRUE(peer().answers.waiting.empty());
}

TEST_F(AnswerOutTest, Fault__of_a_short_reply_that_waits_is_told_when_it_leaves) {
  make_room(0);
  get(faulty.edge(), 20);
  make_room();
  advance();
  EXPECT_EQ(next_sent().ni_fail_type, static_cast<std::uint8_t>(NiFail::kSegv));
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kSegv);
}

TEST_F(AnswerOutTest, Fault__of_memory_that_was_unmapped_while_the_reply_waited) {
  make_room(1);
  get(faulty.start(), 2 * kPacketBytes);
  faulty.forbid_everything();
  make_room();
  advance();
  next_sent();
  EXPECT_EQ(next_sent().flags, kFlagAnswerStream | kFlagCut);
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kSegv);
}

TEST_F(AnswerOutTest, Lost_peer__replies_that_wait_are_complete_as_undeliverable) {
  make_room(0);
  get(memory.data(), 2 * kPacketBytes, 7);
  get(memory.data(), 8, 8);
  answer(9);
  wire.kill(kPeer);
  advance();
  EXPECT_TRUE(peer().answers.waiting.empty());
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kUndeliverable);
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kUndeliverable);
  EXPECT_THAT(kinds(), IsEmpty());
  EXPECT_EQ(portal.in_progress, 0u);
}

TEST_F(AnswerOutTest, Lost_peer__in_the_middle_of_a_reply) {
  make_room(1);
  get(memory.data(), 3 * kPacketBytes);
  wire.kill(kPeer);
  advance();
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kUndeliverable);
  EXPECT_EQ(portal.in_progress, 0u);
}

TEST_F(AnswerOutTest, Lost_peer__while_it_is_answered) {
  answer(1);
  wire.kill(kPeer);
  answer(2);
  EXPECT_EQ(peer().answers.waiting.size(), 1u);
  advance();
  EXPECT_EQ(peer().answers.waiting.size(), 0u);
  EXPECT_EQ(peer().state, PeerState::kUnconnected);
  EXPECT_EQ(wire.disconnect_count, 1);
  EXPECT_EQ(counted(Counter::kPeersLost), 1u);
}

TEST_F(AnswerOutTest, Waiting_reply__can_be_taken_as_unexpected_before_it_is_complete) {
  append(entry(kEntryOpGet, ListKind::kOverflow));
  make_room(0);
  receive(get_header(2 * kPacketBytes, 7));
  append(entry(kEntryOpGet | kEntryUseOnce));
  EXPECT_THAT(kinds(), IsEmpty());
  make_room();
  advance();
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kGet, EventKind::kGetOverflow, EventKind::kAutoUnlink));
  EXPECT_EQ(ni.unexpected_count, 0u);
}

TEST_F(AnswerOutTest, Waiting_reply__keeps_its_entry_from_being_unlinked) {
  make_room(0);
  const Handle handle = append(entry());
  receive(get_header(2 * kPacketBytes, 7));
  EXPECT_EQ(unlink_entry(core, ni, handle), Status::kInUse);
  make_room();
  advance();
  EXPECT_EQ(unlink_entry(core, ni, handle), Status::kOk);
}

TEST_F(AnswerOutTest, Budget__is_kept) {
  make_room(0);
  for (std::uint32_t id = 1; id <= 5; ++id) answer(id);
  make_room();
  EXPECT_EQ(advance_outbox(core, peer(), peer().answers, 2), 2);
  EXPECT_EQ(advance_outbox(core, peer(), peer().answers, 0), 0);
  EXPECT_THAT(sent_ids(), ElementsAre(1, 2));
  EXPECT_EQ(advance_outbox(core, peer(), peer().answers, 100), 3);
}

}  // namespace
}  // namespace portofu
