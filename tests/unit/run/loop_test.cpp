// One duty cycle: packets in, triggered operations, what waited for room, and the end of sources and peers.

#include "engine/run/loop.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/initiator/send.h"
#include "engine/mailbox/connect.h"
#include "tests/unit/support/core_fixture.h"

namespace portofu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class LoopTest : public CoreTest {
 protected:
  void arrive(const PacketHeader& header, ProcessId source = kPeer) {
    const std::uint64_t from = header.type == PacketType::kData ? header.remote_offset : 0;
    wire.arrive({source, header, pattern_bytes(from, header.payload_bytes)});
  }
  int cycle() { return run_cycle_on_duty(core); }

  void start(PacketType kind, std::uint64_t length, AckRequest ack_req = AckRequest::kNone) {
    if (md_ == nullptr) md_ = &make_md(ni, memory.data(), memory.size());
    Descriptor d = descriptor(kind, length);
    d.portals.md_handle = md_->handle;
    d.portals.ack_req = ack_req;
    start_descriptor(core, d);
  }

  /// Lets an operation wait for `threshold` successes of `ct`, as PtlTriggered* does.
  void arm(std::uint64_t threshold, const Descriptor& d) {
    auto* operation = new TriggeredOperation;
    operation->threshold = threshold;
    operation->descriptor = d;
    ++ni.triggered_count;
    ni.cts.find(ct)->add_triggered_on_duty(operation, core.fired);
  }
  Descriptor increment(Handle counter, std::uint64_t amount = 1) {
    Descriptor d = descriptor(PacketType::kCountIncrement, 0);
    d.count = {counter, false, amount, 0};
    return d;
  }

  MemoryDescriptor* md_ = nullptr;
};

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
  int started = 0;
  for (std::uint64_t i = 0; i < kLinks && !core.fired.empty(); ++i) started += cycle();
  EXPECT_EQ(started, static_cast<int>(kLinks));
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
  d.portals.md_handle = md_->handle;
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

TEST_F(LoopTest, Dead_peer__what_it_owes_ends_as_undeliverable) {
  start(PacketType::kPut, 8, AckRequest::kFull);
  start(PacketType::kGet, 8);
  wire.kill(kPeer);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend)) << "it has left";
  run_timers_on_duty(core);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(next_event().ni_fail_type, NiFail::kUndeliverable);
  EXPECT_EQ(md_->pending, 0u);
  EXPECT_EQ(peer().state, PeerState::kUnconnected);
  EXPECT_EQ(counted(Counter::kPeersLost), 1u);
  EXPECT_FALSE(needs_timers_on_duty(core));
}

TEST_F(LoopTest, Dead_peer__what_it_sent_before_its_death_counts) {
  append(entry());
  start(PacketType::kGet, 8);
  const std::uint32_t id = next_sent().operation_id;
  for (int i = 0; i < 200; ++i) arrive(put_header(8));  // More than one cycle takes.
  arrive(answer_header(id, 8, 8));
  wire.kill(kPeer);
  run_timers_on_duty(core);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(next_event().ni_fail_type, NiFail::kOk);
  EXPECT_EQ(counted(Counter::kPutsMatched), 200u);
  EXPECT_EQ(md_->pending, 0u);
}

/// The first packet of a source is the last word of a peer that is gone, or one before it.
TEST_F(LoopTest, Dead_peer__whose_first_packet_is_its_answer_has_answered) {
  append(entry());
  for (const bool noticed : {true, false}) {
    for (const bool sends_first : {false, true}) {
      start(PacketType::kGet, 8);
      const std::uint32_t id = next_sent().operation_id;
      if (sends_first) arrive(put_header(16));
      arrive(answer_header(id, 8, 8));
      noticed ? wire.kill(kPeer) : wire.kill_unnoticed(kPeer);
      for (int i = 0; i < 3; ++i) cycle();
      for (int left = sends_first ? 2 : 1; left > 0; --left) EXPECT_EQ(next_event().ni_fail_type, NiFail::kOk);
      run_timers_on_duty(core);
      EXPECT_EQ(peer().state, PeerState::kUnconnected);
      EXPECT_THAT(kinds(), IsEmpty());
      EXPECT_EQ(core.outstanding.open_count(), 0u);
    }
  }
}

TEST_F(LoopTest, Dead_peer__whose_reply_of_three_packets_is_whole_has_answered) {
  for (const std::uint64_t packets : {3, 2}) {
    start(PacketType::kGet, 3 * kPacketBytes);
    arrive(answer_header(next_sent().operation_id, 3 * kPacketBytes, kPacketBytes));
    for (std::uint64_t i = 1; i < packets; ++i) arrive(data_header(i * kPacketBytes, kPacketBytes, kFlagAnswerStream));
    wire.kill_unnoticed(kPeer);
    for (int i = 0; i < 5; ++i) cycle();
    run_timers_on_duty(core);
    EXPECT_EQ(next_event().ni_fail_type, packets == 3 ? NiFail::kOk : NiFail::kUndeliverable);
    EXPECT_THAT(kinds(), IsEmpty());
  }
}

