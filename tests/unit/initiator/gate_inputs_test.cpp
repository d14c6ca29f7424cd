// Which inputs of a gate are counted for which round, and what it takes of them.

#include "engine/initiator/gate_inputs.h"

#include "tests/unit/initiator/barrier_fixture.h"

namespace portofu {
namespace {

class GateInputsTest : public BarrierTest {
 protected:
  GateInputsTest() {
    *static_cast<GateEnds*>(relay) = {.local_source = start->id, .remote_source = kStranger};
    relay->configured = true;
  }

  void bring_signal(std::uint64_t item) { bring(relay->rounds.signals, item); }
  void bring_packet(std::uint64_t item) { bring(relay->rounds.packets, item); }
  std::uint64_t counted() const { return relay->rounds.inputs.success(); }

 private:
  void bring(GrowingRing<GateValue>& into, std::uint64_t item) {
    into.push_back(value(ReduceOperation::kSum, {item}));
    count_inputs(core, *relay);
  }
};

TEST_F(GateInputsTest, Inputs__count_once_a_round) {
  bring_signal(1);
  bring_signal(2);
  EXPECT_EQ(counted(), 1u) << "the second one is of the next round";
  count_inputs(core, *relay);
  EXPECT_EQ(counted(), 1u);
  bring_packet(10);
  EXPECT_EQ(counted(), 2u);
  EXPECT_EQ(take_inputs(relay->rounds).items[0], 11u);
  EXPECT_EQ(relay->rounds.passed, 1u);
  EXPECT_EQ(relay->rounds.signals_in(), 2u);
  count_inputs(core, *relay);
  EXPECT_EQ(counted(), 3u);
}

TEST_F(GateInputsTest, Packets_of_a_source_that_is_not_trusted__are_not_counted) {
  relay->source.asks = true;
  bring_packet(1);
  EXPECT_EQ(counted(), 0u);
  relay->source.first_setting = kSetting;
  count_inputs(core, *relay);
  EXPECT_EQ(counted(), 1u);
}

TEST_F(GateInputsTest, Gate_that_is_not_connected__counts_nothing) {
  relay->configured = false;
  bring_signal(1);
  EXPECT_EQ(counted(), 0u);
}

TEST_F(GateInputsTest, Gate__is_armed_for_one_round_at_a_time) {
  for (std::uint64_t round = 1; round <= 3; ++round) {
    arm_gate(core, *relay);
    arm_gate(core, *relay);
    EXPECT_EQ(relay->rounds.awaited_inputs, 2 * round);
    EXPECT_EQ(relay->rounds.inputs.waiting_count(), 1u);
    bring_signal(1);
    EXPECT_TRUE(core.fired.empty());
    bring_packet(1);
    ASSERT_EQ(core.fired.size(), 1u);
    core.fired.pop_front_and_dispose([](TriggeredOperation* operation) { delete operation; });
    take_inputs(relay->rounds);
    EXPECT_FALSE(relay->rounds.armed);
  }
}

TEST_F(GateInputsTest, Gate_without_inputs__waits_for_nothing) {
  *static_cast<GateEnds*>(relay) = {};
  arm_gate(core, *relay);
  EXPECT_FALSE(relay->rounds.armed);
  EXPECT_FALSE(relay->rounds.inputs.has_waiting());
}

}  // namespace
}  // namespace portofu
