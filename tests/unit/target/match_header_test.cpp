// Step 6: which entry a request is for, where in it it goes, and what becomes of the entry. User memory stays as it is.

#include "engine/target/match_header.h"

#include <gtest/gtest.h>

#include "engine/atomic/atomic_unit.h"
#include "engine/target/complete.h"
#include "tests/unit/support/core_fixture.h"

namespace portofu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class MatchHeaderTest : public CoreTest {
 protected:
  ~MatchHeaderTest() override { EXPECT_TRUE(is_untouched(memory.data(), memory.size())); }

  Refusal match(const PacketHeader& header) {
    arrival = Arrival();
    arrival.header = header;
    arrival.initiator = kPeer;
    return match_header(core, ni, peer(), arrival);
  }
  ListEntry& at(Handle handle) { return *ni.entries.find(handle); }

  /// Ends the message that was matched last.
  void complete() { complete_arrival(core, ni, peer(), arrival); }

  Arrival arrival;
};

TEST_F(MatchHeaderTest, Portal_table_entry__outside_the_table_or_not_allocated) {
  for (const std::uint16_t pt_index :
       {std::uint16_t{kPt + 1}, std::uint16_t{255}, std::uint16_t{256}, std::uint16_t{65535}}) {
    PacketHeader header = put_header(8);
    header.pt_index = pt_index;
    EXPECT_EQ(match(header), Refusal::kNoPortal);
  }
}

TEST_F(MatchHeaderTest, Portal_table_entry__disabled) {
  append(entry());
  portal.enabled = false;
  EXPECT_EQ(match(put_header(8)), Refusal::kDisabled);
}

TEST_F(MatchHeaderTest, Nothing__matches) {
  EXPECT_EQ(match(put_header(8)), Refusal::kNoMatch);
  append(entry());
  PacketHeader header = put_header(8);
  header.match_bits = kBits + 1;
  EXPECT_EQ(match(header), Refusal::kNoMatch);
  EXPECT_EQ(portal.in_progress, 0u);
}

TEST_F(MatchHeaderTest, Nothing__matches_with_flow_control) {
  portal.flow_control = true;
  EXPECT_EQ(match(put_header(8)), Refusal::kFlowControl);
  EXPECT_FALSE(portal.enabled);
  EXPECT_EQ(match(put_header(8)), Refusal::kDisabled);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPtDisabled)) << "told once";
}

TEST_F(MatchHeaderTest, Priority_list__comes_first_and_its_first_entry_wins) {
  append(entry(kPutsAndGets, ListKind::kOverflow));
  const Handle first = append(entry());
  append(entry());
  EXPECT_EQ(match(put_header(8)), Refusal::kNone);
  EXPECT_EQ(arrival.entry, &at(first));
  EXPECT_EQ(arrival.list, ListKind::kPriority);
  EXPECT_EQ(arrival.unexpected, nullptr);
}

TEST_F(MatchHeaderTest, Overflow_list__is_next_and_keeps_the_header) {
  const Handle handle = append(entry(kPutsAndGets, ListKind::kOverflow));
  EXPECT_EQ(match(put_header(8)), Refusal::kNone);
  EXPECT_EQ(arrival.entry, &at(handle));
  EXPECT_EQ(arrival.list, ListKind::kOverflow);
  ASSERT_NE(arrival.unexpected, nullptr);
  EXPECT_EQ(portal.unexpected.first(), arrival.unexpected);
  EXPECT_EQ(arrival.unexpected->entry, arrival.entry);
  EXPECT_FALSE(arrival.unexpected->complete);
  EXPECT_EQ(arrival.unexpected->type, EventKind::kPutOverflow);
  EXPECT_EQ(arrival.unexpected->rlength, 8u);
  EXPECT_EQ(ni.unexpected_count, 1u);
  EXPECT_EQ(at(handle).unexpected_count, 1u);
}

TEST_F(MatchHeaderTest, Overflow_entry__that_disables_headers_keeps_none) {
  const Handle handle = append(entry(kPutsAndGets | kEntryUnexpectedHdrDisable, ListKind::kOverflow));
  EXPECT_EQ(match(put_header(8)), Refusal::kNone);
  EXPECT_EQ(arrival.unexpected, nullptr);
  EXPECT_TRUE(portal.unexpected.empty());
  EXPECT_EQ(at(handle).unexpected_count, 0u);
}

