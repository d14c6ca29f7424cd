// How ranks leave virtual time, and what is left of a process that others have followed as the same rank.

#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <ctime>
#include <thread>

#include "engine/wire/sim/virtual_clock.h"
#include "tests/unit/support/virtual_job.h"

namespace portofu {
namespace {

struct VirtualClockEnds : testing::Test {
  static constexpr ProcessId kProcess{1, 7};

  std::unique_ptr<VirtualClock> open(std::int64_t rank = 0) {
    return VirtualClock::open(job.path(), rank, kProcess, &why);
  }
  std::uint64_t spent_ps(VirtualSpent what) { return job.page().spent_ps[static_cast<std::size_t>(what)].load(); }

  static VirtualDelivery sent_by(std::uint32_t rank, std::uint32_t life) {
    VirtualDelivery delivery{};
    delivery.source_rank = rank;
    delivery.source_life = life;
    return delivery;
  }

  /// Leaves, and goes on when it wants to.
  void leave(VirtualClock& clock) {
    std::thread rank([&] { clock.leave(); });
    ASSERT_TRUE(job.await(VirtualState::kLeaving));
    job.grant(job.page().clock_ps.load());
    rank.join();
  }

  VirtualJob job{2};
  const VirtualDelivery of_first_life = sent_by(0, 1);
  std::string why;
};

void use_cpu(std::clock_t ticks) {
  const std::clock_t until = std::clock() + ticks;
  while (std::clock() < until) {
  }
}

/// What its looks, waits and sleeps take is not counted any more. Its NIC is still there for others.
TEST_F(VirtualClockEnds, Retired__time_is_real_and_the_nic_goes_on) {
  const auto clock = open();
  begin(job, *clock);
  std::thread coordinator([this] {
    if (job.await(VirtualState::kLeaving)) job.grant(5000);
  });
  clock->retire();
  coordinator.join();
  EXPECT_EQ(job.state(), VirtualState::kRetired);
  EXPECT_EQ(job.page().clock_ps.load(), 5000u);
  EXPECT_FALSE(clock->has_begun()) << "clocks show real time";
  clock->pass();
  EXPECT_TRUE(clock->wait(kNeverPs));
  EXPECT_FALSE(clock->sleep(1000));
  EXPECT_EQ(clock->now_ps(), 5000u);
  EXPECT_FALSE(clock->has_sender_gone(of_first_life));
  job.deliver({1, 6000, 1, 1, 0, 1, 0});
  VirtualDelivery delivery{};
  EXPECT_TRUE(clock->wait_for_delivery(&delivery, 1'000'000'000));
  clock->delivered();
  clock->retire();
  EXPECT_EQ(job.state(), VirtualState::kRetired);
  clock->leave();
  EXPECT_TRUE(clock->has_sender_gone(of_first_life)) << "at once";
  EXPECT_EQ(job.page().clock_ps.load(), 5000u);
}

TEST_F(VirtualClockEnds, Leave__waits_for_its_turn_and_is_done_once) {
  const auto clock = open();
  std::thread rank([&] {
    clock->leave();
    clock->leave();
  });
  ASSERT_TRUE(job.await(VirtualState::kLeaving));
  EXPECT_FALSE(clock->has_sender_gone(of_first_life));
  job.grant(40);
  rank.join();
  EXPECT_TRUE(clock->has_sender_gone(of_first_life));
}

/// It has seen in its memory what it waited for, and calls nothing more.
TEST_F(VirtualClockEnds, Leave__counts_polling_memory_behind_the_last_call) {
  const auto clock = open();
  begin(job, *clock);
  job.page().state.store(static_cast<std::uint32_t>(VirtualState::kAsked));
  std::thread rank([&] { clock->freeze(false); });
  ASSERT_TRUE(job.await(VirtualState::kFrozen));
  job.grant(5000);
  rank.join();
  leave(*clock);
  EXPECT_EQ(job.page().clock_ps.load(), 5000u);
  EXPECT_EQ(spent_ps(VirtualSpent::kMemory), 4000u);
}

TEST_F(VirtualClockEnds, Leave__counts_computing_behind_the_last_call) {
  job.header().compute = static_cast<std::uint32_t>(VirtualCompute::kCpu);
  job.header().compute_word = 1000;
  const auto clock = open();
  begin(job, *clock);
  std::atomic<bool> is_ready{false};
  std::thread rank([&] {
    clock->stamp(VirtualCall::kPut);
    use_cpu(CLOCKS_PER_SEC / 50);
    is_ready = true;
    clock->leave();
  });
  ASSERT_TRUE(job.await(VirtualState::kLeaving));
  EXPECT_TRUE(is_ready);
  job.grant(job.page().clock_ps.load());
  rank.join();
  EXPECT_GT(spent_ps(VirtualSpent::kCompute), 1'000'000'000u) << "a millisecond of the 20";
}

/// Each thread has a clock of CPU time of its own.
TEST_F(VirtualClockEnds, Cpu_time__of_threads_that_call_in_turns_is_counted_once) {
  job.header().compute = static_cast<std::uint32_t>(VirtualCompute::kCpu);
  job.header().compute_word = 1000;
  const auto clock = open();
  begin(job, *clock);
  use_cpu(CLOCKS_PER_SEC / 20);
  clock->stamp(VirtualCall::kPut);
  const std::uint64_t before_ps = spent_ps(VirtualSpent::kCompute);
  for (int i = 0; i < 10; ++i) {
    std::thread([&] { clock->stamp(VirtualCall::kPut); }).join();
    clock->stamp(VirtualCall::kPut);
  }
  EXPECT_LT(spent_ps(VirtualSpent::kCompute) - before_ps, 250'000'000'000u) << "not the 50 ms ten times over";
}

/// A call costs what the machine says, and not what the library takes here besides.
TEST_F(VirtualClockEnds, Cpu_time__of_the_library_itself_is_not_counted) {
  job.header().compute = static_cast<std::uint32_t>(VirtualCompute::kCpu);
  job.header().compute_word = 1000;
  const auto clock = open();
  begin(job, *clock);
  clock->stamp(VirtualCall::kPut);
  const std::uint64_t before_ps = spent_ps(VirtualSpent::kCompute);
  use_cpu(CLOCKS_PER_SEC / 10);
  clock->end_own_work();
  clock->stamp(VirtualCall::kPut);
  EXPECT_LT(spent_ps(VirtualSpent::kCompute) - before_ps, 50'000'000'000u) << "half of it";
}

TEST_F(VirtualClockEnds, Reports__name_the_process_that_has_sent) {
  const auto first = open();
  first->report({});
  const auto second = open();
  second->report({});
  for (std::uint32_t index = 0; index < 2; ++index) {
    const VirtualReport& report = job.page().reports[index];
    EXPECT_EQ(report.source_nid, kProcess.nid);
    EXPECT_EQ(report.source_pid, kProcess.pid);
    EXPECT_EQ(report.source_life, index + 1);
  }
}

/// Nobody waits for the rest of a message whose sender sends nothing more.
TEST_F(VirtualClockEnds, Sender__has_gone_if_another_process_is_the_rank_or_none) {
  const auto clock = open();
  EXPECT_FALSE(clock->has_sender_gone(of_first_life));
  const auto next = open();
  EXPECT_TRUE(clock->has_sender_gone(of_first_life));
  EXPECT_FALSE(clock->has_sender_gone(sent_by(0, 2)));
  EXPECT_TRUE(clock->has_sender_gone(sent_by(77, 0))) << "no such rank";
  const pid_t ended = fork();
  if (ended == 0) _exit(0);
  ASSERT_EQ(waitpid(ended, nullptr, 0), ended);
  job.page(1).process = static_cast<std::uint32_t>(ended);
  EXPECT_TRUE(clock->has_sender_gone(sent_by(1, 0))) << "it was killed";
}

}  // namespace
}  // namespace portofu
