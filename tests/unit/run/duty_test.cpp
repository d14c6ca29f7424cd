// The duty lock: one holder, nobody is forgotten, whoever is the favourite.

#include "engine/run/duty.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "engine/queue/clock.h"
#include "tests/support/eventually.h"

namespace portofu {
namespace {

/// A lock whose favour stays cheap, so that there is much of it.
class CheapDutyLock : public DutyLock {
 public:
  CheapDutyLock() : DutyLock(kTakesToFavour) {}
};

constexpr int kMoreThanToFavour = 3 * static_cast<int>(kTakesToFavour);

void take_and_give(DutyLock& duty, int times) {
  for (int i = 0; i < times; ++i) {
    duty.take();
    duty.give();
  }
}

/// Whether another thread, which asks `ask` for the duty, comes in only after it was given.
template <class Ask>
void expect_exclusion(DutyLock& duty, Ask&& ask) {
  std::atomic<bool> asks{false};
  std::atomic<bool> inside{false};
  duty.take();
  std::thread other([&] {
    asks.store(true);
    ask(duty);
    inside.store(true);
    duty.give();
  });
  while (!asks.load()) std::this_thread::yield();
  for (int i = 0; i < 1000; ++i) {
    ASSERT_FALSE(inside.load());
    std::this_thread::yield();
  }
  duty.give();
  other.join();
  EXPECT_TRUE(inside.load());
}

TEST(DutyTest, Take__by_another_thread_waits_until_it_is_given) {
  CheapDutyLock duty;
  expect_exclusion(duty, [](DutyLock& wanted) { wanted.take(); });
  expect_exclusion(duty, [](DutyLock& wanted) { wanted.take_as_guest(); });
}

TEST(DutyTest, Take__by_another_thread_waits_until_the_favourite_gives_it) {
  CheapDutyLock duty;
  for (int round = 0; round < 3; ++round) {
    take_and_give(duty, kMoreThanToFavour);
    expect_exclusion(duty, [](DutyLock& wanted) { wanted.take(); });
    take_and_give(duty, kMoreThanToFavour);
    expect_exclusion(duty, [](DutyLock& wanted) { wanted.take_as_guest(); });
  }
}

std::uint64_t in_ms(std::uint64_t ms) { return monotonic_ns() + ms * 1'000'000; }

TEST(DutyTest, Take_until__gives_up_what_another_thread_keeps) {
  for (const int before : {0, kMoreThanToFavour}) {
    CheapDutyLock duty;
    std::atomic<int> step{0};
    const auto wait_for = [&](int wanted) {
      while (step.load() != wanted) std::this_thread::yield();
    };
    std::thread holder([&] {
      take_and_give(duty, before);
      duty.take();
      step = 1;
      wait_for(2);
      duty.give();
      take_and_give(duty, before);
      step = 3;
    });
    wait_for(1);
    EXPECT_FALSE(duty.take_until(in_ms(5)));
    EXPECT_FALSE(duty.is_interrupted()) << "it is another thread that has it";
    step = 2;
    wait_for(3);
    ASSERT_TRUE(duty.take_until(in_ms(60'000)));
    EXPECT_TRUE(duty.is_interrupted());
    duty.give();
    holder.join();
    expect_exclusion(duty, [](DutyLock& wanted) { wanted.take(); });
  }
}

TEST(DutyTest, Take_until__by_threads_that_take_it_all_the_time_excludes_them) {
  CheapDutyLock duty;
  long plain = 0;  // Guarded by the duty.
  std::atomic<bool> stop{false};
  std::thread favourite([&] {
    while (!stop) {
      duty.take();
      ++plain;
      duty.give();
    }
  });
  for (int i = 0; i < 200; ++i) {
    if (!duty.take_until(in_ms(i % 2 == 0 ? 0 : 60'000))) continue;
    const long seen = plain;
    std::this_thread::yield();
    ASSERT_EQ(plain, seen);
    duty.give();
  }
  stop = true;
  favourite.join();
}

/// As a signal handler that has interrupted a call in one engine and calls in another one has them.
TEST(DutyTest, Two__are_known_to_the_thread_that_has_both) {
  DutyLock outer;
  DutyLock inner;
  outer.take();
  inner.take();
  EXPECT_TRUE(outer.is_interrupted());
  EXPECT_TRUE(inner.is_interrupted());
  inner.give();
  EXPECT_TRUE(outer.is_interrupted());
  EXPECT_FALSE(inner.is_interrupted());
  EXPECT_TRUE(inner.take_until(in_ms(1000)));
  inner.give();
  EXPECT_TRUE(outer.is_interrupted());
  outer.give();
  EXPECT_FALSE(outer.is_interrupted());
}

/// Whether a call in a signal handler would find that it has interrupted its own thread on duty.
TEST(DutyTest, Interrupted__is_who_holds_it_and_nobody_else) {
  for (const int before : {0, kMoreThanToFavour}) {
    CheapDutyLock duty;
    EXPECT_FALSE(duty.is_interrupted());
    take_and_give(duty, before);
    EXPECT_FALSE(duty.is_interrupted());
    duty.take();
    EXPECT_TRUE(duty.is_interrupted());
    EXPECT_FALSE(duty.take_until(in_ms(60'000))) << "at once";
    std::thread([&] { EXPECT_FALSE(duty.is_interrupted()); }).join();
    std::thread wants([&] {  // Ends the favour meanwhile.
      duty.take();
      duty.give();
    });
    for (int i = 0; i < 1000; ++i) {
      ASSERT_TRUE(duty.is_interrupted());
      std::this_thread::yield();
    }
    duty.give();
    EXPECT_FALSE(duty.is_interrupted());
    wants.join();
  }
}

TEST(DutyTest, Favour__passes_from_thread_to_thread) {
  CheapDutyLock duty;
  for (int round = 0; round < 3; ++round) {
    take_and_give(duty, kMoreThanToFavour);
    std::thread([&] { take_and_give(duty, kMoreThanToFavour); }).join();
    std::thread([&] {
      for (int i = 0; i < kMoreThanToFavour; ++i) {
        duty.take_as_guest();
        duty.give();
      }
    }).join();
  }
}

/// Another thread takes the duty once, and gives the favourite no time in between to come again.
void end_favour(DutyLock& duty) {
  std::thread([&] { take_and_give(duty, 1); }).join();
}

TEST(DutyTest, Favour__that_another_thread_ends_soon_makes_the_next_one_dearer) {
  DutyLock duty;
  std::uint32_t wanted = kTakesToFavour;
  for (int round = 0; round < 12; ++round) {
    ASSERT_EQ(duty.takes_to_favour(), wanted);
    const std::uint64_t began_ns = monotonic_ns();
    take_and_give(duty, static_cast<int>(wanted) + 2);
    end_favour(duty);
    // A machine that stood still meanwhile has made it a long one.
    if (monotonic_ns() - began_ns >= kShortFavourNs)
      wanted = duty.takes_to_favour();
    else
      wanted = std::min(2 * wanted, kMostTakesToFavour);
  }
}

TEST(DutyTest, Favour__that_lasts_makes_the_next_one_cheaper) {
  DutyLock duty;
  std::uint32_t dearest = 0;
  // On a busy machine another thread comes too late now and then, which makes the favour a long one.
  for (const std::uint64_t until_ns = in_ms(60'000); monotonic_ns() < until_ns && dearest < 4 * kTakesToFavour;) {
    take_and_give(duty, static_cast<int>(duty.takes_to_favour()) + 2);
    end_favour(duty);
    dearest = duty.takes_to_favour();
  }
  ASSERT_GE(dearest, 4 * kTakesToFavour);
  for (std::uint32_t wanted = dearest; wanted > kTakesToFavour; wanted /= 2) {
    ASSERT_EQ(duty.takes_to_favour(), wanted);
    take_and_give(duty, static_cast<int>(wanted) + 2);
    const std::uint64_t until_ns = monotonic_ns() + kShortFavourNs;
    while (monotonic_ns() < until_ns) take_and_give(duty, 1);
    end_favour(duty);
  }
  EXPECT_EQ(duty.takes_to_favour(), kTakesToFavour);
}

TEST(DutyTest, Favour__that_a_guest_ends_costs_what_it_did) {
  DutyLock duty;
  take_and_give(duty, kMoreThanToFavour);
  duty.take_as_guest();
  duty.give();
  EXPECT_EQ(duty.takes_to_favour(), kTakesToFavour);
}

/// Threads that take the duty in bursts, so that favour is won and lost all the time.
template <class Lock>
void run_bursts(int threads_count, int guests, int burst, int rounds) {
  Lock duty;
  long plain = 0;  // Guarded by the duty alone.
  std::atomic<int> inside{0};
  std::atomic<int> collisions{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < threads_count; ++t) {
    threads.emplace_back([&, guest = t < guests] {
      for (int i = 0; i < rounds; ++i) {
        guest ? duty.take_as_guest() : duty.take();
        if (inside.fetch_add(1, std::memory_order_relaxed) != 0) collisions.fetch_add(1);
        ++plain;
        inside.fetch_sub(1, std::memory_order_relaxed);
        duty.give();
        if (i % burst == 0) std::this_thread::yield();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(collisions.load(), 0);
  EXPECT_EQ(plain, static_cast<long>(threads_count) * rounds);
}

TEST(DutyTest, Threads__exclude_each_other_and_see_what_the_one_before_did) { run_bursts<DutyLock>(4, 0, 1, 20'000); }

TEST(DutyTest, Threads__exclude_each_other_when_favour_is_won_and_lost) {
  run_bursts<CheapDutyLock>(2, 0, 2 * static_cast<int>(kTakesToFavour), 100'000);
  run_bursts<CheapDutyLock>(2, 1, 2 * static_cast<int>(kTakesToFavour), 100'000);
  run_bursts<CheapDutyLock>(3, 1, static_cast<int>(kTakesToFavour), 50'000);
  run_bursts<DutyLock>(2, 0, 2 * static_cast<int>(kTakesToFavour), 100'000);
}

/// What give() promises: a raise that give's caller misses afterwards is one whose thread sees what was done on duty.
TEST(DutyTest, Give__is_a_barrier_between_what_was_done_and_the_next_look) {
  constexpr int kRounds = 3'000;
  for (int round = 0; round < kRounds; ++round) {
    CheapDutyLock duty;
    long done = 0;  // Guarded by the duty.
    std::atomic<int> raised{0};
    std::atomic<bool> go{false};
    if (round % 4 != 0) take_and_give(duty, kMoreThanToFavour);
    bool other_saw = false;
    std::thread other([&] {
      while (!go.load(std::memory_order_acquire)) {
      }
      raised.fetch_add(1, std::memory_order_seq_cst);
      duty.take();
      other_saw = done != 0;
      duty.give();
    });
    go.store(true, std::memory_order_release);
    duty.take();
    done = 1;
    duty.give();
    const bool saw = raised.load(std::memory_order_seq_cst) != 0;
    other.join();
    ASSERT_TRUE(saw || other_saw);
  }
}

/// Takes and gives it. @return what it said meanwhile
bool take_and_ask_whether_shared(DutyLock& duty) {
  duty.take();
  const bool shared = duty.is_shared();
  duty.give();
  return shared;
}

TEST(DutyTest, Shared__is_it_soon_after_another_thread_had_it) {
  DutyLock duty;
  for (int i = 0; i < 10; ++i) ASSERT_FALSE(take_and_ask_whether_shared(duty)) << "nobody else has come yet";
  std::thread([&] { EXPECT_TRUE(take_and_ask_whether_shared(duty)); }).join();
  EXPECT_TRUE(take_and_ask_whether_shared(duty));
  take_and_give(duty, static_cast<int>(kTakesAlone));
  EXPECT_FALSE(take_and_ask_whether_shared(duty)) << "nobody has come for a while";
}

TEST(DutyTest, Shared__it_is_not_by_a_guest) {
  DutyLock duty;
  take_and_give(duty, 1);
  std::thread([&] {
    duty.take_as_guest();
    duty.give();
  }).join();
  EXPECT_FALSE(take_and_ask_whether_shared(duty));
}

TEST(DutyTest, Shared__is_what_a_favourite_has_no_more) {
  CheapDutyLock duty;
  std::thread([&] { take_and_give(duty, 1); }).join();
  take_and_give(duty, kMoreThanToFavour);
  EXPECT_FALSE(take_and_ask_whether_shared(duty));
}

/// Each has its turns, whoever works without a pause: whoever waits looks rarely, but sleeps in the end, and is woken.
TEST(DutyTest, Threads_that_do_not_pause__leave_each_other_turns_and_lose_nothing) {
  constexpr int kThreads = 4;
  constexpr long kTakes = 20'000;
  CheapDutyLock duty;
  long plain = 0;  // Guarded by the duty.
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (long i = 0; i < kTakes; ++i) {
        duty.take();
        ++plain;
        duty.give();
        if (i % 100 == 0) DutyLock::stay_away();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(plain, kThreads * kTakes);
}

TEST(DutyTest, Sleepers__all_get_their_turn_after_a_long_hold) {
  // Each waits long enough in take() to sleep in the kernel, because the holder goes on only when all are there.
  constexpr int kThreads = 6;
  for (const int before : {0, kMoreThanToFavour}) {
    CheapDutyLock duty;
    take_and_give(duty, before);
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
}

/// A thread ends on duty, as one does in a signal handler.
TEST(DutyDeathTest, Holder_that_has_ended__ends_the_process_of_who_waits) {
  for (const int before : {0, kMoreThanToFavour}) {
    for (const bool guest : {false, true}) {
      EXPECT_DEATH(
          {
            CheapDutyLock duty;
            alarm(kLongestWait.count());
            std::thread([&] {
              take_and_give(duty, before);
              duty.take();
            }).join();
            guest ? duty.take_as_guest() : duty.take();
          },
          "has ended in the middle of a call");
    }
  }
}

TEST(DutyDeathTest, Holder_that_has_ended__ends_the_process_of_all_who_wait_behind_the_first) {
  EXPECT_DEATH(
      {
        CheapDutyLock duty;
        alarm(kLongestWait.count());
        std::thread([&] {
          take_and_give(duty, kMoreThanToFavour);
          duty.take();
        }).join();
        std::thread first([&] { duty.take_as_guest(); });
        duty.take();
        first.join();
      },
      "has ended in the middle of a call");
}

// The end of a process does not end it in another way because a thread is lost.
TEST(DutyTest, Take_until__gives_up_what_a_thread_has_that_has_ended) {
  for (const int before : {0, kMoreThanToFavour}) {
    CheapDutyLock duty;
    std::thread([&] {
      take_and_give(duty, before);
      duty.take();
    }).join();
    EXPECT_FALSE(duty.take_until(in_ms(600)));
    EXPECT_FALSE(duty.take_until(in_ms(5)));
  }
}

// A thread of the child may get the stack, and so the thread pointer, of one that was inside in the parent.
TEST(DutyTest, Has_this_thread_one__is_not_asked_of_the_parent_in_its_child) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "it allows no thread in the child of a process with threads";
#endif
  CheapDutyLock duty;
  std::atomic<bool> inside{false};
  std::atomic<bool> over{false};
  std::thread favourite([&] {
    take_and_give(duty, kMoreThanToFavour);
    duty.take();
    inside.store(true);
    while (!over.load()) std::this_thread::yield();
    duty.give();
  });
  while (!inside.load()) std::this_thread::yield();
  const pid_t child = fork();
  if (child == 0) {
    bool has_one = false;
    std::thread([&has_one] { has_one = DutyLock::has_this_thread_one(); }).join();
    _exit(has_one ? 1 : 0);
  }
  over.store(true);
  favourite.join();
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace portofu
