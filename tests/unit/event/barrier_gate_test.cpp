// What a gate is made of. What gates do is tested in tests/unit/initiator: barrier_test.cpp, circuit_test.cpp.

#include "engine/event/barrier_gate.h"

#include <gtest/gtest.h>

namespace portofu {
namespace {

TEST(BarrierGate, Inputs__are_those_that_are_not_masked) {
  BarrierGate gate;
  EXPECT_EQ(gate.input_count(), 0u);
  gate.local_source = 1;
  EXPECT_EQ(gate.input_count(), 1u);
  gate.remote_source = 0;  // Zero is an id like any other.
  EXPECT_EQ(gate.input_count(), 2u);
  gate.local_source = BarrierGate::kNoGate;
  EXPECT_EQ(gate.input_count(), 1u);
}

TEST(BarrierGate, Start_end_gate__is_the_one_that_its_set_is_named_after) {
  BarrierGate gate;
  gate.id = gate.set_id = 7;
  EXPECT_TRUE(gate.is_start());
  gate.id = 8;
  EXPECT_FALSE(gate.is_start());
}

TEST(BarrierGate, Packets__are_taken_of_its_source_only) {
  BarrierGate gate;
  EXPECT_FALSE(gate.takes_packets_of(BarrierGate::kNoGate)) << "it has none";
  gate.remote_source = 0;
  EXPECT_TRUE(gate.takes_packets_of(0));
  EXPECT_FALSE(gate.takes_packets_of(1));
}

TEST(GateSource, Certain_setting__is_what_came_last_if_no_earlier_circuit_can_have_sent_it) {
  GateSource source;
  EXPECT_TRUE(source.is_trusted());
  EXPECT_EQ(source.certain_setting(), 0u) << "nothing has come";
  source.heard_setting = 6;
  EXPECT_EQ(source.certain_setting(), 6u);
  source.value_setting = 7;
  EXPECT_EQ(source.certain_setting(), 7u);
}

TEST(GateSource, Certain_setting__is_not_known_before_it_has_answered_and_then_never_an_earlier_one) {
  GateSource source;
  source.asks = true;
  source.heard_setting = source.value_setting = 7;
  EXPECT_FALSE(source.is_trusted());
  EXPECT_EQ(source.certain_setting(), 0u);
  source.first_setting = 8;
  EXPECT_TRUE(source.is_trusted());
  EXPECT_EQ(source.certain_setting(), 8u) << "the value was late";
  source.value_setting = 9;
  EXPECT_EQ(source.certain_setting(), 9u);
  source.first_setting = UINT32_MAX - 1;
  source.value_setting = 1;
  EXPECT_EQ(source.certain_setting(), 1u) << "numbers begin anew";
}

TEST(GateNotices, Any__is_each) {
  EXPECT_FALSE(GateNotices().any());
  EXPECT_TRUE((GateNotices{.end = true}.any()));
  EXPECT_TRUE((GateNotices{.question = true}.any()));
  EXPECT_TRUE((GateNotices{.answer = 1}.any()));
}

TEST(BarrierGate, New_value__is_a_barrier_without_items) {
  const GateValue value;
  EXPECT_EQ(value.operation, ReduceOperation::kBarrier);
  EXPECT_EQ(value.item_count, 0);
  EXPECT_EQ(value.mismatch, 0);
  EXPECT_EQ(value.sums[2].value(), 0.0);
}

}  // namespace
}  // namespace portofu
