// One duty cycle: packets in, triggered operations, what waited for room, and the end of sources and peers.

#include "engine/run/loop.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/run/loop_fixture.h"

namespace portofu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(LoopTest, Nothing__to_do) {
  EXPECT_EQ(cycle(), 0);
  EXPECT_FALSE(has_work_on_duty(core));
  EXPECT_FALSE(needs_timers_on_duty(core));
}

TEST_F(LoopTest, Packets__are_received_in_order_and_counted_as_work) {
  append(entry());
  for (std::uint64_t length : {1, 2, 3}) arrive(put_header(length));
  EXPECT_TRUE(has_work_on_duty(core));
  EXPECT_EQ(cycle() + cycle(), 3);
  for (std::uint64_t length : {1, 2, 3}) EXPECT_EQ(next_event().rlength, length);
  EXPECT_FALSE(has_work_on_duty(core));
}

TEST_F(LoopTest, Own_packets__are_taken_in_order_and_not_without_end) {
  append(entry());
  EXPECT_EQ(receive_own_packets_on_duty(core, wire), 0);
  constexpr int kPackets = 100;
  for (std::uint64_t i = 0; i < kPackets; ++i) arrive(put_header(i % 8 + 1));
  std::uint64_t taken = 0;
  while (const int now = receive_own_packets_on_duty(core, wire)) {
    EXPECT_LT(now, kPackets) << "a call may not take for ever";
    for (int i = 0; i < now; ++i, ++taken) EXPECT_EQ(next_event().rlength, taken % 8 + 1);
  }
  EXPECT_EQ(taken, kPackets);
}

TEST_F(LoopTest, Packet__in_whose_middle_memory_runs_out_is_not_done_twice) {
  append(entry());
  arrive(put_header(1, 5));
  arrive(put_header(2));
  wire.runs_out_of_memory = true;  // For the answer, behind the event.
  EXPECT_THROW(cycle(), std::bad_alloc);
  EXPECT_EQ(wire.give_up_count, 1) << "its answer is lost";
  EXPECT_EQ(next_event().rlength, 1u);
  cycle();
  EXPECT_EQ(next_event().rlength, 2u);
  EXPECT_THAT(kinds(), IsEmpty());
}

TEST_F(LoopTest, Acknowledgements__without_a_packet_are_work_while_somebody_waits_for_them) {
  wire.acks = {1};
  EXPECT_FALSE(has_work_on_duty(core)) << "nobody waits";
  wire.acks.clear();
  start(PacketType::kPut, 8, AckRequest::kFull);
  EXPECT_FALSE(has_work_on_duty(core));
  wire.acks = {next_sent().operation_id};
  EXPECT_TRUE(has_work_on_duty(core));
  const std::uint64_t before = core.activity;
  EXPECT_EQ(cycle(), 1);
  EXPECT_GT(core.activity, before) << "sleeping threads are woken";
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend, EventKind::kAck));
  EXPECT_FALSE(has_work_on_duty(core));
}

TEST_F(LoopTest, Packets__after_silence_are_seen_before_the_next_look) {
  append(entry());
  for (int round = 0; round < 2; ++round) {
    arrive(put_header(1));
    arrive(put_header(2));
    EXPECT_EQ(cycle(), 1);
    EXPECT_EQ(next_event().rlength, 1u);
    EXPECT_EQ(cycle(), 1);
    EXPECT_EQ(next_event().rlength, 2u);
    EXPECT_EQ(cycle(), 0);
  }
}

TEST_F(LoopTest, Packets__of_a_stream_come_several_at_a_time_but_not_all) {
  append(entry());
  constexpr int kCount = 100;
  for (int i = 0; i < kCount; ++i) arrive(put_header(1));
  int cycles = 0;
  int most = 0;
  for (int all = 0; all < kCount && cycles < kCount; ++cycles) {
    const int taken = cycle();
    all += taken;
    most = std::max(most, taken);
  }
  EXPECT_GT(most, 1);
  EXPECT_LE(most, 16);
  EXPECT_LT(cycles, kCount / 4);
}

/// Whoever ran the cycle is not to wait for the copies of many long ones.
TEST_F(LoopTest, Packets__that_are_long_count_for_several) {
  append(entry());
  constexpr int kCount = 100;
  for (int i = 0; i < kCount; ++i) arrive(put_header(kPacketBytes));
  int most = 0;
  for (int all = 0, cycles = 0; all < kCount && cycles < kCount; ++cycles) {
    const int taken = cycle();
    all += taken;
    most = std::max(most, taken);
  }
  EXPECT_GT(most, 1);
  EXPECT_LE(most, 16 / (1 + static_cast<int>(kPacketBytes) / 8192));
}

