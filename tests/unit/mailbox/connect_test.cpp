// Whether packets can go to a peer: every transition of PeerState.

#include "engine/mailbox/connect.h"

#include <gtest/gtest.h>

#include "engine/run/loop.h"
#include "engine/target/answer_out.h"
#include "tests/unit/support/peer_fixture.h"

namespace portofu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ConnectTest : public PeerTest {};

TEST_F(ConnectTest, Unconnected_to_Connected__at_once) {
  EXPECT_EQ(reach(), Reach::kNow);
  EXPECT_EQ(peer().state, PeerState::kConnected);
  EXPECT_NE(peer().link, nullptr);
  EXPECT_EQ(reach(), Reach::kNow);
  EXPECT_EQ(wire.connect_count, 1);
}

TEST_F(ConnectTest, Unconnected_to_Connecting_to_Connected) {
  wire.connect_result = ConnectResult::kInProgress;
  EXPECT_EQ(reach(), Reach::kLater);
  EXPECT_EQ(peer().state, PeerState::kConnecting);
  now_ns += kConnectTimeoutNs - 1;
  EXPECT_EQ(reach(), Reach::kLater);
  wire.connect_result = ConnectResult::kConnected;
  EXPECT_EQ(reach(), Reach::kNow);
  EXPECT_EQ(peer().state, PeerState::kConnected);
}

TEST_F(ConnectTest, Connecting_to_Unconnected__when_the_time_is_over) {
  wire.connect_result = ConnectResult::kInProgress;
  EXPECT_EQ(reach(), Reach::kLater);
  now_ns += kConnectTimeoutNs;
  EXPECT_EQ(reach(), Reach::kNever);
  EXPECT_EQ(peer().state, PeerState::kUnconnected);
}

TEST_F(ConnectTest, Connecting__has_a_new_deadline_the_next_time) {
  wire.connect_result = ConnectResult::kInProgress;
  reach();
  now_ns += kConnectTimeoutNs;
  reach();
  EXPECT_EQ(reach(), Reach::kLater);
  now_ns += kConnectTimeoutNs - 1;
  EXPECT_EQ(reach(), Reach::kLater);
}

// What was found out for whoever waited before is no answer for who begins to.
TEST_F(ConnectTest, Connecting__asks_anew_when_it_begins_and_not_while_it_goes_on) {
  wire.connect_result = ConnectResult::kInProgress;
  reach();
  reach();
  EXPECT_EQ(wire.ask_anew_count, 1);
  wire.connect_result = ConnectResult::kNoSuchPeer;
  EXPECT_EQ(reach(), Reach::kNever);
  EXPECT_EQ(wire.ask_anew_count, 1);
  wire.connect_result = ConnectResult::kInProgress;
  reach();
  EXPECT_EQ(wire.ask_anew_count, 2);
  EXPECT_EQ(reach_for_new(core, peer()), Reach::kLater);
  EXPECT_EQ(wire.ask_anew_count, 3) << "whoever began has not waited for the end";
}

// Whoever was stopped has not waited: a living peer was UNDELIVERABLE when both went on.
TEST_F(ConnectTest, Connecting__goes_on_after_a_stop_of_this_process) {
  FakeWire patient(10 * kConnectTimeoutNs);
  peer().wire = &patient;
  patient.connect_result = ConnectResult::kInProgress;
  EXPECT_EQ(reach(), Reach::kLater);
  now_ns += 100 * kConnectTimeoutNs;
  EXPECT_EQ(reach(), Reach::kLater) << "as if it had been a second";
  for (int i = 0; i < 8; ++i) {
    now_ns += kConnectTimeoutNs;
    EXPECT_EQ(reach(), Reach::kLater) << i;
  }
  now_ns += kConnectTimeoutNs;
  EXPECT_EQ(reach(), Reach::kNever);
}

