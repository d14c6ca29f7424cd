// Who is woken, when, and what it costs the ringer. The race is modelled in queue/asymmetric_guard_test.cpp.

#include "engine/segment/doorbell.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <vector>

namespace portofu {
namespace {

constexpr std::int64_t kLong = kLongestSleepNs;

class DoorbellTest : public ::testing::TestWithParam<NodeGuard> {
 protected:
  void SetUp() override {
    if (GetParam() == NodeGuard::kMembarrier && register_node_guard() != NodeGuard::kMembarrier) {
      GTEST_SKIP() << "the kernel has no membarrier";
    }
  }
  bool ring_from_outside() { return ring_if_asleep(shared, GetParam(), &rung); }

  DoorbellShared shared{};
  Doorbell bell{shared, GetParam()};
  std::uint64_t rung = 0;
};

INSTANTIATE_TEST_SUITE_P(Barriers, DoorbellTest, ::testing::Values(NodeGuard::kMembarrier, NodeGuard::kFence),
                         [](const auto& instance) {
                           return instance.param == NodeGuard::kMembarrier ? "membarrier" : "fence";
                         });

TEST_P(DoorbellTest, Nobody_asleep__is_not_rung) {
  EXPECT_FALSE(ring_from_outside());
  EXPECT_EQ(shared.bell.load(), 0u);
}

TEST_P(DoorbellTest, Ring_between_announce_and_wait__is_not_missed) {
  const std::uint32_t seen = bell.announce();
  EXPECT_TRUE(ring_from_outside());
  EXPECT_TRUE(bell.wait(seen, kLong));
  bell.withdraw();
}

TEST_P(DoorbellTest, Withdrawn_announcement__is_not_rung) {
  bell.announce();
  bell.withdraw();
  EXPECT_FALSE(ring_from_outside());
}

TEST_P(DoorbellTest, One_sleep__is_rung_once_by_each_ringer) {
  bell.announce();
  EXPECT_TRUE(ring_from_outside());
  EXPECT_FALSE(ring_from_outside());
  std::uint64_t other = 0;
  EXPECT_TRUE(ring_if_asleep(shared, GetParam(), &other)) << "the first one may have died before its system call";
  bell.withdraw();
  bell.announce();
  EXPECT_TRUE(ring_from_outside()) << "a new sleep";
  bell.withdraw();
}

TEST_P(DoorbellTest, Wait__ends_with_its_time) {
  const std::uint32_t seen = bell.announce();
  EXPECT_FALSE(bell.wait(seen, 1000));
  bell.withdraw();
}

TEST(Doorbell, Wait__without_membarrier_is_short) {
  DoorbellShared shared{};
  Doorbell bell(shared, NodeGuard::kFence);
  const std::uint32_t seen = bell.announce();
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(bell.wait(seen, -1));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(500));
  bell.withdraw();
}

TEST_P(DoorbellTest, Ring__wakes_all_who_sleep) {
  std::atomic<int> woken{0};
  std::atomic<int> announced{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      std::uint32_t seen = bell.announce();
      announced.fetch_add(1);
      // Without membarrier the sleep ends by itself now and then.
      while (!bell.wait(seen, kLong)) {
      }
      bell.withdraw();
      woken.fetch_add(1);
    });
  }
  while (announced.load() < 3) std::this_thread::yield();
  bell.ring();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(woken.load(), 3);
  EXPECT_EQ(shared.sleepers.load() & kSleeperCountMask, 0u);
}

TEST_P(DoorbellTest, Ping_pong_of_two_sleepers__loses_no_wakeup) {
  constexpr std::uint64_t kRounds = 2000;
  DoorbellShared other_shared{};
  Doorbell other{other_shared, GetParam()};
  std::atomic<std::uint64_t> to_bell{0};
  std::atomic<std::uint64_t> to_other{0};
  // A sleep that ends by its time although there is work is a lost wake-up. @return how many there were
  const auto await = [](Doorbell& mine, const std::atomic<std::uint64_t>& work, std::uint64_t wanted) {
    std::uint32_t lost = 0;
    while (work.load(std::memory_order_acquire) != wanted) {
      const std::uint32_t seen = mine.announce();
      if (work.load(std::memory_order_acquire) != wanted && !mine.wait(seen, kLong)) {
        if (work.load(std::memory_order_acquire) == wanted) ++lost;
      }
      mine.withdraw();
    }
    return lost;
  };
  std::uint32_t lost_other = 0;
  std::thread thread([&] {
    std::uint64_t rung_here = 0;
    for (std::uint64_t i = 1; i <= kRounds; ++i) {
      lost_other += await(other, to_other, i);
      to_bell.store(i, std::memory_order_release);
      ring_if_asleep(shared, GetParam(), &rung_here);
    }
  });
  std::uint32_t lost = 0;
  for (std::uint64_t i = 1; i <= kRounds; ++i) {
    to_other.store(i, std::memory_order_release);
    ring_if_asleep(other_shared, GetParam(), &rung);
    lost += await(bell, to_bell, i);
  }
  thread.join();
  // Without membarrier sleeps end by themselves, for that very reason.
  if (GetParam() == NodeGuard::kMembarrier) {
    EXPECT_EQ(lost + lost_other, 0u);
  }
}

TEST_P(DoorbellTest, Wait_beside_a_descriptor__ends_by_the_bell) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::uint32_t seen = bell.announce();
  std::thread ringer([&] {
    while (shared.watcher.load() == 0) std::this_thread::yield();
    ring_from_outside();
  });
  // Without membarrier a wait is a nap, which may be over before the ringer has seen the watcher.
  while (!bell.wait(seen, kLong, ends[0])) {
  }
  bell.withdraw();
  ringer.join();
  EXPECT_EQ(shared.watcher.load(), 0u);
  close(ends[0]);
  close(ends[1]);
}

TEST_P(DoorbellTest, Wait_beside_a_descriptor__ends_when_it_is_readable) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  const std::uint32_t seen = bell.announce();
  EXPECT_TRUE(bell.wait(seen, kLong, ends[0]));
  bell.withdraw();
  close(ends[0]);
  close(ends[1]);
}

TEST_P(DoorbellTest, Ring_between_announce_and_wait_beside_a_descriptor__is_not_missed) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::uint32_t seen = bell.announce();
  EXPECT_TRUE(ring_from_outside());
  EXPECT_TRUE(bell.wait(seen, kLong, ends[0]));
  bell.withdraw();
  close(ends[0]);
  close(ends[1]);
}

TEST_P(DoorbellTest, Watcher_that_leaves__rings_for_the_others) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  // The other one sleeps at the bell alone; nobody but the watcher rings.
  const std::uint32_t seen_by_other = bell.announce();
  std::thread other([&] {
    // Without membarrier a wait is a nap, which may be over before the watcher has left. That rings while the count of
    // announcements says that somebody else is there, thus until this one is withdrawn.
    while (!bell.wait(seen_by_other, kLong)) {
    }
    bell.withdraw();
  });
  const std::uint32_t seen = bell.announce();
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  EXPECT_TRUE(bell.wait(seen, kLong, ends[0]));
  bell.withdraw();
  other.join();
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace portofu
