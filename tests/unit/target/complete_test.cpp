// Step 8: events in their order and with their fields, counts, and the life of an entry that leaves its list by itself.

#include "engine/target/complete.h"

#include <gtest/gtest.h>

#include "engine/atomic/atomic_unit.h"
#include "engine/target/match_header.h"
#include "tests/unit/support/core_fixture.h"

namespace portofu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class CompleteTest : public CoreTest {
 protected:
  /// A message that was matched and has not been completed.
  Arrival matched(const PacketHeader& header) {
    Arrival arrival;
    arrival.header = header;
    arrival.initiator = kPeer;
    EXPECT_EQ(match_header(core, ni, peer(), arrival), Refusal::kNone);
    return arrival;
  }
  void complete(Arrival& arrival, NiFail fail = NiFail::kOk) {
    arrival.fail = fail;
    complete_arrival(core, ni, peer(), arrival);
  }
  void complete_put() {
    Arrival arrival = matched(put_header(8));
    complete(arrival);
  }
  EntryState state(Handle handle) const {
    const ListEntry* live = ni.entries.find(handle);
    return live != nullptr ? live->state : ni.entries.find_stale(handle)->state;
  }
  /// A use-once search of `taker` takes the header.
  void claim(UnexpectedHeader& header) {
    claim_header(core, ni, portal, header, {.by = ClaimedBy::kSearch, .user_ptr = &taker});
  }
  /// A use-once entry of `taker` takes the header that is there.
  void append_taker(std::uint32_t options) {
    EntryRequest request = entry(kPutsAndGets | kEntryUseOnce | options);
    request.user_ptr = &taker;
    append(std::move(request));
    EXPECT_TRUE(portal.unexpected.empty());
  }

  int taker = 0;  ///< Its address is the user_ptr of whoever takes a header.
  int owner = 0;  ///< Its address is the user_ptr of an entry.
};

TEST_F(CompleteTest, Event__has_every_field_of_table_3_3) {
  EntryRequest request = entry();
  request.user_ptr = &owner;
  append(std::move(request));
  PacketHeader header = put_header(100);
  header.remote_offset = 40;
  Arrival arrival = matched(header);
  complete(arrival);
  const Event event = next_event();
  EXPECT_EQ(event.type, EventKind::kPut);
  EXPECT_EQ(event.start, memory.data() + 40);
  EXPECT_EQ(event.user_ptr, &owner);
  EXPECT_EQ(event.hdr_data, 0xfeedu);
  EXPECT_EQ(event.match_bits, kBits);
  EXPECT_EQ(event.rlength, 100u);
  EXPECT_EQ(event.mlength, 100u);
  EXPECT_EQ(event.remote_offset, 40u);
  EXPECT_EQ(event.uid, kPeerUid);
  EXPECT_EQ(event.initiator, kPeer);
  EXPECT_EQ(event.ptl_list, ListKind::kPriority);
  EXPECT_EQ(event.ni_fail_type, NiFail::kOk);
  EXPECT_EQ(event.pt_index, kPt);
  EXPECT_EQ(event.atomic_operation, 0u);
  EXPECT_EQ(event.atomic_type, 0u);
}

TEST_F(CompleteTest, Event__start_of_a_locally_managed_entry_is_where_the_message_lies) {
  append(entry(kPutsAndGets | kEntryManageLocal));
  complete_put();
  complete_put();
  EXPECT_EQ(next_event().start, memory.data());
  const Event second = next_event();
  EXPECT_EQ(second.start, memory.data() + 8);
  EXPECT_EQ(second.remote_offset, 0u) << "what was asked for";
}