TEST_F(MatchHeaderTest, Initiator__has_to_fit) {
  EntryRequest request = entry();
  request.criteria = {kBits, 0, kOther, false, false};
  append(std::move(request));
  EXPECT_EQ(match(put_header(8)), Refusal::kNoMatch);
  EntryRequest fitting = entry();
  fitting.criteria = {kBits, 0, kPeer, false, false};
  append(std::move(fitting));
  EXPECT_EQ(match(put_header(8)), Refusal::kNone);
}

TEST_F(MatchHeaderTest, No_truncate__passes_over_an_entry_that_is_too_small) {
  EntryRequest small = entry(kPutsAndGets | kEntryNoTruncate);
  small.segment.describe(memory.data(), 7);
  append(std::move(small));
  const Handle large = append(entry());
  EXPECT_EQ(match(put_header(8)), Refusal::kNone);
  EXPECT_EQ(arrival.entry, &at(large));
}

TEST_F(MatchHeaderTest, No_truncate__looks_at_the_offset_and_lets_an_empty_message_fit) {
  EntryRequest request = entry(kPutsAndGets | kEntryNoTruncate);
  request.segment.describe(memory.data(), 8);
  append(std::move(request));
  EXPECT_EQ(match(put_header(8)), Refusal::kNone);
  PacketHeader beyond = put_header(8);
  beyond.remote_offset = 1;
  EXPECT_EQ(match(beyond), Refusal::kNoMatch);
  beyond.remote_offset = UINT64_MAX;
  EXPECT_EQ(match(beyond), Refusal::kNoMatch);
  PacketHeader empty = put_header(0);
  empty.remote_offset = 100;
  EXPECT_EQ(match(empty), Refusal::kNone);
  EXPECT_EQ(arrival.mlength, 0u);
}

TEST_F(MatchHeaderTest, Length__is_what_fits_behind_the_offset) {
  EntryRequest request = entry();
  request.segment.describe(memory.data(), 100);
  append(std::move(request));
  const auto mlength_at = [this](std::uint64_t offset, std::uint64_t length) {
    PacketHeader header = put_header(length);
    header.remote_offset = offset;
    EXPECT_EQ(match(header), Refusal::kNone);
    EXPECT_EQ(arrival.offset, offset);
    return arrival.mlength;
  };
  EXPECT_EQ(mlength_at(0, 100), 100u);
  EXPECT_EQ(mlength_at(0, 101), 100u);
  EXPECT_EQ(mlength_at(99, 100), 1u);
  EXPECT_EQ(mlength_at(100, 100), 0u);
  EXPECT_EQ(mlength_at(101, 100), 0u);
  EXPECT_EQ(mlength_at(UINT64_MAX, 100), 0u);
}

TEST_F(MatchHeaderTest, Length__of_an_atomic_is_of_whole_items) {
  EntryRequest request = entry();
  request.segment.describe(memory.data(), 30);
  append(std::move(request));
  constexpr auto kSum = static_cast<std::uint8_t>(AtomicOperation::kSum);
  constexpr auto kDouble = static_cast<std::uint8_t>(AtomicType::kDouble);
  EXPECT_EQ(match(atomic_header(PacketType::kAtomic, kSum, kDouble, 32)), Refusal::kNone);
  EXPECT_EQ(arrival.mlength, 24u);
}

TEST_F(MatchHeaderTest, Refused_by_permission_or_operation__leaves_the_entry_as_it_is) {
  EntryRequest request = entry(kEntryOpPut | kEntryUseOnce);
  request.uid = kPeerUid;
  const Handle handle = append(std::move(request));
  PacketHeader stranger = put_header(8);
  stranger.uid = kPeerUid + 1;
  EXPECT_EQ(match(stranger), Refusal::kPermission);
  EXPECT_EQ(match(get_header(8, 7)), Refusal::kOperation);
  EXPECT_EQ(at(handle).state, EntryState::kLinked);
  EXPECT_EQ(at(handle).pending, 0u);
  EXPECT_TRUE(portal.has_entries());
  EXPECT_EQ(match(put_header(8)), Refusal::kNone);
}

TEST_F(MatchHeaderTest, Use_once__leaves_its_list_with_its_message) {
  for (const ListKind list : {ListKind::kPriority, ListKind::kOverflow}) {
    const Handle handle = append(entry(kPutsAndGets | kEntryUseOnce, list));
    EXPECT_TRUE(portal.has_entries());
    EXPECT_EQ(match(put_header(8)), Refusal::kNone);
    EXPECT_EQ(at(handle).state, EntryState::kUnlinking);
    EXPECT_EQ(at(handle).pending, 1u);
    EXPECT_FALSE(portal.has_entries());
    EXPECT_EQ(portal.in_progress, 1u);
    EXPECT_EQ(match(put_header(8)), Refusal::kNoMatch);
    arrival = Arrival();
    arrival.header = put_header(8);
    arrival.entry = &at(handle);
    arrival.list = list;
    complete();
  }
}

