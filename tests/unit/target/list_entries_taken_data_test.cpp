// Appends of entries that take data (kEntryTakesData), and headers that are held for them.

#include <gtest/gtest.h>

#include "engine/atomic/atomic_unit.h"
#include "engine/target/list_entries.h"
#include "tests/unit/support/core_fixture.h"

namespace portofu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Entries as an endpoint of libfabric has them.
class TakenDataTest : public CoreTest {
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
  /// As the provider makes one.
  ListEntry& filled(EntryRequest&& request) {
    ListEntry& entry = *new_entry(ni);
    entry.criteria = request.criteria;
    entry.segment = std::move(request.segment);
    entry.min_free = request.min_free;
    entry.user_ptr = request.user_ptr;
    entry.options = request.options;
    entry.ct_handle = entry.read_ct_handle = request.ct_handle;
    entry.pt_index = request.pt_index;
    return entry;
  }
  void append_filled(EntryRequest request) { EXPECT_EQ(append_new(core, ni, filled(std::move(request))), Status::kOk); }
  void receive_unexpected(std::uint64_t length, std::uint64_t hdr_data) {
    PacketHeader header = put_header(length);
    header.hdr_data = hdr_data;
    receive(header);
  }
  bool holds_pattern(std::uint64_t at, std::uint64_t bytes) const {
    const std::vector<std::byte> wanted = pattern_bytes(0, bytes);
    return std::equal(wanted.begin(), wanted.end(), memory.begin() + static_cast<std::ptrdiff_t>(at));
  }

  int caller = 0;
};

TEST_F(TakenDataTest, Append__gets_an_unexpected_message_as_if_it_arrived_now) {
  receive_put(kPacketBytes + 100);
  EXPECT_THAT(kinds(), IsEmpty());
  EntryRequest request = entry(kTaker | kEntryUseOnce | kEntryEventUnlinkDisable);
  request.user_ptr = &caller;
  append_filled(std::move(request));
  const Event event = next_event();
  EXPECT_EQ(event.type, EventKind::kPut);
  EXPECT_EQ(event.ptl_list, ListKind::kPriority);
  EXPECT_EQ(event.start, memory.data());
  EXPECT_EQ(event.user_ptr, &caller);
  EXPECT_EQ(event.mlength, kPacketBytes + 100);
  EXPECT_TRUE(holds_pattern(0, kPacketBytes + 100));
  EXPECT_EQ(ni.unexpected_count, 0u);
  EXPECT_TRUE(portal.priority.empty());
}

TEST_F(TakenDataTest, Append__waits_for_a_message_that_is_still_arriving) {
  receive(put_header(kPacketBytes + 8));
  append_filled(entry(kTaker | kEntryUseOnce | kEntryEventUnlinkDisable));
  EXPECT_THAT(kinds(), IsEmpty());
  receive(data_header(kPacketBytes, 8));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPut));
  EXPECT_TRUE(holds_pattern(0, kPacketBytes + 8));
  EXPECT_EQ(ni.unexpected_count, 0u);
}

TEST_F(TakenDataTest, Message__longer_than_its_entry_is_a_failure) {
  for (const bool unexpected : {true, false}) {
    if (unexpected) receive_put(kMemoryBytes + 8);
    append_filled(entry(kTaker | kEntryUseOnce | kEntryEventUnlinkDisable | kEntryEventSuccessDisable));
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
  append_filled(std::move(request));
  receive_put(100);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPut, EventKind::kPut, EventKind::kAutoUnlink));
  EXPECT_TRUE(holds_pattern(0, 100));
  EXPECT_TRUE(holds_pattern(100, 100));
}

TEST_F(TakenDataTest, Managed_entry__that_is_used_up_waits_for_a_message_that_is_still_arriving) {
  receive(put_header(kPacketBytes + 8));
  EntryRequest request = entry(kTaker | kEntryManageLocal);
  request.min_free = kMemoryBytes - 150;
  append_filled(std::move(request));
  EXPECT_THAT(kinds(), IsEmpty());
  receive(data_header(kPacketBytes, 8));
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPut, EventKind::kAutoUnlink));
}

TEST_F(TakenDataTest, Slot__has_nothing_of_its_last_user) {
  ListEntry& used = *new_entry(ni);
  used.local_offset = used.origin = used.min_free = 1;
  used.uid = used.ct_handle = used.read_ct_handle = used.pending = used.unexpected_count = 1;
  used.list = ListKind::kOverflow;
  used.state = EntryState::kGone;
  used.publication = Publication::kWithdrawn;
  used.canceled = used.counts_changes = true;
  const Handle old_handle = used.handle;
  ni.entries.free(old_handle);
  ni.entries.set_limit(ni.entries.live_count() + 1);  // So that the slot is used again at once.
  const ListEntry* again = new_entry(ni);
  ASSERT_EQ(again, &used);
  EXPECT_NE(again->handle, old_handle);
  EXPECT_EQ(again->local_offset + again->origin + again->min_free, 0u);
  EXPECT_EQ(again->uid, kUidAny);
  EXPECT_EQ(again->ct_handle + again->read_ct_handle + again->pending + again->unexpected_count, 0u);
  EXPECT_EQ(again->list, ListKind::kPriority);
  EXPECT_EQ(again->state, EntryState::kLinked);
  EXPECT_EQ(again->publication, Publication::kNever);
  EXPECT_FALSE(again->canceled || again->counts_changes);
  EXPECT_EQ(new_entry(ni), nullptr);
}

TEST_F(TakenDataTest, Entry__that_a_full_list_refuses_gives_its_slot_back) {
  append_filled(entry(kTaker));
  ni.limits.max_list_size = 1;
  const std::uint32_t live = ni.entries.live_count();
  EXPECT_EQ(append_new(core, ni, filled(entry(kTaker))), Status::kListTooLong);
  EXPECT_EQ(ni.entries.live_count(), live);
}

TEST_F(TakenDataTest, Entry__that_a_message_uses_up_needs_no_room_in_the_list) {
  EntryRequest other = entry(kTaker);
  other.criteria.match_bits = ~kBits;
  append_filled(std::move(other));
  ni.limits.max_list_size = 1;
  receive_unexpected(8, 1);
  const std::uint32_t live = ni.entries.live_count();
  append_filled(entry(kTaker | kEntryUseOnce | kEntryEventUnlinkDisable));
  EXPECT_EQ(next_event().hdr_data, 1u);
  EXPECT_EQ(ni.entries.live_count(), live);
}

TEST_F(TakenDataTest, Held_header__is_found_by_nobody_else_and_taken_later) {
  receive_unexpected(8, 1);
  receive_unexpected(8, 2);
  UnexpectedHeader* header = find_header(ni, kPt, entry().criteria);
  ASSERT_NE(header, nullptr);
  EXPECT_EQ(header->hdr_data, 1u);
  hold_header(ni, kPt, *header);
  append_filled(entry(kTaker | kEntryUseOnce | kEntryEventUnlinkDisable));
  EXPECT_EQ(next_event().hdr_data, 2u);
  take_held(core, ni, *header, filled(entry(kTaker | kEntryUseOnce | kEntryEventUnlinkDisable)));
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
    append_filled(std::move(request));
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
