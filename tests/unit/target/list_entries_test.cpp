// Append, unlink and search: each is one step, atomic against the messages that arrive.

#include "engine/target/list_entries.h"

#include <gtest/gtest.h>

#include "engine/atomic/atomic_unit.h"
#include "engine/run/dispatch.h"
#include "tests/unit/support/core_fixture.h"

namespace portofu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ListEntriesTest : public CoreTest {
 protected:
  /// Appends without hiding the LINK event. @return the outcome
  Status append_openly(EntryRequest request, Handle* handle) {
    return append_entry(core, ni, std::move(request), handle);
  }
  void append_overflow(std::uint32_t options = kPutsAndGets | kEntryEventCommDisable) {
    append(entry(options, ListKind::kOverflow));
  }
  /// A message that goes into the overflow list; its event there is hidden.
  void receive_unexpected(std::uint64_t length = 8, std::uint64_t hdr_data = 0) {
    PacketHeader header = put_header(length);
    header.hdr_data = hdr_data;
    receive(header);
  }
  std::size_t entry_count() const { return portal.priority.size() + portal.overflow.size(); }
  void search(SearchOperation operation, std::uint32_t options, std::uint64_t match_bits = kBits) {
    EntryRequest request = entry(options);
    request.criteria.match_bits = match_bits;
    request.user_ptr = &caller;
    search_entries(core, ni, request, operation);
  }

  int caller = 0;
};

TEST_F(ListEntriesTest, Append__links_the_entry_and_says_so) {
  EntryRequest request = entry();
  request.user_ptr = &caller;
  Handle handle = 0;
  EXPECT_EQ(append_openly(std::move(request), &handle), Status::kOk);
  const Event event = next_event();
  EXPECT_EQ(event.type, EventKind::kLink);
  EXPECT_EQ(event.user_ptr, &caller);
  EXPECT_EQ(event.pt_index, kPt);
  const ListEntry* linked = ni.entries.find(handle);
  ASSERT_NE(linked, nullptr);
  EXPECT_EQ(linked->state, EntryState::kLinked);
  EXPECT_EQ(linked->handle, handle);
  EXPECT_EQ(entry_count(), 1u);
}

TEST_F(ListEntriesTest, Append__can_be_silent) {
  Handle handle = 0;
  EXPECT_EQ(append_openly(entry(kPutsAndGets | kEntryEventLinkDisable), &handle), Status::kOk);
  EXPECT_THAT(kinds(), IsEmpty());
}

TEST_F(ListEntriesTest, Append__min_free_counts_for_managed_entries_only) {
  EntryRequest request = entry(kPutsAndGets);
  request.min_free = 10;
  EXPECT_EQ(ni.entries.find(append(std::move(request)))->min_free, 0u);
  EntryRequest managed = entry(kPutsAndGets | kEntryManageLocal);
  managed.min_free = 10;
  EXPECT_EQ(ni.entries.find(append(std::move(managed)))->min_free, 10u);
}

TEST_F(ListEntriesTest, Append__is_refused_if_its_list_is_full) {
  ni.limits.max_list_size = 2;
  for (const ListKind list : {ListKind::kPriority, ListKind::kOverflow}) {
    Handle handle = 0;
    append(entry(kPutsAndGets, list));
    append(entry(kPutsAndGets, list));
    EXPECT_EQ(append_openly(entry(kPutsAndGets, list), &handle), Status::kListTooLong);
  }
  EXPECT_EQ(entry_count(), 4u);
  EXPECT_EQ(ni.entries.live_count(), 4u);
}

TEST_F(ListEntriesTest, Append__is_refused_if_there_is_no_entry_left) {
  ni.entries.set_limit(2);
  Handle handle = 0;
  append(entry());
  append(entry(kPutsAndGets, ListKind::kOverflow));
  EXPECT_EQ(append_openly(entry(), &handle), Status::kNoSpace);
  EXPECT_EQ(entry_count(), 2u);
}

