// Answers that arrive: only from the one who owes them, only once, and only as much as was asked for. Every state of an
// outstanding operation.

#include "engine/initiator/answer_in.h"

#include <gtest/gtest.h>

#include "engine/initiator/send.h"
#include "engine/mailbox/inbox.h"
#include "engine/memory/guarded_copy.h"
#include "engine/run/death.h"
#include "engine/run/loop.h"
#include "tests/unit/support/faulty_memory.h"
#include "tests/unit/support/peer_fixture.h"

namespace portofu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class AnswerInTest : public AnswerTest {
 protected:
  void SetUp() override { install_fault_guard(); }

  PacketHeader failed(const PacketHeader& answer, NiFail fail) const {
    PacketHeader header = answer;
    header.ni_fail_type = static_cast<std::uint8_t>(fail);
    return header;
  }

  /// The packet is refused, and the operation goes on as if it had never come.
  void expect_refused(const PacketHeader& header, ProcessId source = kPeer) {
    const std::uint64_t before = refused();
    receive(header, source);
    EXPECT_EQ(refused(), before + 1);
    EXPECT_THAT(kinds(), IsEmpty());
    EXPECT_TRUE(is_untouched(memory.data(), memory.size()));
    EXPECT_EQ(core.outstanding.open_count(), 1u);
  }
};

TEST_F(AnswerInTest, Acknowledgement__closes_the_operation_and_tells_ACK) {
  const std::uint32_t id = start_put();
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend)) << "SEND is local: it waits for nobody (3.13.3)";
  EXPECT_EQ(md().pending, 0u);
  PacketHeader header = answer_header(id, 8);
  header.remote_offset = 77;
  header.flags = kFlagOverflowList;
  receive(header);
  const Event ack = next_event();
  EXPECT_EQ(ack.type, EventKind::kAck);
  EXPECT_EQ(ack.mlength, 8u);
  EXPECT_EQ(ack.remote_offset, 77u);
  EXPECT_EQ(ack.ptl_list, ListKind::kOverflow);
  EXPECT_EQ(md().pending, 0u);
  EXPECT_EQ(peer().outstanding, 0u);
  EXPECT_EQ(ni.outstanding, 0u);
  EXPECT_EQ(core.outstanding.open_count(), 0u);
}

TEST_F(AnswerInTest, Acknowledgement__silent_raises_nothing) {
  const std::uint32_t id = start_put();
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend));
  PacketHeader header = failed(answer_header(id, 0), NiFail::kDropped);
  header.flags = kFlagSilent;
  receive(header);
  EXPECT_THAT(kinds(), IsEmpty());
  EXPECT_EQ(core.outstanding.open_count(), 0u);
}

TEST_F(AnswerInTest, Acknowledgement__of_a_refusal_fails_ACK_and_never_SEND) {
  for (const NiFail fail : {NiFail::kUndeliverable, NiFail::kPtDisabled, NiFail::kDropped, NiFail::kPermViolation,
                            NiFail::kOpViolation, NiFail::kSegv}) {
    receive(failed(answer_header(start_put(), 0), fail));
    const Event send = next_event();
    EXPECT_EQ(send.type, EventKind::kSend);
    EXPECT_EQ(send.ni_fail_type, NiFail::kOk) << "SEND knows nothing of the target";
    EXPECT_EQ(next_event().ni_fail_type, fail);
  }
}

TEST_F(AnswerInTest, Acknowledgement__that_never_comes_fails_ACK_alone) {
  start_put();
  fail_outstanding(core, peer(), NiFail::kUndeliverable);
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kOk) << "what has left has left";
  const Event ack = next_event();
  EXPECT_EQ(ack.type, EventKind::kAck);
  EXPECT_EQ(ack.ni_fail_type, NiFail::kUndeliverable);
  EXPECT_EQ(ni.undelivered.count, 1u);
  EXPECT_EQ(ni.undelivered.target, kPeer);
}

TEST_F(AnswerInTest, Twice__the_second_is_refused) {
  const std::uint32_t id = start_put();
  receive(answer_header(id, 8));
  receive(answer_header(id, 8));
  EXPECT_EQ(refused(), 1u);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend, EventKind::kAck));
}

