// Steps 2 to 4: descriptors become packets, in order, at once or when there is room, and never twice.

#include "engine/initiator/send.h"

#include <gtest/gtest.h>

#include "engine/atomic/atomic_unit.h"
#include "engine/mailbox/outbox.h"
#include "engine/run/death.h"
#include "tests/unit/initiator/send_fixture.h"
#include "tests/unit/support/faulty_memory.h"

namespace portofu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(SendTest, Put__of_one_packet_has_every_field_and_SEND_follows) {
  Descriptor d = put(100);
  d.portals.local_offset = 10;
  d.remote_offset = 20;
  start(d);
  const FakePacket packet = wire.take();
  EXPECT_EQ(packet.process, kPeer);
  EXPECT_EQ(packet.payload, pattern_bytes(10, 100));
  const PacketHeader& header = packet.header;
  EXPECT_EQ(header.type, PacketType::kPut);
  EXPECT_EQ(header.flags, 0u);
  EXPECT_EQ(header.operation_id, 0u);
  EXPECT_EQ(header.interface_index, kMatchingPhysical);
  EXPECT_EQ(header.pt_index, kPt);
  EXPECT_EQ(header.match_bits, kBits);
  EXPECT_EQ(header.hdr_data, 0xfeedu);
  EXPECT_EQ(header.remote_offset, 20u);
  EXPECT_EQ(header.length, 100u);
  EXPECT_EQ(header.uid, kUid);
  EXPECT_EQ(header.job_key, kJobKey);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend));
  EXPECT_EQ(md().pending, 0u);
  EXPECT_EQ(core.outstanding.open_count(), 0u);
  EXPECT_EQ(counted(Counter::kPutsSent), 1u);
  EXPECT_EQ(counted(Counter::kPacketsSent), 1u);
  EXPECT_EQ(counted(Counter::kBytesSent), 100u);
}

TEST_F(SendTest, Put__of_no_bytes_is_one_empty_packet) {
  start(put(0));
  EXPECT_THAT(wire.take().payload, IsEmpty());
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend));
}

TEST_F(SendTest, Put__of_several_packets) {
  start(put(2 * kPacketBytes + 1));
  ASSERT_EQ(wire.sent.size(), 3u);
  EXPECT_EQ(wire.take().header.length, 2u * kPacketBytes + 1);
  for (const std::uint64_t at : {1u * kPacketBytes, 2u * kPacketBytes}) {
    const FakePacket packet = wire.take();
    EXPECT_EQ(packet.header.type, PacketType::kData);
    EXPECT_EQ(packet.header.flags, 0u);
    EXPECT_EQ(packet.header.remote_offset, at);
    EXPECT_EQ(packet.header.job_key, kJobKey);
    EXPECT_EQ(packet.payload, pattern_bytes(at, at == kPacketBytes ? kPacketBytes : 1));
  }
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend));
}

TEST_F(SendTest, Acknowledgement__is_asked_for_only_if_somebody_would_notice_it) {
  start(put(8, AckRequest::kFull));
  EXPECT_EQ(next_sent().flags, kFlagAnswerWanted);
  start(put(8, AckRequest::kCount));
  EXPECT_EQ(next_sent().flags, 0u);
  set_options(kMdEventCtAck);
  start(put(8, AckRequest::kCount));
  EXPECT_EQ(next_sent().flags, kFlagAnswerWanted);
  EXPECT_EQ(peer().outstanding, 2u);
  EXPECT_EQ(ni.outstanding, 2u);
}

TEST_F(SendTest, Send__is_told_and_counted_when_the_data_has_left_whatever_acknowledgement_is_asked_for) {
  set_options(kMdEventCtAck | kMdEventCtSend);
  for (const AckRequest ack_req : {AckRequest::kNone, AckRequest::kCount, AckRequest::kOperation, AckRequest::kFull}) {
    start(put(8, ack_req));
    EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend)) << "it is local (3.13.3)";
    EXPECT_EQ(md().pending, 0u);
  }
  EXPECT_EQ(successes(), 4u);
}