TEST_F(ConnectTest, Connecting_with_something_lacking__tries_ever_more_rarely_and_in_time) {
  wire.connect_result = ConnectResult::kShort;
  EXPECT_EQ(reach(), Reach::kLater);
  EXPECT_EQ(reach(), Reach::kLater);
  EXPECT_EQ(wire.connect_count, 1) << "not at once";
  for (std::uint64_t i = 0; i < 999; ++i) {
    now_ns += kConnectTimeoutNs / 1000;
    EXPECT_EQ(reach(), Reach::kLater);
  }
  EXPECT_GT(wire.connect_count, 10);
  EXPECT_LT(wire.connect_count, 100);
  wire.connect_result = ConnectResult::kConnected;
  now_ns += kConnectTimeoutNs / 1000;
  EXPECT_EQ(reach(), Reach::kNow);
}

TEST_F(ConnectTest, Connecting_with_something_lacking__ends_when_the_time_is_over) {
  wire.connect_result = ConnectResult::kShort;
  EXPECT_EQ(reach(), Reach::kLater);
  now_ns += kConnectTimeoutNs;
  EXPECT_EQ(reach(), Reach::kNever);
  EXPECT_EQ(peer().state, PeerState::kUnconnected);
}

// The time of all that wait is over together, and the loop says so, whatever was posted last.
TEST_F(ConnectTest, Connecting__new_requests_and_answers_wait_behind_and_end_with_the_first) {
  wire.connect_result = ConnectResult::kShort;
  start(PacketType::kGet, 8);
  now_ns += kConnectTimeoutNs - 1;
  start(PacketType::kGet, 8);
  send_answer(core, peer(), {});
  now_ns += 1;
  start(PacketType::kGet, 8);
  EXPECT_THAT(kinds(), IsEmpty());
  advance_peer(core, peer());
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kReply, EventKind::kReply, EventKind::kReply));
  EXPECT_EQ(wire.give_up_count, 1);
  EXPECT_EQ(peer().answers.waiting.size(), 0u);
}

// That nobody has the PID may be older than a request that was posted while it was asked: the next owner may have begun
// since. So that one gets an attempt of its own, and no more than that.
TEST_F(ConnectTest, Connecting__ends_only_what_is_older_than_the_attempt_that_finds_nobody) {
  wire.connect_result = ConnectResult::kInProgress;
  start(PacketType::kGet, 8);
  start(PacketType::kPut, 8);
  wire.connect_result = ConnectResult::kNoSuchPeer;
  advance_peer(core, peer());
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kReply));
  wire.connect_result = ConnectResult::kInProgress;
  advance_peer(core, peer());
  start(PacketType::kPut, 8);
  wire.connect_result = ConnectResult::kNoSuchPeer;
  advance_peer(core, peer());
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend));
  wire.connect_result = ConnectResult::kConnected;
  advance_peer(core, peer());
  EXPECT_EQ(wire.sent.size(), 1u);
}

// What has waited for a link belongs to it.
TEST_F(ConnectTest, Connecting_to_Connected__all_that_waits_ends_with_the_link) {
  wire.connect_result = ConnectResult::kInProgress;
  start(PacketType::kPut, 8);
  start(PacketType::kPut, 8);
  wire.room = 0;
  wire.connect_result = ConnectResult::kConnected;
  advance_peer(core, peer());
  wire.kill(kPeer);
  advance_peer(core, peer());
  EXPECT_THAT(kinds(), ElementsAre(EventKind::kSend, EventKind::kSend));
  EXPECT_TRUE(peer().requests.waiting.empty());
}

TEST_F(ConnectTest, Unconnected_or_Connecting__ends_where_nobody_is_or_nobody_wants) {
  for (const ConnectResult result : {ConnectResult::kNoSuchPeer, ConnectResult::kRefused}) {
    wire.connect_result = result;
    EXPECT_EQ(reach(), Reach::kNever);
    EXPECT_EQ(peer().state, PeerState::kUnconnected);
    wire.connect_result = ConnectResult::kInProgress;
    EXPECT_EQ(reach(), Reach::kLater);
    wire.connect_result = result;
    EXPECT_EQ(reach(), Reach::kNever);
    EXPECT_EQ(peer().state, PeerState::kUnconnected);
  }
}