TEST_F(ListEntriesTest, Append__of_what_headers_use_up_needs_no_place_in_a_list) {
  ni.limits.max_list_size = 1;
  append_overflow();
  receive_unexpected(8, 1);
  for (std::uint64_t i = 2; i < 5; ++i) receive_unexpected(16, i);
  EntryRequest other = entry(kPutsAndGets | kEntryEventLinkDisable);
  other.criteria.match_bits = kBits + 1;
  append(std::move(other));
  Handle handle = 0;
  EXPECT_EQ(append_openly(entry(kPutsAndGets), &handle), Status::kListTooLong);
  EXPECT_EQ(portal.unexpected.size(), 4u) << "and none of them is taken";
  EXPECT_EQ(append_openly(entry(kPutsAndGets | kEntryUseOnce), &handle), Status::kOk);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPutOverflow, EventKind::kAutoUnlink));
  for (const std::uint64_t length : {49, 48, 47}) {  // Three messages of 16 bytes are there.
    EntryRequest request = entry(kPutsAndGets | kEntryManageLocal | kEntryLocalIncUhRlength);
    request.segment.describe(memory.data(), length);
    request.min_free = 1;
    const bool is_used_up = length <= 48;
    EXPECT_EQ(append_openly(std::move(request), &handle), is_used_up ? Status::kOk : Status::kListTooLong);
    if (!is_used_up) continue;
    EXPECT_THAT(kinds(), ElementsAre(EventKind::kPutOverflow, EventKind::kPutOverflow, EventKind::kPutOverflow,
                                     EventKind::kAutoUnlink));
    break;
  }
  EXPECT_EQ(append_openly(entry(kPutsAndGets | kEntryUseOnce), &handle), Status::kListTooLong) << "it finds no header";
  EXPECT_EQ(ni.entries.live_count(), 2u);
}

TEST_F(ListEntriesTest, Append_use_once__takes_the_first_header_and_is_never_linked) {
  append_overflow();
  receive_unexpected(8, 1);
  receive_unexpected(8, 2);
  EntryRequest request = entry(kPutsAndGets | kEntryUseOnce);
  request.user_ptr = &caller;
  Handle handle = 0;
  EXPECT_EQ(append_openly(std::move(request), &handle), Status::kOk);
  const Event event = next_event();
  EXPECT_EQ(event.type, EventKind::kPutOverflow);
  EXPECT_EQ(event.user_ptr, &caller);
  EXPECT_EQ(event.hdr_data, 1u);
  EXPECT_EQ(event.start, memory.data());
  const Event unlink = next_event();
  EXPECT_EQ(unlink.type, EventKind::kAutoUnlink);
  EXPECT_EQ(unlink.user_ptr, &caller);
  EXPECT_THAT(kinds(), IsEmpty()) << "no LINK";
  EXPECT_EQ(entry_count(), 1u);
  EXPECT_EQ(portal.unexpected.size(), 1u);
  EXPECT_EQ(ni.unexpected_count, 1u);
  EXPECT_EQ(ni.entries.find(handle), nullptr);
  EXPECT_EQ(unlink_entry(core, ni, handle), Status::kInUse) << "3.11.3: it has unlinked itself";
}

TEST_F(ListEntriesTest, Append_persistent__takes_all_headers_and_is_linked_then) {
  append_overflow();
  for (std::uint64_t i = 0; i < 3; ++i) receive_unexpected(8, i);
  Handle handle = 0;
  EXPECT_EQ(append_openly(entry(), &handle), Status::kOk);
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(next_event().hdr_data, i);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kLink));
  EXPECT_TRUE(portal.unexpected.empty());
}

TEST_F(ListEntriesTest, Append__takes_only_what_it_matches) {
  append_overflow();
  receive_unexpected();
  EntryRequest request = entry();
  request.criteria.match_bits = kBits + 1;
  append(std::move(request));
  EXPECT_THAT(kinds(), IsEmpty());
  EXPECT_EQ(portal.unexpected.size(), 1u);
}

TEST_F(ListEntriesTest, Append_to_the_overflow_list__takes_nothing) {
  append_overflow();
  receive_unexpected();
  append_overflow();
  EXPECT_THAT(kinds(), IsEmpty());
  EXPECT_EQ(portal.unexpected.size(), 1u);
}