TEST_F(AnswerInTest, Nobody_waits_for_it__is_refused) {
  const std::uint32_t id = start_put();
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend));
  expect_refused(answer_header(id + 1, 8));
  expect_refused(answer_header(id + OutstandingTable::kMaxOperations, 8));
  expect_refused(answer_header(id - OutstandingTable::kMaxOperations, 8));
  expect_refused(answer_header(0, 8));
}

TEST_F(AnswerInTest, From_somebody_else__is_refused) {
  const std::uint32_t id = start_get(8);
  expect_refused(answer_header(id, 8, 8), kOther);
  receive(answer_header(id, 8, 8));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kReply));
}

TEST_F(AnswerInTest, More_than_was_asked_for__is_refused) {
  const std::uint32_t get = start_get(8);
  expect_refused(answer_header(get, 9, 9));
  expect_refused(answer_header(get, UINT64_MAX, 8));
  expect_refused(answer_header(get, 7, 8));
  receive(answer_header(get, 8, 8));
  kinds();
  std::fill(memory.begin(), memory.end(), std::byte{0});
  const std::uint32_t put = start_put();
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend));
  expect_refused(answer_header(put, 9));
  expect_refused(answer_header(put, 8, 8));  // A put has nowhere to put data.
}

TEST_F(AnswerInTest, Reply__is_stored_and_told) {
  const std::uint32_t id = start_get(100);
  receive(answer_header(id, 60, 60));
  EXPECT_TRUE(holds_pattern(memory.data(), 60));
  EXPECT_TRUE(is_untouched(memory.data() + 60, memory.size() - 60));
  const Event event = next_event();
  EXPECT_EQ(event.type, EventKind::kReply);
  EXPECT_EQ(event.mlength, 60u);
  EXPECT_EQ(md().pending, 0u);
  EXPECT_EQ(counted(Counter::kBytesReceived), 60u);
}

TEST_F(AnswerInTest, Reply__of_nothing) {
  receive(answer_header(start_get(100), 0));
  EXPECT_EQ(next_event().mlength, 0u);
}

TEST_F(AnswerInTest, Reply__Idle_to_Reply_to_Idle_over_several_packets) {
  const std::uint32_t id = start_get(3 * kPacketBytes);
  receive(answer_header(id, 3 * kPacketBytes - 1, kPacketBytes));
  EXPECT_EQ(peer().answer_stream.mode, ArrivalMode::kDeliver);
  EXPECT_FALSE(core.outstanding.find(id)->answered);
  receive(data_header(kPacketBytes, kPacketBytes, kFlagAnswerStream));
  EXPECT_THAT(kinds(), IsEmpty());
  receive(data_header(2 * kPacketBytes, kPacketBytes - 1, kFlagAnswerStream));
  EXPECT_EQ(peer().answer_stream.mode, ArrivalMode::kIdle);
  EXPECT_TRUE(holds_pattern(memory.data(), 3 * kPacketBytes - 1));
  EXPECT_EQ(next_event().mlength, 3u * kPacketBytes - 1);
  receive(data_header(3 * kPacketBytes - 1, 1, kFlagAnswerStream));
  EXPECT_EQ(refused(), 1u) << "late";
}

TEST_F(AnswerInTest, Reply__data_that_is_empty_or_too_much_is_refused_and_the_reply_goes_on) {
  receive(answer_header(start_get(kPacketBytes + 8), kPacketBytes + 8, kPacketBytes));
  receive(data_header(kPacketBytes, 0, kFlagAnswerStream));
  receive(data_header(kPacketBytes, 9, kFlagAnswerStream));
  EXPECT_EQ(refused(), 2u);
  receive(data_header(kPacketBytes, 8, kFlagAnswerStream));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kReply));
  EXPECT_TRUE(holds_pattern(memory.data(), kPacketBytes + 8));
}

TEST_F(AnswerInTest, Reply__that_is_cut_tells_how_much_was_good) {
  receive(answer_header(start_get(3 * kPacketBytes), 3 * kPacketBytes, kPacketBytes));
  receive(data_header(kPacketBytes, 0, kFlagAnswerStream | kFlagCut));
  const Event event = next_event();
  EXPECT_EQ(event.ni_fail_type, NiFail::kSegv);
  EXPECT_EQ(event.mlength, kPacketBytes);
  EXPECT_EQ(md().pending, 0u);
  EXPECT_EQ(peer().answer_stream.mode, ArrivalMode::kIdle);
}