/// A piece at a time, and only when there is nothing else: what arrives comes first.
TEST_F(LoopTest, Lent_put__is_helped_on_its_way_while_there_is_nothing_else_to_do) {
  wire.lends = true;
  start(PacketType::kPut, kMemoryBytes);
  append(entry());
  EXPECT_EQ(cycle(), 0);
  EXPECT_EQ(wire.help_count, 1);
  wire.helps = true;
  arrive(put_header(1));
  EXPECT_EQ(cycle(), 1);
  EXPECT_EQ(wire.help_count, 1) << "the packet was there";
  EXPECT_EQ(cycle(), 1);
  EXPECT_EQ(wire.help_count, 2);
  wire.taken_packets = 1;
  EXPECT_EQ(cycle(), 1);
  EXPECT_EQ(cycle(), 0);
  EXPECT_EQ(wire.help_count, 2) << "nothing is lent any more";
}

TEST_F(LoopTest, Packets__of_both_wires) {
  append(entry());
  arrive(put_header(1));
  loopback.arrive({kSelf, put_header(2), pattern_bytes(0, 2)});
  EXPECT_EQ(cycle() + cycle(), 2);
  EXPECT_EQ(next_event().initiator, kSelf);
  EXPECT_EQ(next_event().initiator, kPeer);
}

TEST_F(LoopTest, Packets__of_one_wire_do_not_keep_the_other_waiting) {
  append(entry());
  for (int i = 0; i < 10; ++i) loopback.arrive({kSelf, put_header(2), pattern_bytes(0, 2)});
  arrive(put_header(1));
  cycle();
  cycle();
  const ProcessId first = next_event().initiator;
  const ProcessId second = next_event().initiator;
  EXPECT_NE(first, second);
}

TEST_F(LoopTest, Packets__of_a_flood_are_taken_a_part_a_cycle) {
  append(entry(kEntryOpPut | kEntryEventCommDisable));
  for (int i = 0; i < 200; ++i) arrive(put_header(8));
  const int first = cycle();
  EXPECT_LT(first, 200);
  EXPECT_GT(first, 0);
  int all = first;
  for (int i = 0; i < 200 && all < 200; ++i) all += cycle();
  EXPECT_EQ(all, 200);
}

TEST_F(LoopTest, Fired__operations_start_in_order_and_are_no_longer_counted) {
  const Handle other = make_ct(ni);
  arm(1, increment(other, 10));
  arm(2, increment(other, 100));
  EXPECT_EQ(ni.triggered_count, 2u);
  EXPECT_EQ(cycle(), 0);
  count_success(core, ni, ct, 1);
  EXPECT_TRUE(has_work_on_duty(core));
  EXPECT_EQ(cycle(), 1);
  EXPECT_EQ(ni.cts.find(other)->success(), 10u);
  EXPECT_EQ(ni.triggered_count, 1u);
  EXPECT_EQ(counted(Counter::kTriggersFired), 1u);
  count_success(core, ni, ct, 1);
  cycle();
  EXPECT_EQ(ni.cts.find(other)->success(), 110u);
  EXPECT_EQ(ni.triggered_count, 0u);
}

TEST_F(LoopTest, Fired__at_once_are_counted_out_too) {
  arm(0, increment(ct));
  EXPECT_EQ(ni.triggered_count, 1u);
  cycle();
  EXPECT_EQ(ni.triggered_count, 0u);
  EXPECT_EQ(successes(), 1u);
}

TEST_F(LoopTest, Fired__a_chain_runs_to_its_end_without_recursion) {
  constexpr std::uint64_t kLinks = 1000;
  for (std::uint64_t i = 1; i <= kLinks; ++i) arm(i, increment(ct));
  count_success(core, ni, ct, 1);
  EXPECT_EQ(cycle(), static_cast<int>(kLinks)) << "no call may come between";
  EXPECT_EQ(successes(), kLinks + 1);
  EXPECT_EQ(ni.triggered_count, 0u);
}

TEST_F(LoopTest, Fired__one_whose_counter_was_freed_meanwhile_does_nothing) {
  const Handle other = make_ct(ni);
  arm(0, increment(other));
  ni.cts.free(other);
  EXPECT_EQ(cycle(), 1);
  EXPECT_EQ(ni.triggered_count, 0u);
}

TEST_F(LoopTest, Fired__one_whose_counter_was_freed_leaves_another_with_its_handle_alone) {
  const Handle other = make_ct(ni);
  arm(1, increment(other));
  ni.cts.free(other);
  constexpr int kMost = 1 << 16;
  Handle again = 0;
  for (int left = kMost; again != other && left > 0; --left) {
    if (again != 0) ni.cts.free(again);
    again = make_ct(ni);
  }
  ASSERT_EQ(again, other);
  count_success(core, ni, ct, 1);
  EXPECT_EQ(cycle(), 1);
  EXPECT_EQ(ni.cts.find(other)->success(), 0u);
}