TEST_F(CompleteTest, Event__kind_and_atomic_fields_follow_the_operation) {
  append(entry());
  constexpr auto kSum = static_cast<std::uint8_t>(AtomicOperation::kSum);
  constexpr auto kCswap = static_cast<std::uint8_t>(AtomicOperation::kCswap);
  constexpr auto kInt32 = static_cast<std::uint8_t>(AtomicType::kInt32);
  PacketHeader lying_put = put_header(4);
  lying_put.atomic_operation = kSum;
  lying_put.atomic_type = kInt32;
  const PacketHeader headers[] = {lying_put, get_header(4, 1), atomic_header(PacketType::kAtomic, kSum, kInt32, 4),
                                  atomic_header(PacketType::kFetchAtomic, kSum, kInt32, 4),
                                  atomic_header(PacketType::kSwap, kCswap, kInt32, 4)};
  const EventKind kinds_expected[] = {EventKind::kPut, EventKind::kGet, EventKind::kAtomic, EventKind::kFetchAtomic,
                                      EventKind::kFetchAtomic};
  for (std::size_t i = 0; i < 5; ++i) {
    Arrival arrival = matched(headers[i]);
    complete(arrival);
    const Event event = next_event();
    EXPECT_EQ(event.type, kinds_expected[i]);
    EXPECT_EQ(event.atomic_type, i < 2 ? 0 : kInt32);
    EXPECT_EQ(event.atomic_operation, i < 2 ? 0 : headers[i].atomic_operation);
  }
}

TEST_F(CompleteTest, Message__is_no_longer_counted_and_who_waits_is_told) {
  const Handle handle = append(entry());
  Arrival arrival = matched(put_header(8));
  const std::uint64_t activity = core.activity;
  complete(arrival);
  EXPECT_EQ(ni.entries.find(handle)->pending, 0u);
  EXPECT_EQ(portal.in_progress, 0u);
  EXPECT_GT(core.activity, activity);
}

TEST_F(CompleteTest, Count__of_operations_of_bytes_or_of_failures) {
  append(entry(kPutsAndGets | kEntryEventCtComm | kEntryUseOnce));
  append(entry(kPutsAndGets | kEntryEventCtComm | kEntryEventCtBytes));
  complete_put();
  EXPECT_EQ(successes(), 1u);
  complete_put();
  EXPECT_EQ(successes(), 9u);
  Arrival failed = matched(put_header(8));
  complete(failed, NiFail::kSegv);
  EXPECT_EQ(successes(), 9u);
  EXPECT_EQ(failures(), 1u);
}

TEST_F(CompleteTest, Count__only_if_the_entry_asks_for_it) {
  append(entry(kPutsAndGets));
  complete_put();
  EXPECT_EQ(successes(), 0u);
}

TEST_F(CompleteTest, Event__disabled_always_or_for_success_only) {
  append(entry(kPutsAndGets | kEntryEventCommDisable | kEntryEventCtComm));
  complete_put();
  Arrival failed = matched(put_header(8));
  complete(failed, NiFail::kSegv);
  EXPECT_THAT(kinds(), IsEmpty());
  EXPECT_EQ(successes(), 1u);
  EXPECT_EQ(failures(), 1u);
}

TEST_F(CompleteTest, Event__of_success_disabled_still_tells_of_failure) {
  append(entry(kPutsAndGets | kEntryEventSuccessDisable));
  complete_put();
  EXPECT_THAT(kinds(), IsEmpty());
  Arrival failed = matched(put_header(8));
  complete(failed, NiFail::kSegv);
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kSegv);
}

TEST_F(CompleteTest, Use_once__Unlinking_to_Gone_tells_AUTO_UNLINK_behind_the_communication) {
  EntryRequest request = entry(kPutsAndGets | kEntryUseOnce);
  request.user_ptr = &owner;
  const Handle handle = append(std::move(request));
  Arrival arrival = matched(put_header(8));
  EXPECT_EQ(state(handle), EntryState::kUnlinking);
  complete(arrival);
  EXPECT_EQ(next_event().type, EventKind::kPut);
  const Event event = next_event();
  EXPECT_EQ(event.type, EventKind::kAutoUnlink);
  EXPECT_EQ(event.user_ptr, &owner);
  EXPECT_EQ(event.pt_index, kPt);
  EXPECT_EQ(state(handle), EntryState::kGone);
  EXPECT_EQ(ni.entries.find(handle), nullptr);
}

