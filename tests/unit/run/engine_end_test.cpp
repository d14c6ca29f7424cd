// How an engine ends: closed over played wires, and on a real node retired, or left behind by a process that ends.

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <utility>

#include "engine/queue/clock.h"
#include "engine/target/list_entries.h"
#include "tests/support/eventually.h"
#include "tests/unit/run/engine_fixture.h"
#include "tests/unit/run/real_engine.h"

namespace portofu {
namespace {

class EngineEndTest : public EngineFixture {};

// The leak checker of the asan preset judges this one, too.
TEST_F(EngineEndTest, Close__with_everything_in_flight_frees_all_and_gives_links_back) {
  wire.room = 1;
  post(put(2 * FakeWire::kMaxPayloadBytes));
  post(get());
  Descriptor to_ourselves = put();
  to_ourselves.portals.target = kSelf;
  loopback.room = 0;
  post(to_ourselves);
  {
    const Engine::Duty duty(*engine);
    for (const std::uint64_t threshold : {std::uint64_t{0}, std::uint64_t{9}}) {
      const Interface& ni = *duty.core().interface(kIndex);
      arm_operation(duty.core(), *ni.cts.find(ct), put(), {ct, threshold});
    }
  }
  engine.reset();
  EXPECT_EQ(wire.open_links() + loopback.open_links(), 0);
}

TEST_F(EngineEndTest, Close__with_unexpected_messages_frees_them) {
  {
    const Engine::Duty duty(*engine);
    Interface& ni = *duty.core().interface(kIndex);
    ni.portal_table[0] = std::make_unique<PortalTableEntry>();
    EntryRequest request;
    request.segment.describe(memory.data(), memory.size());
    request.criteria = kAnyMessage;
    request.options = kEntryOpPut;
    request.list = ListKind::kOverflow;
    Handle handle = 0;
    ASSERT_EQ(append_entry(duty.core(), ni, std::move(request), &handle), Status::kOk);
  }
  PacketHeader header{};
  header.type = PacketType::kPut;
  header.interface_index = kIndex;
  wire.arrive({kPeer, header, {}});
  header.length = 100;  // And one that is still arriving.
  wire.arrive({kPeer, header, {}});
  engine->step();
  engine.reset();
}

/// Has the duty of an engine until it is told to give it back.
class Holder {
 public:
  explicit Holder(Engine& engine)
      : thread_([this, &engine] {
          const Engine::Duty duty(engine);
          holds_ = true;
          while (holds_) std::this_thread::yield();
        }) {
    while (!holds_) std::this_thread::yield();
  }
  ~Holder() {
    holds_ = false;
    thread_.join();
  }

 private:
  std::atomic<bool> holds_{false};
  std::thread thread_;
};

/// Short, and longer than any of these calls needs.
constexpr std::uint64_t kBoundNs = 20'000'000;

TEST_F(EngineEndTest, Flush_until__lets_what_waits_leave_and_stops_then) {
  wire.room = 0;
  post(put(2 * FakeWire::kMaxPayloadBytes));
  wire.room = FakeWire::kPlentyOfRoom;
  engine->flush_until(monotonic_ns() + 60 * kSecondNs);
  EXPECT_EQ(wire.sent.size(), 2u);
}

TEST_F(EngineEndTest, Flush_until__whose_time_is_over_leaves_what_has_no_room) {
  wire.room = 0;
  post(put());
  const std::uint64_t deadline = monotonic_ns() + kBoundNs;
  engine->flush_until(deadline);
  EXPECT_GE(monotonic_ns(), deadline);
  EXPECT_EQ(pending(), 1u);
}

TEST_F(EngineEndTest, Flush_until__does_not_wait_for_who_keeps_the_duty) {
  wire.room = 0;
  post(put());
  wire.room = FakeWire::kPlentyOfRoom;
  {
    const Holder other(*engine);
    engine->flush_until(monotonic_ns() + kBoundNs);
    EXPECT_TRUE(wire.sent.empty());
  }
  engine->flush_until(monotonic_ns() + 60 * kSecondNs);
  EXPECT_EQ(wire.sent.size(), 1u);
}

constexpr std::uint64_t kAnswerNs = 10'000'000'000;

TEST(EngineOfNodeEnd, Retire__answers_what_was_asked_and_gives_the_PID_back) {
  RealEngine asking(RealEngine::settings(true));
  const RealEngine ending(RealEngine::settings(true));
  const std::uint32_t pid = ending->self().pid;
  EXPECT_EQ(RealEngine::open(RealEngine::settings(false), pid), nullptr) << "it is taken";
  asking.get_from(*ending);
  ending->retire();
  EXPECT_TRUE(asking.is_answered(kAnswerNs)) << "nobody waits for who has ended";
  EXPECT_NE(RealEngine::open(RealEngine::settings(false), pid), nullptr);
}

// Threads may still be inside: what they use stays.
TEST(EngineOfNodeEnd, Retire__leaves_the_engine_to_calls_that_come_too_late) {
  RealEngine ending(RealEngine::settings(true));
  const RealEngine living(RealEngine::settings(true));
  ending->retire();
  ending->share_linger(100);
  EXPECT_TRUE(ending.has_interface());
  ending.get_from(*living);
  auto never = [](Core&) { return false; };
  EXPECT_FALSE(ending->poll(never));
}

TEST(EngineOfNodeEnd, Retire__ends_what_peers_still_owe) {
  RealEngine ending(RealEngine::settings(false));
  const RealEngine silent(RealEngine::settings(false));
  ending.get_from(*silent);
  ending->share_linger(100);
  ending->retire();
  EXPECT_TRUE(ending.is_answered(0));
}

TEST(EngineOfNodeEnd, End_with_process__gives_the_PID_back_and_keeps_interfaces) {
  const RealEngine ending(RealEngine::settings(true));
  const std::uint32_t pid = ending->self().pid;
  ending->end_with_process();
  EXPECT_NE(RealEngine::open(RealEngine::settings(false), pid), nullptr);
  EXPECT_TRUE(ending.has_interface());
}

TEST(EngineOfNodeEnd, End_with_process__lets_what_was_started_leave) {
  Settings narrow = RealEngine::settings(false);
  narrow.window_operations = 4;
  RealEngine ending(narrow);
  const RealEngine asked(RealEngine::settings(true));
  for (int i = 0; i < 20; ++i) ending.get_from(*asked);
  ending->end_with_process();
  EXPECT_TRUE(eventually([&] { return asked.counted(Counter::kPacketsReceived) >= 20; }))
      << "all, and not the window alone";
}

// A thread of the application is in a call and never comes back, and so the progress thread does not either.
TEST(EngineOfNodeEnd, End_with_process__does_not_wait_for_who_keeps_the_duty) {
  const RealEngine ending(RealEngine::settings(true));
  ending->share_linger(100);
  const std::uint32_t pid = ending->self().pid;
  const Holder other(*ending);
  ending->end_with_process();
  EXPECT_NE(RealEngine::open(RealEngine::settings(false), pid), nullptr);
}

}  // namespace
}  // namespace portofu
