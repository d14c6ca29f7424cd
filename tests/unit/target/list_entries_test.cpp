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
  EXPECT_EQ(portal.entry_count, 1u);
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

TEST_F(ListEntriesTest, Append__is_refused_at_the_limits) {
  ni.limits.max_list_size = 2;
  Handle handle = 0;
  append(entry());
  append(entry(kPutsAndGets, ListKind::kOverflow));
  EXPECT_EQ(append_openly(entry(), &handle), Status::kListTooLong);
  ni.limits.max_list_size = 100;
  ni.entries.set_limit(2);
  EXPECT_EQ(append_openly(entry(), &handle), Status::kNoSpace);
  EXPECT_EQ(portal.entry_count, 2u);
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
  EXPECT_EQ(portal.entry_count, 1u);
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
  EXPECT_EQ(portal.entry_count, 2u);
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
    EXPECT_EQ(portal.entry_count, 0u);
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

TEST_F(ListEntriesTest, Search_delete__of_a_message_still_arriving_tells_at_its_end) {
  append_overflow();
  receive(put_header(2 * kPacketBytes));
  search(SearchOperation::kDelete, kPutsAndGets | kEntryUseOnce);
  EXPECT_THAT(kinds(), IsEmpty());
  EXPECT_EQ(successes(), 1u);
  receive(data_header(kPacketBytes, kPacketBytes));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPutOverflow)) << "and no AUTO_UNLINK: nothing was linked";
  EXPECT_EQ(successes(), 1u);
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

/// Entries as an endpoint of libfabric has them.
class TakenDataTest : public ListEntriesTest {
 protected:
  static constexpr std::uint32_t kTaker = kEntryOpPut | kEntryTakesData | kEntryEventLinkDisable;

  void SetUp() override {
    EntryRequest own = entry(
        kPutsAndGets | kEntryOwnMemory | kEntryEventCommDisable | kEntryEventLinkDisable | kEntryEventUnlinkDisable,
        ListKind::kOverflow);
    own.segment.describe(static_cast<void*>(nullptr), UINT64_MAX);
    own.criteria = kAnyMessage;
    append(std::move(own));
  }
  bool holds_pattern(std::uint64_t at, std::uint64_t bytes) const {
    const std::vector<std::byte> wanted = pattern_bytes(0, bytes);
    return std::equal(wanted.begin(), wanted.end(), memory.begin() + static_cast<std::ptrdiff_t>(at));
  }
};

TEST_F(TakenDataTest, Append__gets_an_unexpected_message_as_if_it_arrived_now) {
  receive_put(kPacketBytes + 100);
  EXPECT_THAT(kinds(), IsEmpty());
  EntryRequest request = entry(kTaker | kEntryUseOnce | kEntryEventUnlinkDisable);
  request.user_ptr = &caller;
  append(std::move(request));
  const Event event = next_event();
  EXPECT_EQ(event.type, EventKind::kPut);
  EXPECT_EQ(event.ptl_list, ListKind::kPriority);
  EXPECT_EQ(event.start, memory.data());
  EXPECT_EQ(event.user_ptr, &caller);
  EXPECT_EQ(event.mlength, kPacketBytes + 100);
  EXPECT_TRUE(holds_pattern(0, kPacketBytes + 100));
  EXPECT_EQ(ni.unexpected_count, 0u);
  EXPECT_EQ(portal.entry_count, 1u);
}

TEST_F(TakenDataTest, Append__waits_for_a_message_that_is_still_arriving) {
  receive(put_header(kPacketBytes + 8));
  append(entry(kTaker | kEntryUseOnce | kEntryEventUnlinkDisable));
  EXPECT_THAT(kinds(), IsEmpty());
  receive(data_header(kPacketBytes, 8));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPut));
  EXPECT_TRUE(holds_pattern(0, kPacketBytes + 8));
  EXPECT_EQ(ni.unexpected_count, 0u);
}

TEST_F(TakenDataTest, Message__longer_than_its_entry_is_a_failure) {
  for (const bool unexpected : {true, false}) {
    if (unexpected) receive_put(kMemoryBytes + 8);
    append(entry(kTaker | kEntryUseOnce | kEntryEventUnlinkDisable | kEntryEventSuccessDisable));
    if (!unexpected) receive_put(kMemoryBytes + 8);
    const Event event = next_event();
    EXPECT_EQ(event.ni_fail_type, NiFail::kTruncated);
    EXPECT_EQ(event.mlength, kMemoryBytes);
    EXPECT_EQ(event.rlength, kMemoryBytes + 8);
  }
}