TEST_F(LoopTest, Fired__one_whose_memory_was_released_leaves_another_with_its_handle_alone) {
  Handle handle = make_md(ni, memory.data(), memory.size(), 0).handle;
  Descriptor put = descriptor(PacketType::kPut, 8);
  put.portals.md_handle = handle;
  arm(1, put);
  release_md(ni, handle);
  constexpr int kMost = 1 << 16;
  Handle again = 0;
  for (int left = kMost; again != handle && left > 0; --left) {
    if (again != 0) release_md(ni, again);
    again = make_md(ni, memory.data(), memory.size(), 0).handle;
  }
  ASSERT_EQ(again, handle);
  count_success(core, ni, ct, 1);
  EXPECT_EQ(cycle(), 1);
  EXPECT_THAT(kinds(), testing::IsEmpty()) << "SEND would say that it was sent";
  EXPECT_EQ(counted(Counter::kPutsSent), 0u);
}

TEST_F(LoopTest, Fired__by_a_packet_start_in_the_same_cycle) {
  append(entry(kEntryOpPut | kEntryEventCtComm));
  const Handle other = make_ct(ni);
  arm(1, increment(other));
  arrive(put_header(8));
  EXPECT_EQ(cycle(), 2);
  EXPECT_EQ(ni.cts.find(other)->success(), 1u);
}

TEST_F(LoopTest, Waiting_peer__goes_on_when_there_is_room_and_is_forgotten_when_nothing_is_left) {
  wire.room = 0;
  start(PacketType::kPut, 8);
  EXPECT_EQ(cycle(), 0);
  EXPECT_THAT(core.waiting_peers, ElementsAre(&peer()));
  EXPECT_FALSE(has_work_on_duty(core));
  wire.room_is_back = true;
  EXPECT_TRUE(has_work_on_duty(core));
  wire.room = 1;
  const std::uint64_t activity = core.activity;
  EXPECT_EQ(cycle(), 1);
  EXPECT_THAT(core.waiting_peers, IsEmpty());
  EXPECT_FALSE(peer().waiting);
  EXPECT_GT(core.activity, activity) << "who waits for a flush has to look";
}

TEST_F(LoopTest, Waiting_peers__one_that_is_blocked_does_not_hold_up_another) {
  wire.room = 0;
  for (std::uint32_t i = 0; i < kWindow; ++i) start(PacketType::kGet, 8);
  Descriptor d = descriptor(PacketType::kPut, 8);
  d.portals.target = kOther;
  d.portals.md_handle = md().handle;
  start_descriptor(core, d);
  wire.room = kWindow;
  cycle();
  start(PacketType::kGet, 8);  // Beyond the window.
  wire.room = 1;
  cycle();
  EXPECT_THAT(core.waiting_peers, ElementsAre(&peer()));
  EXPECT_EQ(wire.sent.back().process, kOther);
}

TEST_F(LoopTest, Waiting_peer__that_became_unreachable_is_forgotten) {
  wire.connect_result = ConnectResult::kInProgress;
  start(PacketType::kPut, 8);
  wire.connect_result = ConnectResult::kNoSuchPeer;
  cycle();
  EXPECT_THAT(core.waiting_peers, IsEmpty());
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kUndeliverable);
}

TEST_F(LoopTest, Timers__are_needed_while_somebodys_death_would_matter) {
  append(entry());
  start(PacketType::kGet, 8);
  EXPECT_TRUE(needs_timers_on_duty(core)) << "an answer is due";
  receive(answer_header(next_sent().operation_id, 8, 8));
  EXPECT_FALSE(needs_timers_on_duty(core));
  receive(put_header(2 * kPacketBytes));
  EXPECT_TRUE(needs_timers_on_duty(core)) << "a message is arriving";
  receive(data_header(kPacketBytes, kPacketBytes));
  EXPECT_FALSE(needs_timers_on_duty(core));
  wire.room = 0;
  start(PacketType::kPut, 8);
  EXPECT_TRUE(needs_timers_on_duty(core)) << "something waits for room";
}

/// Its rest stands before all answers that the peer sends next.
TEST_F(LoopTest, Timers__are_needed_while_a_reply_arrives_that_nobody_wants_any_more) {
  start(PacketType::kGet, 2 * kPacketBytes);
  receive(answer_header(next_sent().operation_id, 2 * kPacketBytes, kPacketBytes));
  close_interface(kMatchingPhysical);
  EXPECT_EQ(core.outstanding.open_count(), 0u);
  EXPECT_TRUE(needs_timers_on_duty(core));
  receive(data_header(kPacketBytes, kPacketBytes, kFlagAnswerStream));
  EXPECT_FALSE(needs_timers_on_duty(core));
}

}  // namespace
}  // namespace portofu
