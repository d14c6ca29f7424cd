// The clock of a rank, with a coordinator that the test plays.

#include "engine/wire/sim/virtual_clock.h"

#include <sched.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "tests/unit/support/virtual_job.h"

namespace portofu {
namespace {

constexpr ProcessId kSelf{1, 7};
/// Of machines whose looks take more than the least that a rank waits between them.
constexpr std::uint64_t kSlowPollPs = 30'000;

struct VirtualClockTest : testing::Test {
  std::unique_ptr<VirtualClock> open(std::int64_t rank = 0) {
    return VirtualClock::open(job.path(), rank, kSelf, &why);
  }

  VirtualJob job{2};
  std::string why;
};

TEST_F(VirtualClockTest, Open__refuses_what_is_not_of_this_release) {
  EXPECT_EQ(VirtualClock::open("/nowhere/at/all", 0, kSelf, &why), nullptr);
  EXPECT_NE(why.find("PORTOFU_SIM=/nowhere/at/all: open of it failed: "), std::string::npos) << why;
  EXPECT_NE(why.find("unset it"), std::string::npos) << why;
  EXPECT_EQ(VirtualClock::open("/dev/null", 0, kSelf, &why), nullptr);
  EXPECT_EQ(why.find("PORTOFU_SIM=/dev/null: "), 0u) << why;
  job.header().version = kVirtualVersion + 1;
  EXPECT_EQ(open(), nullptr);
  job.header().version = kVirtualVersion;
  job.header().page_bytes = 8;
  EXPECT_EQ(open(), nullptr);
  job.header().page_bytes = sizeof(VirtualPage);
  job.header().rank_count = 3;
  EXPECT_EQ(open(), nullptr) << "the file has no room for them";
  job.header().rank_count = 2;
  EXPECT_NE(open(), nullptr);
}

TEST_F(VirtualClockTest, Open__refuses_a_rank_that_there_is_not) {
  for (const std::int64_t rank : {-1, 2}) EXPECT_EQ(open(rank), nullptr) << rank;
  job.page(1).process.store(1);
  EXPECT_EQ(open(1), nullptr) << "another process is this rank";
  EXPECT_NE(why.find("needs ptl_sim --launcher"), std::string::npos) << why;
  ASSERT_NE(open(0), nullptr) << why;
  EXPECT_EQ(job.page(0).pid.load(), kSelf.pid);
}

TEST_F(VirtualClockTest, Calls__cost_what_the_machine_says) {
  const auto clock = open();
  ASSERT_NE(clock, nullptr) << why;
  std::uint64_t now_ps = 0;
  for (const auto& [call, cost_ps] : {std::pair{VirtualCall::kPut, VirtualJob::kPutPs},
                                      {VirtualCall::kGet, VirtualJob::kGetPs},
                                      {VirtualCall::kAtomic, VirtualJob::kAtomicPs},
                                      {VirtualCall::kBarrier, VirtualJob::kBarrierPs}}) {
    EXPECT_EQ(clock->stamp(call), now_ps += cost_ps);
    EXPECT_EQ(job.page().spent_ps[static_cast<std::size_t>(call)].load(), cost_ps);
  }
}

TEST_F(VirtualClockTest, Looks__that_find_something_cost_what_the_machine_says) {
  const auto clock = open();
  ASSERT_NE(clock, nullptr) << why;
  begin(job, *clock);
  for (int i = 0; i < 20; ++i) clock->find();
  EXPECT_EQ(clock->now_ps(), 1000 + 20 * VirtualJob::kPollPs) << "they are no empty looks in a row";
  EXPECT_EQ(job.page().count[static_cast<std::size_t>(VirtualSpent::kLook)].load(), 20u);
}

// Ranks of mpirun meet by a service of its own, and how often they look until they have heard is a matter of luck.
TEST_F(VirtualClockTest, Looks__before_the_first_turn_cost_nothing_and_end_in_a_wait_for_it) {
  const auto clock = open();
  ASSERT_NE(clock, nullptr) << why;
  for (int i = 0; i < 300; ++i) clock->find();
  for (int i = 0; i < 63; ++i) clock->pass();
  EXPECT_EQ(job.state(), VirtualState::kAway);
  std::thread coordinator([this] {
    ASSERT_TRUE(job.await(VirtualState::kPolling));
    job.grant(0);
  });
  clock->pass();
  coordinator.join();
  EXPECT_EQ(clock->now_ps(), 0u);
  EXPECT_TRUE(clock->has_begun());
  clock->find();
  EXPECT_EQ(clock->now_ps(), VirtualJob::kPollPs);
}

TEST_F(VirtualClockTest, Looks__of_one_that_has_sent_wait_for_the_first_turn) {
  const auto clock = open();
  ASSERT_NE(clock, nullptr) << why;
  clock->pass();
  clock->stamp(VirtualCall::kPut);
  clock->find();
  EXPECT_EQ(clock->now_ps(), VirtualJob::kPutPs + VirtualJob::kPollPs) << "what it has sent may be done";
  std::thread coordinator([this] {
    ASSERT_TRUE(job.await(VirtualState::kPolling));
    job.grant(0);
  });
  clock->pass();
  coordinator.join();
  EXPECT_EQ(clock->now_ps(), VirtualJob::kPutPs + VirtualJob::kPollPs) << "time has waited for it";
}

TEST_F(VirtualClockTest, Nic__sends_at_the_time_of_what_it_has_in_hand) {
  const auto clock = open();
  clock->enter_nic({.number = 1,
                    .time_ps = 5000,
                    .source_nid = 1,
                    .source_pid = 7,
                    .interface = 3,
                    .source_rank = 1,
                    .to_interface = 5},
                   9);
  EXPECT_EQ(clock->stamp(VirtualCall::kPut), 5000u);
  EXPECT_EQ(clock->cause(), 9);
  EXPECT_EQ(clock->interface(), 5u) << "an answer leaves where its request came";
  EXPECT_EQ(clock->to_interface(), 3u) << "and goes where that left";
  clock->leave_nic();
  EXPECT_EQ(clock->cause(), 0);
  EXPECT_EQ(clock->stamp(VirtualCall::kPut), VirtualJob::kPutPs) << "the application has its own time";
}

TEST_F(VirtualClockTest, Reads__are_of_virtual_time_after_the_first_turn) {
  const auto clock = open();
  EXPECT_FALSE(clock->has_begun());
  EXPECT_FALSE(clock->sleep(1)) << "nothing is sent, so it waits for nothing of ours";
  clock->stamp(VirtualCall::kPut);
  EXPECT_FALSE(clock->has_begun());
  begin(job, *clock);
  EXPECT_TRUE(clock->has_begun());
  EXPECT_EQ(clock->read(false), 1000u);
  EXPECT_EQ(clock->read(true), 1000u);
}

TEST_F(VirtualClockTest, First_turn__is_waited_for_by_who_has_sent_something_and_sleeps) {
  const auto clock = open();
  clock->stamp(VirtualCall::kPut);
  std::thread coordinator([&] {
    if (job.await(VirtualState::kReady)) job.grant(1000);
    if (job.await(VirtualState::kReady)) job.grant(2000);  // It has slept.
  });
  EXPECT_TRUE(clock->sleep(1));
  coordinator.join();
  EXPECT_TRUE(clock->has_begun());
}

/// It may look into its memory for what another one sends.
TEST_F(VirtualClockTest, First_turn__is_waited_for_by_who_sleeps_often_and_has_sent_nothing) {
  const auto clock = open();
  for (int i = 0; i < 15; ++i) EXPECT_FALSE(clock->sleep(1)) << i;
  std::thread coordinator([&] {
    if (job.await(VirtualState::kReady)) job.grant(1000);
    if (job.await(VirtualState::kReady)) job.grant(2000);  // It has slept.
  });
  EXPECT_TRUE(clock->sleep(1));
  coordinator.join();
  EXPECT_TRUE(clock->has_begun());
}

/// It may wait with a timeout.
TEST_F(VirtualClockTest, First_turn__is_waited_for_by_who_reads_the_clock_very_often_and_has_sent_nothing) {
  const auto clock = open();
  for (int i = 0; i < 4096; ++i) clock->read_early(false);
  EXPECT_FALSE(clock->has_begun());
  std::thread coordinator([&] {
    if (job.await(VirtualState::kReady)) job.grant(1000);
  });
  clock->read_early(false);
  coordinator.join();
  EXPECT_TRUE(clock->has_begun());
}

TEST_F(VirtualClockTest, First_turn__does_not_come_while_the_program_starts_up) {
  const auto clock = open();
  clock->start_up(true);
  for (int i = 0; i < 5000; ++i) clock->read_early(false);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(clock->sleep(1));
  clock->start_up(false);
  clock->read_early(false);
  EXPECT_FALSE(clock->sleep(1)) << "and what it did meanwhile does not count";
}

TEST_F(VirtualClockTest, First_turn__is_waited_for_by_who_has_sent_something_and_reads_the_clock_again_and_again) {
  const auto clock = open();
  for (int i = 0; i < 100; ++i) clock->read_early(false);
  clock->stamp(VirtualCall::kPut);
  for (int i = 0; i < 100; ++i) clock->read_early(true);
  EXPECT_FALSE(clock->has_begun()) << "nothing was sent, or a call is under way";
  std::thread coordinator([&] {
    if (job.await(VirtualState::kReady)) job.grant(1000);
  });
  for (int i = 0; i < 100 && !clock->has_begun(); ++i) clock->read_early(false);
  coordinator.join();
  EXPECT_TRUE(clock->has_begun());
}

TEST_F(VirtualClockTest, Start_up__takes_no_time) {
  const auto clock = open();
  clock->start_up(true);
  EXPECT_EQ(clock->stamp(VirtualCall::kPut), 0u);
  clock->pass();
  EXPECT_TRUE(clock->wait(1000)) << "it is not over, and nobody has the turn";
  EXPECT_EQ(job.state(), VirtualState::kAway);
  EXPECT_FALSE(clock->has_begun());
  clock->start_up(false);
  EXPECT_EQ(clock->stamp(VirtualCall::kPut), VirtualJob::kPutPs);
  begin(job, *clock);
  EXPECT_TRUE(clock->has_begun());
}

TEST_F(VirtualClockTest, Reads__in_a_row_let_time_pass_in_the_end) {
  job.header().poll_ps = kSlowPollPs;
  const auto clock = open();
  begin(job, *clock);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(clock->read(false), 1000u);
  EXPECT_EQ(clock->read(false), 1000u + kSlowPollPs);
  clock->stamp(VirtualCall::kPut);
  const std::uint64_t now_ps = clock->now_ps();
  EXPECT_EQ(clock->read(false), now_ps) << "after a call they cost nothing again";
}

TEST_F(VirtualClockTest, Reads__give_the_turn_back_when_something_else_comes_first) {
  job.header().poll_ps = kSlowPollPs;
  const auto clock = open();
  begin(job, *clock);
  job.page().horizon_ps.store(1000);
  std::thread coordinator([this] {
    ASSERT_TRUE(job.await(VirtualState::kReady));
    EXPECT_EQ(job.page().clock_ps.load(), 1000u + kSlowPollPs);
    job.grant(50'000);
  });
  while (clock->read(false) < 50'000) {
  }
  coordinator.join();
}

TEST_F(VirtualClockTest, Sleeps__let_time_pass) {
  const auto clock = open();
  begin(job, *clock);
  std::thread coordinator([this] {
    ASSERT_TRUE(job.await(VirtualState::kReady)) << "what arrives does not wake it";
    EXPECT_EQ(job.page().clock_ps.load(), 401'000u);
    job.grant(401'000);
  });
  EXPECT_TRUE(clock->sleep(400'000));
  coordinator.join();
  EXPECT_EQ(clock->now_ps(), 401'000u);
  std::thread([&] {
    EXPECT_FALSE(clock->sleep(1)) << "another thread";
    EXPECT_EQ(clock->read(false), 401'000u);
  }).join();
}

/// A program may wait by sleeps of no length for what is still to come.
TEST_F(VirtualClockTest, Sleeps__of_no_length_let_time_pass_too) {
  job.header().poll_ps = kSlowPollPs;
  const auto clock = open();
  begin(job, *clock);
  std::thread coordinator([this] {
    ASSERT_TRUE(job.await(VirtualState::kReady));
    job.grant(job.page().clock_ps.load());
  });
  EXPECT_TRUE(clock->sleep(0));
  coordinator.join();
  EXPECT_EQ(clock->now_ps(), 1000 + kSlowPollPs);
}

TEST_F(VirtualClockTest, Frozen__can_be_who_has_blocked_the_signal) {
  const auto clock = open();
  bool is_blocked = true;
  std::thread rank([&] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    clock->wait(1000);
    pthread_sigmask(SIG_SETMASK, nullptr, &all);
    is_blocked = sigismember(&all, kFreezeSignal) == 1;
  });
  ASSERT_TRUE(job.await(VirtualState::kWaiting));
  job.grant(1000);
  rank.join();
  EXPECT_FALSE(is_blocked);
}

TEST_F(VirtualClockTest, Looks__give_the_turn_back_when_something_else_comes_first) {
  const auto clock = open();
  begin(job, *clock);
  job.page().horizon_ps.store(1000 + VirtualJob::kEmptyPollPs);
  clock->pass();
  EXPECT_EQ(clock->now_ps(), 1000 + VirtualJob::kEmptyPollPs) << "not later than the horizon";
  std::thread rank([&] { clock->pass(); });
  ASSERT_TRUE(job.await(VirtualState::kPolling)) << "later than the horizon";
  job.grant(1000 + 2 * VirtualJob::kEmptyPollPs);
  rank.join();
}

/// What was sent may have done something since, and so may what happens before a clock that has run ahead.
TEST_F(VirtualClockTest, Others__catch_up_with_who_has_sent_or_is_ahead) {
  const auto clock = open();
  ASSERT_NE(clock, nullptr) << why;
  EXPECT_FALSE(clock->let_others_catch_up()) << "it has had no turn";
  begin(job, *clock);
  EXPECT_FALSE(clock->let_others_catch_up()) << "nothing can have happened";
  const auto grant_at_its_clock = [&](std::uint64_t horizon_ps) {
    ASSERT_TRUE(job.await(VirtualState::kReady));
    job.grant(job.page().clock_ps.load(), horizon_ps);
  };
  const std::uint64_t sent_ps = clock->stamp(VirtualCall::kPut);
  std::thread coordinator(grant_at_its_clock, sent_ps);
  EXPECT_TRUE(clock->let_others_catch_up());
  coordinator.join();
  EXPECT_EQ(clock->now_ps(), sent_ps) << "that costs nothing";
  EXPECT_FALSE(clock->let_others_catch_up());
  clock->find();
  coordinator = std::thread(grant_at_its_clock, kNeverPs);
  EXPECT_TRUE(clock->let_others_catch_up()) << "it is past what it was told";
  coordinator.join();
}

/// But slowly: a program that looks some dozen times while it works loses little time by it.
TEST_F(VirtualClockTest, Looks__in_a_row_wait_ever_longer) {
  job.header().poll_ps = kSlowPollPs;
  const auto clock = open();
  constexpr int kShort = 8;
  constexpr int kLong = 40;
  begin(job, *clock);
  std::thread rank([&] {
    for (int i = 0; i < kShort + kLong; ++i) clock->pass();
  });
  for (int i = 1; i <= kLong; ++i) {
    ASSERT_TRUE(job.await(VirtualState::kPolling)) << i;
    EXPECT_EQ(job.page().until_ps.load() - job.page().clock_ps.load(), kSlowPollPs << (i / 8)) << i;
    job.grant(job.page().until_ps.load());
  }
  rank.join();
  EXPECT_EQ(job.page().spent_ps[static_cast<std::size_t>(VirtualSpent::kLook)].load(),
            (kShort + kLong) * VirtualJob::kEmptyPollPs);
}

/// Nothing can come that a longer wait would be for. Whoever looks for ever is found out all the same.
TEST_F(VirtualClockTest, Looks__of_one_that_is_alone_wait_no_longer_until_they_are_very_many) {
  job.header().poll_ps = kSlowPollPs;
  const auto clock = open();
  begin(job, *clock);
  job.page().is_quiet = 1;
  constexpr int kShort = 8;
  constexpr int kCounted = 2048;
  std::thread rank([&] {
    for (int i = 0; i <= kCounted; ++i) clock->pass();
  });
  for (int i = kShort + 1; i <= kCounted; ++i) {
    ASSERT_TRUE(job.await(VirtualState::kPolling)) << i;
    ASSERT_EQ(job.page().until_ps.load() - job.page().clock_ps.load(), kSlowPollPs) << i;
    job.grant(job.page().until_ps.load());
  }
  ASSERT_TRUE(job.await(VirtualState::kPolling));
  EXPECT_GT(job.page().until_ps.load() - job.page().clock_ps.load(), 3'600'000'000'000'000u) << "an hour";
  job.grant(job.page().until_ps.load());
  rank.join();
}

/// What one wait by the clock has taken is no measure for the next one, though nothing was found in between.
TEST_F(VirtualClockTest, Looks__with_a_timeout_last_up_to_an_eighth_too_long_each_time) {
  constexpr std::uint64_t kTimeoutPs = 100'000'000;
  const auto clock = open();
  begin(job, *clock);
  std::atomic<bool> ends{false};
  std::thread coordinator([&] {
    for (; !ends; sched_yield()) {
      if (job.state() != VirtualState::kRunning) job.grant(job.page().until_ps.load());
    }
  });
  for (int i = 0; i < 20; ++i) {
    const std::uint64_t began_ps = clock->read(false);
    while (clock->read(false) < began_ps + kTimeoutPs) clock->pass();
    EXPECT_LE(clock->read(false), began_ps + kTimeoutPs + kTimeoutPs / 8) << i;
  }
  ends = true;
  coordinator.join();
}

/// Otherwise time would hardly pass for who looks, or waits by the clock.
TEST_F(VirtualClockTest, Looks__that_cost_nothing_wait_all_the_same) {
  constexpr std::uint64_t kLeastPs = 20'000;
  job.header().poll_ps = 0;
  job.header().empty_poll_ps = 0;
  const auto clock = open();
  begin(job, *clock);
  std::uint64_t read_ps = 0;
  std::thread rank([&] {
    for (int i = 0; i < 9; ++i) clock->pass();
    clock->find();
    const std::uint64_t now_ps = clock->now_ps();
    for (int i = 0; i < 65; ++i) read_ps = clock->read(false) - now_ps;
  });
  ASSERT_TRUE(job.await(VirtualState::kPolling));
  EXPECT_LT(job.page().clock_ps.load(), 1000u + 10) << "looks themselves take no time";
  EXPECT_EQ(job.page().until_ps.load() - job.page().clock_ps.load(), kLeastPs);
  job.grant(job.page().until_ps.load());
  rank.join();
  EXPECT_EQ(read_ps, kLeastPs) << "the first 64 cost nothing";
}

/// The coordinator may ask at any time: a machine that stands still for a moment looks to it like CPU time.
TEST_F(VirtualClockTest, Looks__keep_the_turn_of_who_is_asked_whether_it_polls_its_memory) {
  const auto clock = open();
  begin(job, *clock);
  job.page().state.store(static_cast<std::uint32_t>(VirtualState::kAsked));
  clock->pass();
  EXPECT_EQ(job.state(), VirtualState::kRunning);
  EXPECT_EQ(clock->now_ps(), 1000 + VirtualJob::kEmptyPollPs);
  job.page().state.store(static_cast<std::uint32_t>(VirtualState::kAsked));
  clock->read(false);
  EXPECT_EQ(job.state(), VirtualState::kRunning);
  clock->freeze(false);
  EXPECT_EQ(job.state(), VirtualState::kRunning) << "the signal comes after the answer";
}

TEST_F(VirtualClockTest, Looks__that_find_something_cost_a_call_and_end_the_row) {
  const auto clock = open();
  begin(job, *clock);
  for (int i = 0; i < 8; ++i) clock->pass();
  clock->find();
  clock->pass();
  EXPECT_EQ(job.state(), VirtualState::kRunning) << "the row is a short one";
  EXPECT_EQ(clock->now_ps(), 1000 + 9 * VirtualJob::kEmptyPollPs + VirtualJob::kPollPs);
}

TEST_F(VirtualClockTest, Wait__ends_when_something_arrives_or_at_its_time) {
  const auto clock = open();
  bool in_time = false;
  std::thread rank([&] { in_time = clock->wait(500); });
  ASSERT_TRUE(job.await(VirtualState::kWaiting));
  EXPECT_EQ(job.page().until_ps.load(), 500u);
  job.grant(300);
  rank.join();
  EXPECT_TRUE(in_time);
  EXPECT_EQ(clock->now_ps(), 300 + VirtualJob::kPollPs);
  rank = std::thread([&] { in_time = clock->wait(500); });
  ASSERT_TRUE(job.await(VirtualState::kWaiting));
  job.grant(500);
  rank.join();
  EXPECT_FALSE(in_time);
  EXPECT_FALSE(clock->wait(500)) << "it is as late as that";
}

TEST_F(VirtualClockTest, Reports__wait_for_room) {
  const auto clock = open();
  std::thread rank([&] {
    VirtualReport report{};
    for (; report.number < 2 * kReportCount; ++report.number) clock->report(report);
  });
  std::uint32_t taken = 0;
  while (taken < 2 * kReportCount) {
    const std::uint32_t given = job.page().reports_given.load();
    ASSERT_LE(given - taken, kReportCount);
    for (; taken != given; ++taken) EXPECT_EQ(job.page().reports[taken % kReportCount].number, taken);
    job.page().reports_taken.store(taken);
  }
  rank.join();
}

TEST_F(VirtualClockTest, Spans__tell_what_time_has_gone_into) {
  job.header().keeps_spans = 1;
  const auto clock = open();
  begin(job, *clock);
  clock->stamp(VirtualCall::kGet);
  std::thread rank([&] { clock->pass(); });
  ASSERT_TRUE(job.await(VirtualState::kPolling));
  job.grant(2000);
  rank.join();
  rank = std::thread([&] { clock->wait(5000); });
  ASSERT_TRUE(job.await(VirtualState::kWaiting));
  job.grant(3000);
  rank.join();
  constexpr std::uint64_t kSent = 1000 + VirtualJob::kGetPs;
  constexpr std::uint64_t kLooked = kSent + VirtualJob::kEmptyPollPs;
  const VirtualPage& page = job.page();
  ASSERT_EQ(page.spans_given.load(), 6u);
  const auto expect = [&](std::size_t index, std::uint64_t from_ps, std::uint64_t to_ps, VirtualSpent what) {
    EXPECT_EQ(page.spans[index].from_ps, from_ps) << index;
    EXPECT_EQ(page.spans[index].to_ps, to_ps) << index;
    EXPECT_EQ(page.spans[index].what, static_cast<std::uint8_t>(what)) << index;
    EXPECT_EQ(page.spans[index].is_empty, index == 2 ? 1 : 0) << index;
  };
  expect(0, 0, 1000, VirtualSpent::kWait);
  expect(1, 1000, kSent, VirtualSpent::kGet);
  expect(2, kSent, kLooked, VirtualSpent::kLook);
  expect(3, kLooked, 2000, VirtualSpent::kWait);
  expect(4, 2000, 3000, VirtualSpent::kWait);
  expect(5, 3000, 3000 + VirtualJob::kPollPs, VirtualSpent::kLook);
}

TEST_F(VirtualClockTest, Spans__are_told_to_who_asks_and_wait_for_room) {
  const auto silent = open();
  silent->stamp(VirtualCall::kPut);
  EXPECT_EQ(job.page().spans_given.load(), 0u);
  job.header().keeps_spans = 1;
  const auto clock = open(1);
  std::thread rank([&] {
    for (std::uint32_t i = 0; i < 2 * kSpanCount; ++i) clock->stamp(VirtualCall::kPut);
  });
  VirtualPage& page = job.page(1);
  for (std::uint32_t taken = 0; taken < 2 * kSpanCount;) {
    const std::uint32_t given = page.spans_given.load();
    ASSERT_LE(given - taken, kSpanCount);
    for (; taken != given; ++taken) EXPECT_EQ(page.spans[taken % kSpanCount].from_ps, taken * VirtualJob::kPutPs);
    page.spans_taken.store(taken);
  }
  rank.join();
}

TEST_F(VirtualClockTest, Frozen__threads_go_on_with_their_turn_and_were_not_asked_in_a_call) {
  const auto clock = open();
  auto& state = job.page().state;
  state.store(static_cast<std::uint32_t>(VirtualState::kAsked));
  clock->freeze(true);
  EXPECT_EQ(job.state(), VirtualState::kRunning);
  clock->freeze(false);
  EXPECT_EQ(job.state(), VirtualState::kRunning) << "nobody asks any more";
  state.store(static_cast<std::uint32_t>(VirtualState::kAsked));
  std::thread rank([&] { clock->freeze(false); });
  ASSERT_TRUE(job.await(VirtualState::kFrozen));
  job.grant(700);
  rank.join();
  EXPECT_EQ(clock->stamp(VirtualCall::kPut), 700 + VirtualJob::kPutPs);
  EXPECT_EQ(job.page().spent_ps[static_cast<std::size_t>(VirtualSpent::kMemory)].load(), 700u);
}

/// It may have its turn and not know it yet. Whoever froze it there and let it go on by another turn would find that it
/// gives this one back.
TEST_F(VirtualClockTest, Frozen__no_thread_is_while_it_changes_turns) {
  const auto clock = open();
  static VirtualClock* asked = nullptr;
  asked = clock.get();
  signal(SIGUSR1, [](int) { asked->freeze(false); });
  std::thread rank([&] { clock->wait(kNeverPs); });
  ASSERT_TRUE(job.await(VirtualState::kWaiting));
  job.page().state.store(static_cast<std::uint32_t>(VirtualState::kAsked));
  pthread_kill(rank.native_handle(), SIGUSR1);
  EXPECT_TRUE(job.await(VirtualState::kRunning));
  job.grant(700);
  rank.join();
  signal(SIGUSR1, SIG_DFL);
  EXPECT_EQ(clock->now_ps(), 700 + VirtualJob::kPollPs);
}

TEST_F(VirtualClockTest, Deserted__by_the_coordinator_time_is_real) {
  job.header().coordinator = 0x3fffffff;  // No such process.
  const auto clock = open();
  clock->wait(kNeverPs);  // It returns.
  clock->leave();
  EXPECT_NE(job.state(), VirtualState::kGone) << "it had left before";
}

TEST_F(VirtualClockTest, Deserted__by_the_coordinator_a_frozen_thread_goes_on) {
  job.header().coordinator = 0x3fffffff;
  const auto clock = open();
  job.page().state.store(static_cast<std::uint32_t>(VirtualState::kAsked));
  clock->freeze(false);  // It returns.
  EXPECT_EQ(job.state(), VirtualState::kFrozen);
}

/// The coordinator asks several times before it believes, so a thread may be let go on just when it goes to sleep.
TEST_F(VirtualClockTest, Frozen__threads_go_on_without_a_turn) {
  const auto clock = open();
  auto& state = job.page().state;
  std::atomic<bool> ends{false};
  std::thread rank([&] {
    while (!ends.load()) clock->freeze(false);
  });
  // On a busy machine each round takes two turns of all that run there.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  for (int i = 0; i < 2000 && std::chrono::steady_clock::now() < end; ++i) {
    state.store(static_cast<std::uint32_t>(VirtualState::kAsked));
    while (job.state() != VirtualState::kFrozen) sched_yield();
    state.store(static_cast<std::uint32_t>(VirtualState::kRunning));
    virtual_wake(state);
  }
  ends.store(true);
  rank.join();
}

}  // namespace
}  // namespace portofu