TEST_F(SendTest, Get__asks_and_waits) {
  start(get(100));
  const FakePacket packet = wire.take();
  EXPECT_EQ(packet.header.type, PacketType::kGet);
  EXPECT_EQ(packet.header.flags, kFlagAnswerWanted);
  EXPECT_EQ(packet.header.length, 100u);
  EXPECT_THAT(packet.payload, IsEmpty());
  EXPECT_THAT(kinds(), IsEmpty());
  EXPECT_EQ(md().pending, 1u);
  EXPECT_TRUE(core.outstanding.find(packet.header.operation_id)->sent);
  EXPECT_EQ(counted(Counter::kGetsSent), 1u);
}

TEST_F(SendTest, Atomics__carry_operation_datatype_and_for_a_conditional_swap_the_operand) {
  Descriptor atomic = put(8);
  atomic.type = PacketType::kAtomic;
  atomic.atomic_operation = static_cast<std::uint8_t>(AtomicOperation::kSum);
  atomic.atomic_type = static_cast<std::uint8_t>(AtomicType::kInt64);
  start(atomic);
  const FakePacket sum = wire.take();
  EXPECT_EQ(sum.header.type, PacketType::kAtomic);
  EXPECT_EQ(sum.header.atomic_operation, atomic.atomic_operation);
  EXPECT_EQ(sum.header.atomic_type, atomic.atomic_type);
  EXPECT_EQ(sum.header.flags, 0u);

  start(fetching(PacketType::kFetchAtomic, AtomicOperation::kSum));
  EXPECT_EQ(wire.take().header.flags, kFlagAnswerWanted);

  Descriptor swap = fetching(PacketType::kSwap, AtomicOperation::kCswap);
  swap.portals.operand_bytes = 4;
  swap.operand = {};
  swap.operand[0] = std::byte{0x42};
  start(swap);
  const FakePacket conditional = wire.take();
  ASSERT_EQ(conditional.payload.size(), kOperandBytes + 4u);
  EXPECT_EQ(conditional.payload[0], std::byte{0x42});
  EXPECT_TRUE(holds_pattern(conditional.payload.data() + kOperandBytes, 4));
  EXPECT_EQ(conditional.header.length, 4u);
  EXPECT_EQ(counted(Counter::kAtomicsSent), 3u);
}

TEST_F(SendTest, Fetching__holds_both_descriptors_and_gives_each_back_in_time) {
  MemoryDescriptor& get_md = make_md(ni, memory.data(), 64);
  Descriptor d = fetching(PacketType::kFetchAtomic, AtomicOperation::kSum);
  d.portals.get_md_handle = get_md.handle;
  start(d);
  EXPECT_EQ(md().pending, 0u);
  EXPECT_EQ(get_md.pending, 1u);
}

TEST_F(SendTest, Logical_interface__translates_the_rank_and_says_ours) {
  Interface& logical = open_interface(kMatchingLogical);
  const ProcessId map[] = {kOther, kPeer, kSelf};
  ASSERT_TRUE(logical.map.set(map, 3, kSelf));
  MemoryDescriptor& logical_md = make_md(logical, memory.data(), 64);
  Descriptor d = put(8);
  d.interface_index = kMatchingLogical;
  d.portals.md_handle = logical_md.handle;
  d.portals.target = {1, 0};
  start(d);
  const FakePacket packet = wire.take();
  EXPECT_EQ(packet.process, kPeer);
  EXPECT_EQ(packet.header.initiator_rank, 2u);
}

TEST_F(SendTest, Logical_interface__rank_that_does_not_exist_is_undeliverable) {
  Interface& logical = open_interface(kMatchingLogical);
  MemoryDescriptor& logical_md = make_md(logical, memory.data(), 64);
  logical_md.eq_handle = make_eq(logical);
  Descriptor d = put(8);
  d.interface_index = kMatchingLogical;
  d.portals.md_handle = logical_md.handle;
  d.portals.target = {3, 0};
  start(d);
  EXPECT_EQ(next_event(logical_md.eq_handle).ni_fail_type, NiFail::kUndeliverable);
  EXPECT_EQ(logical_md.pending, 0u);
}

