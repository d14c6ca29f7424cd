// The thread by itself, over played wires: what it takes in, what it hears, how it ends. How it takes turns with an
// application is seen on a real node.

#include "engine/run/progress_thread.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "engine/queue/clock.h"
#include "engine/run/process_threads.h"
#include "engine/topology/near_cpus.h"
#include "tests/support/eventually.h"
#include "tests/unit/run/engine_fixture.h"
#include "tests/unit/run/real_engine.h"

namespace portofu {
namespace {

/// The directory in /proc of the thread that handles messages; empty if there is none.
std::string progress_directory() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm") >> std::ws, name);
    if (name == "portofu") return task.path();
  }
  return "";
}

class ProgressThreadTest : public EngineFixture {
 protected:
  ~ProgressThreadTest() override { progress.reset(); }

  void start() {
    progress = ProgressThread::start(*engine);
    ASSERT_NE(progress, nullptr);
  }
  /// A packet that nobody wants, and that counts as work all the same.
  static FakePacket packet_of(ProcessId source) {
    PacketHeader header{};
    header.type = PacketType::kPut;
    header.interface_index = kIndex;
    return {source, header, {}};
  }
  bool has_packet() {
    const Engine::Duty duty(*engine);
    return wire.has_packets();
  }
  /// The thread that serves looks at the wire on duty, too.
  void arrive_on_duty() {
    const Engine::Duty duty(*engine);
    wire.arrive(packet_of(kPeer));
  }

  std::unique_ptr<ProgressThread> progress;
};

TEST_F(ProgressThreadTest, Thread__takes_in_what_arrives_while_the_application_is_away) {
  wire.arrive(packet_of(kPeer));
  start();
  EXPECT_TRUE(eventually([this] { return !has_packet(); }));
  EXPECT_TRUE(eventually([this] { return counted(Counter::kDutyByProgress) > 0; }));
}

/// A guard period would last longer than this test.
TEST_F(ProgressThreadTest, Thread__serves_an_application_at_once_that_goes_to_sleep_elsewhere) {
  close();
  settings.guard_period_us = 3'600'000'000;
  open();
  start();
  for (int i = 0; i < 3; ++i) {
    engine->step();  // It looks, and so it is watched.
    arrive_on_duty();
    progress->stand_in();
    EXPECT_TRUE(eventually([this] { return !has_packet(); })) << i;
  }
}

TEST_F(ProgressThreadTest, Thread__that_has_ended_takes_nothing_in) {
  start();
  EXPECT_TRUE(progress->stop_until(monotonic_ns() + 10 * kSecondNs));
  wire.arrive(packet_of(kPeer));
  EXPECT_TRUE(eventually([] { return progress_directory().empty(); })) << "the kernel lists it for a while";
  EXPECT_TRUE(has_packet());
  EXPECT_TRUE(progress->stop_until(0)) << "it has ended already";
}

TEST_F(ProgressThreadTest, Stop_until__does_not_wait_for_a_thread_that_hangs) {
  clock_hangs = true;
  start();
  ASSERT_TRUE(eventually([this] { return somebody_hangs.load(); }));
  EXPECT_FALSE(progress->stop_until(monotonic_ns() + 20'000'000));
  clock_hangs = false;
  EXPECT_TRUE(progress->stop_until(monotonic_ns() + 10 * kSecondNs));
}

TEST_F(ProgressThreadTest, Signals__are_left_to_the_application_but_for_faults) {
  sigset_t mask;
  sigemptyset(&mask);
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  start();
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  for (const int number : {SIGTERM, SIGUSR1, SIGSEGV, SIGBUS}) EXPECT_EQ(sigismember(&mask, number), 0) << number;
  ASSERT_TRUE(eventually([] { return !progress_directory().empty(); }));
  std::ifstream status(progress_directory() + "/status");
  std::string line;
  while (std::getline(status, line) && !line.starts_with("SigBlk:")) continue;
  const std::uint64_t blocked = std::stoull(line.substr(7), nullptr, 16);
  const auto is_blocked = [blocked](int number) { return (blocked >> (number - 1) & 1) != 0; };
  EXPECT_TRUE(is_blocked(SIGTERM) && is_blocked(SIGUSR1) && is_blocked(SIGINT));
  EXPECT_FALSE(is_blocked(SIGSEGV) || is_blocked(SIGBUS));
}

