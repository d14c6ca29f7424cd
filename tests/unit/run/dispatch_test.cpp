// Step 5: what is refused before anybody looks closer, where each packet type goes, and the end of a source.

#include "engine/run/dispatch.h"

#include <gtest/gtest.h>

#include "engine/atomic/atomic_unit.h"
#include "engine/initiator/send.h"
#include "tests/unit/support/core_fixture.h"

namespace portofu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ReceiveTest : public CoreTest {
 protected:
  void expect_nothing_happened() {
    EXPECT_TRUE(is_untouched(memory.data(), memory.size()));
    EXPECT_THAT(kinds(), IsEmpty());
    EXPECT_THAT(wire.sent, IsEmpty());
    EXPECT_EQ(successes() + failures(), 0u);
  }

  /// Starts a get of ours. @return its operation id
  std::uint32_t start_get(std::uint64_t length) {
    Descriptor d = descriptor(PacketType::kGet, length);
    d.portals.md_handle = make_md(ni, memory.data(), memory.size()).handle;
    start_descriptor(core, d);
    return next_sent().operation_id;
  }
};

TEST_F(ReceiveTest, Foreign_job_key__is_refused_and_leaves_no_trace) {
  append(entry(kEntryOpPut | kEntryEventCtComm));
  PacketHeader header = put_header(8, 7);
  header.job_key = kJobKey + 1;
  receive(header);
  EXPECT_EQ(counted(Counter::kPacketsReceived), 1u);
  EXPECT_EQ(counted(Counter::kPacketsRefusedKey), 1u);
  EXPECT_EQ(refused(), 0u);
  EXPECT_TRUE(core.peers.empty());
  EXPECT_EQ(wire.context_of(kPeer)->engines, nullptr);
  expect_nothing_happened();
}

TEST_F(ReceiveTest, Foreign_job_key__in_the_middle_of_a_message_does_not_disturb_it) {
  append(entry());
  receive(put_header(2 * kPacketBytes));
  PacketHeader foreign = data_header(kPacketBytes, kPacketBytes);
  foreign.job_key = 0;
  receive(foreign);
  receive(data_header(kPacketBytes, kPacketBytes));
  EXPECT_EQ(counted(Counter::kPacketsRefusedKey), 1u);
  EXPECT_EQ(next_event().mlength, 2u * kPacketBytes);
  EXPECT_TRUE(holds_pattern(memory.data(), 2 * kPacketBytes));
}

TEST_F(ReceiveTest, Unknown_flags__refuse_the_packet) {
  append(entry(kEntryOpPut | kEntryEventCtComm));
  std::uint64_t unknown_count = 0;
  for (int bit = 0; bit < 8; ++bit) {
    if ((kKnownFlags >> bit & 1) != 0) continue;
    PacketHeader header = put_header(8);
    header.flags = static_cast<std::uint8_t>(1 << bit);
    receive(header);
    ++unknown_count;
  }
  ASSERT_GT(unknown_count, 0u);
  EXPECT_EQ(refused(), unknown_count);
  EXPECT_TRUE(core.peers.empty());
  expect_nothing_happened();
}

TEST_F(ReceiveTest, Failure_that_does_not_exist__refuses_the_packet) {
  append(entry(kEntryOpPut | kEntryEventCtComm));
  for (const std::uint8_t fail : {kNiFailCount, std::uint8_t{255}}) {
    PacketHeader header = put_header(8);
    header.ni_fail_type = fail;
    receive(header);
  }
  EXPECT_EQ(refused(), 2u);
  expect_nothing_happened();
}

TEST_F(ReceiveTest, Type_that_does_not_exist__refuses_the_packet) {
  append(entry(kEntryOpPut | kEntryEventCtComm));
  for (const int type : {0, 8, 9, 127, 255}) {
    PacketHeader header = put_header(8, 7);
    header.type = static_cast<PacketType>(type);
    receive(header);
  }
  EXPECT_EQ(refused(), 5u);
  EXPECT_EQ(counted(Counter::kPacketsReceived), 5u);
  expect_nothing_happened();
}

