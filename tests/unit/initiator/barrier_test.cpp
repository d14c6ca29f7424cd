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
  EXPECT_TRUE(relay->rounds.packets.empty());
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
    EXPECT_TRUE(relay->rounds.packets.empty());
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
  EXPECT_EQ(relay->rounds.packets.size(), 1u);
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
  ASSERT_EQ(relay->rounds.packets.size(), 1u);
  EXPECT_EQ(relay->rounds.packets.front().sums[0].value(), 0.5);
  EXPECT_EQ(relay->rounds.packets.front().sums[1].value(), 0.0) << "what did not come is nothing";
}

TEST_F(BarrierTest, Packets_without_end__are_refused) {
  connect_through_stranger();
  for (int i = 0; i < 1000; ++i) receive_value(GateValue());
  EXPECT_LE(relay->rounds.packets.size(), 64u);
  EXPECT_GT(refused(), 900u);
  for (int round = 0; round < 65; ++round) {
    start->state = BarrierState::kIdle;
    start_barrier(core, *start, GateValue());
    run();
    ASSERT_EQ(start->state, round < 64 ? BarrierState::kCompleted : BarrierState::kFailed) << "those that came count";
    receive_value(GateValue());  // After those that were refused.
  }
}

// A start/end gate without inputs does not wait for anybody.
TEST_F(BarrierTest, Signals_without_end__fail_the_barriers_whose_signals_are_lost) {
  BarrierGate* const other = core.tofu->claim_gate(make_tofu_id(TofuIdKind::kVbg, {}, make_queue_number(0, 1, 0)));
  other->set_id = other->id;
  configure_gate(core, *start, {.local_target = other->id});
  configure_gate(core, *other, {.local_source = start->id});
  for (int i = 0; i < 1000; ++i) {
    start->state = BarrierState::kIdle;
    start_barrier(core, *start, GateValue());
  }
  for (int round = 0; round < 65; ++round) {
    other->state = BarrierState::kIdle;
    start_barrier(core, *other, GateValue());
    run();
    ASSERT_EQ(other->state, round < 64 ? BarrierState::kCompleted : BarrierState::kFailed);
  }
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
  EXPECT_EQ(relay->rounds.whole, kAllRounds) << "what another one says in this way is nothing to us";
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

}  // namespace
}  // namespace portofu
