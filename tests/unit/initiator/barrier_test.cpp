// Gates: when they pass, what they combine, and what they refuse.

#include "engine/initiator/barrier.h"

#include <algorithm>

#include "engine/memory/guarded_copy.h"
#include "tests/unit/initiator/barrier_fixture.h"
#include "tests/unit/support/faulty_memory.h"

namespace portofu {
namespace {

TEST_F(BarrierTest, Gate__waits_for_signal_and_packet) {
  connect_through_stranger();
  start_barrier(core, *start, value(ReduceOperation::kSum, {1, 2}));
  run();
  EXPECT_EQ(start->state, BarrierState::kRunning);
  receive_value(value(ReduceOperation::kSum, {10, 20}));
  ASSERT_EQ(start->state, BarrierState::kCompleted);
  EXPECT_EQ(start->result.items[0], 11u);
  EXPECT_EQ(start->result.items[1], 22u);
  EXPECT_EQ(start->result.mismatch, 0);
}

TEST_F(BarrierTest, Packets_of_later_rounds__wait_in_order) {
  connect_through_stranger();
  for (const std::uint64_t item : {10, 20, 30}) receive_value(value(ReduceOperation::kMax, {item}));
  for (const std::uint64_t item : {10, 20, 30}) {
    start_barrier(core, *start, value(ReduceOperation::kMax, {5}));
    run();
    ASSERT_EQ(start->state, BarrierState::kCompleted);
    EXPECT_EQ(start->result.items[0], item);
    start->state = BarrierState::kIdle;
  }
}

TEST_F(BarrierTest, Maxloc__takes_the_smaller_location_of_equal_values) {
  connect_through_stranger();
  start_barrier(core, *start, value(ReduceOperation::kMaxloc, {5, 9, 5, 1, 4, 7}));
  receive_value(value(ReduceOperation::kMaxloc, {5, 3, 5, 8, ~0ull, 9}));
  ASSERT_EQ(start->state, BarrierState::kCompleted);
  const std::array<std::uint64_t, kMaxReduceItems> expected{5, 3, 5, 1, ~0ull, 9};
  EXPECT_EQ(start->result.items, expected);
}

TEST_F(BarrierTest, Other_operation_or_length__is_a_mismatch_and_the_next_round_is_none) {
  connect_through_stranger();
  const std::vector<GateValue> others{value(ReduceOperation::kMax, {1}), value(ReduceOperation::kSum, {1, 2}),
                                      value(ReduceOperation::kBarrier, {}), value(ReduceOperation::kSum, {1})};
  for (const GateValue& other : others) {
    start_barrier(core, *start, value(ReduceOperation::kSum, {1}));
    receive_value(other);
    ASSERT_EQ(start->state, BarrierState::kCompleted);
    EXPECT_EQ(start->result.mismatch, &other == &others.back() ? 0 : 1);
    EXPECT_EQ(start->result.operation, ReduceOperation::kSum);
    start->state = BarrierState::kIdle;
  }
}

TEST_F(BarrierTest, Mismatch_of_others__is_passed_on) {
  connect_through_stranger();
  GateValue told = value(ReduceOperation::kSum, {1});
  told.mismatch = 1;
  start_barrier(core, *start, value(ReduceOperation::kSum, {1}));
  receive_value(told);
  EXPECT_EQ(start->state, BarrierState::kCompleted);
  EXPECT_EQ(start->result.mismatch, 1);
}

TEST_F(BarrierTest, Gate_without_inputs__is_over_at_once) {
  configure_gate(core, *start, {});
  start_barrier(core, *start, value(ReduceOperation::kSum, {3}));
  EXPECT_EQ(start->state, BarrierState::kCompleted);
  EXPECT_EQ(start->result.items[0], 3u);
}

TEST_F(BarrierTest, Packets_that_no_circuit_sends__are_refused) {
  connect_through_stranger();
  receive_value(value(ReduceOperation::kSum, {1}), kStranger + 256);
  EXPECT_EQ(refused(), 1u);
  GateValue wrong = value(ReduceOperation::kSum, {1});
  wrong.item_count = kMaxReduceItems + 1;
  receive_bytes(wrong, sizeof wrong);
  EXPECT_EQ(refused(), 2u);
  wrong.item_count = kMaxReduceSums + 1;
  wrong.operation = ReduceOperation::kBfpsum;
  receive_bytes(wrong, sizeof wrong);
  EXPECT_EQ(refused(), 3u);
  wrong.operation = static_cast<ReduceOperation>(0);
  receive_bytes(wrong, sizeof wrong);
  EXPECT_EQ(refused(), 4u);
  EXPECT_TRUE(relay->packets.empty());
}

TEST_F(BarrierTest, Packets_of_another_length_than_their_operation_uses__are_refused) {
  connect_through_stranger();
  GateValue sums = value(ReduceOperation::kBfpsum, {});
  sums.item_count = 2;
  std::uint64_t refused_before = refused();
  for (const GateValue& one : {GateValue(), value(ReduceOperation::kSum, {1, 2}), sums}) {
    const std::size_t right = gate_value_bytes(one);
    for (const std::size_t bytes : {std::size_t{1}, right - 1, right + 1, right + 8, sizeof one, sizeof one + 1}) {
      receive_bytes(one, bytes);
      EXPECT_EQ(refused(), ++refused_before) << right << ' ' << bytes;
    }
    EXPECT_TRUE(relay->packets.empty());
  }
}

TEST_F(BarrierTest, Packet_that_its_sender_has_unmade__is_refused) {
  install_fault_guard();
  const FaultyMemory gone;
  connect_through_stranger();
  receive_value(GateValue());
  PacketHeader header = header_of(8, kStranger);
  receive(header, Payload(gone.edge()));
  EXPECT_EQ(refused(), 1u);
  EXPECT_EQ(relay->packets.size(), 1u);
}

TEST_F(BarrierTest, Packet__carries_what_its_operation_uses) {
  connect_through_stranger();
  GateValue sums = value(ReduceOperation::kBfpsum, {});
  sums.item_count = 1;
  sums.sums[0].add(0.5);
  EXPECT_EQ(gate_value_bytes(GateValue()), 8u);
  EXPECT_EQ(gate_value_bytes(value(ReduceOperation::kMaxloc, {3, 4})), 24u);
  EXPECT_EQ(gate_value_bytes(sums), 56 + sizeof(ExactSum));
  receive_value(sums);
  ASSERT_EQ(relay->packets.size(), 1u);
  EXPECT_EQ(relay->packets.front().sums[0].value(), 0.5);
  EXPECT_EQ(relay->packets.front().sums[1].value(), 0.0) << "what did not come is nothing";
}

TEST_F(BarrierTest, Packets_without_end__are_refused) {
  connect_through_stranger();
  for (int i = 0; i < 1000; ++i) receive_value(GateValue());
  EXPECT_LE(relay->packets.size(), 64u);
  EXPECT_GT(refused(), 900u);
}

TEST_F(BarrierTest, Lost_target__fails_the_barrier_and_all_that_follow) {
  directory.result = FindResult::kNobody;
  configure_gate(core, *start, {.local_source = relay->id, .remote_target = kStranger});
  for (int round = 0; round < 3; ++round) {
    start_barrier(core, *start, GateValue());
    EXPECT_EQ(start->state, BarrierState::kFailed);
  }
}

// Who waits for packets says so, and so learns that nobody is there.
TEST_F(BarrierTest, Source__is_told_that_it_is_waited_for) {
  connect_through_stranger();
  ASSERT_EQ(wire.sent.size(), 1u);
  EXPECT_EQ(wire.sent.front().header.length, 0u);
  EXPECT_EQ(wire.sent.front().header.rounds_left, kAllRounds);
  receive_end(kAllRounds, kStranger + 256);
  EXPECT_EQ(relay->whole_rounds, kAllRounds) << "what another one says in this way is nothing to us";
  EXPECT_EQ(refused(), 0u);
}

TEST_F(BarrierTest, Lost_source__fails_the_barrier_and_all_that_follow) {
  directory.result = FindResult::kNobody;
  configure_gate(core, *start, {.remote_source = kStranger});
  for (int round = 0; round < 3; ++round) {
    start_barrier(core, *start, GateValue());
    EXPECT_EQ(start->state, BarrierState::kFailed);
  }
}

// ---- Ends

TEST_F(BarrierTest, End__fails_the_rounds_that_come_no_more_and_no_other) {
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
    EXPECT_TRUE(relay->signals.empty()) << "nobody runs ahead";
  }
  EXPECT_EQ(refused(), 0u);
}

TEST_F(BarrierTest, End_while_a_barrier_runs__fails_it) {
  connect_through_stranger();
  start_barrier(core, *start, GateValue());
  run();
  receive_end(0);
  EXPECT_EQ(start->state, BarrierState::kFailed);
}

TEST_F(BarrierTest, End__is_told_once_to_the_remote_target_and_again_only_if_it_is_nearer) {
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

TEST_F(BarrierTest, End__goes_out_behind_what_was_sent_and_counts_from_there) {
  connect_to_peer();
  receive_value(GateValue());
  receive_value(GateValue());
  receive_end(3);
  ASSERT_EQ(wire.sent.size(), 3u);
  EXPECT_EQ(wire.sent.back().header.length, 0u);
  EXPECT_EQ(wire.sent.back().header.rounds_left, 3u);
}

TEST_F(BarrierTest, End_that_cannot_be_told__fails_nothing) {
  wire.connect_result = ConnectResult::kNoSuchPeer;
  configure_gate(core, *relay, {.local_source = start->id, .remote_target = kStranger});
  end_gate(core, *relay, 3);
  run();
  EXPECT_EQ(start->whole_rounds, kAllRounds) << "its target may have been through its last round";
}

TEST_F(BarrierTest, End_before_the_gate_is_connected__counts) {
  receive_end(4);
  EXPECT_EQ(refused(), 0u);
  connect_through_stranger();
  start_barrier(core, *start, GateValue());
  run();
  EXPECT_EQ(start->state, BarrierState::kFailed);
  connect_through_stranger();
  EXPECT_EQ(relay->whole_rounds, kAllRounds) << "a circuit that is made anew is another one";
}

// Somebody may be connected in the next circuit already, and its source die, while we are still in the last one. But it
// may have said so in a circuit before: it is asked.
TEST_F(BarrierTest, End_of_who_is_the_source_next__is_asked_for_then) {
  constexpr std::uint64_t kNext = kStranger + 256;
  connect_through_stranger();
  receive_end(0, kNext);
  EXPECT_EQ(relay->whole_rounds, kAllRounds) << "it is nothing to this circuit";
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

TEST_F(BarrierTest, Packets_of_nobody__are_refused_where_none_are_awaited) {
  configure_gate(core, *relay, {.local_source = start->id});
  receive_value(GateValue(), BarrierGate::kNoGate);
  EXPECT_EQ(relay->rounds_passed, 0u) << "its signal has not come";
  EXPECT_EQ(refused(), 1u);
  receive_end(0, BarrierGate::kNoGate);
  EXPECT_EQ(relay->whole_rounds, kAllRounds);
}

TEST_F(BarrierTest, End_in_a_long_chain_of_gates__needs_no_recursion) {
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
TEST_F(BarrierTest, What_came_before_the_death__is_used) {
  connect_to_peer();
  receive_value(GateValue());
  receive_value(GateValue());
  fail_barriers_with(core, kPeer);
  EXPECT_EQ(relay->whole_rounds, 2u);
  fail_barriers_with(core, kOther);
  EXPECT_EQ(relay->whole_rounds, 2u);
}

// Somebody may have taken the number of a dead process before its death is noticed, and packets may have gone there.
TEST_F(BarrierTest, Death_of_whose_number_is_anothers_now__counts) {
  connect_to_peer();
  directory.now = {kOther, 0};
  fail_barriers_with(core, kOther);
  EXPECT_EQ(relay->whole_rounds, kAllRounds) << "he is of no circuit of ours";
  core.tofu->distrust_owner(kPeer);
  receive_value(GateValue());
  ASSERT_EQ(wire.sent.size(), 1u);
  EXPECT_EQ(wire.sent.front().process, kPeer) << "the other one may await packets of us, too, in another circuit";
  fail_barriers_with(core, kPeer);
  EXPECT_EQ(relay->whole_rounds, 1u);
}

// Whoever has the number then may be connected already, with us as his source, before we have noticed that death.
TEST_F(BarrierTest, End_by_the_death_of_the_target__is_not_told_to_who_has_his_number_now) {
  connect_to_peer();
  directory.now = {kOther, 0};
  core.tofu->distrust_owner(kPeer);
  fail_barriers_with(core, kPeer);
  run();
  EXPECT_EQ(relay->whole_rounds, 0u);
  EXPECT_TRUE(wire.sent.empty());
  configure_gate(core, *relay, {.remote_source = kStranger, .remote_target = kStranger + 256});
  wire.sent.clear();
  receive_end(rounds_word(relay->setting, 5));
  EXPECT_EQ(wire.sent.size(), 1u) << "he is the target of this circuit";
}

// The target is through with its last round, and has given its gate up, before its source hears of an end.
TEST_F(BarrierTest, End__is_told_to_who_was_the_target_not_to_who_has_the_number_now) {
  connect_to_peer();
  directory.now = {kOther, 0};
  core.tofu->distrust_owner(kPeer);
  receive_end(0);
  ASSERT_EQ(wire.sent.size(), 1u);
  EXPECT_EQ(wire.sent.front().process, kPeer);
}

// What is configured anew awaits whoever has the number then.
TEST_F(BarrierTest, Death_of_who_had_the_number_before__fails_nothing) {
  connect_to_peer();
  directory.now = {kOther, 0};
  configure_gate(core, *relay, {.remote_source = kStranger, .remote_target = kStranger + 256});
  fail_barriers_with(core, kPeer);
  EXPECT_EQ(relay->whole_rounds, kAllRounds);
}

// The last setting of a set takes effect (3.4.2.1).
TEST_F(BarrierTest, Death_of_the_target_of_a_gate_that_is_left_out__is_nothing_to_its_set) {
  for (const bool left_out : {true, false}) {
    configure_gate(core, *start, {.local_source = start->id, .local_target = start->id});
    configure_gate(core, *relay, {.remote_target = kStranger});
    relay->is_left_out = left_out;
    fail_barriers_with(core, kPeer);
    EXPECT_EQ(start->whole_rounds == kAllRounds, left_out);
  }
}

}  // namespace
}  // namespace portofu
