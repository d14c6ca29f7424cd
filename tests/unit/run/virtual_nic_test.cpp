// The NIC of a rank in virtual time: an engine of this node whose time is the test's.

#include "engine/run/virtual_nic.h"

#include <thread>

#include "tests/unit/run/virtual_engine.h"

namespace portofu {
namespace {

struct VirtualNicTest : VirtualEngineTest {};

TEST_F(VirtualNicTest, Engine__without_its_file_does_not_open) {
  Settings without = settings();
  without.sim = "/nowhere/at/all";
  OpenError error = OpenError::kNone;
  std::string why;
  EXPECT_EQ(Engine::open(without, 0, &error, &why), nullptr);
  EXPECT_EQ(error, OpenError::kSystem);
  EXPECT_NE(why.find("/nowhere/at/all"), std::string::npos);
}

/// A get to oneself: the request is told by the call, its answer by the NIC at the time of the delivery.
TEST_F(VirtualNicTest, Answers__leave_when_the_request_has_arrived) {
  auto engine = std::make_unique<RealEngine>(settings());
  engine->get_from(**engine);
  ASSERT_EQ(job.page().reports_given.load(), 1u);
  const VirtualReport request = job.page().reports[0];
  EXPECT_EQ(request.type, static_cast<std::uint8_t>(PacketType::kGet));
  EXPECT_EQ(request.time_ps, VirtualJob::kGetPs);
  EXPECT_EQ(request.cause, 0);
  deliver(0, 12'345);
  ASSERT_EQ(job.page().reports_given.load(), 2u);
  const VirtualReport answer = job.page().reports[1];
  EXPECT_EQ(answer.type, static_cast<std::uint8_t>(PacketType::kAnswer));
  EXPECT_EQ(answer.time_ps, 12'345u);
  EXPECT_EQ(answer.cause, static_cast<std::uint8_t>(PacketType::kGet));
  deliver(1, 20'000);
  EXPECT_TRUE(engine->is_answered(0));
  close(engine);
}

/// SEND comes when the message has left the interface (3.13.3: the buffer may be used again then).
TEST_F(VirtualNicTest, Send__is_told_when_the_message_has_left) {
  auto engine = std::make_unique<RealEngine>(settings());
  const Handle counter = engine->put_to(**engine);
  ASSERT_EQ(job.page().reports_given.load(), 1u);
  const VirtualReport put = job.page().reports[0];
  ASSERT_NE(put.departure, 0u);
  (*engine)->step();
  EXPECT_EQ(engine->successes(counter), 0u);
  VirtualDelivery left{};
  left.time_ps = 5000;
  left.departure = put.departure;
  left.type = put.type;
  job.deliver(left);
  ASSERT_TRUE(job.has_taken_all());
  EXPECT_EQ(engine->successes(counter), 1u);
  job.deliver(left);
  ASSERT_TRUE(job.has_taken_all());
  EXPECT_EQ(engine->successes(counter), 1u) << "once";
  close(engine);
}

/// Timeouts are of virtual time.
TEST_F(VirtualNicTest, Waits__end_when_the_coordinator_says_so) {
  auto engine = std::make_unique<RealEngine>(settings());
  engine->get_from(**engine);
  constexpr std::uint64_t kHourNs = 3600'000'000'000;
  std::thread coordinator([this] {
    ASSERT_TRUE(job.await(VirtualState::kWaiting));
    job.grant(job.page().until_ps.load());
  });
  const std::uint64_t before_ns = monotonic_ns();
  EXPECT_FALSE(engine->is_answered(kHourNs));
  EXPECT_LT(monotonic_ns() - before_ns, kHourNs);
  coordinator.join();
  close(engine);
}

TEST_F(VirtualNicTest, Program_time__is_virtual_from_the_first_turn_to_the_end) {
  auto engine = std::make_unique<RealEngine>(settings());
  const std::uint32_t before = program_time().era;
  EXPECT_EQ(before % 2, 0u);
  EXPECT_FALSE(sleep_in_virtual_time(1000)) << "it has had no turn";
  EXPECT_FALSE(program_time().stands);
  engine->get_from(**engine);
  EXPECT_EQ(program_time().era, before) << "nor has it now";
  EXPECT_TRUE(program_time().stands) << "what it waits for now comes in virtual time";
  std::thread([] { EXPECT_FALSE(program_time().stands) << "another thread waits for something else"; }).join();
  constexpr std::uint64_t kHourNs = 3600'000'000'000;
  std::thread coordinator([this] {
    ASSERT_TRUE(job.await(VirtualState::kWaiting));
    job.grant(job.page().until_ps.load());
    ASSERT_TRUE(job.await(VirtualState::kReady));
    EXPECT_EQ(job.page().clock_ps.load(), (kHourNs + 5000) * 1000 + VirtualJob::kGetPs);
    job.grant(job.page().clock_ps.load());
  });
  EXPECT_FALSE(engine->is_answered(kHourNs));
  EXPECT_EQ(program_time().era, before + 1);
  EXPECT_EQ(program_time().ns, kHourNs);
  EXPECT_TRUE(sleep_in_virtual_time(5000));
  EXPECT_EQ(program_time().ns, kHourNs + 5000);
  coordinator.join();
  std::thread([&] {
    EXPECT_EQ(program_time().era, before + 1);
    EXPECT_FALSE(sleep_in_virtual_time(1)) << "another thread cannot let time pass";
  }).join();
  close(engine);
  EXPECT_EQ(program_time().era, before + 2) << "time is real";
  EXPECT_EQ(program_time().ns, 0u);
  EXPECT_FALSE(program_time().stands);
}

/// What never comes, because its sender has gone, holds nobody up.
TEST_F(VirtualNicTest, A_message__of_one_who_has_gone_is_given_up) {
  auto engine = std::make_unique<RealEngine>(settings());
  job.deliver({99, 1000, 1, 1, 0, 77, 0});
  EXPECT_TRUE(job.has_taken_all());
  close(engine);
}

}  // namespace
}  // namespace portofu
