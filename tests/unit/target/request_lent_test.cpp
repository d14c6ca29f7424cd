// Messages whose data is at their sender, or that their sender has brought to its place already: what is offered to it,
// and what is told when the data cannot be had.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <memory>

#include "engine/atomic/atomic_unit.h"
#include "engine/initiator/send.h"
#include "engine/mailbox/inbox.h"
#include "engine/segment/peer_segment.h"
#include "engine/target/request.h"
#include "tests/unit/segment/segment_directory.h"
#include "tests/unit/support/core_fixture.h"

namespace portofu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint32_t kPart = 1000;

class RequestLentTest : public CoreTest {
 protected:
  void SetUp() override {
    segment = directory.create(77);
    ASSERT_EQ(PeerSegment::attach(directory.path(), {kTestNid, 77}, &sender), AttachResult::kAttached);
    if (!sender->memory().is_reachable()) GTEST_SKIP() << "this kernel lets no process read another one's memory";
  }

  /// The first or a later packet of a put of `length` bytes, at its sender.
  void receive_part(std::uint64_t at, std::uint64_t length) {
    receive(part_header(at, length), Payload::in_memory_of(*sender, theirs.data() + at));
  }
  void receive_placed(std::uint64_t at, std::uint64_t length) {
    receive(part_header(at, length), Payload::placed_by(*sender));
  }
  /// A whole put at its sender, to `offset`.
  void receive_later(std::uint64_t offset, std::uint64_t hdr_data) {
    PacketHeader header = put_header(kPart, static_cast<std::uint32_t>(hdr_data));
    header.payload_bytes = kPart;
    header.remote_offset = offset;
    header.hdr_data = hdr_data;
    receive(header, Payload::in_memory_of(*sender, theirs.data()));
  }
  /// A whole reply to such a get, at its sender.
  void receive_reply(std::uint32_t operation_id) {
    receive(answer_header(operation_id, kPart, kPart), Payload::in_memory_of(*sender, theirs.data()));
  }
  PacketHeader part_header(std::uint64_t at, std::uint64_t length) const {
    PacketHeader header = at == 0 ? put_header(length, 7) : data_header(at, kPart);
    header.payload_bytes = kPart;
    return header;
  }

  /// Where the first byte of the next message goes.
  std::byte* place(std::uint64_t offset = 0) { return memory.data() + offset; }

  /// A process whose number is somebody else's now: its mark is not where it was.
  std::shared_ptr<PeerSegment> attach_to_a_stranger() {
    other = directory.create(78);
    EXPECT_EQ(in_dying_child([&] {
                const int fd = ::open(segment_path(directory.path(), {kTestNid, 78}).c_str(), O_RDWR);
                const auto elsewhere = reinterpret_cast<std::uint64_t>(this);
                constexpr off_t kOffset = offsetof(SegmentDescriptorShared, probe_address);
                return pwrite(fd, &elsewhere, sizeof elsewhere, kOffset) == sizeof elsewhere ? 0 : 1;
              }),
              0);
    std::shared_ptr<PeerSegment> gone;
    EXPECT_EQ(PeerSegment::attach(directory.path(), {kTestNid, 78}, &gone), AttachResult::kAttached);
    return gone;
  }

  /// @return the number of the operation
  std::uint32_t start_get(std::uint64_t length, std::uint64_t local_offset = 0) {
    Descriptor d = descriptor(PacketType::kGet, length);
    d.portals.md_handle = make_md(ni, place(), memory.size()).handle;
    d.portals.local_offset = local_offset;
    start_descriptor(core, d);
    return next_sent().operation_id;
  }

  std::vector<std::byte> theirs = pattern_bytes(0, kMemoryBytes);

  SegmentDirectory directory;
  std::unique_ptr<ProcessSegment> segment, other;
  std::shared_ptr<PeerSegment> sender;
};

TEST_F(RequestLentTest, Put_at_its_sender__is_read_from_there) {
  append(entry());
  receive_part(0, kPart);
  EXPECT_TRUE(holds_pattern(place(), kPart));
  EXPECT_TRUE(is_untouched(place(kPart), kPart));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPut));
  EXPECT_THAT(wire.offers, IsEmpty()) << "there is nothing to share";
}

