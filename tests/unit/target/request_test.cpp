// Requests as the states of an Arrival: lengths that lie, packets that are early, late, doubled or missing, refusals,
// and faults. The atomics stand in request_atomic_test.cpp.

#include "engine/target/request.h"

#include <gtest/gtest.h>

#include "engine/atomic/atomic_unit.h"
#include "engine/initiator/send.h"
#include "engine/mailbox/inbox.h"
#include "engine/memory/guarded_copy.h"
#include "engine/run/loop.h"
#include "engine/target/new_request.h"
#include "tests/unit/support/core_fixture.h"
#include "tests/unit/support/faulty_memory.h"

namespace portofu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class RequestTest : public CoreTest {
 protected:
  void SetUp() override { install_fault_guard(); }

  /// The one packet that we have sent is an answer to `operation_id`.
  PacketHeader expect_answer(std::uint32_t operation_id, NiFail fail, std::uint64_t mlength) {
    EXPECT_EQ(wire.sent.size(), 1u);
    if (wire.sent.empty()) return {};
    const PacketHeader header = next_sent();
    EXPECT_EQ(header.type, PacketType::kAnswer);
    EXPECT_EQ(header.operation_id, operation_id);
    EXPECT_EQ(header.ni_fail_type, static_cast<std::uint8_t>(fail));
    EXPECT_EQ(header.length, mlength);
    EXPECT_EQ(header.job_key, kJobKey);
    EXPECT_EQ(header.uid, kUid);
    return header;
  }

  void expect_refused(const PacketHeader& header) {
    const std::uint64_t before = refused();
    receive(header);
    EXPECT_EQ(refused(), before + 1);
    EXPECT_THAT(kinds(), IsEmpty());
    EXPECT_THAT(wire.sent, IsEmpty());
    EXPECT_TRUE(is_untouched(memory.data(), memory.size()));
    EXPECT_EQ(portal.in_progress, 0u);
  }

  ArrivalMode mode() { return peer().request_stream.mode; }
  FaultyMemory faulty;
};

TEST_F(RequestTest, Put__of_one_packet_is_delivered_told_and_acknowledged) {
  append(entry());
  receive_put(100, 7);
  EXPECT_TRUE(holds_pattern(memory.data(), 100));
  EXPECT_TRUE(is_untouched(memory.data() + 100, memory.size() - 100));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPut));
  EXPECT_EQ(expect_answer(7, NiFail::kOk, 100).flags, kFlagUnordered);
  EXPECT_EQ(counted(Counter::kPutsMatched), 1u);
  EXPECT_EQ(counted(Counter::kBytesReceived), 100u);
  EXPECT_EQ(mode(), ArrivalMode::kIdle);
}

TEST_F(RequestTest, Put__without_wish_for_an_answer_gets_none) {
  append(entry());
  receive_put(100);
  EXPECT_THAT(wire.sent, IsEmpty());
}

TEST_F(RequestTest, Put__of_no_bytes_is_complete_at_once) {
  append(entry());
  receive_put(0, 7);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPut));
  expect_answer(7, NiFail::kOk, 0);
  EXPECT_EQ(mode(), ArrivalMode::kIdle);
}

TEST_F(RequestTest, Put__Idle_to_Deliver_to_Idle_over_several_packets) {
  append(entry());
  receive(put_header(2 * kPacketBytes + 10, 7));
  EXPECT_EQ(mode(), ArrivalMode::kDeliver);
  receive(data_header(kPacketBytes, kPacketBytes));
  EXPECT_EQ(mode(), ArrivalMode::kDeliver);
  EXPECT_THAT(kinds(), IsEmpty());
  EXPECT_THAT(wire.sent, IsEmpty());
  receive(data_header(2 * kPacketBytes, 10));
  EXPECT_EQ(mode(), ArrivalMode::kIdle);
  EXPECT_TRUE(holds_pattern(memory.data(), 2 * kPacketBytes + 10));
  EXPECT_EQ(next_event().mlength, 2 * kPacketBytes + 10);
  expect_answer(7, NiFail::kOk, 2 * kPacketBytes + 10);
  EXPECT_EQ(counted(Counter::kBytesReceived), 2 * kPacketBytes + 10);
}