TEST_F(SendTest, Ourselves__are_reached_by_the_loopback) {
  Descriptor d = put(8);
  d.portals.target = kSelf;
  start(d);
  EXPECT_EQ(loopback.sent.size(), 1u);
  EXPECT_THAT(wire.sent, IsEmpty());
}

TEST_F(SendTest, Unreachable__is_told_at_once) {
  for (const ConnectResult result : {ConnectResult::kNoSuchPeer, ConnectResult::kRefused}) {
    wire.connect_result = result;
    start(put(8, AckRequest::kFull));
    start(get(8));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(next_event().ni_fail_type, NiFail::kUndeliverable);
    EXPECT_THAT(kinds(), IsEmpty());
    EXPECT_EQ(md().pending, 0u);
  }
  EXPECT_EQ(counted(Counter::kPutsSent) + counted(Counter::kGetsSent), 0u);
  EXPECT_EQ(ni.undelivered.count, 4u) << "for who asks later";
  EXPECT_EQ(ni.undelivered.target, kPeer);
}

TEST_F(SendTest, Connecting__requests_wait_in_order_or_end_when_the_time_is_over) {
  wire.connect_result = ConnectResult::kInProgress;
  start(put(1));
  start(put(2));
  EXPECT_EQ(waiting(), 2u);
  EXPECT_EQ(md().pending, 2u);
  EXPECT_EQ(advance(), 0);
  wire.connect_result = ConnectResult::kConnected;
  EXPECT_EQ(advance(), 2);
  EXPECT_EQ(next_sent().length, 1u);
  EXPECT_EQ(next_sent().length, 2u);
  kinds();
  lose_peer(core, peer());
  wire.connect_result = ConnectResult::kInProgress;
  start(put(3));
  now_ns += kConnectTimeoutNs;
  advance();
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kUndeliverable);
  EXPECT_EQ(waiting(), 0u);
  EXPECT_EQ(md().pending, 0u);
  EXPECT_EQ(ni.undelivered.count, 1u) << "the others have left";
  EXPECT_EQ(ni.undelivered.at_ns, now_ns);
}

TEST_F(SendTest, Descriptor_that_is_gone_or_released__does_nothing) {
  Descriptor gone = put(8, AckRequest::kFull);
  gone.portals.md_handle = make_handle(HandleKind::kMemoryDescriptor, kMatchingPhysical, 5, 77);
  start(gone);
  Descriptor half_gone = fetching(PacketType::kFetchAtomic, AtomicOperation::kSum);
  half_gone.portals.get_md_handle = gone.portals.md_handle;
  start(half_gone);
  md().pending = 1;
  release_md(ni, md().handle);
  start(put(8, AckRequest::kFull));
  start(get(8));
  EXPECT_THAT(wire.sent, IsEmpty());
  EXPECT_THAT(kinds(), IsEmpty());
  EXPECT_EQ(md().pending, 1u);
  end_operation(ni, md());
}

TEST_F(SendTest, Descriptor_that_is_released__does_nothing_also_if_the_target_cannot_be_reached) {
  wire.connect_result = ConnectResult::kNoSuchPeer;
  md().pending = 1;
  release_md(ni, md().handle);
  start(put(8, AckRequest::kFull));
  start(get(8));
  EXPECT_THAT(kinds(), IsEmpty());
  end_operation(ni, md());
}

TEST_F(SendTest, Closed_interface__does_nothing) {
  Descriptor d = put(8);
  d.interface_index = kMatchingLogical;
  start(d);
  d.type = PacketType::kCountIncrement;
  start(d);
  EXPECT_THAT(wire.sent, IsEmpty());
}

TEST_F(SendTest, Counters__are_incremented_and_set) {
  Descriptor d;
  d.type = PacketType::kCountIncrement;
  d.interface_index = kMatchingPhysical;
  d.count = {ct, false, 3, 4};
  start(d);
  start(d);
  EXPECT_EQ(successes(), 6u);
  EXPECT_EQ(failures(), 8u);
  d.type = PacketType::kCountSet;
  start(d);
  EXPECT_EQ(successes(), 3u);
  EXPECT_EQ(failures(), 4u);
  d.count.ct_handle = eq;  // No counter.
  start(d);
  EXPECT_EQ(successes(), 3u);
}