TEST_F(ReceiveTest, Header_of_zeros__is_refused) {
  PacketHeader header{};
  header.job_key = kJobKey;
  receive(header);
  EXPECT_EQ(refused(), 1u);
}

TEST_F(ReceiveTest, Data_and_answers_that_belong_to_nothing__are_refused) {
  receive(data_header(0, 16));
  receive(data_header(0, 0, kFlagCut));
  receive(data_header(0, 16, kFlagAnswerStream));
  receive(data_header(0, 0, kFlagAnswerStream | kFlagCut));
  receive(answer_header(0, 0));
  receive(answer_header(UINT32_MAX, 16, 16));
  EXPECT_EQ(refused(), 6u);
  expect_nothing_happened();
}

TEST_F(ReceiveTest, Requests__each_kind_reaches_the_target) {
  append(entry());
  constexpr auto kSum = static_cast<std::uint8_t>(AtomicOperation::kSum);
  constexpr auto kSwap = static_cast<std::uint8_t>(AtomicOperation::kSwap);
  constexpr auto kInt32 = static_cast<std::uint8_t>(AtomicType::kInt32);
  receive(put_header(4));
  receive(get_header(4, 7));
  receive(atomic_header(PacketType::kAtomic, kSum, kInt32, 4));
  receive(atomic_header(PacketType::kFetchAtomic, kSum, kInt32, 4));
  receive(atomic_header(PacketType::kSwap, kSwap, kInt32, 4));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPut, EventKind::kGet, EventKind::kAtomic, EventKind::kFetchAtomic,
                                   EventKind::kFetchAtomic));
  EXPECT_EQ(refused(), 0u);
}

TEST_F(ReceiveTest, Answer__reaches_the_operation) {
  receive(answer_header(start_get(8), 8, 8));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kReply));
}

TEST_F(ReceiveTest, Source__is_looked_up_once_and_remembered) {
  append(entry());
  receive_put(8);
  EXPECT_EQ(wire.context_of(kPeer)->engines, &peer());
  receive_put(8);
  EXPECT_EQ(core.peers.size(), 1u);
}

TEST_F(ReceiveTest, Messages_of_two_sources__may_be_mixed) {
  EntryRequest first = entry(kEntryOpPut | kEntryUseOnce | kEntryEventUnlinkDisable);
  first.segment.describe(memory.data(), 2 * kPacketBytes);
  EntryRequest second = entry(kEntryOpPut);
  second.segment.describe(memory.data() + 2 * kPacketBytes, 2 * kPacketBytes);
  append(std::move(first));
  append(std::move(second));
  receive(put_header(2 * kPacketBytes), kPeer);
  receive(put_header(2 * kPacketBytes), kOther);
  receive(data_header(kPacketBytes, kPacketBytes), kPeer);
  receive(data_header(kPacketBytes, kPacketBytes), kOther);
  EXPECT_TRUE(holds_pattern(memory.data(), 2 * kPacketBytes));
  EXPECT_TRUE(holds_pattern(memory.data() + 2 * kPacketBytes, 2 * kPacketBytes));
  EXPECT_EQ(next_event().initiator, kPeer);
  EXPECT_EQ(next_event().initiator, kOther);
}

TEST_F(ReceiveTest, Request_and_answer_of_one_source__may_be_mixed) {
  append(entry());
  std::vector<std::byte> reply(2 * kPacketBytes);
  Descriptor d = descriptor(PacketType::kGet, reply.size());
  d.portals.md_handle = make_md(ni, reply.data(), reply.size()).handle;
  start_descriptor(core, d);
  const std::uint32_t id = next_sent().operation_id;
  receive(put_header(2 * kPacketBytes));
  receive(answer_header(id, reply.size(), kPacketBytes));
  receive(data_header(kPacketBytes, kPacketBytes));
  receive(data_header(kPacketBytes, kPacketBytes, kFlagAnswerStream));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPut, EventKind::kReply));
  EXPECT_TRUE(holds_pattern(memory.data(), 2 * kPacketBytes));
  EXPECT_TRUE(holds_pattern(reply.data(), reply.size()));
}