TEST_F(ListEntriesTest, Append__of_a_header_still_arriving_is_told_when_it_is_complete) {
  append_overflow();
  receive(put_header(2 * kPacketBytes));
  append(entry(kPutsAndGets | kEntryUseOnce));
  EXPECT_TRUE(portal.unexpected.empty());
  EXPECT_THAT(kinds(), IsEmpty());
  append(entry(kPutsAndGets | kEntryUseOnce));  // Finds nothing more, and waits for the next message.
  EXPECT_EQ(entry_count(), 2u);
  receive(data_header(kPacketBytes, kPacketBytes));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPutOverflow, EventKind::kAutoUnlink));
}

TEST_F(ListEntriesTest, Append_persistent__is_in_use_while_a_header_that_it_claimed_is_incomplete) {
  append_overflow();
  receive(put_header(2 * kPacketBytes));
  EntryRequest request = entry();
  request.user_ptr = &caller;
  Handle handle = 0;
  EXPECT_EQ(append_openly(std::move(request), &handle), Status::kOk);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kLink));
  EXPECT_EQ(unlink_entry(core, ni, handle), Status::kInUse);
  receive(data_header(kPacketBytes, kPacketBytes));
  EXPECT_EQ(next_event().user_ptr, &caller);
  EXPECT_EQ(unlink_entry(core, ni, handle), Status::kOk);
}

TEST_F(ListEntriesTest, Append_managed__that_incomplete_headers_fill_tells_AUTO_UNLINK_behind_their_events) {
  append_overflow();
  receive_unexpected(8);
  receive(put_header(2 * kPacketBytes));
  EntryRequest request = entry(kPutsAndGets | kEntryManageLocal | kEntryLocalIncUhRlength);
  request.min_free = kMemoryBytes - 2 * kPacketBytes;
  const Handle handle = append(std::move(request));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPutOverflow));
  EXPECT_EQ(unlink_entry(core, ni, handle), Status::kInUse);
  EXPECT_TRUE(portal.priority.empty());
  receive(data_header(kPacketBytes, kPacketBytes));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPutOverflow, EventKind::kAutoUnlink));
  EXPECT_EQ(unlink_entry(core, ni, handle), Status::kInUse) << "kGone";
}

TEST_F(ListEntriesTest, Append_managed__that_a_later_message_fills_tells_AUTO_UNLINK_behind_its_overflow_events) {
  append_overflow();
  receive(put_header(2 * kPacketBytes));
  EntryRequest request = entry(kPutsAndGets | kEntryManageLocal);
  request.min_free = kMemoryBytes;
  append(std::move(request));
  receive(put_header(8), kOther);
  EXPECT_TRUE(portal.priority.empty());
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPut)) << "AUTO_UNLINK waits for the other message";
  receive(data_header(kPacketBytes, kPacketBytes));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPutOverflow, EventKind::kAutoUnlink));
}

TEST_F(ListEntriesTest, Append__of_a_header_whose_sender_dies_is_told_so) {
  append_overflow();
  receive(put_header(2 * kPacketBytes));
  append(entry(kPutsAndGets | kEntryUseOnce));
  close_source(core, &peer());
  const Event event = next_event();
  EXPECT_EQ(event.type, EventKind::kPutOverflow);
  EXPECT_EQ(event.ni_fail_type, NiFail::kUndeliverable);
  EXPECT_EQ(event.mlength, kPacketBytes);
  EXPECT_EQ(next_event().type, EventKind::kAutoUnlink);
}

TEST_F(ListEntriesTest, Append_managed__moves_on_by_the_headers_that_it_takes_if_asked_to) {
  append_overflow();
  receive_unexpected(8);
  receive_unexpected(16);
  const Handle plain = append(entry(kPutsAndGets | kEntryManageLocal));
  EXPECT_EQ(ni.entries.find(plain)->local_offset, 0u);
  ASSERT_EQ(unlink_entry(core, ni, plain), Status::kOk);
  receive_unexpected(8);
  receive_unexpected(16);
  const Handle moved = append(entry(kPutsAndGets | kEntryManageLocal | kEntryLocalIncUhRlength));
  EXPECT_EQ(ni.entries.find(moved)->local_offset, 24u);
}