TEST_F(TakenDataTest, Managed_entry__takes_messages_until_it_is_used_up) {
  receive_put(100);
  EntryRequest request = entry(kTaker | kEntryManageLocal);
  request.min_free = kMemoryBytes - 150;
  append(std::move(request));
  receive_put(100);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPut, EventKind::kPut, EventKind::kAutoUnlink));
  EXPECT_TRUE(holds_pattern(0, 100));
  EXPECT_TRUE(holds_pattern(100, 100));
}

TEST_F(TakenDataTest, Held_header__is_found_by_nobody_else_and_taken_later) {
  receive_unexpected(8, 1);
  receive_unexpected(8, 2);
  UnexpectedHeader* header = find_header(ni, kPt, entry().criteria);
  ASSERT_NE(header, nullptr);
  EXPECT_EQ(header->hdr_data, 1u);
  hold_header(ni, kPt, *header);
  append(entry(kTaker | kEntryUseOnce | kEntryEventUnlinkDisable));
  EXPECT_EQ(next_event().hdr_data, 2u);
  Handle handle = 0;
  EXPECT_EQ(take_held(core, ni, *header, entry(kTaker | kEntryUseOnce | kEntryEventUnlinkDisable), &handle),
            Status::kOk);
  EXPECT_EQ(next_event().hdr_data, 1u);
  EXPECT_EQ(ni.unexpected_count, 0u);
}

TEST_F(TakenDataTest, Held_header__that_is_dropped_tells_nobody) {
  receive(put_header(kPacketBytes + 8));
  UnexpectedHeader* header = find_header(ni, kPt, entry().criteria);
  ASSERT_NE(header, nullptr);
  hold_header(ni, kPt, *header);
  drop_held(core, ni, *header);
  EXPECT_EQ(ni.unexpected_count, 1u);
  receive(data_header(kPacketBytes, 8));
  EXPECT_EQ(ni.unexpected_count, 0u);
  EXPECT_THAT(kinds(), IsEmpty());
}

TEST_F(TakenDataTest, Held_header__ends_with_its_interface) {
  receive_unexpected(8, 1);
  UnexpectedHeader* header = find_header(ni, kPt, entry().criteria);
  ASSERT_NE(header, nullptr);
  hold_header(ni, kPt, *header);
  EXPECT_EQ(portal.held.size(), 1u);
  drop_held(core, ni, *header);
  EXPECT_TRUE(portal.held.empty());
  EXPECT_EQ(ni.unexpected_count, 0u);
}

TEST_F(TakenDataTest, Atomic__needs_an_entry_that_waits) {
  receive(atomic_header(PacketType::kAtomic, static_cast<std::uint8_t>(AtomicOperation::kSum),
                        static_cast<std::uint8_t>(AtomicType::kInt32), 4));
  EXPECT_EQ(ni.unexpected_count, 0u);
  EXPECT_EQ(status(StatusRegister::kDropCount), 1);
}

/// Two indices with one portal table entry, as a shared receive context has them.
class SharedPortalTest : public TakenDataTest {
 protected:
  void SetUp() override {
    TakenDataTest::SetUp();
    portal.eq_handle = 0;
    ni.portal_table[kSecond] = ni.portal_table[kPt];
    ni.inlets = std::make_unique<Inlets>();
    (*ni.inlets)[kPt] = {eq, ct};
    (*ni.inlets)[kSecond] = {second_eq, second_ct};
  }
  void append_shared() {
    EntryRequest request = entry(kTaker | kEntryUseOnce | kEntryEventUnlinkDisable | kEntryEventCtComm);
    request.ct_handle = 0;
    append(std::move(request));
  }
  void receive_at(std::uint16_t pt_index) {
    PacketHeader header = put_header(8);
    header.pt_index = pt_index;
    receive(header);
  }

  static constexpr std::uint16_t kSecond = kPt + 1;
  const Handle second_eq = make_eq(ni);
  const Handle second_ct = make_ct(ni);
};

TEST_F(SharedPortalTest, Message__is_told_and_counted_where_it_came) {
  for (const bool unexpected : {false, true}) {
    if (unexpected) receive_at(kSecond);
    append_shared();
    if (!unexpected) receive_at(kSecond);
    EXPECT_EQ(next_event(second_eq).pt_index, kSecond);
  }
  append_shared();
  receive_at(kPt);
  EXPECT_EQ(next_event(eq).pt_index, kPt);
  EXPECT_EQ(successes(), 1u);
  EXPECT_EQ(ni.cts.find(second_ct)->success(), 2u);
}

}  // namespace
}  // namespace portofu