TEST_F(RequestTest, Put__packets_may_be_of_any_size) {
  append(entry());
  PacketHeader header = put_header(100);
  header.payload_bytes = 0;
  receive(header);
  for (std::uint32_t at = 0; at < 100; ++at) receive(data_header(at, 1));
  EXPECT_TRUE(holds_pattern(memory.data(), 100));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPut));
}

TEST_F(RequestTest, Put__longer_than_the_entry_is_truncated) {
  EntryRequest request = entry();
  request.segment.describe(memory.data(), kPacketBytes + 5);
  append(std::move(request));
  receive_put(3 * kPacketBytes, 7);
  EXPECT_TRUE(holds_pattern(memory.data(), kPacketBytes + 5));
  EXPECT_TRUE(is_untouched(memory.data() + kPacketBytes + 5, memory.size() - kPacketBytes - 5));
  const Event event = next_event();
  EXPECT_EQ(event.rlength, 3u * kPacketBytes);
  EXPECT_EQ(event.mlength, kPacketBytes + 5u);
  EXPECT_EQ(event.ni_fail_type, NiFail::kOk);
  expect_answer(7, NiFail::kOk, kPacketBytes + 5);
}

TEST_F(RequestTest, Answer__carries_list_offset_and_silence) {
  append(entry(kPutsAndGets | kEntryAckDisable | kEntryManageLocal, ListKind::kOverflow));
  receive_put(40);
  receive_put(8, 7);
  const PacketHeader header = expect_answer(7, NiFail::kOk, 8);
  EXPECT_EQ(header.flags, kFlagOverflowList | kFlagSilent | kFlagUnordered);
  EXPECT_EQ(header.remote_offset, 40u);
  EXPECT_EQ(counted(Counter::kHeadersUnexpected), 2u);
}

TEST_F(RequestTest, Put_done_as_asked__is_acknowledged_without_a_packet_where_the_wire_can) {
  wire.acknowledges = true;
  append(entry());
  receive_put(8, 7);
  receive_put(3 * kPacketBytes, 8);
  PacketHeader header = put_header(8, 9);
  header.remote_offset = 24;
  receive(header);
  header = atomic_header(PacketType::kAtomic, static_cast<std::uint8_t>(AtomicOperation::kSum),
                         static_cast<std::uint8_t>(AtomicType::kUint64), 8);
  header.operation_id = 10;
  header.flags = kFlagAnswerWanted;
  receive(header);
  EXPECT_THAT(wire.acknowledged, ElementsAre(7u, 8u, 9u, 10u));
  EXPECT_THAT(wire.sent, IsEmpty());
  EXPECT_EQ(counted(Counter::kAnswersSent), 4u);
  receive_put(8);
  EXPECT_EQ(wire.acknowledged.size(), 4u) << "nobody has asked";
  wire.acknowledges = false;
  receive_put(8, 11);
  expect_answer(11, NiFail::kOk, 8);
}

/// Who holds the duty is the only one who sees events; counts are seen without it (PtlCTGet).
TEST_F(RequestTest, Acknowledgement__comes_behind_the_data_and_the_count_and_need_not_wait_for_the_event) {
  wire.acknowledges = true;
  std::uint64_t count = 0;
  bool told = false;
  wire.when_acknowledged = [&] {
    EXPECT_TRUE(holds_pattern(memory.data(), 8));
    count = successes();
    told = !ni.eqs.find(eq)->empty();
  };
  append(entry(kPutsAndGets | kEntryUseOnce));
  receive_put(8, 7);
  EXPECT_FALSE(told);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPut, EventKind::kAutoUnlink));
  EntryRequest counting = entry(kPutsAndGets | kEntryUseOnce | kEntryEventCtComm);
  counting.ct_handle = ct;
  append(std::move(counting));
  receive_put(8, 8);
  EXPECT_EQ(count, 1u);
  EXPECT_THAT(wire.acknowledged, ElementsAre(7u, 8u));
  EXPECT_THAT(wire.sent, IsEmpty());
}