TEST_F(SendTest, No_room__requests_wait_and_leave_in_order) {
  wire.room = 0;
  start(put(1));
  start(put(2));
  start(get(3));
  EXPECT_THAT(wire.sent, IsEmpty());
  EXPECT_THAT(core.waiting_peers, ElementsAre(&peer()));
  EXPECT_EQ(counted(Counter::kSendsBlocked), 1u);
  EXPECT_EQ(advance_with_room(2), 2);
  EXPECT_EQ(next_sent().length, 1u);
  EXPECT_EQ(next_sent().length, 2u);
  wire.room = FakeWire::kPlentyOfRoom;
  start(put(4));  // May not overtake.
  EXPECT_THAT(wire.sent, IsEmpty());
  EXPECT_EQ(advance(), 2);
  EXPECT_EQ(next_sent().length, 3u);
  EXPECT_EQ(next_sent().length, 4u);
  EXPECT_EQ(waiting(), 0u);
}

TEST_F(SendTest, No_room__after_every_packet) {
  wire.room = 1;
  start(put(4 * kPacketBytes));
  start(put(8));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(wire.sent.size(), 1u);
    EXPECT_THAT(wire.take().payload, pattern_bytes(std::uint64_t{kPacketBytes} * i, kPacketBytes));
    EXPECT_THAT(kinds(), IsEmpty());
    EXPECT_EQ(advance_with_room(1), 1);
  }
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend));
  EXPECT_EQ(md().pending, 1u) << "the second one";
  wire.take();
  EXPECT_EQ(advance_with_room(1), 1);
  EXPECT_EQ(next_sent().type, PacketType::kPut);
  EXPECT_EQ(md().pending, 0u);
}

TEST_F(SendTest, Canceled__is_a_request_that_waits_and_of_which_nothing_has_left) {
  const auto cancel = [this](std::uint64_t length) {
    return cancel_request(core, [length](const Descriptor& d) { return d.length == length; });
  };
  wire.room = 1;
  start(put(4 * kPacketBytes));
  start(put(8));
  start(get(16));
  start(put(24));
  EXPECT_FALSE(cancel(4 * kPacketBytes)) << "some of it has left";
  EXPECT_TRUE(cancel(16));
  Event event = next_event();
  EXPECT_EQ(event.type, EventKind::kReply);
  EXPECT_EQ(event.ni_fail_type, NiFail::kCanceled);
  EXPECT_TRUE(cancel(8));
  event = next_event();
  EXPECT_EQ(event.type, EventKind::kSend);
  EXPECT_EQ(event.ni_fail_type, NiFail::kCanceled);
  EXPECT_FALSE(cancel(8)) << "it has ended";
  EXPECT_EQ(waiting(), 2u);
  EXPECT_EQ(md().pending, 2u);
  EXPECT_EQ(advance_with_room(4), 4);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(wire.take().payload.size(), kPacketBytes);
  EXPECT_EQ(next_sent().length, 24u);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend, EventKind::kSend));
  EXPECT_EQ(md().pending, 0u);
  EXPECT_EQ(peer().outstanding, 0u);
}

TEST_F(SendTest, Long_request__leaves_the_duty_to_others_now_and_then) {
  memory = pattern_bytes(0, 100 * kPacketBytes);
  const MemoryDescriptor& large = make_md(ni, memory.data(), memory.size());
  Descriptor d = put(memory.size());
  d.portals.md_handle = large.handle;
  start(d);
  EXPECT_LT(wire.sent.size(), 100u);
  EXPECT_EQ(waiting(), 1u);
  for (int i = 0; i < 100 && waiting() > 0; ++i) EXPECT_GT(advance(), 0);
  ASSERT_EQ(wire.sent.size(), 100u);
  for (std::uint64_t i = 0; i < 100; ++i) {
    ASSERT_EQ(wire.sent[i].payload, pattern_bytes(i * kPacketBytes, kPacketBytes));
  }
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend));
}