TEST_F(ListEntriesTest, Append_managed__that_headers_fill_is_not_linked_and_leaves_the_rest) {
  append_overflow();
  for (int i = 0; i < 4; ++i) receive_unexpected(8);
  EntryRequest request = entry(kPutsAndGets | kEntryManageLocal | kEntryLocalIncUhRlength);
  request.segment.describe(memory.data(), 20);
  request.min_free = 5;
  const Handle handle = append(std::move(request));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPutOverflow, EventKind::kPutOverflow, EventKind::kAutoUnlink));
  EXPECT_EQ(portal.unexpected.size(), 2u);
  EXPECT_EQ(unlink_entry(core, ni, handle), Status::kInUse);
}

TEST_F(ListEntriesTest, Append_managed__that_is_overrun_stands_at_its_end) {
  append_overflow();
  receive_unexpected(300);
  EntryRequest request = entry(kPutsAndGets | kEntryManageLocal | kEntryLocalIncUhRlength);
  request.segment.describe(memory.data(), 20);
  const Handle handle = append(std::move(request));
  EXPECT_EQ(ni.entries.find(handle)->local_offset, 20u);
}

TEST_F(ListEntriesTest, Append_use_once__counts_its_overflow) {
  append_overflow();
  receive_unexpected(8);
  receive_unexpected(8);
  append(entry(kPutsAndGets | kEntryUseOnce | kEntryEventCtOverflow));
  EXPECT_EQ(successes(), 1u);
  append(entry(kPutsAndGets | kEntryUseOnce | kEntryEventCtOverflow | kEntryEventCtBytes));
  EXPECT_EQ(successes(), 9u);
}

TEST_F(ListEntriesTest, Unlink__takes_the_entry_out) {
  for (const ListKind list : {ListKind::kPriority, ListKind::kOverflow}) {
    const Handle handle = append(entry(kPutsAndGets, list));
    EXPECT_EQ(unlink_entry(core, ni, handle), Status::kOk);
    EXPECT_FALSE(portal.has_entries());
    EXPECT_EQ(unlink_entry(core, ni, handle), Status::kArgInvalid) << "twice is a mistake";
  }
  receive_put(8);
  EXPECT_EQ(status(StatusRegister::kDropCount), 1);
}

TEST_F(ListEntriesTest, Unlink__is_refused_while_a_message_is_under_way) {
  const Handle handle = append(entry());
  receive(put_header(2 * kPacketBytes));
  EXPECT_EQ(unlink_entry(core, ni, handle), Status::kInUse);
  receive(data_header(kPacketBytes, kPacketBytes));
  EXPECT_EQ(unlink_entry(core, ni, handle), Status::kOk);
}

TEST_F(ListEntriesTest, Unlink__is_refused_while_headers_refer_to_it_taken_ones_included) {
  const Handle handle = append(entry(kPutsAndGets, ListKind::kOverflow));
  receive(put_header(2 * kPacketBytes));
  append(entry(kPutsAndGets | kEntryUseOnce));
  EXPECT_EQ(unlink_entry(core, ni, handle), Status::kInUse);
  receive(data_header(kPacketBytes, kPacketBytes));
  EXPECT_EQ(unlink_entry(core, ni, handle), Status::kOk);
}

TEST_F(ListEntriesTest, Unlink__of_an_entry_that_unlinks_or_has_unlinked_itself_is_in_use) {
  const Handle handle = append(entry(kPutsAndGets | kEntryUseOnce));
  receive(put_header(2 * kPacketBytes));
  EXPECT_EQ(unlink_entry(core, ni, handle), Status::kInUse) << "kUnlinking";
  receive(data_header(kPacketBytes, kPacketBytes));
  EXPECT_EQ(unlink_entry(core, ni, handle), Status::kInUse) << "kGone";
  const Handle overflow = append(entry(kPutsAndGets | kEntryUseOnce, ListKind::kOverflow));
  receive_put(8);
  EXPECT_EQ(unlink_entry(core, ni, overflow), Status::kInUse) << "kUnlinked";
}

TEST_F(ListEntriesTest, Unlink__of_what_is_no_entry) {
  EXPECT_EQ(unlink_entry(core, ni, 0), Status::kArgInvalid);
  EXPECT_EQ(unlink_entry(core, ni, eq), Status::kArgInvalid);
  append(entry());
  EXPECT_EQ(unlink_entry(core, ni, make_handle(HandleKind::kListEntry, kMatchingPhysical, 0, 7)), Status::kArgInvalid)
      << "never allocated";
}