TEST_F(ReceiveTest, Close__of_a_source_that_never_sent_or_has_nothing_under_way_is_nothing) {
  close_source(core, nullptr);
  append(entry());
  receive_put(8);
  kinds();
  close_source(core, &peer());
  EXPECT_THAT(kinds(), IsEmpty());
  EXPECT_THAT(wire.sent, IsEmpty());
}

TEST_F(ReceiveTest, Close__ends_the_message_that_was_arriving) {
  append(entry(kEntryOpPut | kEntryEventCtComm));
  receive(put_header(3 * kPacketBytes, 7));
  receive(data_header(kPacketBytes, kPacketBytes));
  close_source(core, &peer());
  const Event event = next_event();
  EXPECT_EQ(event.type, EventKind::kPut);
  EXPECT_EQ(event.ni_fail_type, NiFail::kUndeliverable);
  EXPECT_EQ(event.rlength, 3u * kPacketBytes);
  EXPECT_EQ(event.mlength, 2u * kPacketBytes);
  EXPECT_EQ(failures(), 1u);
  EXPECT_EQ(portal.in_progress, 0u);
  EXPECT_EQ(peer().request_stream.mode, ArrivalMode::kIdle);
  EXPECT_THAT(wire.sent, IsEmpty()) << "nobody waits for the acknowledgement";
  close_source(core, &peer());
  EXPECT_THAT(kinds(), IsEmpty()) << "only once";
}

TEST_F(ReceiveTest, Close__lets_nobody_have_the_answers_that_are_late) {
  append_late();
  const std::uint64_t more_than_all = (std::uint64_t{settings.unexpected_mib} + 1) << 20;
  std::byte* const taken = ni.message_memory.take(more_than_all);
  PacketHeader mark = put_header(0, 7);
  mark.pt_index = kPt + 1;
  receive(mark);
  mark.operation_id = 8;
  receive(mark, kOther);
  close_source(core, &peer());
  ni.message_memory.give(taken, more_than_all);
  mark.operation_id = 9;
  receive(mark);
  ASSERT_EQ(wire.sent.size(), 2u);
  EXPECT_EQ(next_sent().operation_id, 8u) << "of another";
  EXPECT_EQ(next_sent().operation_id, 9u);
}

TEST_F(ReceiveTest, Close__ends_the_message_that_was_dropped_without_a_word) {
  receive(put_header(2 * kPacketBytes));
  ASSERT_EQ(peer().request_stream.mode, ArrivalMode::kDiscard);
  close_source(core, &peer());
  EXPECT_EQ(peer().request_stream.mode, ArrivalMode::kIdle);
  EXPECT_THAT(kinds(), IsEmpty());
}

TEST_F(ReceiveTest, Close__ends_the_reply_that_was_arriving_and_the_next_one_is_heard) {
  receive(answer_header(start_get(2 * kPacketBytes), 2 * kPacketBytes, kPacketBytes));
  close_source(core, &peer());
  const Event event = next_event();
  EXPECT_EQ(event.type, EventKind::kReply);
  EXPECT_EQ(event.ni_fail_type, NiFail::kUndeliverable);
  EXPECT_EQ(event.mlength, kPacketBytes);
  EXPECT_EQ(core.outstanding.open_count(), 0u);
  receive(answer_header(start_get(8), 8, 8));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kReply));
}

TEST_F(ReceiveTest, Close__leaves_the_messages_of_other_sources_alone) {
  append(entry());
  receive(put_header(2 * kPacketBytes), kPeer);
  receive(put_header(8), kOther);
  next_event();
  close_source(core, &core.peer(kOther));
  receive(data_header(kPacketBytes, kPacketBytes), kPeer);
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kOk);
}

}  // namespace
}  // namespace portofu