TEST_F(SendTest, Window__requests_beyond_it_wait_for_answers) {
  for (std::uint32_t i = 0; i < kWindow + 2; ++i) start(get(8));
  start(put(8));  // Needs no answer, but keeps its place.
  EXPECT_EQ(wire.sent.size(), kWindow);
  EXPECT_EQ(peer().outstanding, kWindow);
  EXPECT_EQ(advance(), 0);
  receive(answer_header(next_sent().operation_id, 8, 8));
  wire.sent.clear();
  EXPECT_EQ(advance(), 1);
  EXPECT_EQ(peer().outstanding, kWindow);
  receive(answer_header(next_sent().operation_id, 8, 8));
  EXPECT_EQ(advance(), 2);
  EXPECT_EQ(next_sent().type, PacketType::kGet);
  EXPECT_EQ(next_sent().type, PacketType::kPut);
}

TEST_F(SendTest, Window__is_one_a_peer) {
  for (std::uint32_t i = 0; i < kWindow; ++i) start(get(8));
  Descriptor d = get(8);
  d.portals.target = kOther;
  start(d);
  EXPECT_EQ(wire.sent.size(), kWindow + 1u);
}

TEST_F(SendTest, Volatile__what_waits_is_a_copy) {
  set_options(kMdVolatile);
  wire.room = 0;
  Descriptor d = put(kDefaultLimits.max_volatile_size);
  d.portals.local_offset = 5;
  start(d);
  std::fill(memory.begin(), memory.end(), std::byte{0});
  wire.room = FakeWire::kPlentyOfRoom;
  advance();
  EXPECT_EQ(wire.take().payload, pattern_bytes(5, kDefaultLimits.max_volatile_size));
}

TEST_F(SendTest, Volatile__larger_ones_and_others_are_read_when_they_leave) {
  wire.room = 0;
  start(put(8));
  set_options(kMdVolatile);
  start(put(kDefaultLimits.max_volatile_size + 1));
  std::fill(memory.begin(), memory.end(), std::byte{0});
  wire.room = FakeWire::kPlentyOfRoom;
  advance();
  EXPECT_EQ(wire.take().payload, std::vector<std::byte>(8));
  EXPECT_EQ(wire.take().payload, std::vector<std::byte>(kPacketBytes));
}

TEST_F(SendTest, Answers__go_before_requests_that_wait) {
  append(entry());
  wire.room = 0;
  start(put(8));
  receive_put(8, 7);
  wire.room = FakeWire::kPlentyOfRoom;
  advance();
  EXPECT_EQ(next_sent().type, PacketType::kAnswer);
  EXPECT_EQ(next_sent().type, PacketType::kPut);
}

// Another process may have the PID by now.
TEST_F(SendTest, Lost_link__noticed_when_sending_ends_what_was_under_way_and_what_follows_connects_anew) {
  wire.room = 1;
  start(put(2 * kPacketBytes, AckRequest::kFull));
  EXPECT_EQ(waiting(), 1u);
  wire.sent.clear();
  wire.kill(kPeer);
  wire.room = FakeWire::kPlentyOfRoom;
  start(put(8));
  for (const NiFail fail : {NiFail::kUndeliverable, NiFail::kUndeliverable, NiFail::kOk})
    EXPECT_EQ(next_event().ni_fail_type, fail) << "SEND and ACK of the first, SEND of the second";
  EXPECT_EQ(md().pending, 0u);
  EXPECT_EQ(wire.sent.size(), 1u);
  EXPECT_EQ(wire.connect_count, 2);
}

TEST_F(SendTest, Lost_link__after_any_packet_of_a_request_ends_it_once) {
  for (std::uint32_t packets = 0; packets < 3; ++packets) {
    for (const AckRequest ack_req : {AckRequest::kNone, AckRequest::kFull}) {
      wire.room = packets;
      start(put(3 * kPacketBytes, ack_req));
      ASSERT_EQ(waiting(), 1u);
      wire.kill(kPeer);
      advance();
      EXPECT_EQ(next_event().type, EventKind::kSend);
      if (ack_req == AckRequest::kFull) {
        EXPECT_EQ(next_event().type, EventKind::kAck);
      }
      EXPECT_THAT(kinds(), IsEmpty());
      EXPECT_EQ(md().pending, 0u);
      EXPECT_EQ(core.outstanding.open_count(), 0u);
      EXPECT_EQ(peer().outstanding, 0u);
    }
  }
}

