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

TEST(GateSource, Another_circuit__forgets_all_but_what_was_heard) {
  GateSource source;
  EXPECT_TRUE(source.is_trusted());
  source.process = {1, 2};
  source.first_setting = source.heard_setting = source.value_setting = 7;
  source.begin(true, true);
  EXPECT_EQ(source.process, ProcessId{});
  EXPECT_FALSE(source.is_trusted());
  EXPECT_TRUE(source.doubts);
  EXPECT_EQ(source.heard_setting, 7u);
  EXPECT_EQ(source.former_setting, 7u);
  source.begin(false, false);
  EXPECT_TRUE(source.is_trusted());
  EXPECT_EQ(source.former_setting, 0u) << "that was another one's";
}

TEST(GateSource, Last_setting__is_of_this_circuit_if_it_is_told_and_new) {
  GateSource source;
  source.heard_setting = 7;
  EXPECT_FALSE(source.has_told());
  source.told_setting = 7;
  EXPECT_TRUE(source.has_told());
  source.former_setting = 7;
  EXPECT_FALSE(source.has_told()) << "values of it have come in the circuit before";
  source.heard_setting = 8;
  EXPECT_TRUE(source.has_told());
  source.former_setting = UINT32_MAX - 1;
  source.heard_setting = 1;
  EXPECT_TRUE(source.has_told()) << "numbers begin anew";
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
