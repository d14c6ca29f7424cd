// What a duty cycle does when peers die, and when they come back.

#include <gtest/gtest.h>

#include <vector>

#include "engine/initiator/answer_in.h"
#include "engine/mailbox/connect.h"
#include "tests/unit/run/loop_fixture.h"

namespace portofu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class LoopDeathTest : public LoopTest {};

TEST_F(LoopDeathTest, Dead_peer__what_it_owes_ends_as_undeliverable) {
  start(PacketType::kPut, 8, AckRequest::kFull);
  start(PacketType::kGet, 8);
  wire.kill(kPeer);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend)) << "it has left";
  run_timers_on_duty(core);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(next_event().ni_fail_type, NiFail::kUndeliverable);
  EXPECT_EQ(md().pending, 0u);
  EXPECT_EQ(peer().state, PeerState::kUnconnected);
  EXPECT_EQ(counted(Counter::kPeersLost), 1u);
  EXPECT_FALSE(needs_timers_on_duty(core));
}

TEST_F(LoopDeathTest, Dead_peer__what_it_sent_before_its_death_counts) {
  append(entry());
  start(PacketType::kGet, 8);
  const std::uint32_t id = next_sent().operation_id;
  for (int i = 0; i < 200; ++i) arrive(put_header(8));  // More than one cycle takes.
  arrive(answer_header(id, 8, 8));
  wire.kill(kPeer);
  run_timers_on_duty(core);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(next_event().ni_fail_type, NiFail::kOk);
  EXPECT_EQ(counted(Counter::kPutsMatched), 200u);
  EXPECT_EQ(md().pending, 0u);
}

/// The first packet of a source is the last word of a peer that is gone, or one before it.
TEST_F(LoopDeathTest, Dead_peer__whose_first_packet_is_its_answer_has_answered) {
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

TEST_F(LoopDeathTest, Dead_peer__whose_reply_of_three_packets_is_whole_has_answered) {
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

TEST_F(LoopDeathTest, Dead_peer__that_has_acknowledged_without_a_packet_has_answered) {
  start(PacketType::kPut, 8, AckRequest::kFull);
  start(PacketType::kPut, 8, AckRequest::kFull);
  wire.acks = {next_sent().operation_id};
  wire.kill(kPeer);
  run_timers_on_duty(core);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(next_event().ni_fail_type, NiFail::kOk) << "SEND twice, one ACK";
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kUndeliverable);
}

/// What waits for room at a lost link is the other way to that decision.
TEST_F(LoopDeathTest, Dead_peer__is_heard_before_what_waits_for_room_to_it_is_given_up) {
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
TEST_F(LoopDeathTest, Dead_peer__that_is_heard_out_keeps_nothing_from_its_next_life) {
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

TEST_F(LoopDeathTest, Dead_peer__whose_packets_cannot_be_had_is_waited_for_a_second) {
  wire.looks_rarely = true;
  start(PacketType::kGet, 8);
  arrive(answer_header(next_sent().operation_id, 8, 8));
  wire.kill(kPeer);
  run_timers_on_duty(core);
  for (int i = 1; i < 10; ++i) {
    now_ns += kMostUnheardNs / 10;
    run_timers_on_duty(core);
  }
  EXPECT_THAT(kinds(), IsEmpty());
  now_ns += kMostUnheardNs / 10;
  run_timers_on_duty(core);
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kUndeliverable);
}

// What could not be had in time comes after all. The number that it names may be in use again.
TEST_F(LoopDeathTest, Dead_peer__that_was_not_heard_out_answers_nothing_that_its_next_life_is_asked) {
  wire.looks_rarely = true;
  start(PacketType::kGet, 8);
  FakePacket late{kPeer, answer_header(next_sent().operation_id, 8, 8), pattern_bytes(0, 8)};
  arrive(late.header);
  wire.kill(kPeer);
  run_timers_on_duty(core);
  now_ns += kMostUnheardNs / 4;
  for (int i = 0; i < 4; ++i, now_ns += kMostUnheardNs / 4) run_timers_on_duty(core);
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kUndeliverable);
  std::uint32_t id = 0;
  do {  // Until the number is that of the operation that has ended.
    start(PacketType::kGet, 8);
    id = next_sent().operation_id;
    if (id == late.header.operation_id) break;
    fail_outstanding(core, peer(), NiFail::kDropped);
    next_event();
  } while (true);
  wire.looks_rarely = false;
  for (int i = 0; i < 5; ++i) cycle();
  EXPECT_THAT(kinds(), IsEmpty());
  arrive(answer_header(id, 8, 8));
  for (int i = 0; i < 5; ++i) cycle();
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kOk);
}

