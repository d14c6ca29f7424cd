// Who is woken when the duty is given, and how long who sleeps may do so.

#include "engine/run/sleepers.h"

#include "engine/run/wait_limits.h"
#include "tests/unit/support/core_fixture.h"

namespace portofu {
namespace {

class SleepersTest : public CoreTest {
 protected:
  /// How often the bell rings when the duty is given.
  std::uint32_t rings(bool news = false) {
    const std::uint32_t before = shared.bell.load();
    sleepers.wake(sleepers.judge_on_duty(core.activity, news));
    return shared.bell.load() - before;
  }

  DoorbellShared shared{};
  Sleepers sleepers{core, shared, NodeGuard::kFence};
};

TEST_F(SleepersTest, Activity__wakes_the_application_once) {
  ++core.activity;
  EXPECT_EQ(rings(), 0u) << "nobody sleeps";
  sleepers.join();
  EXPECT_EQ(sleepers.application_threads(std::memory_order_relaxed), 1u);
  EXPECT_EQ(rings(), 0u) << "nothing has happened since";
  ++core.activity;
  EXPECT_EQ(rings(), 1u);
  EXPECT_EQ(rings(), 0u);
  sleepers.leave();
  EXPECT_EQ(sleepers.application_threads(std::memory_order_relaxed), 0u);
}

TEST_F(SleepersTest, News__wake_whoever_listens) {
  const std::uint32_t seen = sleepers.doorbell().announce();
  EXPECT_EQ(rings(), 0u);
  EXPECT_EQ(rings(true), 1u);
  EXPECT_TRUE(sleepers.doorbell().wait(seen, 0));
  sleepers.doorbell().withdraw();
}

TEST_F(SleepersTest, Wire_with_a_time__bounds_the_sleep) {
  constexpr std::uint64_t kLong = 1'000'000;
  now_ns = 1000;
  wire.due_ns = 1500;
  EXPECT_EQ(sleepers.bound_sleep_on_duty(kLong), kLong) << "no wire is known to have one";
  sleepers.expect_due_times(true);
  EXPECT_EQ(sleepers.bound_sleep_on_duty(kLong), 500u);
  EXPECT_EQ(sleepers.bound_sleep_on_duty(100), 100u);
  wire.due_ns = 900;
  EXPECT_EQ(sleepers.bound_sleep_on_duty(kLong), 0u) << "it is late";
  wire.due_ns = UINT64_MAX;
  EXPECT_EQ(sleepers.bound_sleep_on_duty(kLong), kLong);
}

TEST_F(SleepersTest, Time_that_comes_sooner_than_was_heard__wakes) {
  sleepers.expect_due_times(true);
  wire.due_ns = 5000;
  sleepers.bound_sleep_on_duty(UINT64_MAX);
  EXPECT_EQ(rings(), 0u);
  wire.due_ns = 4000;
  EXPECT_EQ(rings(), 1u);
  EXPECT_EQ(rings(), 0u) << "they have heard of it";
  wire.due_ns = 4500;
  EXPECT_EQ(rings(), 0u) << "they wake before that";
}

}  // namespace
}  // namespace portofu