TEST_F(ConnectTest, Lost_link__is_no_way_any_more) {
  reach();
  wire.kill(kPeer);
  EXPECT_EQ(reach(), Reach::kNever);
  EXPECT_EQ(peer().state, PeerState::kConnected) << "until somebody cleans up";
}

TEST_F(ConnectTest, Names_that_have_moved__are_looked_at_once) {
  std::atomic<std::uint64_t> names{2};
  wire.names = &names;
  start(PacketType::kPut, 8);
  names = 4;
  start(PacketType::kPut, 8);
  EXPECT_FALSE(peer().link->may_have_moved());
  start(PacketType::kPut, 8);
  EXPECT_EQ(wire.sent.size(), 3u);
  EXPECT_EQ(wire.disconnect_count, 0) << "the PID was not among them";
}

// The next operation reaches who has the PID; what was under way to the one before ends.
TEST_F(ConnectTest, PID_of_another_process__is_connected_anew_behind_what_the_first_has_sent) {
  std::atomic<std::uint64_t> names{2};
  wire.names = &names;
  start(PacketType::kPut, 8, AckRequest::kFull);
  receive(answer_header(next_sent().operation_id, 8));
  kinds();
  start(PacketType::kPut, 8, AckRequest::kFull);
  const std::uint32_t answered = next_sent().operation_id;
  start(PacketType::kPut, 8, AckRequest::kFull);
  wire.sent.clear();
  names = 4;
  wire.other_has_name = true;
  core.receive_arrived = [](Core& of) { run_cycle_on_duty(of); };
  wire.arrive({kPeer, answer_header(answered, 8), {}});
  start(PacketType::kPut, 8, AckRequest::kFull);
  EXPECT_EQ(wire.disconnect_count, 1);
  EXPECT_EQ(wire.connect_count, 2);
  ASSERT_EQ(wire.sent.size(), 1u);
  std::vector<NiFail> acks;
  for (int i = 0; i < 4; ++i) {
    const Event event = next_event();
    if (event.type == EventKind::kAck) acks.push_back(event.ni_fail_type);
  }
  EXPECT_THAT(acks, ElementsAre(NiFail::kOk, NiFail::kUndeliverable));
  receive(answer_header(next_sent().operation_id, 8));
  EXPECT_EQ(kinds().size(), 2u);
}

// Whoever was stopped has not waited: an answer that had come meanwhile was not taken.
TEST_F(ConnectTest, Lost_link__is_over_once_what_it_has_sent_was_waited_for__a_stop_of_this_process_left_out) {
  start(PacketType::kPut, 8, AckRequest::kFull);
  wire.arrive({kPeer, answer_header(next_sent().operation_id, 8), {}});
  wire.kill(kPeer);
  EXPECT_FALSE(is_over(core, peer())) << "its answer has arrived";
  now_ns += 100 * kMostUnheardNs;
  EXPECT_FALSE(is_over(core, peer())) << "as if it had been a quarter of the time";
  for (int i = 0; i < 2; ++i) {
    now_ns += kMostUnheardNs / 4;
    EXPECT_FALSE(is_over(core, peer())) << i;
  }
  now_ns += kMostUnheardNs / 4;
  EXPECT_TRUE(is_over(core, peer()));
}

TEST_F(ConnectTest, Operation_behind_a_loss__reaches_the_next_life) {
  start(PacketType::kPut, 8);
  wire.sent.clear();
  wire.kill(kPeer);
  start(PacketType::kPut, 8);
  EXPECT_EQ(wire.sent.size(), 1u);
  EXPECT_EQ(counted(Counter::kPeersLost), 1u);
}

}  // namespace
}  // namespace portofu