TEST_F(LoopTest, Dead_peer__that_has_acknowledged_without_a_packet_has_answered) {
  start(PacketType::kPut, 8, AckRequest::kFull);
  start(PacketType::kPut, 8, AckRequest::kFull);
  wire.acks = {next_sent().operation_id};
  wire.kill(kPeer);
  run_timers_on_duty(core);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(next_event().ni_fail_type, NiFail::kOk) << "SEND twice, one ACK";
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kUndeliverable);
}

/// What waits for room at a lost link is the other way to that decision.
TEST_F(LoopTest, Dead_peer__is_heard_before_what_waits_for_room_to_it_is_given_up) {
  wire.looks_rarely = true;
  start(PacketType::kGet, 8);
  const std::uint32_t id = next_sent().operation_id;
  wire.room = 0;
  start(PacketType::kPut, 8);
  arrive(answer_header(id, 8, 8));
  wire.kill(kPeer);
  cycle();
  run_timers_on_duty(core);
  EXPECT_THAT(kinds(), IsEmpty()) << "its packet could not be had yet";
  EXPECT_EQ(peer().state, PeerState::kConnected);
  EXPECT_TRUE(has_work_on_duty(core));
  cycle();
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kOk);
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kUndeliverable);
  EXPECT_EQ(peer().state, PeerState::kUnconnected);
}

/// What is posted when the death is known already is for whoever has the address then.
TEST_F(LoopTest, Dead_peer__that_is_heard_out_keeps_nothing_from_its_next_life) {
  wire.looks_rarely = true;
  start(PacketType::kGet, 8);
  arrive(answer_header(next_sent().operation_id, 8, 8));
  wire.kill(kPeer);
  run_timers_on_duty(core);
  start(PacketType::kPut, 8);
  EXPECT_THAT(kinds(), IsEmpty());
  EXPECT_TRUE(has_work_on_duty(core));
  for (int i = 0; i < 5; ++i) cycle();
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kOk);
  EXPECT_EQ(next_event().type, EventKind::kSend);
  EXPECT_EQ(next_sent().type, PacketType::kPut);
  EXPECT_EQ(wire.connect_count, 2);
}

TEST_F(LoopTest, Dead_peer__whose_packets_cannot_be_had_is_waited_for_a_second) {
  wire.looks_rarely = true;
  start(PacketType::kGet, 8);
  arrive(answer_header(next_sent().operation_id, 8, 8));
  wire.kill(kPeer);
  run_timers_on_duty(core);
  now_ns += kMostUnheardNs - 1;
  run_timers_on_duty(core);
  EXPECT_THAT(kinds(), IsEmpty());
  ++now_ns;
  run_timers_on_duty(core);
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kUndeliverable);
}

TEST_F(LoopTest, Dead_peer__message_that_it_did_not_finish_is_cut) {
  append(entry());
  arrive(put_header(2 * kPacketBytes));
  wire.kill(kPeer);
  cycle();
  EXPECT_EQ(peer().request_stream.mode, ArrivalMode::kDeliver);
  run_timers_on_duty(core);
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kUndeliverable);
  EXPECT_EQ(portal.in_progress, 0u);
}

TEST_F(LoopTest, Dead_peer__whose_death_the_wire_found_by_itself_is_lost_too) {
  start(PacketType::kGet, 8);
  wire.kill(kPeer);
  wire.newly_lost = 0;  // check_peers has nothing new to tell.
  run_timers_on_duty(core);
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kUndeliverable);
}

TEST_F(LoopTest, Dead_peer__others_are_left_alone) {
  start(PacketType::kGet, 8);
  Descriptor d = descriptor(PacketType::kGet, 8);
  d.portals.target = kOther;
  d.portals.md_handle = md_->handle;
  start_descriptor(core, d);
  wire.kill(kOther);
  run_timers_on_duty(core);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kReply));
  EXPECT_EQ(peer().state, PeerState::kConnected);
  EXPECT_EQ(peer().outstanding, 1u);
}

TEST_F(LoopTest, Closed_source__is_taken_when_there_is_nothing_else_to_do) {
  append(entry());
  receive(put_header(2 * kPacketBytes));
  wire.close_source(kPeer);
  EXPECT_EQ(cycle(), 1);
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kUndeliverable);
  EXPECT_EQ(wire.context_of(kPeer)->engines, nullptr);
}

TEST_F(LoopTest, Next_life_of_a_process__is_answered_and_not_its_former_one) {
  append(entry());
  receive_put(8, 7);
  EXPECT_EQ(next_sent().operation_id, 7u);
  start(PacketType::kGet, 8);
  receive(put_header(2 * kPacketBytes, 8));
  wire.sent.clear();
  wire.kill(kPeer);
  arrive(put_header(16, 9));
  for (int i = 0; i < 5; ++i) cycle();
  ASSERT_FALSE(wire.sent.empty());
  EXPECT_EQ(wire.sent.back().header.operation_id, 9u);
  EXPECT_EQ(peer().state, PeerState::kConnected);
  EXPECT_EQ(wire.connect_count, 2);
  std::vector<Event> events;
  for (int i = 0; i < 4; ++i) events.push_back(next_event());
  EXPECT_EQ(events[0].ni_fail_type, NiFail::kOk);
  EXPECT_EQ(events[1].ni_fail_type, NiFail::kUndeliverable) << "the put that was cut, or the get";
  EXPECT_EQ(events[2].ni_fail_type, NiFail::kUndeliverable);
  EXPECT_EQ(events[3].rlength, 16u);
  EXPECT_EQ(refused(), 0u);
}