TEST_F(MatchHeaderTest, Managed_locally__messages_lie_behind_each_other_whatever_offset_they_want) {
  EntryRequest request = entry(kPutsAndGets | kEntryManageLocal);
  request.segment.describe(memory.data(), 100);
  const Handle handle = append(std::move(request));
  PacketHeader header = put_header(40);
  header.remote_offset = 77;
  EXPECT_EQ(match(header), Refusal::kNone);
  EXPECT_EQ(arrival.offset, 0u);
  EXPECT_EQ(match(header), Refusal::kNone);
  EXPECT_EQ(arrival.offset, 40u);
  EXPECT_EQ(match(header), Refusal::kNone);
  EXPECT_EQ(arrival.offset, 80u);
  EXPECT_EQ(arrival.mlength, 20u);
  EXPECT_EQ(at(handle).local_offset, 100u);
  EXPECT_EQ(at(handle).state, EntryState::kLinked) << "min_free 0: never by itself";
  EXPECT_EQ(match(header), Refusal::kNone);
  EXPECT_EQ(arrival.mlength, 0u);
}

TEST_F(MatchHeaderTest, Managed_locally__unlinks_itself_when_less_than_min_free_is_left) {
  EntryRequest request = entry(kPutsAndGets | kEntryManageLocal);
  request.segment.describe(memory.data(), 100);
  request.min_free = 30;
  const Handle handle = append(std::move(request));
  match(put_header(70));
  EXPECT_EQ(at(handle).state, EntryState::kLinked) << "exactly min_free is left";
  match(put_header(1));
  EXPECT_EQ(at(handle).state, EntryState::kUnlinking);
  EXPECT_EQ(at(handle).pending, 2u);
  EXPECT_FALSE(portal.has_entries());
}

TEST_F(MatchHeaderTest, Unexpected_headers__no_more_than_the_interface_grants) {
  ni.limits.max_unexpected_headers = 1;
  append(entry(kPutsAndGets, ListKind::kOverflow));
  EXPECT_EQ(match(put_header(8)), Refusal::kNone);
  EXPECT_EQ(match(put_header(8)), Refusal::kNoMatch);
  EXPECT_EQ(ni.unexpected_count, 1u);
  EXPECT_EQ(portal.in_progress, 1u);
}

TEST_F(MatchHeaderTest, Unexpected_headers__no_more_than_granted_disable_an_entry_with_flow_control) {
  portal.flow_control = true;
  ni.limits.max_unexpected_headers = 0;
  append(entry(kPutsAndGets, ListKind::kOverflow));
  EXPECT_EQ(match(put_header(8)), Refusal::kFlowControl);
  EXPECT_FALSE(portal.enabled);
  EXPECT_EQ(ni.unexpected_count, 0u);
}

TEST_F(MatchHeaderTest, Unexpected_headers__an_entry_that_keeps_none_needs_none) {
  ni.limits.max_unexpected_headers = 0;
  append(entry(kPutsAndGets | kEntryUnexpectedHdrDisable, ListKind::kOverflow));
  EXPECT_EQ(match(put_header(8)), Refusal::kNone);
}

class PromiseTest : public MatchHeaderTest {
 protected:
  static constexpr std::uint64_t kRoom = 2;

  PromiseTest() {
    portal.eq_handle = make_eq(ni, kRoom);
    portal.flow_control = true;
    queue().reserve_on_duty();
  }
  EventQueue& queue() { return *ni.eqs.find(portal.eq_handle); }
  /// Two messages are under way to an entry that only tells of AUTO_UNLINK; `arrival` is the one that uses it up.
  /// @return the other one, which came first
  Arrival use_up_by_two() {
    EntryRequest request = entry(kPutsAndGets | kEntryManageLocal | kEntryEventCommDisable);
    request.segment.describe(memory.data(), 100);
    request.min_free = 30;
    append(std::move(request));
    EXPECT_EQ(match(put_header(70)), Refusal::kNone);
    const Arrival first = arrival;
    EXPECT_EQ(match(put_header(1)), Refusal::kNone);
    return first;
  }
};

