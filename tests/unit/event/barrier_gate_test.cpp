// What a gate is made of. What gates do is tested in tests/unit/initiator/barrier_test.cpp.

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

TEST(BarrierGate, New_value__is_a_barrier_without_items) {
  const GateValue value;
  EXPECT_EQ(value.operation, ReduceOperation::kBarrier);
  EXPECT_EQ(value.item_count, 0);
  EXPECT_EQ(value.mismatch, 0);
  EXPECT_EQ(value.sums[2].value(), 0.0);
}

}  // namespace
}  // namespace portofu