TEST_F(RequestLentTest, Put_of_several_packets__is_offered_its_place_once_and_may_be_placed_there) {
  append(entry());
  receive_part(0, 3 * kPart);
  ASSERT_EQ(wire.offers.size(), 1u);
  EXPECT_EQ(wire.offers[0].data(), place());
  EXPECT_EQ(wire.offers[0].size(), 3 * kPart);
  receive_part(kPart, 3 * kPart);
  EXPECT_TRUE(holds_pattern(place(), 2 * kPart));
  EXPECT_THAT(kinds(), IsEmpty());
  receive_placed(2 * kPart, 3 * kPart);
  EXPECT_TRUE(is_untouched(place(2 * kPart), kPart)) << "the sender writes, not we";
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPut));
  EXPECT_EQ(next_sent().length, 3 * kPart);
  EXPECT_EQ(wire.offers.size(), 1u);
}

TEST_F(RequestLentTest, Put_that_is_cut_off__is_not_offered_a_place) {
  EntryRequest shorter = entry();
  shorter.segment.describe(place(), 3 * kPart - 1);
  append(std::move(shorter));
  receive_part(0, 3 * kPart);
  EXPECT_THAT(wire.offers, IsEmpty());
}

TEST_F(RequestLentTest, Put_into_pieces__is_not_offered_a_place) {
  const iovec pieces[] = {{place(), 1500}, {place(2000), 1500}};
  EntryRequest scattered = entry();
  ASSERT_TRUE(scattered.segment.describe(pieces, 2));
  append(std::move(scattered));
  receive_part(0, 3 * kPart);
  EXPECT_THAT(wire.offers, IsEmpty());
  receive_part(kPart, 3 * kPart);
  EXPECT_TRUE(holds_pattern(place(), 1500));
  EXPECT_TRUE(is_untouched(place(1500), 500));
  EXPECT_EQ(memory[2000], theirs[1500]);
  EXPECT_EQ(memory[2499], theirs[1999]);
}

TEST_F(RequestLentTest, Put_that_is_here__is_not_offered_a_place) {
  append(entry());
  receive_put(2 * kPacketBytes, 7);
  EXPECT_THAT(wire.offers, IsEmpty());
}

TEST_F(RequestLentTest, Put_that_is_refused__is_not_offered_a_place_and_not_read) {
  receive_part(0, 2 * kPart);
  receive_placed(kPart, 2 * kPart);
  EXPECT_THAT(wire.offers, IsEmpty());
  EXPECT_TRUE(is_untouched(place(), memory.size()));
  EXPECT_EQ(peer().request_stream.mode, ArrivalMode::kIdle);
}

/// 3.6.3: what belongs to a closed interface is the program's again.
TEST_F(RequestLentTest, Interface_that_is_closed__takes_its_offer_back) {
  append(entry());
  receive_part(0, 3 * kPart);
  EXPECT_THAT(wire.taken_back, IsEmpty());
  close_interface(kMatchingPhysical);
  EXPECT_THAT(wire.taken_back, ElementsAre(kPeer));
  receive_placed(kPart, 3 * kPart);
  receive_part(2 * kPart, 3 * kPart);
  EXPECT_TRUE(is_untouched(place(kPart), 2 * kPart));
  EXPECT_EQ(peer().request_stream.mode, ArrivalMode::kIdle);
}

TEST_F(RequestLentTest, Puts_read_later__are_complete_in_order_when_they_are_read) {
  wire.reads_later = true;
  append(entry());
  receive_later(0, 1);
  receive_later(500, 2);
  EXPECT_THAT(kinds(), IsEmpty());
  ASSERT_EQ(wire.late.size(), 2u);
  EXPECT_EQ(wire.late[1].data(), place(500));
  EXPECT_EQ(wire.late[1].size(), kPart);
  wire.unread = 1;
  finish_late_messages(core);
  const Event failed = next_event();
  EXPECT_EQ(failed.ni_fail_type, NiFail::kSegv);
  EXPECT_EQ(failed.hdr_data, 1u);
  const Event good = next_event();
  EXPECT_EQ(good.ni_fail_type, NiFail::kOk);
  EXPECT_EQ(good.hdr_data, 2u);
  EXPECT_EQ(good.mlength, kPart);
  EXPECT_EQ(next_sent().ni_fail_type, static_cast<std::uint8_t>(NiFail::kSegv));
  EXPECT_EQ(next_sent().ni_fail_type, static_cast<std::uint8_t>(NiFail::kOk));
  EXPECT_EQ(counted(Counter::kPutsMatched), 2u);
  EXPECT_EQ(counted(Counter::kBytesReceived), 2 * kPart);
}

