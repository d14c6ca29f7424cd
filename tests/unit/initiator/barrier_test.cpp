// Gates: when they pass, what they combine, and what they refuse.

#include "engine/initiator/barrier.h"

#include <algorithm>

#include "engine/memory/guarded_copy.h"
#include "engine/run/loop.h"
#include "tests/unit/support/core_fixture.h"
#include "tests/unit/support/faulty_memory.h"

namespace portofu {
namespace {

class BarrierTest : public CoreTest {
 protected:
  static constexpr std::uint64_t kStranger = make_tofu_id(TofuIdKind::kVbg, {}, make_queue_number(3, 9, 0));

  BarrierTest() {
    core.tofu = std::make_unique<Tofu>(Coordinates{}, nullptr);
    start = gate(0);
    relay = gate(16);
  }

  /// A gate of the set of gate 0.
  BarrierGate* gate(std::uint32_t index) {
    const auto id = [](std::uint32_t at) { return make_tofu_id(TofuIdKind::kVbg, {}, make_queue_number(0, at, 0)); };
    BarrierGate* made = core.tofu->claim_gate(id(index));
    made->set_id = id(0);
    made->configured = true;
    return made;
  }

  /// The start/end gate signals to a relay gate that waits for packets of a stranger, and that signals back.
  void connect_through_stranger() {
    start->local_target = start->local_source = relay->id;
    relay->local_target = relay->local_source = start->id;
    relay->remote_source = kStranger;
    arm_gate(core, *relay);
  }

  static GateValue value(ReduceOperation operation, std::initializer_list<std::uint64_t> items) {
    GateValue made;
    made.operation = operation;
    made.item_count = static_cast<std::uint8_t>(items.size());
    std::copy(items.begin(), items.end(), made.items.begin());
    return made;
  }

  void receive_value(const GateValue& made, std::uint64_t source = kStranger) {
    receive_bytes(made, gate_value_bytes(made), source);
  }

  /// A packet with the first `bytes` bytes of a value.
  void receive_bytes(const GateValue& made, std::size_t bytes, std::uint64_t source = kStranger) {
    const auto* const from = reinterpret_cast<const std::byte*>(&made);
    std::vector<std::byte> payload(from, from + std::min(bytes, sizeof made));
    payload.resize(bytes);
    receive(header_of(bytes, source), payload);
    run();
  }

  PacketHeader header_of(std::size_t bytes, std::uint64_t source) const {
    PacketHeader header{};
    header.type = PacketType::kTofuGate;
    header.interface_index = kTofuInterface;
    header.initiator_rank = queue_number(relay->id);
    header.hdr_data = source;
    header.length = header.payload_bytes = static_cast<std::uint32_t>(bytes);
    header.uid = kPeerUid;
    header.job_key = kJobKey;
    return header;
  }

  void run() {
    while (run_cycle_on_duty(core) > 0) {
    }
  }

  BarrierGate* start = nullptr;
  BarrierGate* relay = nullptr;
};

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

TEST_F(BarrierTest, Mismatch_or_failure_of_others__is_passed_on) {
  connect_through_stranger();
  GateValue told = value(ReduceOperation::kSum, {1});
  told.mismatch = 1;
  start_barrier(core, *start, value(ReduceOperation::kSum, {1}));
  receive_value(told);
  EXPECT_EQ(start->result.mismatch, 1);
  start->state = BarrierState::kIdle;
  told.mismatch = 0;
  told.failed = 1;
  start_barrier(core, *start, value(ReduceOperation::kSum, {1}));
  receive_value(told);
  EXPECT_EQ(start->result.failed, 1);
}

TEST_F(BarrierTest, Gate_without_inputs__is_over_at_once) {
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
    for (const std::size_t bytes : {std::size_t{0}, right - 1, right + 1, right + 8, sizeof one, sizeof one + 1}) {
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

TEST_F(BarrierTest, Lost_target__fails_the_barrier) {
  start->remote_target = kStranger;
  start->remote_source = kStranger;
  start_barrier(core, *start, GateValue());
  EXPECT_EQ(start->state, BarrierState::kCompleted);
  EXPECT_EQ(start->result.failed, 1);
}

// Barriers of a set that has lost a process are over at once; what they owe to others goes out nevertheless.
TEST_F(BarrierTest, Barriers_that_fail_at_once__each_pass_their_gates) {
  connect_through_stranger();
  BarrierGate* const unstarted = gate(32);  // Of a set that only relays.
  unstarted->set_id = unstarted->id + 1;
  unstarted->remote_source = kStranger;
  arm_gate(core, *unstarted);
  for (BarrierGate* lost : {relay, unstarted}) lost->peer_lost = lost->source_lost = true;
  for (int round = 0; round < 3; ++round) {
    start_barrier(core, *start, GateValue());
    EXPECT_EQ(start->state, BarrierState::kCompleted);
    EXPECT_EQ(start->result.failed, 1);
  }
  run();
  for (const BarrierGate* lost : {relay, unstarted}) {
    EXPECT_EQ(lost->rounds_passed, 3u);
    EXPECT_TRUE(lost->packets.empty());
  }
}

// A packet that has come before its process died is one of those that are awaited.
TEST_F(BarrierTest, What_came_before_the_death__is_used) {
  connect_through_stranger();
  receive_value(GateValue());
  relay->source_lost = true;
  start_barrier(core, *start, GateValue());
  run();
  ASSERT_EQ(start->state, BarrierState::kCompleted);
  EXPECT_EQ(start->result.failed, 0);
  EXPECT_EQ(relay->rounds_passed, 1u);
}

}  // namespace
}  // namespace portofu