TEST_F(ListEntriesTest, Cancel__lets_what_arrives_end_and_nothing_else_begin) {
  const Handle handle = append(entry(kPutsAndGets | kEntryManageLocal));
  EXPECT_EQ(cancel_entry(core, ni, handle), Status::kArgInvalid) << "nothing is arriving";
  receive(put_header(2 * kPacketBytes));
  ASSERT_EQ(cancel_entry(core, ni, handle), Status::kOk);
  EXPECT_EQ(cancel_entry(core, ni, handle), Status::kArgInvalid) << "twice is a mistake";
  EXPECT_EQ(portal.priority.size(), 0u);
  EXPECT_TRUE(portal.priority.empty());
  receive(data_header(kPacketBytes, kPacketBytes));
  const Event whole = next_event();
  EXPECT_EQ(whole.type, EventKind::kPut);
  EXPECT_EQ(whole.ni_fail_type, NiFail::kOk);
  const Event end = next_event();
  EXPECT_EQ(end.type, EventKind::kAutoUnlink);
  EXPECT_EQ(end.ni_fail_type, NiFail::kCanceled);
  EXPECT_EQ(ni.entries.find(handle), nullptr);
}

TEST_F(ListEntriesTest, Search__of_nothing_tells_the_end_and_counts_a_failure) {
  search(SearchOperation::kOnly, kPutsAndGets);
  const Event event = next_event();
  EXPECT_EQ(event.type, EventKind::kSearch);
  EXPECT_EQ(event.ni_fail_type, NiFail::kNoMatch);
  EXPECT_EQ(event.user_ptr, &caller);
  EXPECT_EQ(event.pt_index, kPt);
  EXPECT_EQ(failures(), 1u);
  EXPECT_EQ(successes(), 0u);
}

TEST_F(ListEntriesTest, Search_only__use_once_tells_of_the_first_and_leaves_it) {
  append_overflow();
  receive_unexpected(8, 1);
  receive_unexpected(8, 2);
  search(SearchOperation::kOnly, kPutsAndGets | kEntryUseOnce);
  const Event event = next_event();
  EXPECT_EQ(event.type, EventKind::kSearch);
  EXPECT_EQ(event.ni_fail_type, NiFail::kOk);
  EXPECT_EQ(event.hdr_data, 1u);
  EXPECT_EQ(event.user_ptr, &caller);
  EXPECT_THAT(kinds(), IsEmpty());
  EXPECT_EQ(portal.unexpected.size(), 2u);
  EXPECT_EQ(successes(), 1u);
  EXPECT_EQ(failures(), 0u);
}

TEST_F(ListEntriesTest, Search_only__persistent_tells_of_all_and_then_of_the_end) {
  append_overflow();
  for (std::uint64_t i = 0; i < 3; ++i) receive_unexpected(8, i);
  search(SearchOperation::kOnly, kPutsAndGets);
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_EQ(next_event().hdr_data, i);
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kNoMatch);
  EXPECT_EQ(successes(), 3u);
  EXPECT_EQ(failures(), 1u);
  EXPECT_EQ(portal.unexpected.size(), 3u);
}

TEST_F(ListEntriesTest, Search_delete__takes_the_header_and_frees_its_entry) {
  append(entry(kPutsAndGets | kEntryUseOnce | kEntryEventCommDisable, ListKind::kOverflow));
  receive_unexpected(8, 1);
  kinds();
  search(SearchOperation::kDelete, kPutsAndGets | kEntryUseOnce | kEntryEventCtOverflow);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPutOverflow, EventKind::kAutoFree));
  EXPECT_TRUE(portal.unexpected.empty());
  EXPECT_EQ(ni.unexpected_count, 0u);
  EXPECT_EQ(successes(), 1u) << "counted once";
}

TEST_F(ListEntriesTest, Search_delete__of_a_message_still_arriving_tells_and_counts_at_its_end) {
  append_overflow();
  receive(put_header(2 * kPacketBytes));
  search(SearchOperation::kDelete, kPutsAndGets | kEntryUseOnce | kEntryEventCtOverflow);
  EXPECT_TRUE(portal.unexpected.empty());
  EXPECT_THAT(kinds(), IsEmpty());
  EXPECT_EQ(successes(), 0u);
  receive(data_header(kPacketBytes, kPacketBytes));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPutOverflow)) << "and no AUTO_UNLINK: nothing was linked";
  EXPECT_EQ(successes(), 1u);
  EXPECT_EQ(failures(), 0u);
}

