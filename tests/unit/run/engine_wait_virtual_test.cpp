// Waits and looks of an engine in virtual time: what they cost, when they give the turn back, and when they end.

#include <functional>
#include <thread>

#include "tests/unit/run/virtual_engine.h"

namespace portofu {
namespace {

/// A rank that has had its first turn.
struct EngineWaitVirtualTest : VirtualEngineTest {
  static constexpr std::uint64_t kBeginPs = 1000;
  static constexpr std::uint64_t kNs = 1000;  ///< In picoseconds.

  void SetUp() override {
    VirtualEngineTest::SetUp();
    engine = std::make_unique<RealEngine>(settings());
    ordered([this] { grant_wait(kBeginPs); }, [this] { EXPECT_EQ(wait(no, 1), WaitResult::kTimedOut); });
    ASSERT_EQ(clock_ps(), kBeginPs);
    ASSERT_EQ(spent_ps(VirtualSpent::kLook), 0u);
  }
  void TearDown() override {
    close(engine);
    VirtualEngineTest::TearDown();
  }

  /// Runs calls of the program beside a coordinator.
  void ordered(const std::function<void()>& coordinate, const std::function<void()>& call) {
    std::thread coordinator(coordinate);
    call();
    coordinator.join();
  }
  void grant_wait(std::uint64_t time_ps) {
    EXPECT_TRUE(job.await(VirtualState::kWaiting));
    job.grant(time_ps);
  }

  template <typename Ask>
  WaitResult wait(Ask ask, std::uint64_t timeout_ns, OnAbort on_abort = OnAbort::kReturn) {
    return (*engine)->wait(ask, timeout_ns, on_abort);
  }
  template <typename Ask>
  bool poll(Ask ask) {
    return (*engine)->poll(ask);
  }
  /// Asks for bytes of itself. @return a question: whether they are here
  auto get() {
    engine->get_from(**engine);
    const bool is_under_way = !engine->is_answered_now();
    EXPECT_TRUE(is_under_way);
    return [this](Core&) { return engine->is_answered_on_duty(); };
  }
  void answer(std::uint64_t time_ps) {
    deliver(0, time_ps);
    deliver(1, time_ps);
  }
  void give_link() {
    const Engine::Duty duty(**engine);
    duty.core().gave_link = true;
  }

  std::uint64_t clock_ps() const { return job.page().clock_ps.load(); }
  std::uint64_t spent_ps(VirtualSpent what) const { return job.page().spent_ps[static_cast<std::size_t>(what)].load(); }