TEST_F(PromiseTest, Room__is_promised_to_messages_under_way_and_given_back_by_their_events) {
  append(entry());
  EXPECT_EQ(match(put_header(8)), Refusal::kNone);
  EXPECT_EQ(arrival.promised_events, 1u);
  EXPECT_FALSE(queue().has_room_on_duty(kRoom));
  complete();
  EXPECT_TRUE(queue().has_room_on_duty(kRoom - 1));
  kinds(portal.eq_handle);
  EXPECT_TRUE(queue().has_room_on_duty(kRoom)) << "nothing is promised any more";
}

TEST_F(PromiseTest, Room__that_is_promised_to_others_disables_the_entry) {
  append(entry());
  EXPECT_EQ(match(put_header(8)), Refusal::kNone);
  EXPECT_EQ(match(put_header(8)), Refusal::kNone);
  EXPECT_EQ(match(put_header(8)), Refusal::kFlowControl);
  EXPECT_FALSE(portal.enabled);
  EXPECT_EQ(portal.in_progress, 2u);
  EXPECT_THAT(kinds(portal.eq_handle), ElementsAre(EventKind::kPtDisabled));
}

// 2.8: an append may cause a queue to overflow. 3.13.5: what a message raises may not.
TEST_F(PromiseTest, Room__that_was_promised_is_not_lost_to_appends_and_searches) {
  append(entry(kPutsAndGets | kEntryUseOnce));
  EXPECT_EQ(match(put_header(8)), Refusal::kNone);
  EXPECT_FALSE(queue().has_room_on_duty(1)) << "AUTO_UNLINK needs a place, too";
  Handle handle = 0;
  EXPECT_EQ(append_entry(core, ni, entry(kPutsAndGets), &handle), Status::kOk);
  EXPECT_FALSE(search_entries(core, ni, entry(kPutsAndGets), SearchOperation::kOnly));
  complete();
  EXPECT_THAT(kinds(portal.eq_handle),
              ElementsAre(EventKind::kLink, EventKind::kSearch, EventKind::kPut, EventKind::kAutoUnlink));
  EXPECT_EQ(counted(Counter::kEventsDropped), 0u);
}

// The message that uses the entry up is complete first, so the other one raises AUTO_UNLINK.
TEST_F(PromiseTest, Room__for_AUTO_UNLINK_is_there_whichever_message_raises_it) {
  Arrival other = use_up_by_two();
  complete();
  for (std::uint64_t i = 0; i < kRoom; ++i) post_new_event(core, ni, portal.eq_handle, [](Event&) {});
  complete_arrival(core, ni, peer(), other);
  EXPECT_THAT(kinds(portal.eq_handle), ElementsAre(EventKind::kError, EventKind::kError, EventKind::kAutoUnlink));
  EXPECT_EQ(counted(Counter::kEventsDropped), 0u);
}

// 2.8: flow control is invoked if the queue is full "and the message would generate a full event".
TEST_F(PromiseTest, Room__for_AUTO_UNLINK_stays_promised_until_it_is_raised) {
  const Arrival first = use_up_by_two();
  complete();
  EXPECT_TRUE(queue().has_room_on_duty(kRoom - 1));
  EXPECT_FALSE(queue().has_room_on_duty(kRoom)) << "the first message raises AUTO_UNLINK";
  arrival = first;
  complete();
  EXPECT_THAT(kinds(portal.eq_handle), ElementsAre(EventKind::kAutoUnlink));
  EXPECT_TRUE(queue().has_room_on_duty(kRoom)) << "nothing is promised any more";
}

// The last message that is under way to an entry may be one whose header it has claimed when it was appended.
TEST_F(PromiseTest, Room__for_AUTO_UNLINK_is_there_for_the_message_of_a_claimed_header) {
  append(entry(kPutsAndGets | kEntryEventCommDisable, ListKind::kOverflow));
  EXPECT_EQ(match(put_header(70)), Refusal::kNone);
  Arrival claimed = arrival;
  EntryRequest request = entry(kPutsAndGets | kEntryManageLocal | kEntryEventCommDisable | kEntryEventOverDisable);
  request.segment.describe(memory.data(), 100);
  request.min_free = 30;
  append(std::move(request));
  EXPECT_EQ(match(put_header(80)), Refusal::kNone);
  complete();
  EXPECT_FALSE(queue().has_room_on_duty(kRoom));
  for (std::uint64_t i = 0; i < kRoom; ++i) post_new_event(core, ni, portal.eq_handle, [](Event&) {});
  complete_arrival(core, ni, peer(), claimed);
  EXPECT_THAT(kinds(portal.eq_handle), ElementsAre(EventKind::kError, EventKind::kError, EventKind::kAutoUnlink));
  EXPECT_EQ(counted(Counter::kEventsDropped), 0u);
  EXPECT_TRUE(queue().has_room_on_duty(kRoom)) << "nothing is promised any more";
}

