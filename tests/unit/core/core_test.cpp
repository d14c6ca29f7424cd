// What more than one step needs: peers by address, events and counts by handle, the end of a hold on a memory
// descriptor.

#include "engine/core/core.h"

#include <gtest/gtest.h>

#include "tests/unit/support/core_fixture.h"

namespace portofu {
namespace {

using CoreStateTest = CoreTest;

TEST_F(CoreStateTest, Peer__is_made_once_and_found_again) {
  Peer& first = core.peer(kPeer);
  Peer& second = core.peer(kOther);
  EXPECT_NE(&first, &second);
  EXPECT_EQ(first.id, kPeer);
  EXPECT_EQ(&core.peer(kPeer), &first);
  EXPECT_EQ(&core.peer(kOther), &second);
  EXPECT_EQ(core.peers.size(), 2u);
  EXPECT_EQ(first.state, PeerState::kUnconnected);
}

TEST_F(CoreStateTest, Peer__that_differs_in_one_number_is_another) {
  EXPECT_NE(&core.peer({1, 2}), &core.peer({2, 1}));
  EXPECT_NE(&core.peer({1, 2}), &core.peer({1, 3}));
}

TEST_F(CoreStateTest, Peer__is_reached_by_the_loopback_if_it_is_ourselves) {
  EXPECT_EQ(core.peer(kSelf).wire, &loopback);
  EXPECT_EQ(core.peer(kPeer).wire, &wire);
}

TEST_F(CoreStateTest, Peer_of_another_node__is_reached_by_the_fabric_which_is_polled_from_then_on) {
  FakeWire fabric;
  core.fabric = &fabric;
  EXPECT_EQ(core.peer({kSelf.nid, kSelf.pid + 7}).wire, &wire);
  EXPECT_EQ(core.wires.size(), 2u);
  EXPECT_EQ(core.peer({kSelf.nid + 1, kSelf.pid}).wire, &fabric);
  EXPECT_EQ(core.peer({kSelf.nid + 2, kSelf.pid}).wire, &fabric);
  EXPECT_EQ(core.wires, (std::vector<Wire*>{&loopback, &wire, &fabric}));
  EXPECT_EQ(core.peer(kSelf).wire, &loopback);
}

// On the short path a peer is put into these lists, and nothing there may throw.
TEST_F(CoreStateTest, Peer__has_a_place_where_it_may_wait_and_places_are_made_for_many_at_once) {
  constexpr std::uint32_t kPeers = 1000;
  int grown = 0;
  for (std::uint32_t i = 0; i < kPeers; ++i) {
    const std::size_t before = core.waiting_peers.capacity();
    Peer& made = core.peer({kPeer.nid, 100 + i});
    grown += core.waiting_peers.capacity() != before ? 1 : 0;
    EXPECT_GE(core.waiting_peers.capacity(), core.peers.size());
    EXPECT_GE(core.awaited_peers.capacity(), core.peers.size());
    core.look_after(made);
    core.await(made);
  }
  EXPECT_LE(grown, 20);
}

TEST_F(CoreStateTest, Wait_for_room__lists_a_peer_once_and_counts_once) {
  core.wait_for_room(peer());
  core.wait_for_room(peer());
  core.wait_for_room(core.peer(kOther));
  EXPECT_EQ(core.waiting_peers.size(), 2u);
  EXPECT_EQ(counted(Counter::kSendsBlocked), 2u);
}

TEST_F(CoreStateTest, Interface__is_nullptr_if_closed_or_no_interface_at_all) {
  EXPECT_EQ(core.interface(kMatchingPhysical), &ni);
  EXPECT_EQ(core.interface(kNonMatchingPhysical), nullptr);
  EXPECT_EQ(core.interface(kInterfaceCount), nullptr);
  EXPECT_EQ(core.interface(UINT32_MAX), nullptr);
}

TEST_F(CoreStateTest, Interface__says_what_it_is_by_its_index) {
  EXPECT_TRUE(ni.is_matching());
  EXPECT_FALSE(ni.is_logical());
  Interface& logical = open_interface(kMatchingLogical);
  EXPECT_TRUE(logical.is_matching() && logical.is_logical());
  EXPECT_FALSE(open_interface(kNonMatchingPhysical).is_matching());
}

TEST_F(CoreStateTest, Portal__is_nullptr_outside_the_table_or_where_none_is_allocated) {
  EXPECT_EQ(ni.portal(kPt), &portal);
  EXPECT_EQ(ni.portal(kPt + 1), nullptr);
  EXPECT_EQ(ni.portal(kPortalTableSize), nullptr);
  EXPECT_EQ(ni.portal(UINT32_MAX), nullptr);
}

TEST_F(CoreStateTest, Limits__of_an_interface_are_those_of_its_tables) {
  Limits limits = kDefaultLimits;
  limits.max_mds = 1;
  limits.max_entries = 2;
  limits.max_eqs = 3;
  limits.max_cts = 4;
  const Interface& limited = open_interface(kNonMatchingPhysical, limits);
  EXPECT_EQ(limited.mds.limit(), 1u);
  EXPECT_EQ(limited.entries.limit(), 2u);
  EXPECT_EQ(limited.eqs.limit(), 3u);
  EXPECT_EQ(limited.cts.limit(), 4u);
}

TEST_F(CoreStateTest, Status_register__counts_for_itself) {
  ni.count_status(StatusRegister::kDropCount);
  ni.count_status(StatusRegister::kDropCount);
  ni.count_status(StatusRegister::kOperationViolations);
  EXPECT_EQ(status(StatusRegister::kDropCount), 2);
  EXPECT_EQ(status(StatusRegister::kPermissionViolations), 0);
  EXPECT_EQ(status(StatusRegister::kOperationViolations), 1);
}

TEST_F(CoreStateTest, Event__enters_its_queue_and_wakes_who_waits) {
  const std::uint64_t activity = core.activity;
  post_new_event(core, ni, eq, [](Event& event) { event.type = EventKind::kSend; });
  EXPECT_EQ(next_event().type, EventKind::kSend);
  EXPECT_GT(core.activity, activity);
  EXPECT_EQ(counted(Counter::kEventsPosted), 1u);
  EXPECT_EQ(counted(Counter::kEventsDropped), 0u);
}

TEST_F(CoreStateTest, Event__for_no_queue_or_one_that_is_gone_is_nothing) {
  post_new_event(core, ni, 0, [](Event&) {});
  ni.eqs.find(eq)->close();
  ni.eqs.free(eq);
  post_new_event(core, ni, eq, [](Event&) {});
  post_new_event(core, ni, ct, [](Event&) {});
  EXPECT_EQ(counted(Counter::kEventsPosted), 0u);
}

TEST_F(CoreStateTest, Event__that_pushes_out_the_oldest_is_counted) {
  const Handle small = make_eq(ni, 1);
  post_new_event(core, ni, small, [](Event&) {});
  EXPECT_EQ(counted(Counter::kEventsDropped), 0u);
  post_new_event(core, ni, small, [](Event&) {});
  EXPECT_EQ(counted(Counter::kEventsDropped), 1u);
  EXPECT_EQ(counted(Counter::kEventsPosted), 2u);
}

TEST_F(CoreStateTest, Count__reaches_its_counter_and_wakes_who_waits) {
  const std::uint64_t activity = core.activity;
  count_success(core, ni, ct, 5);
  count_failure(core, ni, ct);
  EXPECT_EQ(successes(), 5u);
  EXPECT_EQ(failures(), 1u);
  EXPECT_GE(core.activity, activity + 2);
}

TEST_F(CoreStateTest, Armed_operations__are_counted_at_their_interface_until_they_start_or_are_disarmed) {
  Descriptor counts;
  counts.type = PacketType::kCountIncrement;
  counts.interface_index = static_cast<std::uint8_t>(ni.index);
  for (int i = 0; i < 3; ++i) arm_operation(core, *ni.cts.find(ct), counts, {ct, 2});
  counts.interface_index = kTofuInterface;
  CountingEvent of_a_queue;
  arm_operation(core, of_a_queue, counts, {0, 1});
  EXPECT_EQ(ni.triggered_count, 3u);
  disarm_operations(ni, *ni.cts.find(ct));
  EXPECT_EQ(ni.triggered_count, 0u);
  EXPECT_TRUE(of_a_queue.has_waiting());
}

TEST_F(CoreStateTest, Count__fires_what_waits_for_it) {
  arm_operation(core, *ni.cts.find(ct), Descriptor(), {ct, 2});
  count_success(core, ni, ct, 1);
  EXPECT_TRUE(core.fired.empty());
  count_failure(core, ni, ct);
  EXPECT_TRUE(core.fired.empty());
  count_success(core, ni, ct, 1);
  ASSERT_EQ(core.fired.size(), 1u);
  core.fired.clear_and_dispose([](TriggeredOperation* fired) { delete fired; });
}

TEST_F(CoreStateTest, Count__for_no_counter_or_one_that_is_gone_is_nothing) {
  const std::uint64_t activity = core.activity;
  count_success(core, ni, 0, 1);
  count_failure(core, ni, 0);
  ni.cts.free(ct);
  count_success(core, ni, ct, 1);
  count_failure(core, ni, ct);
  EXPECT_EQ(core.activity, activity);
}

TEST_F(CoreStateTest, Memory_descriptor__is_freed_by_its_last_operation_after_its_release) {
  MemoryDescriptor& md = make_md(ni, memory.data(), 16);
  const Handle handle = md.handle;
  md.pending = 2;
  md.released = true;
  end_operation(ni, md);
  EXPECT_EQ(ni.mds.find(handle), &md);
  end_operation(ni, md);
  EXPECT_EQ(ni.mds.find(handle), nullptr);
}

TEST_F(CoreStateTest, Memory_descriptor__that_is_not_released_stays) {
  MemoryDescriptor& md = make_md(ni, memory.data(), 16);
  md.pending = 1;
  end_operation(ni, md);
  EXPECT_EQ(ni.mds.find(md.handle), &md);
  EXPECT_EQ(md.pending, 0u);
}

}  // namespace
}  // namespace portofu