TEST_F(CompleteTest, Unlinking__waits_for_the_last_of_several_messages) {
  EntryRequest request = entry(kPutsAndGets | kEntryManageLocal);
  request.segment.describe(memory.data(), 16);
  request.min_free = 1;
  const Handle handle = append(std::move(request));
  Arrival first = matched(put_header(8));
  Arrival second = matched(put_header(8));
  ASSERT_EQ(state(handle), EntryState::kUnlinking);
  complete(second);
  EXPECT_EQ(state(handle), EntryState::kUnlinking);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPut));
  complete(first);
  EXPECT_EQ(state(handle), EntryState::kGone);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPut, EventKind::kAutoUnlink));
}

TEST_F(CompleteTest, AUTO_UNLINK__can_be_disabled) {
  const Handle handle = append(entry(kPutsAndGets | kEntryUseOnce | kEntryEventUnlinkDisable));
  complete_put();
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPut));
  EXPECT_EQ(state(handle), EntryState::kGone);
}

TEST_F(CompleteTest, Overflow_entry__Unlinked_to_Gone_tells_AUTO_FREE_when_its_last_header_is_taken) {
  EntryRequest request = entry(kPutsAndGets | kEntryUseOnce, ListKind::kOverflow);
  request.user_ptr = &owner;
  const Handle handle = append(std::move(request));
  Arrival arrival = matched(put_header(8));
  UnexpectedHeader* header = arrival.unexpected;
  complete(arrival);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPut, EventKind::kAutoUnlink));
  EXPECT_EQ(state(handle), EntryState::kUnlinked);
  claim(*header);
  const Event overflow = next_event();
  EXPECT_EQ(overflow.type, EventKind::kPutOverflow);
  EXPECT_EQ(overflow.user_ptr, &taker);
  EXPECT_EQ(overflow.start, memory.data());
  const Event free = next_event();
  EXPECT_EQ(free.type, EventKind::kAutoFree);
  EXPECT_EQ(free.user_ptr, &owner);
  EXPECT_EQ(state(handle), EntryState::kGone);
  EXPECT_EQ(ni.unexpected_count, 0u);
}

TEST_F(CompleteTest, Overflow_entry__AUTO_FREE_waits_for_every_header) {
  EntryRequest request = entry(kPutsAndGets | kEntryManageLocal, ListKind::kOverflow);
  request.segment.describe(memory.data(), 16);
  request.min_free = 1;
  append(std::move(request));
  complete_put();
  complete_put();
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPut, EventKind::kPut, EventKind::kAutoUnlink));
  auto take_first = [this] { claim(static_cast<UnexpectedHeader&>(*portal.unexpected.first())); };
  take_first();
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPutOverflow));
  take_first();
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPutOverflow, EventKind::kAutoFree));
}

TEST_F(CompleteTest, Overflow_entry__AUTO_FREE_is_disabled_with_unlink_events_or_without_headers) {
  append(entry(kPutsAndGets | kEntryUseOnce | kEntryEventUnlinkDisable, ListKind::kOverflow));
  Arrival arrival = matched(put_header(8));
  UnexpectedHeader* header = arrival.unexpected;
  complete(arrival);
  claim(*header);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPut, EventKind::kPutOverflow));
  append(entry(kPutsAndGets | kEntryUseOnce | kEntryUnexpectedHdrDisable, ListKind::kOverflow));
  complete_put();
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPut, EventKind::kAutoUnlink));
}

TEST_F(CompleteTest, Header_taken_early__is_told_when_its_message_is_complete) {
  append(entry(kPutsAndGets | kEntryUseOnce, ListKind::kOverflow));
  Arrival arrival = matched(put_header(8));
  append_taker(kEntryEventCtOverflow | kEntryEventCtBytes);
  EXPECT_THAT(kinds(), IsEmpty());
  EXPECT_EQ(ni.unexpected_count, 1u) << "claimed ones count";
  complete(arrival);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPut, EventKind::kAutoUnlink, EventKind::kPutOverflow,
                                   EventKind::kAutoUnlink, EventKind::kAutoFree));
  EXPECT_EQ(successes(), 8u);
  EXPECT_EQ(ni.unexpected_count, 0u);
  EXPECT_EQ(arrival.unexpected, nullptr);
}