TEST_F(AnswerInTest, Reply__that_is_cut_tells_why) {
  receive(answer_header(start_get(2 * kPacketBytes), 2 * kPacketBytes, kPacketBytes));
  receive(failed(data_header(kPacketBytes, 0, kFlagAnswerStream | kFlagCut), NiFail::kDropped));
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kDropped);
}

TEST_F(AnswerInTest, New_answer_in_the_middle_of_one__is_refused) {
  const std::uint32_t first = start_get(2 * kPacketBytes);
  const std::uint32_t second = start_get(8);
  receive(answer_header(first, 2 * kPacketBytes, kPacketBytes));
  receive(answer_header(second, 8, 8));
  receive(answer_header(first, 8, 8));
  EXPECT_EQ(refused(), 2u);
  receive(data_header(kPacketBytes, kPacketBytes, kFlagAnswerStream));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kReply));
  receive(answer_header(second, 8, 8));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kReply));
}

TEST_F(AnswerInTest, Fetching__stores_at_its_own_offset_and_tells_SEND_and_REPLY) {
  const std::uint32_t id = start(PacketType::kFetchAtomic, 16);
  EXPECT_EQ(md().pending, 1u) << "SEND was told when the data had left";
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend));
  receive(answer_header(id, 16, 16));
  EXPECT_TRUE(holds_pattern(memory.data() + kPacketBytes, 16));
  EXPECT_TRUE(is_untouched(memory.data(), kPacketBytes));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kReply));
  EXPECT_EQ(md().pending, 0u);
}

TEST_F(AnswerInTest, Fault__of_reply_memory_is_told_by_REPLY_and_the_rest_dropped) {
  FaultyMemory faulty;
  MemoryDescriptor& bad = make_md(ni, faulty.edge() - kPacketBytes, 4 * kPacketBytes);
  Descriptor d = descriptor(PacketType::kGet, 3 * kPacketBytes);
  d.portals.md_handle = bad.handle;
  start_descriptor(core, d);
  receive(answer_header(next_sent().operation_id, 3 * kPacketBytes, kPacketBytes));
  receive(data_header(kPacketBytes, kPacketBytes, kFlagAnswerStream));
  receive(data_header(2 * kPacketBytes, kPacketBytes, kFlagAnswerStream));
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kSegv);
  EXPECT_EQ(bad.pending, 0u);
  EXPECT_TRUE(holds_pattern(faulty.edge() - kPacketBytes, kPacketBytes));
}

TEST_F(AnswerInTest, Early__refusal_of_a_message_that_still_leaves_waits_for_its_last_packet) {
  wire.room = 1;
  const std::uint32_t id = start_put(3 * kPacketBytes);
  receive(failed(answer_header(id, 0), NiFail::kPermViolation));
  ASSERT_NE(core.outstanding.find(id), nullptr);
  EXPECT_TRUE(core.outstanding.find(id)->answered);
  EXPECT_FALSE(core.outstanding.find(id)->sent);
  EXPECT_THAT(kinds(), IsEmpty());
  receive(answer_header(id, 0));
  EXPECT_EQ(refused(), 1u) << "one answer is enough";
  wire.room = FakeWire::kPlentyOfRoom;
  advance_peer(core, peer());
  EXPECT_EQ(wire.sent.size(), 2u) << "the target counts on all of it";
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend, EventKind::kAck));
  EXPECT_EQ(md().pending, 0u);
  EXPECT_EQ(core.outstanding.open_count(), 0u);
}

TEST_F(AnswerInTest, Early__refusal_and_then_the_death_of_the_peer) {
  wire.room = 1;
  receive(failed(answer_header(start_put(3 * kPacketBytes), 0), NiFail::kPermViolation));
  lose_peer(core, peer());
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kUndeliverable);
  EXPECT_EQ(next_event().type, EventKind::kAck);
  EXPECT_THAT(kinds(), IsEmpty());
  EXPECT_EQ(md().pending, 0u);
}