TEST_F(SendTest, Abandoned__of_released_descriptors_frees_them) {
  wire.room = 0;
  const Handle handle = md().handle;
  start(put(8, AckRequest::kFull));
  start(fetching(PacketType::kSwap, AtomicOperation::kSwap));
  release_md(ni, handle);
  EXPECT_NE(ni.mds.find(handle), nullptr);
  abandon_outbox(core, peer(), peer().requests);
  EXPECT_EQ(ni.mds.find(handle), nullptr);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend, EventKind::kSend, EventKind::kReply)) << "the ACK is dropped";
}

/// Memory of the initiator that faults.
class SendFaultTest : public SendTest {
 protected:
  /// A put over memory of which only the first `good_bytes` can be read.
  Descriptor bad_put(std::uint64_t good_bytes, std::uint64_t length, AckRequest ack_req = AckRequest::kFull) {
    bad_md = &make_md(ni, faulty.edge() - good_bytes, length, kMdEventCtSend | kMdEventCtAck);
    Descriptor d = put(length, ack_req);
    d.portals.md_handle = bad_md->handle;
    return d;
  }

  FaultyMemory faulty;
  MemoryDescriptor* bad_md = nullptr;
};

TEST_F(SendFaultTest, First_packet__nothing_leaves_and_SEND_tells) {
  for (const AckRequest ack_req : {AckRequest::kNone, AckRequest::kFull, AckRequest::kCount}) {
    Descriptor d = bad_put(10, 20, ack_req);
    EXPECT_FALSE(send_at_once(core, ni, *bad_md, d));
    EXPECT_EQ(core.outstanding.open_count() + peer().outstanding + ni.outstanding, 0u);
    start(d);
    EXPECT_THAT(wire.sent, IsEmpty());
    EXPECT_EQ(next_event().ni_fail_type, NiFail::kSegv);
    EXPECT_THAT(kinds(), IsEmpty()) << "no ACK";
    EXPECT_EQ(bad_md->pending, 0u);
    EXPECT_EQ(core.outstanding.open_count() + peer().outstanding, 0u);
  }
  EXPECT_EQ(wire.discard_count, 5) << "the first one finds no connection";
  EXPECT_EQ(failures(), 3u);
}

TEST_F(SendFaultTest, First_packet__ACK_tells_if_SEND_is_not_heard) {
  const Descriptor d = bad_put(10, 20);
  bad_md->options = kMdEventSendDisable;
  start(d);
  const Event event = next_event();
  EXPECT_EQ(event.type, EventKind::kAck);
  EXPECT_EQ(event.ni_fail_type, NiFail::kSegv);
  EXPECT_THAT(kinds(), IsEmpty());
  EXPECT_EQ(bad_md->pending, 0u);
}

TEST_F(SendFaultTest, Later_packet__the_target_is_told_and_answers) {
  start(bad_put(kPacketBytes, 3 * kPacketBytes));
  ASSERT_EQ(wire.sent.size(), 2u);
  const std::uint32_t id = next_sent().operation_id;
  const PacketHeader cut = next_sent();
  EXPECT_EQ(cut.type, PacketType::kData);
  EXPECT_EQ(cut.flags, kFlagCut);
  EXPECT_EQ(cut.payload_bytes, 0u);
  EXPECT_EQ(cut.ni_fail_type, static_cast<std::uint8_t>(NiFail::kSegv));
  const Event send = next_event();
  EXPECT_EQ(send.type, EventKind::kSend);
  EXPECT_EQ(send.ni_fail_type, NiFail::kSegv);
  PacketHeader answer = answer_header(id, kPacketBytes);
  answer.ni_fail_type = static_cast<std::uint8_t>(NiFail::kSegv);
  receive(answer);
  EXPECT_THAT(kinds(), IsEmpty()) << "no ACK, as of a put whose first packet cannot be read (3.13.3)";
  EXPECT_EQ(failures(), 1u);
  EXPECT_EQ(bad_md->pending, 0u);
  EXPECT_EQ(core.outstanding.open_count() + ni.outstanding, 0u);
}