TEST_F(PromiseTest, Room__for_AUTO_UNLINK_is_needed_too) {
  append(entry(kPutsAndGets | kEntryUseOnce));
  EXPECT_EQ(match(put_header(8)), Refusal::kNone);
  EXPECT_FALSE(queue().has_room_on_duty(1));
  complete();
  EXPECT_THAT(kinds(portal.eq_handle), ElementsAre(EventKind::kPut, EventKind::kAutoUnlink));
  post_new_event(core, ni, portal.eq_handle, [](Event&) {});
  const Handle handle = append(entry(kPutsAndGets | kEntryUseOnce));
  EXPECT_EQ(match(put_header(8)), Refusal::kFlowControl) << "one place is not enough";
  EXPECT_EQ(at(handle).state, EntryState::kLinked);
}

TEST_F(PromiseTest, Room__is_not_needed_for_events_that_are_disabled) {
  post_new_event(core, ni, portal.eq_handle, [](Event&) {});
  post_new_event(core, ni, portal.eq_handle, [](Event&) {});
  append(entry(kPutsAndGets | kEntryEventCommDisable));
  EXPECT_EQ(match(put_header(8)), Refusal::kNone);
  EXPECT_EQ(arrival.promised_events, 0u);
  complete();
  EXPECT_EQ(counted(Counter::kEventsDropped), 0u);
}

TEST_F(PromiseTest, Room__is_needed_for_the_failure_of_what_succeeds_in_silence) {
  append(entry(kPutsAndGets | kEntryEventSuccessDisable));
  EXPECT_EQ(match(put_header(8)), Refusal::kNone);
  EXPECT_EQ(arrival.promised_events, 1u);
  arrival.fail = NiFail::kSegv;
  complete();
  post_new_event(core, ni, portal.eq_handle, [](Event&) {});
  EXPECT_EQ(match(put_header(8)), Refusal::kFlowControl);
  EXPECT_EQ(match(put_header(8)), Refusal::kDisabled);
  EXPECT_THAT(kinds(portal.eq_handle), ElementsAre(EventKind::kPut, EventKind::kError, EventKind::kPtDisabled));
}

TEST_F(PromiseTest, Room__is_not_needed_for_what_succeeds_in_silence_and_cannot_fail) {
  for (std::uint64_t i = 0; i < kRoom; ++i) post_new_event(core, ni, portal.eq_handle, [](Event&) {});
  append(entry(kPutsAndGets | kEntryEventSuccessDisable));
  EXPECT_EQ(match(put_header(0)), Refusal::kNone);
  complete();
  EXPECT_EQ(counted(Counter::kEventsDropped), 0u);
  EXPECT_EQ(match(get_header(0, 7)), Refusal::kFlowControl) << "its reply may not arrive";
}

TEST_F(PromiseTest, Room__without_flow_control_is_nobodys_business) {
  portal.flow_control = false;
  append(entry());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(match(put_header(8)), Refusal::kNone);
    EXPECT_EQ(arrival.promised_events, 0u);
    complete();
  }
  EXPECT_EQ(counted(Counter::kEventsDropped), 1u);
}

TEST_F(PromiseTest, Queue__freed_while_a_message_is_under_way_is_not_missed) {
  append(entry());
  EXPECT_EQ(match(put_header(8)), Refusal::kNone);
  queue().close();
  ni.eqs.free(portal.eq_handle);
  complete();
  EXPECT_EQ(portal.in_progress, 0u);
}

TEST_F(MatchHeaderTest, Interface_without_matching__takes_the_first_entry_whatever_comes) {
  Interface& other = open_interface(kNonMatchingPhysical);
  make_portal(other, kPt, 0);
  EntryRequest request = entry(kPutsAndGets | kEntryEventLinkDisable);
  request.criteria = kAnyMessage;
  Handle handle = 0;
  ASSERT_EQ(append_entry(core, other, std::move(request), &handle), Status::kOk);
  arrival.header = put_header(8);
  arrival.header.match_bits = 0xdead;
  EXPECT_EQ(match_header(core, other, peer(), arrival), Refusal::kNone);
  EXPECT_EQ(arrival.entry, other.entries.find(handle));
}

}  // namespace
}  // namespace portofu