/// A sender that has its memory back may use published entries by itself, and believes that its puts were told.
TEST_F(RequestLentTest, Puts_read_later__are_told_before_their_sender_has_its_memory_back) {
  wire.reads_later = true;
  append(entry());
  receive_later(0, 1);
  receive_later(500, 2);
  std::vector<EventKind> told;
  wire.when_given_back = [&] { told = kinds(); };
  finish_late_messages(core);
  EXPECT_THAT(told, ElementsAre(EventKind::kPut, EventKind::kPut));
}

/// 3.13.1: the unlink event comes behind all others of the entry.
TEST_F(RequestLentTest, Puts_read_later__unlink_their_entry_behind_the_last_of_them) {
  wire.reads_later = true;
  EntryRequest filling = entry(kEntryOpPut | kEntryManageLocal);
  filling.min_free = memory.size() - kPart - 1;
  append(std::move(filling));
  receive_later(0, 1);
  receive_later(0, 2);
  finish_late_messages(core);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPut, EventKind::kPut, EventKind::kAutoUnlink));
}

TEST_F(RequestLentTest, Puts_read_later__are_complete_before_whatever_else_comes) {
  wire.reads_later = true;
  append(entry());
  constexpr auto kSumOf = static_cast<std::uint8_t>(AtomicOperation::kSum);
  constexpr auto kNumbers = static_cast<std::uint8_t>(AtomicType::kUint64);
  const std::vector<PacketHeader> others = {put_header(8), get_header(8, 9), part_header(0, 2 * kPart),
                                            atomic_header(PacketType::kAtomic, kSumOf, kNumbers, 8)};
  for (const PacketHeader& next : others) {
    receive_later(0, 1);
    receive_later(0, 2);
    receive(next);
    EXPECT_TRUE(wire.late.empty()) << packet_type_name(next.type);
    EXPECT_EQ(next_event().hdr_data, 1u);
    EXPECT_EQ(next_event().hdr_data, 2u);
    cut_message(core, peer(), peer().request_stream, NiFail::kUndeliverable);
    kinds();
  }
  receive_later(0, 1);
  receive(put_header(8), ProcessId{kPeer.nid, kPeer.pid + 1});
  EXPECT_EQ(next_event().hdr_data, 1u);
}

TEST_F(RequestLentTest, Put_that_cannot_be_read_later__comes_behind_those_that_can) {
  wire.reads_later = true;
  append(entry());
  receive_later(0, 1);
  wire.reads_later = false;
  receive_later(1000, 2);
  EXPECT_TRUE(holds_pattern(place(1000), kPart));
  EXPECT_EQ(next_event().hdr_data, 1u);
  EXPECT_EQ(next_event().hdr_data, 2u);
}

TEST_F(RequestLentTest, Put_into_pieces_or_refused__is_not_read_later) {
  wire.reads_later = true;
  const iovec pieces[] = {{place(), 500}, {place(2000), 1500}};
  EntryRequest scattered = entry(kEntryOpPut | kEntryUseOnce);
  ASSERT_TRUE(scattered.segment.describe(pieces, 2));
  append(std::move(scattered));
  receive_later(0, 1);
  EXPECT_TRUE(holds_pattern(place(), 500));
  receive_later(0, 2);
  EXPECT_TRUE(wire.late.empty());
  EXPECT_EQ(counted(Counter::kHeadersDropped), 1u);
}

TEST_F(RequestLentTest, Put_that_is_cut_off__is_read_later_as_far_as_it_fits) {
  wire.reads_later = true;
  EntryRequest shorter = entry();
  shorter.segment.describe(place(), 300);
  append(std::move(shorter));
  receive_later(0, 1);
  ASSERT_EQ(wire.late.size(), 1u);
  EXPECT_EQ(wire.late[0].size(), 300u);
  finish_late_messages(core);
  const Event event = next_event();
  EXPECT_EQ(event.mlength, 300u);
  EXPECT_EQ(event.rlength, kPart);
}

TEST_F(RequestLentTest, Replies_read_later__are_complete_in_order_when_they_are_read) {
  wire.reads_later = true;
  const std::uint32_t first = start_get(kPart), second = start_get(kPart, 2000);
  receive_reply(first);
  receive_reply(second);
  EXPECT_THAT(kinds(), IsEmpty());
  ASSERT_EQ(wire.late.size(), 2u);
  EXPECT_EQ(wire.late[1].data(), place(2000));
  EXPECT_EQ(wire.late[1].size(), kPart);
  wire.unread = 1;
  finish_late_messages(core);
  const Event failed = next_event();
  EXPECT_EQ(failed.type, EventKind::kReply);
  EXPECT_EQ(failed.ni_fail_type, NiFail::kSegv);
  const Event good = next_event();
  EXPECT_EQ(good.ni_fail_type, NiFail::kOk);
  EXPECT_EQ(good.mlength, kPart);
  EXPECT_EQ(counted(Counter::kBytesReceived), 2 * kPart);
  EXPECT_EQ(core.outstanding.open_count(), 0u);
}

