#include "engine/inspect/core_picture.h"
#include "engine/target/list_entries.h"
#include "tests/unit/support/core_fixture.h"
#include "tests/unit/support/made_up_job.h"

namespace portofu {
namespace {

class InterfacePictureTest : public CoreTest {
 protected:
  InterfacePicture look() {
    InterfacePicture picture;
    EXPECT_TRUE(look_at_interface(*own_, &ni, &picture));
    return picture;
  }

  OwnMemory own_;
};

TEST_F(InterfacePictureTest, Lists__are_seen_in_order) {
  const Handle first = append(entry());
  EntryRequest other = entry();
  other.criteria.match_bits = kBits + 1;
  append(other);
  append(entry(kPutsAndGets, ListKind::kOverflow));
  EXPECT_EQ(look().portals.size(), 1u);
  const PortalPicture before = look().portals[0];
  EXPECT_EQ(before.pt_index, kPt);
  EXPECT_TRUE(before.enabled);
  ASSERT_EQ(before.priority.items.size(), 2u);
  EXPECT_EQ(before.priority.items[0].handle, first);
  EXPECT_EQ(before.priority.items[0].criteria.match_bits, kBits);
  EXPECT_EQ(before.priority.items[1].criteria.match_bits, kBits + 1);
  EXPECT_EQ(before.priority.items[0].length, kMemoryBytes);
  EXPECT_FALSE(before.priority.moving);
  EXPECT_EQ(before.overflow.items.size(), 1u);
}

TEST_F(InterfacePictureTest, Header__that_is_unexpected_is_seen) {
  append(entry(kPutsAndGets, ListKind::kOverflow));
  receive(put_header(4));
  const PortalPicture seen = look().portals[0];
  ASSERT_EQ(seen.unexpected.items.size(), 1u);
  EXPECT_EQ(seen.unexpected.items[0].key.match_bits, kBits);
  EXPECT_EQ(seen.unexpected.items[0].key.source, kPeer);
  EXPECT_EQ(seen.unexpected.items[0].rlength, 4u);
  EXPECT_TRUE(seen.unexpected.items[0].complete);
}

TEST_F(InterfacePictureTest, Event__that_waits_longest_is_seen) {
  append(entry());
  receive(put_header(4));
  receive(put_header(4));
  const QueuePicture seen = look().queues.at(0);
  EXPECT_EQ(seen.size, 2u);
  EXPECT_EQ(seen.oldest_type, EventKind::kPut);
  EXPECT_EQ(seen.oldest_fail, NiFail::kOk);
  EXPECT_EQ(seen.oldest_bits, kBits);
  EXPECT_EQ(seen.oldest_from, kPeer);
}

// A queue that a loop empties again and again holds another event at each look.
TEST_F(InterfacePictureTest, Event__has_a_place_of_its_own_though_the_queue_ran_empty) {
  append(entry());
  receive(put_header(4));
  const std::uint64_t first = look().queues.at(0).oldest_place;
  EXPECT_EQ(look().queues.at(0).oldest_place, first);
  kinds();
  receive(put_header(4));
  EXPECT_NE(look().queues.at(0).oldest_place, first);
}

TEST_F(InterfacePictureTest, Queue__shows_that_events_have_come_although_all_are_read) {
  append(entry());
  const std::uint64_t first = look().queues.at(0).progress();
  EXPECT_EQ(look().queues.at(0).progress(), first);
  receive(put_header(4));
  const std::uint64_t second = look().queues.at(0).progress();
  EXPECT_NE(second, first);
  kinds();
  EXPECT_EQ(look().queues.at(0).size, 0u);
  EXPECT_NE(look().queues.at(0).progress(), first);
}

TEST_F(InterfacePictureTest, Headers__with_the_same_bits_are_told_apart) {
  append(entry(kPutsAndGets, ListKind::kOverflow));
  receive(put_header(4));
  receive(put_header(4));
  const PortalPicture seen = look().portals[0];
  ASSERT_EQ(seen.unexpected.items.size(), 2u);
  EXPECT_NE(seen.unexpected.items[0].order, seen.unexpected.items[1].order);
}

TEST_F(InterfacePictureTest, Search__that_found_nothing_is_seen) {
  EntryRequest search = entry();
  search.criteria.match_bits = kBits + 1;
  search_entries(core, ni, search, SearchOperation::kOnly);
  EXPECT_EQ(look().portals[0].missed_searches, 1u);
  EXPECT_EQ(look().portals[0].missed.match_bits, kBits + 1);
  append(entry(kPutsAndGets, ListKind::kOverflow));
  receive(put_header(4));
  search_entries(core, ni, entry(), SearchOperation::kOnly);
  EXPECT_EQ(look().portals[0].missed_searches, 1u) << "this one found something";
}

TEST_F(InterfacePictureTest, Message__that_was_refused_last_is_seen) {
  now_ns = 55;
  receive(put_header(4));
  const InterfacePicture seen = look();
  EXPECT_EQ(seen.dropped, 1u);
  EXPECT_EQ(seen.last_refused.reason, RefusedFor::kNoMatch);
  EXPECT_EQ(seen.last_refused.pt_index, kPt);
  EXPECT_EQ(seen.last_refused.match_bits, kBits);
  EXPECT_EQ(seen.last_refused.pid, kPeer.pid);
  EXPECT_EQ(seen.last_refused.at_ns, 55u);
}

TEST_F(InterfacePictureTest, What_was_not_delivered__is_seen) {
  ni.undelivered = {kPeer, 55, 3};
  EXPECT_EQ(look().undelivered.count, 3u);
  EXPECT_EQ(look().undelivered.target, kPeer);
  EXPECT_EQ(look().undelivered.at_ns, 55u);
}

TEST_F(InterfacePictureTest, Flow_control__is_seen_with_its_time_and_cause) {
  close_interface(kMatchingPhysical);
  Interface& own = open_interface(kMatchingPhysical);
  make_portal(own, kPt, make_eq(own), true);
  now_ns = 66;
  receive(put_header(4));
  InterfacePicture seen;
  ASSERT_TRUE(look_at_interface(*own_, &own, &seen));
  EXPECT_FALSE(seen.portals[0].enabled);
  EXPECT_EQ(seen.portals[0].disabled_by, DisabledBy::kNoEntry);
  EXPECT_EQ(seen.portals[0].disabled_since_ns, 66u);
}

TEST_F(InterfacePictureTest, Counters_and_queues__are_seen_with_what_waits) {
  CountingEvent& counter = *ni.cts.find(ct);
  for (std::uint64_t threshold : {9, 4, 7, 7, 2}) {
    Descriptor increment;
    increment.type = PacketType::kCountIncrement;
    increment.count = {ct, false, 1, 0};
    arm_operation(core, counter, increment, {ct, threshold});
  }
  ni.eqs.find(eq)->append_on_duty() = Event{};
  const InterfacePicture seen = look();
  ASSERT_EQ(seen.counters.size(), 1u);
  EXPECT_EQ(seen.counters[0].handle, ct);
  std::vector<std::uint64_t> thresholds;
  for (const TriggerPicture& trigger : seen.counters[0].waiting.items) thresholds.push_back(trigger.threshold);
  EXPECT_EQ(thresholds, (std::vector<std::uint64_t>{2, 4, 7, 7, 9}));
  EXPECT_EQ(seen.counters[0].waiting.items[0].ct_handle, ct);
  ASSERT_EQ(seen.queues.size(), 1u);
  EXPECT_EQ(seen.queues[0].size, 1u);
  EXPECT_EQ(seen.queues[0].capacity, 64u);
  EXPECT_FALSE(seen.queues[0].full);
  EXPECT_EQ(counter.cancel_on_duty(), 5u);
}

TEST_F(InterfacePictureTest, List__whose_end_is_missing_is_called_moving) {
  append(entry());
  append(entry());
  MatchEntry& first = *portal.priority.first();
  MatchEntry* const next = std::exchange(first.order_links.next, nullptr);
  const PortalPicture seen = look().portals[0];
  first.order_links.next = next;
  EXPECT_TRUE(seen.priority.moving);
  EXPECT_EQ(seen.priority.size, 2u);
  EXPECT_FALSE(look().portals[0].priority.moving);
}

}  // namespace
}  // namespace portofu