TEST_F(CompleteTest, Header_taken_early__tells_how_the_message_ended) {
  append(entry(kPutsAndGets, ListKind::kOverflow));
  Arrival arrival = matched(put_header(8));
  append_taker(kEntryEventCtOverflow | kEntryEventSuccessDisable);
  arrival.mlength = 3;
  complete(arrival, NiFail::kUndeliverable);
  EXPECT_EQ(next_event().type, EventKind::kPut);
  const Event overflow = next_event();
  EXPECT_EQ(overflow.type, EventKind::kPutOverflow);
  EXPECT_EQ(overflow.ni_fail_type, NiFail::kUndeliverable);
  EXPECT_EQ(overflow.mlength, 3u);
  EXPECT_EQ(failures(), 1u);
}

TEST_F(CompleteTest, Header_taken_late__tells_how_the_message_ended) {
  append(entry(kPutsAndGets, ListKind::kOverflow));
  Arrival arrival = matched(put_header(8));
  UnexpectedHeader* header = arrival.unexpected;
  arrival.mlength = 3;
  complete(arrival, NiFail::kSegv);
  next_event();
  EXPECT_TRUE(header->complete);
  claim(*header);
  const Event overflow = next_event();
  EXPECT_EQ(overflow.ni_fail_type, NiFail::kSegv);
  EXPECT_EQ(overflow.mlength, 3u);
}

TEST_F(CompleteTest, Overflow_event__kinds_and_lists) {
  append(entry(kPutsAndGets, ListKind::kOverflow));
  constexpr auto kSum = static_cast<std::uint8_t>(AtomicOperation::kSum);
  constexpr auto kInt32 = static_cast<std::uint8_t>(AtomicType::kInt32);
  for (const PacketHeader& header :
       {put_header(4), get_header(4, 1), atomic_header(PacketType::kAtomic, kSum, kInt32, 4),
        atomic_header(PacketType::kFetchAtomic, kSum, kInt32, 4)}) {
    Arrival arrival = matched(header);
    claim(*arrival.unexpected);
    complete(arrival);
    const Event communication = next_event();
    EXPECT_EQ(communication.ptl_list, ListKind::kOverflow);
    EXPECT_EQ(next_event().type, overflow_kind(communication.type));
  }
}

TEST_F(CompleteTest, Overflow_event__can_be_disabled_by_the_taker) {
  append(entry(kPutsAndGets | kEntryEventCommDisable, ListKind::kOverflow));
  for (const std::uint32_t options : {kEntryEventOverDisable, kEntryEventSuccessDisable}) {
    Arrival arrival = matched(put_header(8));
    append_taker(options | kEntryEventUnlinkDisable);
    complete(arrival);
    EXPECT_THAT(kinds(), IsEmpty());
  }
  EXPECT_EQ(successes(), 0u) << "nor does it count unless it asks for it";
}

TEST_F(CompleteTest, AUTO_UNLINK_of_the_taker__can_be_disabled) {
  append(entry(kPutsAndGets | kEntryEventCommDisable, ListKind::kOverflow));
  Arrival arrival = matched(put_header(8));
  append_taker(kEntryEventUnlinkDisable);
  complete(arrival);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPutOverflow));
}

TEST_F(CompleteTest, Advance__of_an_entry_that_is_linked_changes_nothing) {
  const Handle handle = append(entry());
  advance_unlink(core, ni, *ni.entries.find(handle), kPt);
  EXPECT_EQ(state(handle), EntryState::kLinked);
}

TEST_F(CompleteTest, Completion__fires_what_waits_for_the_count) {
  append(entry(kPutsAndGets | kEntryEventCtComm));
  arm_operation(core, *ni.cts.find(ct), descriptor(PacketType::kPut, 0), {ct, 1});
  complete_put();
  EXPECT_EQ(core.fired.size(), 1u);
}

TEST_F(CompleteTest, Counts__of_what_reads_may_go_elsewhere) {
  const Handle reads_ct = make_ct(ni);
  EntryRequest request = entry(kPutsAndGets | kEntryEventCtComm);
  request.ct_handle = ct;
  request.counts_reads_apart = true;
  request.read_ct_handle = reads_ct;
  append(std::move(request));
  complete_put();
  EXPECT_EQ(successes(), 1u);
  Arrival arrival = matched(get_header(8, 1));
  complete(arrival);
  EXPECT_EQ(successes(), 1u);
  EXPECT_EQ(ni.cts.find(reads_ct)->success(), 1u);
}