/// The id of an operation whose request waits for room: a peer that lies can guess it.
class LyingPeerTest : public AnswerInTest {
 protected:
  std::uint32_t queue(PacketType kind, std::uint64_t length, AckRequest ack_req) {
    wire.room = 0;
    start(kind, length, ack_req);
    std::uint32_t id = 0;
    core.outstanding.for_each([&id](std::uint32_t open, const OutstandingOperation&) { id = open; });
    EXPECT_NE(id, 0u);
    return id;
  }
};

TEST_F(LyingPeerTest, Answer_to_a_get_that_has_not_left__ends_it_once_it_has) {
  const std::uint32_t id = queue(PacketType::kGet, 8, AckRequest::kNone);
  receive(answer_header(id, 8, 8));
  EXPECT_EQ(md().pending, 1u);
  wire.room = FakeWire::kPlentyOfRoom;
  advance_peer(core, peer());
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kReply));
  EXPECT_EQ(md().pending, 0u);
  EXPECT_EQ(core.outstanding.open_count(), 0u);
}

TEST_F(LyingPeerTest, Answer_to_a_get_that_has_not_left__and_then_its_death_ends_it_once) {
  const std::uint32_t id = queue(PacketType::kGet, 8, AckRequest::kNone);
  receive(answer_header(id, 8, 8));
  lose_peer(core, peer());
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kReply));
  EXPECT_EQ(md().pending, 0u);
}

TEST_F(LyingPeerTest, Answers_to_others_that_have_not_left__end_them_once) {
  for (const auto& [kind, ack_req] : {std::pair{PacketType::kPut, AckRequest::kFull},
                                      {PacketType::kAtomic, AckRequest::kFull},
                                      {PacketType::kFetchAtomic, AckRequest::kNone}}) {
    const std::uint32_t id = queue(kind, 8, ack_req);
    receive(answer_header(id, 8, kind == PacketType::kFetchAtomic ? 8 : 0));
    EXPECT_THAT(kinds(), IsEmpty());
    lose_peer(core, peer());
    const EventKind last = kind == PacketType::kFetchAtomic ? EventKind::kReply : EventKind::kAck;
    EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend, last));
    EXPECT_EQ(md().pending, 0u);
  }
}

TEST_F(AnswerInTest, Descriptor_released_behind_SEND__is_freed_and_ACK_is_dropped) {
  const std::uint32_t id = start_put();
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend));
  const Handle handle = md().handle;
  release_md(ni, handle);
  EXPECT_EQ(ni.mds.find(handle), nullptr);
  receive(answer_header(id, 8));
  EXPECT_THAT(kinds(), IsEmpty());
  EXPECT_EQ(core.outstanding.open_count(), 0u);
}

TEST_F(AnswerInTest, Fail_outstanding__ends_exactly_those_of_the_peer_as_failed) {
  start_put();
  start_get(8);
  Descriptor d = descriptor(PacketType::kGet, 8);
  d.portals.target = kOther;
  d.portals.md_handle = md().handle;
  start_descriptor(core, d);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend)) << "of the put, which has left";
  fail_outstanding(core, peer(), NiFail::kUndeliverable);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(next_event().ni_fail_type, NiFail::kUndeliverable);
  EXPECT_THAT(kinds(), IsEmpty());
  EXPECT_EQ(core.outstanding.open_count(), 1u);
  EXPECT_EQ(core.peer(kOther).outstanding, 1u);
}

TEST_F(AnswerInTest, Cut_answer__when_none_arrives_is_nothing) {
  start_get(8);
  cut_message(core, peer(), peer().answer_stream, NiFail::kUndeliverable);
  EXPECT_EQ(core.outstanding.open_count(), 1u);
}

TEST_F(AnswerInTest, Finish__of_what_has_not_left_waits_until_it_has) {
  const std::uint32_t id = start_get(8);
  OutstandingOperation& operation = *core.outstanding.find(id);
  operation.answered = true;
  operation.sent = false;
  finish_answer(core, id, operation);
  EXPECT_EQ(core.outstanding.open_count(), 1u);
  EXPECT_THAT(kinds(), IsEmpty());
  operation.sent = true;
  finish_answer(core, id, operation);
  EXPECT_EQ(core.outstanding.open_count(), 0u);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kReply));
}

}  // namespace
}  // namespace portofu
