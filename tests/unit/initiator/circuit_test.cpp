// Ends of a circuit: who hears of them, and which rounds still pass.

#include "engine/initiator/circuit.h"

#include "tests/unit/initiator/barrier_fixture.h"

namespace portofu {
namespace {

class CircuitTest : public BarrierTest {};

TEST_F(CircuitTest, End__fails_the_rounds_that_come_no_more_and_no_other) {
  connect_through_stranger();
  receive_value(GateValue());
  receive_end(1);
  for (const BarrierState end : {BarrierState::kCompleted, BarrierState::kRunning}) {
    start_barrier(core, *start, GateValue());
    run();
    ASSERT_EQ(start->state, end);
  }
  receive_value(GateValue());
  EXPECT_EQ(start->state, BarrierState::kCompleted) << "it was the one that still comes";
  for (int round = 0; round < 3; ++round) {
    start_barrier(core, *start, GateValue());
    EXPECT_EQ(start->state, BarrierState::kFailed);
    EXPECT_TRUE(relay->rounds.signals.empty()) << "nobody runs ahead";
  }
  EXPECT_EQ(refused(), 0u);
}

TEST_F(CircuitTest, End_while_a_barrier_runs__fails_it) {
  connect_through_stranger();
  start_barrier(core, *start, GateValue());
  run();
  receive_end(0);
  EXPECT_EQ(start->state, BarrierState::kFailed);
}

TEST_F(CircuitTest, End__is_told_once_to_the_remote_target_and_again_only_if_it_is_nearer) {
  connect_to_peer();
  for (const std::uint64_t left : {5, 5, 9, 2}) receive_end(left);
  std::vector<std::uint64_t> told;
  for (const FakePacket& packet : wire.sent) {
    EXPECT_EQ(packet.header.type, PacketType::kTofuGate);
    EXPECT_EQ(packet.header.length, 0u);
    told.push_back(packet.header.rounds_left);
  }
  EXPECT_EQ(told, (std::vector<std::uint64_t>{5, 2}));
}

TEST_F(CircuitTest, End__goes_out_behind_what_was_sent_and_counts_from_there) {
  connect_to_peer();
  receive_value(GateValue());
  receive_value(GateValue());
  receive_end(3);
  ASSERT_EQ(wire.sent.size(), 3u);
  EXPECT_EQ(wire.sent.back().header.length, 0u);
  EXPECT_EQ(wire.sent.back().header.rounds_left, 3u);
}

TEST_F(CircuitTest, End_that_cannot_be_told__fails_nothing) {
  wire.connect_result = ConnectResult::kNoSuchPeer;
  configure_gate(core, *relay, {.local_source = start->id, .remote_target = kStranger});
  end_gate(core, *relay, 3);
  run();
  EXPECT_EQ(start->rounds.whole, kAllRounds) << "its target may have been through its last round";
}

TEST_F(CircuitTest, End_before_the_gate_is_connected__counts) {
  receive_end(4);
  EXPECT_EQ(refused(), 0u);
  connect_through_stranger();
  start_barrier(core, *start, GateValue());
  run();
  EXPECT_EQ(start->state, BarrierState::kFailed);
  connect_through_stranger();
  EXPECT_EQ(relay->rounds.whole, kAllRounds) << "a circuit that is made anew is another one";
}

// Somebody may be connected in the next circuit already, and its source die, while we are still in the last one. But it
// may have said so in a circuit before: it is asked.
TEST_F(CircuitTest, End_of_who_is_the_source_next__is_asked_for_then) {
  constexpr std::uint64_t kNext = kStranger + 256;
  connect_through_stranger();
  receive_end(0, kNext);
  EXPECT_EQ(relay->rounds.whole, kAllRounds) << "it is nothing to this circuit";
  configure_gate(core, *relay, {.local_source = start->id, .remote_source = kNext, .local_target = start->id});
  wire.sent.clear();
  start_barrier(core, *start, GateValue());
  run();
  EXPECT_EQ(start->state, BarrierState::kRunning);
  ASSERT_EQ(wire.sent.size(), 1u);
  EXPECT_EQ(wire.sent.front().header.rounds_left, rounds_word(relay->setting, kWhatIsLeft));
  receive_end(rounds_word(relay->setting, 0), kNext);
  EXPECT_EQ(start->state, BarrierState::kFailed);
}

TEST_F(CircuitTest, Packets_of_nobody__are_refused_where_none_are_awaited) {
  configure_gate(core, *relay, {.local_source = start->id});
  receive_value(GateValue(), BarrierGate::kNoGate);
  EXPECT_EQ(relay->rounds.passed, 0u) << "its signal has not come";
  EXPECT_EQ(refused(), 1u);
  receive_end(0, BarrierGate::kNoGate);
  EXPECT_EQ(relay->rounds.whole, kAllRounds);
}

TEST_F(CircuitTest, End_in_a_long_chain_of_gates__needs_no_recursion) {
  constexpr std::uint32_t kGates = 20'000;
  std::vector<BarrierGate*> chain{start};
  for (std::uint32_t i = 1; i < kGates; ++i) chain.push_back(gate(100 + i));
  for (std::uint32_t i = 0; i < kGates; ++i) {
    configure_gate(core, *chain[i],
                   {.local_source = chain[(i + kGates - 1) % kGates]->id, .local_target = chain[(i + 1) % kGates]->id});
  }
  start_barrier(core, *start, GateValue());
  end_gate(core, *chain[1], 1);
  run();
  EXPECT_EQ(start->state, BarrierState::kCompleted);
  start_barrier(core, *start, GateValue());
  EXPECT_EQ(start->state, BarrierState::kFailed);
}

// A packet that has come before its process died is one of those that are awaited.
TEST_F(CircuitTest, What_came_before_the_death__is_used) {
  connect_to_peer();
  receive_value(GateValue());
  receive_value(GateValue());
  fail_barriers_with(core, kPeer);
  EXPECT_EQ(relay->rounds.whole, 2u);
  fail_barriers_with(core, kOther);
  EXPECT_EQ(relay->rounds.whole, 2u);
}

// Somebody may have taken the number of a dead process before its death is noticed, and packets may have gone there.
TEST_F(CircuitTest, Death_of_whose_number_is_anothers_now__counts) {
  connect_to_peer();
  directory.now = {kOther, 0};
  fail_barriers_with(core, kOther);
  EXPECT_EQ(relay->rounds.whole, kAllRounds) << "he is of no circuit of ours";
  core.tofu->distrust_owner(kPeer);
  receive_value(GateValue());
  ASSERT_EQ(wire.sent.size(), 1u);
  EXPECT_EQ(wire.sent.front().process, kPeer) << "the other one may await packets of us, too, in another circuit";
  fail_barriers_with(core, kPeer);
  EXPECT_EQ(relay->rounds.whole, 1u);
}

// Whoever has the number then may be connected already, with us as his source, before we have noticed that death.
TEST_F(CircuitTest, End_by_the_death_of_the_target__is_not_told_to_who_has_his_number_now) {
  connect_to_peer();
  directory.now = {kOther, 0};
  core.tofu->distrust_owner(kPeer);
  lose_peer(core, peer());
  run();
  EXPECT_EQ(relay->rounds.whole, 0u);
  EXPECT_TRUE(wire.sent.empty());
  configure_gate(core, *relay, {.remote_source = kStranger, .remote_target = kStranger + 256});
  wire.sent.clear();
  receive_end(rounds_word(relay->setting, 5));
  EXPECT_EQ(wire.sent.size(), 1u) << "he is the target of this circuit";
}

// The target is through with its last round, and has given its gate up, before its source hears of an end.
TEST_F(CircuitTest, End__is_told_to_who_was_the_target_not_to_who_has_the_number_now) {
  connect_to_peer();
  directory.now = {kOther, 0};
  core.tofu->distrust_owner(kPeer);
  receive_end(0);
  ASSERT_EQ(wire.sent.size(), 1u);
  EXPECT_EQ(wire.sent.front().process, kPeer);
}

// What is configured anew awaits whoever has the number then.
TEST_F(CircuitTest, Death_of_who_had_the_number_before__fails_nothing) {
  connect_to_peer();
  directory.now = {kOther, 0};
  configure_gate(core, *relay, {.remote_source = kStranger, .remote_target = kStranger + 256});
  fail_barriers_with(core, kPeer);
  EXPECT_EQ(relay->rounds.whole, kAllRounds);
}

// The last setting of a set takes effect (3.4.2.1).
TEST_F(CircuitTest, Death_of_the_target_of_a_gate_that_is_left_out__is_nothing_to_its_set) {
  for (const bool left_out : {true, false}) {
    configure_gate(core, *start, {.local_source = start->id, .local_target = start->id});
    configure_gate(core, *relay, {.remote_target = kStranger});
    relay->is_left_out = left_out;
    fail_barriers_with(core, kPeer);
    EXPECT_EQ(start->rounds.whole == kAllRounds, left_out);
  }
}

}  // namespace
}  // namespace portofu
