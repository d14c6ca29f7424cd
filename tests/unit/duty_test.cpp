// The duty lock: one holder, nobody is forgotten.

#include "engine/duty.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

namespace portofu {
namespace {

TEST(DutyTest, Try__succeeds_once_until_it_is_given) {
  DutyLock duty;
  EXPECT_TRUE(duty.try_take());
  EXPECT_FALSE(duty.try_take());
  duty.give();
  EXPECT_TRUE(duty.try_take());
  duty.give();
}

TEST(DutyTest, Take__of_a_free_duty) {
  DutyLock duty;
  for (int i = 0; i < 3; ++i) {
    duty.take();
    EXPECT_FALSE(duty.try_take());
    duty.give();
  }
}

TEST(DutyTest, Try__by_another_thread_fails_while_it_is_held) {
  DutyLock duty;
  duty.take();
  bool taken = true;
  std::thread([&] { taken = duty.try_take(); }).join();
  EXPECT_FALSE(taken);
  duty.give();
}

TEST(DutyTest, Threads__exclude_each_other_and_see_what_the_one_before_did) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 20'000;
  DutyLock duty;
  long plain = 0;  // Guarded by the duty alone.
  std::atomic<int> inside{0};
  std::atomic<int> collisions{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) {
        duty.take();
        if (inside.fetch_add(1, std::memory_order_relaxed) != 0) collisions.fetch_add(1);
        ++plain;
        inside.fetch_sub(1, std::memory_order_relaxed);
        duty.give();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(collisions.load(), 0);
  EXPECT_EQ(plain, static_cast<long>(kThreads) * kRounds);
}

TEST(DutyTest, Threads__that_try_and_threads_that_take_can_be_mixed) {
  constexpr int kRounds = 20'000;
  DutyLock duty;
  long plain = 0;
  std::array<long, 2> tried{};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) {
        duty.take();
        ++plain;
        duty.give();
      }
    });
    threads.emplace_back([&, &count = tried[static_cast<std::size_t>(t)]] {
      for (int i = 0; i < kRounds; ++i) {
        if (!duty.try_take()) continue;
        ++plain;
        ++count;
        duty.give();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(plain, 2L * kRounds + tried[0] + tried[1]);
}

TEST(DutyTest, Sleepers__all_get_their_turn_after_a_long_hold) {
  // Each waits long enough in take() to sleep in the kernel, because the holder goes on only when all are there.
  constexpr int kThreads = 6;
  DutyLock duty;
  std::atomic<int> waiting{0};
  std::atomic<int> served{0};
  duty.take();
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      waiting.fetch_add(1);
      duty.take();
      served.fetch_add(1);
      duty.give();
    });
  }
  while (waiting.load() < kThreads) std::this_thread::yield();
  EXPECT_EQ(served.load(), 0);
  duty.give();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(served.load(), kThreads);
}

}  // namespace
}  // namespace portofu