TEST_F(LoopTest, Next_life_of_a_process__its_first_answer_does_not_go_to_the_former_one) {
  append(entry());
  for (const bool noticed : {true, false}) {
    receive_put(8, 7);
    wire.sent.clear();
    const int connect_count = wire.connect_count;
    noticed ? wire.kill(kPeer) : wire.kill_unnoticed(kPeer);
    arrive(put_header(16, 9));
    for (int i = 0; i < 5; ++i) cycle();
    ASSERT_EQ(wire.sent.size(), 1u) << noticed;
    EXPECT_EQ(next_sent().operation_id, 9u);
    EXPECT_EQ(wire.connect_count, connect_count + 1) << "over a new link";
  }
}

/// Both have lost their links to each other, and the peer has made another one.
TEST_F(LoopTest, Living_peer__whose_link_is_lost_is_answered_over_another_one) {
  append(entry());
  start(PacketType::kGet, 8);
  wire.room = 0;
  receive_put(8, 7);
  wire.close_source(kPeer);
  cycle();
  wire.lose_link(kPeer);
  arrive(put_header(16, 9));
  wire.room = FakeWire::kPlentyOfRoom;
  wire.sent.clear();
  for (int i = 0; i < 5; ++i) cycle();
  ASSERT_EQ(wire.sent.size(), 1u) << "and not what was asked for over the link before";
  EXPECT_EQ(next_sent().operation_id, 9u);
  EXPECT_EQ(wire.connect_count, 2);
  next_event();
  next_event();
  const Event reply = next_event();
  EXPECT_EQ(reply.type, EventKind::kReply);
  EXPECT_EQ(reply.ni_fail_type, NiFail::kUndeliverable);
}

TEST_F(LoopTest, Last_request_of_a_dead_peer__is_done_and_not_answered_to_its_next_life) {
  append(entry());
  start(PacketType::kGet, 8);
  next_sent();
  arrive(put_header(8, 7));
  wire.kill_unnoticed(kPeer);
  for (int i = 0; i < 5; ++i) cycle();
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kPut, EventKind::kReply));
  EXPECT_THAT(wire.sent, IsEmpty());
  EXPECT_EQ(peer().answers.waiting.size(), 0u);
}

TEST_F(LoopTest, Last_request_of_a_dead_peer__does_not_take_the_answer_of_its_next_life_with_it) {
  append(entry());
  start(PacketType::kGet, 8);
  wire.sent.clear();
  wire.connect_result = ConnectResult::kInProgress;
  arrive(put_header(8, 7));
  wire.kill_unnoticed(kPeer);
  cycle();
  cycle();
  EXPECT_EQ(peer().state, PeerState::kConnecting);
  EXPECT_EQ(peer().answers.waiting.size(), 1u) << "it may live";
  for (int i = 0; i < 3; ++i) cycle();
  arrive(put_header(8, 9));
  for (int i = 0; i < 3; ++i) cycle();
  wire.connect_result = ConnectResult::kConnected;
  for (int i = 0; i < 3; ++i) cycle();
  ASSERT_EQ(wire.sent.size(), 1u);
  EXPECT_EQ(next_sent().operation_id, 9u);
}

/// The former life is heard when its link is lost already. What it leaves behind is cut, and the next one is heard
/// before the link is given up.
TEST_F(LoopTest, Next_life_of_a_process__has_its_answer_though_one_was_due_to_its_former_one) {
  append(entry());
  start(PacketType::kGet, 8);
  wire.sent.clear();
  arrive(put_header(2 * kPacketBytes, 7));
  wire.kill(kPeer);
  arrive(put_header(16, 9));
  wire.connect_result = ConnectResult::kInProgress;
  for (int i = 0; i < 5; ++i) cycle();
  EXPECT_EQ(peer().answers.waiting.size(), 1u) << "of this life alone";
  wire.connect_result = ConnectResult::kConnected;
  for (int i = 0; i < 5; ++i) cycle();
  ASSERT_EQ(wire.sent.size(), 1u);
  EXPECT_EQ(next_sent().operation_id, 9u);
}

TEST_F(LoopTest, Next_life_of_a_process__gets_no_answers_that_were_due_to_its_former_one) {
  append(entry());
  wire.room = 0;
  receive_put(8, 7);
  wire.kill(kPeer);
  arrive(put_header(16, 9));
  wire.room = FakeWire::kPlentyOfRoom;
  for (int i = 0; i < 5; ++i) cycle();
  ASSERT_EQ(wire.sent.size(), 1u);
  EXPECT_EQ(next_sent().operation_id, 9u);
}

}  // namespace
}  // namespace portofu