/// What 3.13.1 has an ACK say that the initiator does not know takes a packet.
TEST_F(RequestTest, Put_done_otherwise__is_acknowledged_by_a_packet) {
  wire.acknowledges = true;
  EntryRequest shorter = entry(kPutsAndGets | kEntryUseOnce);
  shorter.segment.describe(memory.data(), 5);
  append(std::move(shorter));
  receive_put(8, 7);
  expect_answer(7, NiFail::kOk, 5);
  append(entry(kPutsAndGets | kEntryUseOnce | kEntryAckDisable));
  receive_put(8, 7);
  EXPECT_NE(expect_answer(7, NiFail::kOk, 8).flags & kFlagSilent, 0);
  append(entry(kEntryOpGet | kEntryUseOnce));
  receive_put(8, 7);
  expect_answer(7, NiFail::kOpViolation, 0);
  EntryRequest unreachable = entry(kPutsAndGets | kEntryUseOnce);
  unreachable.segment.describe(faulty.edge(), 8);
  append(std::move(unreachable));
  receive_put(8, 7);
  EXPECT_NE(next_sent().ni_fail_type, static_cast<std::uint8_t>(NiFail::kOk));
  EXPECT_THAT(wire.acknowledged, IsEmpty());
}

TEST_F(RequestTest, Put_to_a_place_that_the_target_chooses__is_acknowledged_by_a_packet) {
  wire.acknowledges = true;
  append(entry(kPutsAndGets | kEntryManageLocal));
  receive_put(8, 6);
  EXPECT_THAT(wire.acknowledged, ElementsAre(6u)) << "the offset is the one that was asked for";
  receive_put(8, 7);
  EXPECT_EQ(expect_answer(7, NiFail::kOk, 8).remote_offset, 8u);
}

TEST_F(RequestTest, Unexpected_put__is_acknowledged_by_a_packet) {
  wire.acknowledges = true;
  append(entry(kPutsAndGets, ListKind::kOverflow));
  receive_put(8, 7);
  EXPECT_NE(expect_answer(7, NiFail::kOk, 8).flags & kFlagOverflowList, 0);
  EXPECT_THAT(wire.acknowledged, IsEmpty());
}

TEST_F(RequestTest, Malformed__interface_that_does_not_exist) {
  append(entry());
  for (const int index : {5, 6, 255}) {
    PacketHeader header = put_header(8, 7);
    header.interface_index = static_cast<std::uint8_t>(index);
    expect_refused(header);
  }
}

TEST_F(RequestTest, Malformed__lengths_that_contradict_each_other) {
  append(entry());
  PacketHeader more_than_said = put_header(8, 7);
  more_than_said.length = 7;
  expect_refused(more_than_said);
  PacketHeader too_long = put_header(8, 7);
  too_long.length = kDefaultLimits.max_msg_size + 1;
  expect_refused(too_long);
  too_long.length = UINT64_MAX;
  expect_refused(too_long);
}

TEST_F(RequestTest, Malformed__get_with_data_or_without_wish_for_an_answer) {
  append(entry());
  PacketHeader with_data = get_header(8, 7);
  with_data.payload_bytes = 8;
  expect_refused(with_data);
  PacketHeader unanswered = get_header(8, 7);
  unanswered.flags = 0;
  expect_refused(unanswered);
}

TEST_F(RequestTest, Malformed__data_that_no_message_waits_for) {
  append(entry());
  expect_refused(data_header(0, 16));
  receive_put(8);
  kinds();
  std::fill(memory.begin(), memory.end(), std::byte{0});
  expect_refused(data_header(8, 16));  // Late: the message is complete.
}

TEST_F(RequestTest, Malformed__empty_data_leaves_the_message_as_it_is) {
  append(entry());
  receive(put_header(2 * kPacketBytes));
  receive(data_header(kPacketBytes, 0));
  EXPECT_EQ(refused(), 1u);
  EXPECT_EQ(mode(), ArrivalMode::kDeliver);
  receive(data_header(kPacketBytes, kPacketBytes));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPut));
}

TEST_F(RequestTest, Malformed__data_beyond_the_end_leaves_the_message_as_it_is) {
  append(entry());
  receive(put_header(kPacketBytes + 8));
  receive(data_header(kPacketBytes, 9));
  EXPECT_EQ(refused(), 1u);
  EXPECT_TRUE(is_untouched(memory.data() + kPacketBytes, kPacketBytes));
  receive(data_header(kPacketBytes, 8));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPut));
}