TEST_F(SendFaultTest, Later_packet__ACK_tells_if_SEND_is_not_heard) {
  Descriptor d = bad_put(kPacketBytes, 3 * kPacketBytes);
  bad_md->options = kMdEventSendDisable;
  start(d);
  PacketHeader answer = answer_header(next_sent().operation_id, kPacketBytes);
  answer.ni_fail_type = static_cast<std::uint8_t>(NiFail::kSegv);
  receive(answer);
  const Event ack = next_event();
  EXPECT_TRUE(ack.type == EventKind::kAck && ack.ni_fail_type == NiFail::kSegv);
}

TEST_F(SendFaultTest, Later_packet__of_a_put_whose_target_is_lost_then) {
  start(bad_put(kPacketBytes, 3 * kPacketBytes));
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kSegv);
  lose_peer(core, peer());
  EXPECT_THAT(kinds(), IsEmpty()) << "SEND has told it";
  EXPECT_EQ(core.outstanding.open_count() + ni.outstanding, 0u);
}

TEST_F(SendFaultTest, Later_packet__of_a_put_without_acknowledgement) {
  start(bad_put(kPacketBytes, 3 * kPacketBytes, AckRequest::kNone));
  EXPECT_EQ(wire.sent.size(), 2u);
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kSegv);
  EXPECT_EQ(bad_md->pending, 0u);
  EXPECT_EQ(failures(), 1u);
}

TEST_F(SendFaultTest, Later_packet__after_the_target_has_refused_already) {
  wire.room = 1;
  start(bad_put(kPacketBytes, 3 * kPacketBytes));
  PacketHeader answer = answer_header(next_sent().operation_id, 0);
  answer.ni_fail_type = static_cast<std::uint8_t>(NiFail::kPermViolation);
  receive(answer);
  wire.room = FakeWire::kPlentyOfRoom;
  advance();
  EXPECT_EQ(next_sent().flags, kFlagCut);
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kSegv);
  EXPECT_THAT(kinds(), IsEmpty()) << "no ACK";
  EXPECT_EQ(bad_md->pending, 0u);
}

TEST_F(SendFaultTest, While_waiting__memory_that_was_unmapped) {
  wire.room = 0;
  start(bad_put(20, 20));
  faulty.forbid_everything();
  wire.room = FakeWire::kPlentyOfRoom;
  advance();
  EXPECT_THAT(wire.sent, IsEmpty());
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kSegv);
  EXPECT_EQ(waiting(), 0u);
}

TEST_F(SendFaultTest, Volatile__that_cannot_be_copied_is_told_when_it_leaves) {
  wire.room = 0;
  const Descriptor d = bad_put(10, 20);
  bad_md->options |= kMdVolatile;
  start(d);
  EXPECT_THAT(kinds(), IsEmpty());
  wire.room = FakeWire::kPlentyOfRoom;
  advance();
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kSegv);
}

TEST_F(SendFaultTest, Fetching__tells_SEND_and_REPLY) {
  Descriptor d = bad_put(0, 4, AckRequest::kNone);
  d.type = PacketType::kFetchAtomic;
  d.portals.get_md_handle = md().handle;
  d.atomic_operation = static_cast<std::uint8_t>(AtomicOperation::kSum);
  d.atomic_type = static_cast<std::uint8_t>(AtomicType::kInt32);
  start(d);
  EXPECT_EQ(next_event().type, EventKind::kSend);
  const Event reply = next_event();
  EXPECT_EQ(reply.type, EventKind::kReply);
  EXPECT_EQ(reply.ni_fail_type, NiFail::kSegv);
  EXPECT_EQ(bad_md->pending, 0u);
  EXPECT_EQ(md().pending, 0u);
}

}  // namespace
}  // namespace portofu
