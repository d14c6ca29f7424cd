// The engine over played wires and a played clock: step, poll, wait, abort, flush.

#include "engine/run/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <thread>

#include "tests/unit/run/engine_fixture.h"

namespace portofu {
namespace {

class EngineWaitTest : public EngineFixture {};

TEST_F(EngineWaitTest, Poll__asks_first_and_runs_no_cycle_if_the_answer_is_yes) {
  post(get());
  arrive_answer();
  auto yes = [](Core&) { return true; };
  EXPECT_TRUE(engine->poll(yes));
  EXPECT_EQ(pending(), 1u) << "the answer has not been taken in";
}

TEST_F(EngineWaitTest, Poll__runs_a_cycle_and_asks_again) {
  post(get());
  arrive_answer();
  int asked = 0;
  auto done = [&](Core&) {
    ++asked;
    return md->pending == 0;
  };
  EXPECT_TRUE(engine->poll(done));
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(counted(Counter::kDutyByApplication), 1u);
}

TEST_F(EngineWaitTest, Poll__behind_a_LINK_takes_nothing_in_and_the_next_does) {
  for (int round = 0; round < 3; ++round) {
    post(get());
    arrive_answer();
    {
      const Engine::Duty duty(*engine);
      duty.core().gave_link = true;
    }
    const auto done = [this](Core&) { return md->pending == 0; };
    EXPECT_FALSE(engine->poll(done));
    EXPECT_EQ(pending(), 1u);
    EXPECT_TRUE(engine->poll(done));
  }
}

TEST_F(EngineWaitTest, Poll__behind_LINKs_without_end_takes_in_what_has_arrived) {
  post(get());
  arrive_answer();
  int polls = 0;
  for (; pending() != 0 && polls < 1000; ++polls) {
    {
      const Engine::Duty duty(*engine);
      duty.core().gave_link = true;
    }
    engine->poll([](Core&) { return false; });
  }
  EXPECT_GT(polls, 100);
  EXPECT_LT(polls, 300);
}

TEST_F(EngineWaitTest, Poll__behind_one_that_found_something_is_left_out_once_that_was_barren_often) {
  const auto are_left = [this](std::uint32_t count) { return [this, count](Core&) { return md->pending == count; }; };
  const auto no = [](Core&) { return false; };
  for (std::uint32_t i = 0; i < kBarren; ++i) {
    post(get());
    arrive_answer();
    EXPECT_TRUE(engine->poll(are_left(0)));
    EXPECT_FALSE(engine->poll(no));
  }
  for (int i = 0; i < 2; ++i) post(get());
  arrive_answer();
  EXPECT_TRUE(engine->poll(are_left(1)));
  arrive_answer();
  EXPECT_FALSE(engine->poll(no));
  EXPECT_EQ(pending(), 1u) << "left out";
  EXPECT_FALSE(engine->poll(no));
  EXPECT_EQ(pending(), 0u) << "but only once";
}

/// As an MPI_Send does whose look behind its last event finds the next message before its receive is posted.
TEST_F(EngineWaitTest, Poll__behind_one_that_found_something_is_barren_if_it_finds_what_nobody_asked_for) {
  const auto are_left = [this](std::uint32_t count) { return [this, count](Core&) { return md->pending == count; }; };
  const auto no = [](Core&) { return false; };
  for (std::uint32_t i = 0; i < 2 * kBarren; ++i) {
    for (int k = 0; k < 2; ++k) post(get());
    arrive_answer();
    EXPECT_TRUE(engine->poll(are_left(1)));
    arrive_answer();
    EXPECT_FALSE(engine->poll(no));
    EXPECT_EQ(pending(), i < kBarren ? 0u : 1u) << "left out from some time on";
    engine->step();
    EXPECT_EQ(pending(), 0u);
  }
}

TEST_F(EngineWaitTest, Poll__of_nothing_comes_back_with_no_however_often) {
  auto no = [](Core&) { return false; };
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(engine->poll(no));
  EXPECT_EQ(counted(Counter::kSleeps), 0u) << "an engine without a node never sleeps in a poll";
}

TEST_F(EngineWaitTest, Wait__for_what_holds_already) {
  auto yes = [](Core&) { return true; };
  EXPECT_EQ(engine->wait(yes, 0), WaitResult::kReached);
  EXPECT_EQ(engine->wait(yes, Engine::kForever), WaitResult::kReached);
}

TEST_F(EngineWaitTest, Wait__for_a_packet_that_lies_there) {
  post(get());
  arrive_answer();
  auto done = [this](Core&) { return md->pending == 0; };
  EXPECT_EQ(engine->wait(done, 0), WaitResult::kReached);
}

/// No packet tells of it. Who went to sleep behind such a look slept a second beside its event.
TEST_F(EngineWaitTest, Wait__whose_look_finds_that_the_peer_cannot_be_reached) {
  wire.connect_result = ConnectResult::kInProgress;
  post(get());
  auto done = [this](Core&) { return md->pending == 0; };
  EXPECT_EQ(engine->wait(done, 0), WaitResult::kTimedOut);
  wire.connect_result = ConnectResult::kNoSuchPeer;
  EXPECT_EQ(engine->wait(done, 0), WaitResult::kReached);
}

TEST_F(EngineWaitTest, Wait__for_what_comes_after_many_empty_looks) {
  int looks = 0;
  auto after_some = [&](Core&) { return ++looks > 100; };
  EXPECT_EQ(engine->wait(after_some, Engine::kForever), WaitResult::kReached);
}

TEST_F(EngineWaitTest, Wait__looks_once_if_there_is_no_time) {
  auto no = [](Core&) { return false; };
  const std::uint64_t before = now_ns;
  EXPECT_EQ(engine->wait(no, 0), WaitResult::kTimedOut);
  EXPECT_EQ(now_ns, before) << "not even at the clock";
}

TEST_F(EngineWaitTest, Wait__ends_when_its_time_is_over_and_not_before) {
  auto no = [](Core&) { return false; };
  const std::uint64_t before = now_ns;
  EXPECT_EQ(engine->wait(no, kSecondNs), WaitResult::kTimedOut);
  EXPECT_GE(now_ns, before + kSecondNs);
  EXPECT_LT(now_ns, before + 2 * kSecondNs);
}

/// Of others, that are nothing to this wait.
TEST_F(EngineWaitTest, Wait__ends_when_its_time_is_over_though_each_look_finds_something) {
  PacketHeader header{};
  header.type = PacketType::kPut;
  auto no = [&](Core&) {
    wire.arrive({kPeer, header, {}});
    return false;
  };
  EXPECT_EQ(engine->wait(no, kSecondNs), WaitResult::kTimedOut);
}

/// A wire on which nothing was found for long is not looked at in every cycle; a process that stood still, or slept,
/// until its time was over has got what came meanwhile.
TEST_F(EngineWaitTest, Wait__whose_time_is_over_looks_at_wires_that_look_rarely) {
  wire.looks_rarely = true;
  post(get());
  arrive_answer();
  auto done = [this](Core&) { return md->pending == 0; };
  EXPECT_EQ(engine->wait(done, 1), WaitResult::kReached);
}

TEST_F(EngineWaitTest, Wait__with_a_time_beyond_the_end_of_the_clock) {
  int looks = 0;
  auto after_some = [&](Core&) { return ++looks > 100; };
  now_ns = UINT64_MAX - kSecondNs;
  EXPECT_EQ(engine->wait(after_some, UINT64_MAX - 1), WaitResult::kReached);
}

TEST_F(EngineWaitTest, Wait__learns_of_the_death_of_the_peer_it_waits_for) {
  post(get());
  wire.kill(kPeer);
  auto done = [this](Core&) { return md->pending == 0; };
  const std::uint64_t before = now_ns;
  EXPECT_EQ(engine->wait(done, Engine::kForever), WaitResult::kReached);
  EXPECT_LT(now_ns, before + kSecondNs);
  EXPECT_EQ(counted(Counter::kPeersLost), 1u);
}

TEST_F(EngineWaitTest, Steps__look_after_the_dead_now_and_then_although_nobody_waits) {
  post(get());
  wire.kill(kPeer);
  now_ns += kSecondNs;
  int steps = 0;
  while (pending() != 0 && steps < 10'000) {
    engine->step();
    ++steps;
  }
  EXPECT_LT(steps, 10'000);
}

TEST_F(EngineWaitTest, Steps__do_not_look_after_the_dead_more_often_than_set) {
  settings.peer_check_ms = 10'000;
  close();
  open();
  clock_step_ns = 1;
  post(get());
  for (int i = 0; i < 5'000; ++i) engine->step();  // The first look.
  wire.kill(kPeer);
  for (int i = 0; i < 5'000; ++i) engine->step();
  EXPECT_EQ(pending(), 1u);
  now_ns += 10 * kSecondNs;
  for (int i = 0; i < 5'000; ++i) engine->step();
  EXPECT_EQ(pending(), 0u);
}

/// Waits for a counter until it has been asked often enough, and looks whether onlookers are told so.
class ShownWait {
 public:
  bool operator()(Core& core) {
    is_shown = core.sleeping_calls.first != nullptr;
    if (is_shown) thread = core.sleeping_calls.first->thread;
    ++asked;
    return ends(core);
  }
  void describe(WaitSubject& subject) const {
    subject.kind = WaitKind::kCounters;
    subject.add(7, 3);
  }

  std::function<bool(Core&)> ends;
  int asked = 0;
  bool is_shown = false;
  std::int32_t thread = 0;
};

TEST_F(EngineWaitTest, Wait__is_shown_from_its_first_sleep_to_its_end) {
  close();
  settings.sleep_after_us = 0;
  settings.peer_check_ms = 1;
  open();
  post(get());  // What is awaited lets nobody sleep for longer than that.
  const auto sleeps = [](const Core& core) { return core.counters.get(Counter::kSleeps); };
  ShownWait shown;
  shown.ends = [&](Core& core) {
    EXPECT_EQ(shown.is_shown, sleeps(core) != 0) << "between two sleeps, too";
    return sleeps(core) == 3;
  };
  EXPECT_EQ(engine->wait(shown, Engine::kForever), WaitResult::kReached);
  EXPECT_EQ(shown.thread, gettid());
  const Engine::Duty duty(*engine);
  EXPECT_EQ(duty.core().sleeping_calls.first, nullptr);
}

TEST_F(EngineWaitTest, Wait__that_does_not_come_to_sleep_is_shown_after_many_looks) {
  clock_step_ns = 0;
  ShownWait shown;
  shown.ends = [&](Core&) { return shown.asked == 5000; };
  EXPECT_EQ(engine->wait(shown, Engine::kForever), WaitResult::kReached);
  EXPECT_TRUE(shown.is_shown);
  EXPECT_EQ(counted(Counter::kSleeps), 0u);
  shown.ends = [&](Core&) { return true; };
  EXPECT_EQ(engine->wait(shown, Engine::kForever), WaitResult::kReached);
  EXPECT_FALSE(shown.is_shown);
}

TEST_F(EngineWaitTest, Abort__ends_waits_now_and_in_future_but_not_polls) {
  auto no = [](Core&) { return false; };
  auto yes = [](Core&) { return true; };
  int looks = 0;
  auto abort_inside = [&](Core&) {
    if (++looks == 10) engine->abort();
    return false;
  };
  EXPECT_FALSE(engine->is_aborted());
  EXPECT_EQ(engine->wait(abort_inside, Engine::kForever), WaitResult::kAborted);
  EXPECT_TRUE(engine->is_aborted());
  EXPECT_EQ(engine->wait(no, Engine::kForever), WaitResult::kAborted);
  EXPECT_EQ(engine->wait(yes, 0), WaitResult::kAborted);
  EXPECT_TRUE(engine->poll(yes));
}

TEST_F(EngineWaitTest, Abort__is_nothing_to_a_wait_that_goes_on) {
  engine->abort();
  auto yes = [](Core&) { return true; };
  auto no = [](Core&) { return false; };
  EXPECT_EQ(engine->wait(yes, 0, OnAbort::kGoOn), WaitResult::kReached);
  EXPECT_EQ(engine->wait(no, kSecondNs, OnAbort::kGoOn), WaitResult::kTimedOut);
}

TEST_F(EngineWaitTest, Abort__by_another_thread) {
  auto no = [](Core&) { return false; };
  std::thread other([this] { engine->abort(); });
  EXPECT_EQ(engine->wait(no, Engine::kForever), WaitResult::kAborted);
  other.join();
}

TEST_F(EngineWaitTest, Flush__lets_what_waits_leave) {
  wire.room = 0;
  post(put(2 * FakeWire::kMaxPayloadBytes));
  post(put());
  wire.room = FakeWire::kPlentyOfRoom;
  engine->abort();  // An abort does not hinder it.
  engine->flush(Engine::kForever);
  EXPECT_EQ(wire.sent.size(), 3u);
  EXPECT_EQ(pending(), 0u);
  EXPECT_TRUE(engine->is_aborted());
}

TEST_F(EngineWaitTest, Flush__gives_up_when_its_time_is_over) {
  wire.room = 0;
  post(put());
  const std::uint64_t before = now_ns;
  engine->flush(kSecondNs);
  EXPECT_GE(now_ns, before + kSecondNs);
  EXPECT_EQ(pending(), 1u);
}

TEST_F(EngineWaitTest, Threads__post_and_step_side_by_side) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 2'000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < kRounds; ++i) {
        post(put());
        post(increment());
        engine->step();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wire.sent.size(), static_cast<std::size_t>(kThreads) * kRounds);
  const Engine::Duty duty(*engine);
  EXPECT_EQ(duty.core().interface(kIndex)->cts.find(ct)->success(), static_cast<std::uint64_t>(kThreads) * kRounds);
}

TEST_F(EngineWaitTest, Threads__wait_for_what_another_one_does) {
  auto reached = [this](Core& core) { return core.interface(kIndex)->cts.find(ct)->success() >= 100; };
  clock_step_ns = 0;  // Time stands still: nobody sleeps.
  std::vector<std::thread> waiters;
  std::atomic<int> woken{0};
  for (int t = 0; t < 3; ++t) {
    waiters.emplace_back([&] { woken += engine->wait(reached, Engine::kForever) == WaitResult::kReached ? 1 : 0; });
  }
  for (int i = 0; i < 100; ++i) post(increment());
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_EQ(woken.load(), 3);
}

}  // namespace
}  // namespace portofu