TEST_F(ProgressThreadTest, Cores__are_more_than_the_one_of_its_starter) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "there is one core";
  cpu_set_t one;
  CPU_ZERO(&one);
  int core = 0;
  while (!CPU_ISSET(core, &all)) ++core;
  CPU_SET(core, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  start();
  ASSERT_TRUE(eventually([] { return !progress_directory().empty(); }));
  cpu_set_t its;
  const auto number = static_cast<pid_t>(std::stol(std::filesystem::path(progress_directory()).filename()));
  EXPECT_EQ(sched_getaffinity(number, sizeof its, &its), 0);
  EXPECT_GT(CPU_COUNT(&its), 1);
  const std::vector<std::vector<int>> near = roomy_neighbourhoods({core}, 0);
  const auto is_in = [](const cpu_set_t& set) { return [&set](int cpu) { return CPU_ISSET(cpu, &set) != 0; }; };
  if (!near.empty() && std::ranges::count_if(near.front(), is_in(all)) > 1) {
    EXPECT_EQ(std::ranges::count_if(near.front(), is_in(its)), CPU_COUNT(&its)) << "all are near";
  }
  EXPECT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
}

TEST_F(ProgressThreadTest, Thread__is_none_of_the_applications) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer keeps a thread of its own in each process";
#endif
  start();
  ASSERT_TRUE(eventually([] { return !progress_directory().empty(); }));
  EXPECT_TRUE(eventually([] { return !has_other_threads(); }));
}

// What a call leaves behind nobody rings for but the caller.
TEST_F(ProgressThreadTest, News__is_what_a_call_leaves_while_the_thread_listens) {
  start();
  bool heard_of_nothing = false;
  const auto hears = [&] {
    const Engine::Duty duty(*engine);
    heard_of_nothing = heard_of_nothing || progress->must_hear(duty.core());
    loopback.arrive(packet_of(kSelf));
    const bool hears_of_packet = progress->must_hear(duty.core());
    Packet packet;
    EXPECT_TRUE(loopback.peek(packet));
    loopback.release();
    return hears_of_packet;
  };
  EXPECT_TRUE(eventually(hears));
  EXPECT_FALSE(heard_of_nothing);
}

TEST_F(ProgressThreadTest, Application_that_looks__need_not_ring) {
  start();
  bool must_ring_still = true;
  const auto stands_back = [&] {
    const Engine::Duty duty(*engine);
    loopback.arrive(packet_of(kSelf));
    const bool listened = progress->must_hear(duty.core());
    if (listened) progress->stand_back();
    if (listened) must_ring_still = progress->must_hear(duty.core());
    Packet packet;
    EXPECT_TRUE(loopback.peek(packet));
    loopback.release();
    return listened;
  };
  EXPECT_TRUE(eventually(stands_back));
  EXPECT_FALSE(must_ring_still);
}

constexpr std::uint64_t kLongNs = 10'000'000'000;

TEST(ProgressOfNode, Peer__is_answered_though_the_application_is_away) {
  RealEngine asking(RealEngine::settings(true));
  const RealEngine away(RealEngine::settings(true));
  for (int i = 0; i < 3; ++i) {
    asking.get_from(*away);
    EXPECT_TRUE(asking.is_answered(kLongNs));
  }
  EXPECT_GT(away.counted(Counter::kDutyByProgress), 0u);
}

// It parks, and goes on serving when the sleeper has come back.
TEST(ProgressOfNode, Peer__is_answered_before_during_and_after_a_sleep_of_the_application) {
  RealEngine asking(RealEngine::settings(true));
  const RealEngine sleeping(RealEngine::settings(true));
  asking.get_from(*sleeping);
  EXPECT_TRUE(asking.is_answered(kLongNs));
  std::thread application([&] {
    auto never = [](Core&) { return false; };
    EXPECT_EQ(sleeping->wait(never, Engine::kForever), WaitResult::kAborted);
  });
  // Beyond its guard period, so that it has parked.
  const std::uint64_t end = monotonic_ns() + 5'000'000;
  while (monotonic_ns() < end) {
    asking.get_from(*sleeping);
    EXPECT_TRUE(asking.is_answered(kLongNs));
  }
  sleeping->abort();
  application.join();
  asking.get_from(*sleeping);
  EXPECT_TRUE(asking.is_answered(kLongNs));
}

// Its guard period is not over: until then the application is taken to look itself.
TEST(ProgressOfNode, Peer__of_an_application_that_has_just_looked_waits_for_its_next_look) {
  Settings patient = RealEngine::settings(true);
  patient.guard_period_us = 3'600'000'000;
  RealEngine asking(RealEngine::settings(true));
  const RealEngine busy(patient);
  asking.get_from(*busy);
  EXPECT_FALSE(asking.is_answered(20'000'000));
  EXPECT_GT(busy->step(), 0);
  EXPECT_TRUE(asking.is_answered(kLongNs));
}

// It says that it does not look any more.
TEST(ProgressOfNode, Peer__of_an_application_that_sleeps_at_a_descriptor_is_answered) {
  Settings patient = RealEngine::settings(true);
  patient.guard_period_us = 3'600'000'000;
  RealEngine asking(RealEngine::settings(true));
  const RealEngine sleeping(patient);
  sleeping->step();
  asking.get_from(*sleeping);
  sleeping->leave_to_progress_thread();
  EXPECT_TRUE(asking.is_answered(kLongNs));
}

}  // namespace
}  // namespace portofu