TEST_F(RequestTest, Interface_that_is_not_open__is_told) {
  PacketHeader header = put_header(8, 7);
  header.interface_index = kMatchingLogical;
  receive(header);
  EXPECT_EQ(expect_answer(7, NiFail::kDropped, 0).flags, kFlagUnordered);
  EXPECT_EQ(counted(Counter::kHeadersDropped), 1u);
  EXPECT_EQ(status(StatusRegister::kDropCount), 0) << "another interface";
}

TEST_F(RequestTest, Portal_table_entry_that_does_not_exist__is_told) {
  for (const int pt_index : {kPt + 1, 256, 65535}) {
    PacketHeader header = put_header(8, 7);
    header.pt_index = static_cast<std::uint16_t>(pt_index);
    receive(header);
    expect_answer(7, NiFail::kDropped, 0);
  }
  EXPECT_EQ(status(StatusRegister::kDropCount), 3);
}

TEST_F(RequestTest, Refusals__each_has_its_answer_and_its_register) {
  EntryRequest request = entry(kEntryOpPut);
  request.uid = kPeerUid;
  append(std::move(request));
  PacketHeader no_match = put_header(8, 1);
  no_match.match_bits = ~kBits;
  receive(no_match);
  EXPECT_EQ(expect_answer(1, NiFail::kDropped, 0).flags, kFlagSilent | kFlagUnordered);
  PacketHeader stranger = put_header(8, 2);
  stranger.uid = 5;
  receive(stranger);
  EXPECT_EQ(expect_answer(2, NiFail::kPermViolation, 0).flags, kFlagUnordered);
  receive(get_header(8, 3));
  EXPECT_EQ(expect_answer(3, NiFail::kOpViolation, 0).flags, kFlagUnordered);
  portal.enabled = false;
  receive(put_header(8, 4));
  EXPECT_EQ(expect_answer(4, NiFail::kPtDisabled, 0).flags, kFlagUnordered);
  EXPECT_EQ(status(StatusRegister::kDropCount), 2);
  EXPECT_EQ(status(StatusRegister::kPermissionViolations), 1);
  EXPECT_EQ(status(StatusRegister::kOperationViolations), 1);
  EXPECT_EQ(counted(Counter::kHeadersDropped), 2u);
  EXPECT_EQ(counted(Counter::kPermissionViolations), 1u);
  EXPECT_EQ(counted(Counter::kOperationViolations), 1u);
  EXPECT_TRUE(is_untouched(memory.data(), memory.size()));
}

TEST_F(RequestTest, Refusal_by_flow_control__is_told_to_both_sides) {
  portal.flow_control = true;
  ni.eqs.find(eq)->reserve_on_duty();
  receive(put_header(8, 7));
  EXPECT_EQ(expect_answer(7, NiFail::kPtDisabled, 0).flags, kFlagUnordered);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPtDisabled));
}

TEST_F(RequestTest, Refused__Idle_to_Discard_to_Idle_and_the_answer_goes_at_once) {
  receive(put_header(3 * kPacketBytes, 7));
  expect_answer(7, NiFail::kDropped, 0);
  EXPECT_EQ(mode(), ArrivalMode::kDiscard);
  append(entry());  // Too late for this one.
  receive(data_header(kPacketBytes, kPacketBytes));
  EXPECT_EQ(mode(), ArrivalMode::kDiscard);
  receive(data_header(2 * kPacketBytes, kPacketBytes));
  EXPECT_EQ(mode(), ArrivalMode::kIdle);
  EXPECT_TRUE(is_untouched(memory.data(), memory.size()));
  EXPECT_THAT(kinds(), IsEmpty());
  EXPECT_EQ(refused(), 0u);
  receive_put(8);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPut));
}

TEST_F(RequestTest, Refused__Discard_to_Idle_by_a_cut) {
  receive(put_header(3 * kPacketBytes));
  receive(data_header(kPacketBytes, 0, kFlagCut));
  EXPECT_EQ(mode(), ArrivalMode::kIdle);
  EXPECT_THAT(kinds(), IsEmpty());
}

TEST_F(RequestTest, Refused__more_data_than_the_message_had_is_refused_too) {
  receive(put_header(kPacketBytes + 8));
  receive(data_header(kPacketBytes, 9));
  EXPECT_EQ(refused(), 1u);
  EXPECT_EQ(mode(), ArrivalMode::kDiscard);
}