  static bool no(Core&) { return false; }
  static bool yes(Core&) { return true; }
  std::unique_ptr<RealEngine> engine;
};

TEST_F(EngineWaitVirtualTest, Wait__for_what_holds_already_takes_no_time) {
  EXPECT_EQ(wait(yes, 0), WaitResult::kReached);
  EXPECT_EQ(wait(yes, Engine::kForever), WaitResult::kReached);
  EXPECT_EQ(clock_ps(), kBeginPs);
}

TEST_F(EngineWaitVirtualTest, Wait__of_no_time_is_a_look_in_vain) {
  EXPECT_EQ(wait(no, 0), WaitResult::kTimedOut);
  EXPECT_EQ(clock_ps(), kBeginPs + VirtualJob::kEmptyPollPs);
  EXPECT_EQ(spent_ps(VirtualSpent::kLook), VirtualJob::kEmptyPollPs);
}

/// Turns that bring nothing do not put the deadline off.
TEST_F(EngineWaitVirtualTest, Wait__goes_on_until_its_deadline) {
  static constexpr std::uint64_t kDeadlinePs = kBeginPs + 50 * kNs;
  ordered(
      [this] {
        for (const std::uint64_t time_ps : {kBeginPs + 10 * kNs, kBeginPs + 20 * kNs, kDeadlinePs}) {
          EXPECT_TRUE(job.await(VirtualState::kWaiting));
          EXPECT_EQ(job.page().until_ps.load(), kDeadlinePs);
          job.grant(time_ps);
        }
      },
      [this] { EXPECT_EQ(wait(no, 50), WaitResult::kTimedOut); });
  EXPECT_EQ(clock_ps(), kDeadlinePs);
  EXPECT_EQ(spent_ps(VirtualSpent::kLook), 2 * VirtualJob::kPollPs) << "of the two turns before";
}

TEST_F(EngineWaitVirtualTest, Wait__without_a_deadline_ends_with_what_it_waits_for) {
  const auto is_here = get();
  ordered(
      [this] {
        EXPECT_TRUE(job.await(VirtualState::kWaiting));
        EXPECT_EQ(job.page().until_ps.load(), kNeverPs);
        answer(7000 * kNs);
        job.grant(7000 * kNs);
      },
      [&] { EXPECT_EQ(wait(is_here, Engine::kForever), WaitResult::kReached); });
  EXPECT_EQ(clock_ps(), 7000 * kNs + VirtualJob::kPollPs);
}

TEST_F(EngineWaitVirtualTest, Wait__sees_what_comes_at_its_deadline) {
  const auto is_here = get();
  ordered(
      [this] {
        EXPECT_TRUE(job.await(VirtualState::kWaiting));
        const std::uint64_t deadline_ps = job.page().until_ps.load();
        answer(deadline_ps);
        job.grant(deadline_ps);
      },
      [&] { EXPECT_EQ(wait(is_here, 5), WaitResult::kReached); });
}

TEST_F(EngineWaitVirtualTest, Wait__that_may_be_aborted_ends_with_its_next_turn) {
  ordered(
      [this] {
        EXPECT_TRUE(job.await(VirtualState::kWaiting));
        (*engine)->abort();
        job.grant(2 * kBeginPs);
      },
      [this] { EXPECT_EQ(wait(no, Engine::kForever), WaitResult::kAborted); });
  const auto is_here = get();
  ordered(
      [this] {
        grant_wait(3 * kBeginPs);
        EXPECT_TRUE(job.await(VirtualState::kWaiting)) << "others go on";
        answer(4 * kBeginPs);
        job.grant(4 * kBeginPs);
      },
      [&] { EXPECT_EQ(wait(is_here, Engine::kForever, OnAbort::kGoOn), WaitResult::kReached); });
}

TEST_F(EngineWaitVirtualTest, Poll__costs_what_it_finds) {
  EXPECT_FALSE(poll(no));
  EXPECT_EQ(clock_ps(), kBeginPs + VirtualJob::kEmptyPollPs);
  EXPECT_TRUE(poll(yes));
  EXPECT_EQ(clock_ps(), kBeginPs + VirtualJob::kEmptyPollPs + VirtualJob::kPollPs);
}

/// That an entry was put into a list.
TEST_F(EngineWaitVirtualTest, Poll__that_finds_a_LINK_costs_nothing) {
  give_link();
  EXPECT_TRUE(poll(yes));
  EXPECT_EQ(clock_ps(), kBeginPs);
  EXPECT_TRUE(poll(yes));
  EXPECT_EQ(clock_ps(), kBeginPs + VirtualJob::kPollPs) << "the next one is something else";
}

/// It takes nothing in, and is a look in vain all the same.
TEST_F(EngineWaitVirtualTest, Poll__behind_a_LINK_takes_the_time_of_a_look) {
  give_link();
  EXPECT_FALSE(poll(no));
  EXPECT_EQ(clock_ps(), kBeginPs + VirtualJob::kEmptyPollPs);
}

/// Whose clock is ahead of what happens until then.
TEST_F(EngineWaitVirtualTest, Poll__asks_again_when_others_have_caught_up) {
  const auto is_here = get();
  const std::uint64_t sent_ps = kBeginPs + VirtualJob::kGetPs;
  ordered(
      [this, sent_ps] {
        EXPECT_TRUE(job.await(VirtualState::kReady));
        EXPECT_EQ(clock_ps(), sent_ps) << "it is no wait";
        answer(sent_ps);
        job.grant(sent_ps);
      },
      [&] { EXPECT_TRUE(poll(is_here)) << "in the same call"; });
  EXPECT_EQ(clock_ps(), sent_ps + VirtualJob::kPollPs);
}

TEST_F(EngineWaitVirtualTest, Poll__in_vain_again_and_again_gives_the_turn_back) {
  std::uint64_t until_ps = 0;
  ordered(
      [this, &until_ps] {
        EXPECT_TRUE(job.await(VirtualState::kPolling));
        until_ps = job.page().until_ps.load();
        job.grant(until_ps);
      },
      [this] {
        while (job.page().turn.load() < 2) EXPECT_FALSE(poll(no));
      });
  EXPECT_GT(until_ps, kBeginPs);
  EXPECT_EQ(clock_ps(), until_ps);
}

TEST_F(EngineWaitVirtualTest, Search__in_vain_takes_the_time_of_a_look) {
  EXPECT_FALSE((*engine)->search(no));
  EXPECT_EQ(clock_ps(), kBeginPs + VirtualJob::kEmptyPollPs);
  EXPECT_TRUE((*engine)->search(yes));
  EXPECT_EQ(clock_ps(), kBeginPs + VirtualJob::kEmptyPollPs) << "what it finds is an event, which costs by itself";
}

/// There is no time in which it could be seen to stall.
TEST_F(EngineWaitVirtualTest, Wait__in_vain_is_no_stall) {
  const auto is_here = get();
  constexpr std::uint64_t kDayNs = 86'400'000'000'000;
  const std::uint64_t before_ns = monotonic_ns();
  ordered(
      [this] {
        EXPECT_TRUE(job.await(VirtualState::kWaiting));
        job.grant(job.page().until_ps.load());
      },
      [&] { EXPECT_EQ(wait(is_here, kDayNs), WaitResult::kTimedOut); });
  EXPECT_LT(monotonic_ns() - before_ns, kDayNs);
  EXPECT_EQ(engine->counted(Counter::kSleeps), 0u) << "nor does it sleep by the doorbell";
}

}  // namespace
}  // namespace portofu
