// The engine over played wires and a played clock: post, settle, arm. What looks or waits is in engine_wait_test.cpp,
// its end in engine_end_test.cpp.

#include "engine/run/engine.h"

#include <gtest/gtest.h>

#include "tests/unit/run/engine_fixture.h"

namespace portofu {
namespace {

class EngineTest : public EngineFixture {};

TEST_F(EngineTest, Identity__is_what_was_given) {
  EXPECT_EQ(engine->self(), kSelf);
  EXPECT_EQ(engine->uid(), 1000u);
}

TEST_F(EngineTest, Post__goes_to_the_wire_at_once) {
  post(put());
  ASSERT_EQ(wire.sent.size(), 1u);
  EXPECT_EQ(wire.sent[0].header.type, PacketType::kPut);
  EXPECT_EQ(wire.sent[0].header.uid, 1000u);
}

TEST_F(EngineTest, Post__without_room_waits_and_a_step_goes_on) {
  wire.room = 0;
  post(put());
  EXPECT_EQ(engine->step(), 0);
  wire.room = FakeWire::kPlentyOfRoom;
  EXPECT_EQ(engine->step(), 1);
  EXPECT_EQ(wire.sent.size(), 1u);
  EXPECT_EQ(engine->step(), 0);
}

TEST_F(EngineTest, Post__that_has_to_wait_takes_in_what_has_arrived) {
  for (int i = 0; i < 4; ++i) post(get());
  arrive_answer();
  post(get());  // Beyond the window: takes the answer in, and goes on.
  EXPECT_EQ(wire.sent.size(), 4u);
  EXPECT_EQ(pending(), 4u);
}

/// What is only lent is on its way: the next call that starts something need not look at the wire for it.
TEST_F(EngineTest, Post__after_one_that_is_lent_takes_nothing_in) {
  wire.lends = true;
  post(put(4 * FakeWire::kMaxPayloadBytes));
  EXPECT_EQ(wire.lent_count, 1);
  post(get());
  wire.take();
  arrive_answer();
  post(put());
  EXPECT_EQ(pending(), 2u) << "the lent put, and the get";
  EXPECT_EQ(engine->step(), 1);
}

TEST_F(EngineTest, Settle__starts_what_the_change_of_a_counter_has_set_free) {
  const Engine::Duty duty(*engine);
  const Interface& ni = *duty.core().interface(kIndex);
  arm_operation(duty.core(), *ni.cts.find(ct), put(), {ct, 1});
  Descriptor counts = increment();
  engine->post_on_duty(counts);
  EXPECT_EQ(wire.sent.size(), 1u);
  EXPECT_EQ(ni.triggered_count, 0u);
}

TEST_F(EngineTest, Arm__lets_an_operation_wait_or_starts_it) {
  const Engine::Duty duty(*engine);
  EXPECT_EQ(engine->arm_on_duty(put(), {ct, 2}), Armed::kYes);
  EXPECT_EQ(wire.sent.size(), 0u);
  EXPECT_EQ(engine->arm_on_duty(put(), {ct, 0}), Armed::kYes);
  EXPECT_EQ(wire.sent.size(), 1u) << "3.16: the threshold is reached already";
  EXPECT_EQ(engine->arm_on_duty(put(), {ct + 1, 0}), Armed::kNoCounter);
}

/// 3.6.1: the limit is of operations "outstanding": what has reached its threshold is none of them.
TEST_F(EngineTest, Arm__refuses_what_would_wait_beyond_the_limit) {
  const Engine::Duty duty(*engine);
  Interface& ni = *duty.core().interface(kIndex);
  ni.limits.max_triggered_ops = 1;
  EXPECT_EQ(engine->arm_on_duty(put(), {ct, 1}), Armed::kYes);
  EXPECT_EQ(engine->arm_on_duty(put(), {ct, 1}), Armed::kNoRoom);
  EXPECT_EQ(engine->arm_on_duty(put(), {ct, 0}), Armed::kYes);
  ni.cts.find(ct)->add_success_on_duty(1, duty.core().fired);
  EXPECT_EQ(engine->arm_on_duty(put(), {ct, 2}), Armed::kYes) << "what has fired starts, and makes room";
  EXPECT_EQ(wire.sent.size(), 2u);
  EXPECT_EQ(ni.triggered_count, 1u);
}

// 3.16: what has fired, and is not started yet, raises the counter; then the threshold is reached and nothing waits.
TEST_F(EngineTest, Arm__needs_no_room_where_what_has_fired_reaches_the_threshold) {
  const Engine::Duty duty(*engine);
  Interface& ni = *duty.core().interface(kIndex);
  Handle trigger = 0;
  CountingEvent* const counter = ni.cts.allocate(&trigger);
  counter->reset_on_duty();
  ni.limits.max_triggered_ops = 1;
  EXPECT_EQ(engine->arm_on_duty(put(), {trigger, 100}), Armed::kYes);
  arm_operation(duty.core(), *counter, increment(), {trigger, 1});
  counter->add_success_on_duty(1, duty.core().fired);
  EXPECT_EQ(engine->arm_on_duty(put(), {ct, 2}), Armed::kNoRoom);
  EXPECT_EQ(engine->arm_on_duty(put(), {ct, 1}), Armed::kYes);
  arm_operation(duty.core(), *counter, increment(), {trigger, 2});
  counter->add_success_on_duty(1, duty.core().fired);
  EXPECT_EQ(engine->arm_on_duty(put(), {ct, 2}), Armed::kYes) << "although the limit is reached";
  EXPECT_EQ(wire.sent.size(), 2u);
}

}  // namespace
}  // namespace portofu