TEST_F(LoopDeathTest, Dead_peer__message_that_it_did_not_finish_is_cut) {
  append(entry());
  arrive(put_header(2 * kPacketBytes));
  wire.kill(kPeer);
  cycle();
  EXPECT_EQ(peer().request_stream.mode, ArrivalMode::kDeliver);
  run_timers_on_duty(core);
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kUndeliverable);
  EXPECT_EQ(portal.in_progress, 0u);
}

TEST_F(LoopDeathTest, Dead_peer__whose_death_the_wire_found_by_itself_is_lost_too) {
  start(PacketType::kGet, 8);
  wire.kill(kPeer);
  wire.newly_lost = 0;  // check_peers has nothing new to tell.
  run_timers_on_duty(core);
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kUndeliverable);
}

TEST_F(LoopDeathTest, Dead_peer__others_are_left_alone) {
  start(PacketType::kGet, 8);
  Descriptor d = descriptor(PacketType::kGet, 8);
  d.portals.target = kOther;
  d.portals.md_handle = md().handle;
  start_descriptor(core, d);
  wire.kill(kOther);
  run_timers_on_duty(core);
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kReply));
  EXPECT_EQ(peer().state, PeerState::kConnected);
  EXPECT_EQ(peer().outstanding, 1u);
}

TEST_F(LoopDeathTest, Closed_source__is_taken_when_there_is_nothing_else_to_do) {
  append(entry());
  receive(put_header(2 * kPacketBytes));
  wire.close_source(kPeer);
  EXPECT_EQ(cycle(), 1);
  EXPECT_EQ(next_event().ni_fail_type, NiFail::kUndeliverable);
  EXPECT_EQ(wire.context_of(kPeer)->engines, nullptr);
}

TEST_F(LoopDeathTest, Next_life_of_a_process__is_answered_and_not_its_former_one) {
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

TEST_F(LoopDeathTest, Next_life_of_a_process__its_first_answer_does_not_go_to_the_former_one) {
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
TEST_F(LoopDeathTest, Living_peer__whose_link_is_lost_is_answered_over_another_one) {
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

TEST_F(LoopDeathTest, Last_request_of_a_dead_peer__is_done_and_not_answered_to_its_next_life) {
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

TEST_F(LoopDeathTest, Last_request_of_a_dead_peer__does_not_take_the_answer_of_its_next_life_with_it) {
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
TEST_F(LoopDeathTest, Next_life_of_a_process__has_its_answer_though_one_was_due_to_its_former_one) {
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

/// Its source is closed behind the loss of our link to it.
TEST_F(LoopDeathTest, Next_life_of_a_process__gets_no_answer_to_what_its_former_one_left_unfinished) {
  append(entry());
  start(PacketType::kGet, 8);
  arrive(put_header(2 * kPacketBytes, 7));
  cycle();
  wire.sent.clear();
  wire.kill(kPeer);
  wire.connect_result = ConnectResult::kInProgress;
  run_timers_on_duty(core);
  EXPECT_EQ(peer().link, nullptr);
  arrive(put_header(16, 9));
  for (int i = 0; i < 5; ++i) cycle();
  wire.connect_result = ConnectResult::kConnected;
  for (int i = 0; i < 5; ++i) cycle();
  ASSERT_EQ(wire.sent.size(), 1u);
  EXPECT_EQ(next_sent().operation_id, 9u);
}

TEST_F(LoopDeathTest, Next_life_of_a_process__gets_no_answers_that_were_due_to_its_former_one) {
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