TEST_F(RequestLentTest, Replies_and_puts__are_read_at_once) {
  wire.reads_later = true;
  append(entry());
  const std::uint32_t id = start_get(kPart, 2000);
  receive_later(0, 1);
  receive_reply(id);
  receive_later(1000, 2);
  ASSERT_EQ(wire.late.size(), 3u);
  finish_late_messages(core);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPut, EventKind::kReply, EventKind::kPut));
}

TEST_F(RequestLentTest, Replies_read_later__are_complete_before_whatever_else_comes) {
  wire.reads_later = true;
  append(entry());
  receive_reply(start_get(kPart));
  receive(put_header(8));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kReply, EventKind::kPut));
  const std::uint32_t whole = start_get(kPart), parts = start_get(2 * kPart);
  receive_reply(whole);
  receive(answer_header(parts, 2 * kPart, kPart), Payload::in_memory_of(*sender, theirs.data()));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kReply));
  EXPECT_EQ(wire.offers.size(), 1u);
}

TEST_F(RequestLentTest, Reply_that_cannot_be_read_later__comes_behind_those_that_can) {
  wire.reads_later = true;
  const std::uint32_t first = start_get(kPart), second = start_get(kPart, 2000);
  receive_reply(first);
  wire.reads_later = false;
  receive_reply(second);
  EXPECT_TRUE(holds_pattern(place(2000), kPart));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kReply, EventKind::kReply));
}

/// A peer that lies answers twice.
TEST_F(RequestLentTest, Second_reply_to_one_get__is_refused) {
  wire.reads_later = true;
  const std::uint32_t id = start_get(kPart);
  receive_reply(id);
  receive_reply(id);
  EXPECT_EQ(wire.late.size(), 1u);
  EXPECT_EQ(counted(Counter::kPacketsRefusedMalformed), 1u);
  finish_late_messages(core);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kReply));
}

TEST_F(RequestLentTest, Data_that_cannot_be_had__is_a_fault_of_memory_if_the_sender_is_there) {
  append(entry());
  PacketHeader header = put_header(kPart, 7);
  header.payload_bytes = kPart;
  receive(header, Payload::in_memory_of(*sender, reinterpret_cast<const std::byte*>(4096)));
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kSegv);
}

TEST_F(RequestLentTest, Data_of_a_sender_that_is_gone__is_undeliverable) {
  const std::shared_ptr<PeerSegment> gone = attach_to_a_stranger();
  append(entry());
  receive(part_header(0, 2 * kPart), Payload::in_memory_of(*gone, theirs.data()));
  receive(part_header(kPart, 2 * kPart), Payload::placed_by(*gone));
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kUndeliverable);
}

TEST_F(RequestLentTest, Reply_of_a_target_that_is_gone__is_undeliverable) {
  const std::shared_ptr<PeerSegment> gone = attach_to_a_stranger();
  receive(answer_header(start_get(kPart), kPart, kPart), Payload::in_memory_of(*gone, theirs.data()));
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kUndeliverable);
}

TEST_F(RequestLentTest, Reply_of_several_packets__is_offered_the_place_where_it_is_wanted) {
  const std::uint32_t id = start_get(2 * kPart, 10);
  receive(answer_header(id, 2 * kPart, kPart), Payload::in_memory_of(*sender, theirs.data()));
  ASSERT_EQ(wire.offers.size(), 1u);
  EXPECT_EQ(wire.offers[0].data(), place(10));
  EXPECT_EQ(wire.offers[0].size(), 2 * kPart);
  receive(data_header(kPart, kPart, kFlagAnswerStream), Payload::placed_by(*sender));
  EXPECT_TRUE(holds_pattern(place(10), kPart));
  EXPECT_TRUE(is_untouched(place(10 + kPart), kPart));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kReply));
}

TEST_F(RequestLentTest, Interface_that_is_closed__takes_the_place_of_a_reply_back) {
  receive(answer_header(start_get(2 * kPart), 2 * kPart, kPart), Payload::in_memory_of(*sender, theirs.data()));
  close_interface(kMatchingPhysical);
  EXPECT_THAT(wire.taken_back, ElementsAre(kPeer));
}

}  // namespace
}  // namespace portofu