TEST_F(ListEntriesTest, Search_delete__persistent_ends_behind_all_that_it_has_claimed) {
  append_overflow();
  const ProcessId third{kOther.nid, kOther.pid + 1};
  for (const ProcessId source : {kPeer, kOther, third}) receive(put_header(2 * kPacketBytes), source);
  search(SearchOperation::kDelete, kPutsAndGets);
  search(SearchOperation::kDelete, kPutsAndGets);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSearch)) << "of the second, which has found nothing";
  for (const ProcessId source : {kOther, kPeer, third}) {
    EXPECT_EQ(failures(), 1u);
    EXPECT_THAT(kinds(), IsEmpty());
    receive(data_header(kPacketBytes, kPacketBytes), source);
    EXPECT_EQ(next_event().type, EventKind::kPutOverflow);
  }
  EXPECT_EQ(successes(), 3u);
  EXPECT_EQ(failures(), 2u);
  const Event end = next_event();
  EXPECT_EQ(end.type, EventKind::kSearch);
  EXPECT_EQ(end.ni_fail_type, NiFail::kNoMatch);
  EXPECT_EQ(end.user_ptr, &caller);
  EXPECT_EQ(end.pt_index, kPt);
  EXPECT_EQ(ni.unexpected_count, 0u);
}

TEST_F(ListEntriesTest, Search_delete__persistent_tells_at_once_of_what_is_complete) {
  append_overflow();
  receive(put_header(2 * kPacketBytes));
  receive(put_header(8), kOther);
  search(SearchOperation::kDelete, kPutsAndGets);
  EXPECT_EQ(next_event().initiator, kOther);
  EXPECT_THAT(kinds(), IsEmpty());
  EXPECT_EQ(successes(), 1u);
  EXPECT_EQ(failures(), 0u);
  receive(data_header(kPacketBytes, kPacketBytes));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPutOverflow, EventKind::kSearch));
}

TEST_F(ListEntriesTest, Search_delete__persistent_ends_also_if_a_sender_dies) {
  append_overflow();
  receive(put_header(2 * kPacketBytes));
  search(SearchOperation::kDelete, kPutsAndGets);
  close_source(core, &peer());
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kUndeliverable);
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kNoMatch);
  EXPECT_EQ(successes(), 1u) << "3.12.4: a match";
  EXPECT_EQ(failures(), 1u);
}

TEST_F(ListEntriesTest, Search_only__tells_of_a_message_that_is_still_arriving) {
  append_overflow();
  receive(put_header(2 * kPacketBytes));
  search(SearchOperation::kOnly, kPutsAndGets);
  const Event event = next_event();
  EXPECT_EQ(event.ni_fail_type, NiFail::kOk);
  EXPECT_EQ(event.rlength, 2 * kPacketBytes);
  EXPECT_EQ(event.mlength, 2 * kPacketBytes) << "what will have been delivered";
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kNoMatch);
  EXPECT_EQ(portal.unexpected.size(), 1u);
  receive(data_header(kPacketBytes, kPacketBytes));
  EXPECT_THAT(kinds(), IsEmpty());
}

TEST_F(ListEntriesTest, Search_delete__persistent_takes_all) {
  append_overflow();
  for (std::uint64_t i = 0; i < 3; ++i) receive_unexpected(8, i);
  search(SearchOperation::kDelete, kPutsAndGets);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPutOverflow, EventKind::kPutOverflow, EventKind::kPutOverflow,
                                   EventKind::kSearch));
  EXPECT_TRUE(portal.unexpected.empty());
}

TEST_F(ListEntriesTest, Search__events_can_be_disabled) {
  append_overflow();
  receive_unexpected();
  search(SearchOperation::kOnly, kPutsAndGets | kEntryEventCommDisable);
  EXPECT_THAT(kinds(), IsEmpty());
  search(SearchOperation::kOnly, kPutsAndGets | kEntryEventSuccessDisable);
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kNoMatch);
  EXPECT_EQ(successes(), 2u);
  EXPECT_EQ(failures(), 2u);
}

}  // namespace
}  // namespace portofu