TEST_F(RequestTest, New_request_in_the_middle__cuts_the_old_one_and_is_served) {
  append(entry());
  receive(put_header(3 * kPacketBytes, 7));
  PacketHeader next = put_header(8, 8);
  next.remote_offset = 2 * kPacketBytes;
  receive(next);
  EXPECT_EQ(refused(), 1u);
  const Event cut = next_event();
  EXPECT_EQ(cut.ni_fail_type, NiFail::kUndeliverable);
  EXPECT_EQ(cut.mlength, kPacketBytes);
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kOk);
  ASSERT_EQ(wire.sent.size(), 2u);
  const PacketHeader first_answer = next_sent();
  EXPECT_EQ(first_answer.operation_id, 7u);
  EXPECT_EQ(first_answer.ni_fail_type, static_cast<std::uint8_t>(NiFail::kUndeliverable));
  expect_answer(8, NiFail::kOk, 8);
  EXPECT_TRUE(holds_pattern(memory.data() + 2 * kPacketBytes, 8));
  receive(data_header(kPacketBytes, kPacketBytes));
  EXPECT_EQ(refused(), 2u) << "the rest of the old one";
}

TEST_F(RequestTest, New_malformed_request_in_the_middle__cuts_the_old_one_all_the_same) {
  append(entry());
  receive(put_header(3 * kPacketBytes));
  PacketHeader next = put_header(8);
  next.length = 7;
  receive(next);
  EXPECT_EQ(refused(), 2u);
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kUndeliverable);
  EXPECT_EQ(mode(), ArrivalMode::kIdle);
}

TEST_F(RequestTest, New_request_in_the_middle_of_a_refused_one__is_served) {
  receive(put_header(3 * kPacketBytes));
  append(entry());
  receive_put(8);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPut));
}

TEST_F(RequestTest, Cut__says_why_and_how_much_was_good) {
  append(entry(kPutsAndGets | kEntryEventCtComm));
  receive(put_header(3 * kPacketBytes, 7));
  PacketHeader cut = data_header(kPacketBytes, 0, kFlagCut);
  cut.ni_fail_type = static_cast<std::uint8_t>(NiFail::kSegv);
  receive(cut);
  const Event event = next_event();
  EXPECT_EQ(event.ni_fail_type, NiFail::kSegv);
  EXPECT_EQ(event.mlength, kPacketBytes);
  EXPECT_EQ(failures(), 1u);
  expect_answer(7, NiFail::kSegv, kPacketBytes);
  EXPECT_EQ(portal.in_progress, 0u);
}

TEST_F(RequestTest, Cut__that_says_nothing_or_carries_data_is_a_cut) {
  append(entry());
  receive(put_header(3 * kPacketBytes));
  receive(data_header(kPacketBytes, 16, kFlagCut));
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kUndeliverable);
  EXPECT_TRUE(is_untouched(memory.data() + kPacketBytes, kPacketBytes));
}

TEST_F(RequestTest, Cut__of_a_truncated_message_has_no_more_than_was_granted) {
  EntryRequest request = entry();
  request.segment.describe(memory.data(), 5);
  append(std::move(request));
  receive(put_header(3 * kPacketBytes));
  cut_message(core, peer(), peer().request_stream, NiFail::kUndeliverable);
  EXPECT_EQ(next_event().mlength, 5u);
}

TEST_F(RequestTest, Fault__in_the_first_packet_or_a_later_one) {
  for (const std::uint64_t good_bytes : {0u, kPacketBytes + 10}) {
    EntryRequest request = entry(kPutsAndGets | kEntryUseOnce | kEntryEventUnlinkDisable);
    request.segment.describe(faulty.edge() - good_bytes, 3 * kPacketBytes);
    append(std::move(request));
    receive_put(3 * kPacketBytes, 7);
    EXPECT_EQ(next_event().ni_fail_type, NiFail::kSegv);
    EXPECT_EQ(wire.sent.size(), 1u);
    EXPECT_EQ(next_sent().ni_fail_type, static_cast<std::uint8_t>(NiFail::kSegv));
    EXPECT_EQ(mode(), ArrivalMode::kIdle);
  }
  EXPECT_EQ(portal.in_progress, 0u);
}