TEST_F(CompleteTest, Counts__of_what_fetches_and_changes_may_go_to_both) {
  const Handle reads_ct = make_ct(ni);
  EntryRequest request = entry(kPutsAndGets | kEntryEventCtComm);
  request.ct_handle = ct;
  request.counts_reads_apart = true;
  request.read_ct_handle = reads_ct;
  request.counts_changes = true;
  append(std::move(request));
  Arrival get = matched(get_header(8, 1));
  complete(get);
  EXPECT_EQ(successes(), 0u);
  PacketHeader header = get_header(8, 2);
  header.type = PacketType::kFetchAtomic;
  header.atomic_type = static_cast<std::uint8_t>(AtomicType::kUint64);
  header.atomic_operation = static_cast<std::uint8_t>(AtomicOperation::kSum);
  Arrival sum = matched(header);
  complete(sum);
  EXPECT_EQ(successes(), 1u);
  header.atomic_operation = static_cast<std::uint8_t>(AtomicOperation::kAtomicRead);
  Arrival read = matched(header);
  complete(read);
  EXPECT_EQ(successes(), 1u);
  EXPECT_EQ(ni.cts.find(reads_ct)->success(), 3u);
}

TEST_F(CompleteTest, Late_answer__waits_until_unexpected_messages_take_less) {
  append_late();
  PacketHeader mark = put_header(0, 7);
  mark.pt_index = kPt + 1;
  receive(mark);
  EXPECT_EQ(next_sent().operation_id, 7u) << "there is memory";
  const std::uint64_t more_than_all = (std::uint64_t{settings.unexpected_mib} + 1) << 20;
  std::byte* taken = ni.message_memory.take(more_than_all);
  mark.operation_id = 8;
  receive(mark);
  EXPECT_TRUE(wire.sent.empty());
  ni.is_awaited = true;
  give_late_answers(core, ni);
  EXPECT_EQ(next_sent().operation_id, 8u) << "somebody waits for what comes behind it";
  mark.operation_id = 9;
  receive(mark);
  EXPECT_EQ(next_sent().operation_id, 9u);
  ni.message_memory.give(taken, more_than_all);
  mark.operation_id = 10;
  receive(mark);
  EXPECT_EQ(next_sent().operation_id, 10u);
  EXPECT_FALSE(ni.is_awaited) << "there is memory again";
  taken = ni.message_memory.take(more_than_all);
  mark.operation_id = 11;
  receive(mark);
  EXPECT_TRUE(wire.sent.empty());
  ni.message_memory.give(taken, more_than_all);
  give_late_answers(core, ni);
  EXPECT_EQ(next_sent().operation_id, 11u);
}

TEST_F(CompleteTest, Late_answer__is_given_when_a_receive_waits_in_vain) {
  append_late();
  std::byte* taken = ni.message_memory.take((std::uint64_t{settings.unexpected_mib} + 1) << 20);
  ASSERT_NE(taken, nullptr);
  EXPECT_FALSE(answer_if_awaited(core, ni)) << "none is due";
  PacketHeader mark = put_header(0, 7);
  mark.pt_index = kPt + 1;
  receive(mark);
  EXPECT_FALSE(answer_if_awaited(core, ni)) << "nobody waits";
  append(entry(kPutsAndGets | kEntryUseOnce));
  EXPECT_FALSE(answer_if_awaited(core, ni)) << "whoever waits at an entry that keeps no messages waits for others";
  EntryRequest keeper = entry(kEntryOpPut | kEntryOwnMemory);
  keeper.list = ListKind::kOverflow;
  append(std::move(keeper));
  EXPECT_TRUE(wire.sent.empty());
  EXPECT_TRUE(answer_if_awaited(core, ni));
  EXPECT_EQ(next_sent().operation_id, 7u);
  EXPECT_FALSE(answer_if_awaited(core, ni)) << "none is due any more";
  ni.message_memory.give(taken, (std::uint64_t{settings.unexpected_mib} + 1) << 20);
}

}  // namespace
}  // namespace portofu