TEST_F(RequestTest, Get__is_answered_with_the_data_and_then_complete) {
  const std::vector<std::byte> data = pattern_bytes(0, memory.size());
  memory = data;
  append(entry(kPutsAndGets | kEntryEventCtComm));
  PacketHeader header = get_header(100, 7);
  header.remote_offset = 50;
  receive(header);
  const FakePacket answer = wire.take();
  EXPECT_EQ(answer.header.type, PacketType::kAnswer);
  EXPECT_EQ(answer.header.length, 100u);
  EXPECT_EQ(answer.header.remote_offset, 50u);
  EXPECT_EQ(answer.payload, pattern_bytes(50, 100));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kGet));
  EXPECT_EQ(successes(), 1u);
  EXPECT_EQ(counted(Counter::kGetsMatched), 1u);
  EXPECT_EQ(portal.in_progress, 0u);
}

TEST_F(RequestTest, Get__that_begins_beyond_the_end_is_answered_with_nothing) {
  append(entry());
  PacketHeader header = get_header(100, 7);
  header.remote_offset = UINT64_MAX;
  receive(header);
  expect_answer(7, NiFail::kOk, 0);
  EXPECT_EQ(next_event().mlength, 0u);
}

TEST_F(RequestTest, Get_while_a_reply_waits__both_are_answered_in_order) {
  append(entry());
  wire.room = 0;
  receive(get_header(2 * kPacketBytes, 7));
  receive(get_header(8, 8));
  EXPECT_THAT(kinds(), IsEmpty());
  EXPECT_EQ(portal.in_progress, 2u);
  wire.room = FakeWire::kPlentyOfRoom;
  advance_peer(core, peer());
  EXPECT_EQ(next_sent().operation_id, 7u);
  EXPECT_EQ(next_sent().type, PacketType::kData);
  EXPECT_EQ(next_sent().operation_id, 8u);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kGet, EventKind::kGet));
}

TEST_F(RequestTest, Peer_that_lets_answers_pile_up_beyond_any_window__is_refused) {
  append(entry());
  Peer& greedy = peer();
  for (std::uint32_t i = 0; i < kMostWaitingAnswers; ++i)
    greedy.answers.waiting.push_back(*new OutgoingMessage(PacketHeader{}));
  expect_refused(put_header(8, 7));
  greedy.answers.waiting.pop_front_and_dispose([](OutgoingMessage* answer) { delete answer; });
  receive_put(8, 7);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPut));
  greedy.answers.forget_if([](const OutgoingMessage&) { return true; });
}

TEST_F(RequestTest, Logical_interface__names_the_initiator_by_its_rank) {
  Interface& logical = open_interface(kMatchingLogical);
  const ProcessId map[] = {kOther, kSelf, kPeer};
  ASSERT_TRUE(logical.map.set(map, 3, kSelf));
  const Handle logical_eq = make_eq(logical);
  make_portal(logical, kPt, logical_eq);
  EntryRequest request = entry(kPutsAndGets | kEntryEventLinkDisable);
  request.criteria = {kBits, 0, {2, 0}, false, true};
  Handle handle = 0;
  ASSERT_EQ(append_entry(core, logical, std::move(request), &handle), Status::kOk);
  PacketHeader header = put_header(8);
  header.interface_index = kMatchingLogical;
  header.initiator_rank = 0;  // It lies.
  receive(header);
  EXPECT_EQ(next_event(logical_eq).initiator, (ProcessId{2, 0}));
}

TEST_F(RequestTest, Interface_without_matching__shows_no_match_bits) {
  Interface& other = open_interface(kNonMatchingPhysical);
  const Handle other_eq = make_eq(other);
  make_portal(other, kPt, other_eq);
  EntryRequest request = entry(kPutsAndGets | kEntryEventLinkDisable);
  request.criteria = kAnyMessage;
  Handle handle = 0;
  ASSERT_EQ(append_entry(core, other, std::move(request), &handle), Status::kOk);
  PacketHeader header = put_header(8);
  header.interface_index = kNonMatchingPhysical;
  receive(header);
  EXPECT_EQ(next_event(other_eq).match_bits, 0u);
}

TEST_F(RequestTest, Cut__of_nothing_is_nothing) {
  cut_message(core, peer(), peer().request_stream, NiFail::kUndeliverable);
  EXPECT_EQ(mode(), ArrivalMode::kIdle);
  EXPECT_THAT(kinds(), IsEmpty());
}

}  // namespace
}  // namespace portofu
