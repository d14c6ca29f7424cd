// A job in virtual time whose ranks are this test: it writes down what ranks do, in their pages.

#include "lib/tools/ptl_sim/coordinator.h"
#include "tests/support/eventually.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace portofu::tools {
namespace {

constexpr std::uint32_t kNid = 7;
constexpr std::uint32_t kFirstPid = 100;

sim::Network make_network() {
  sim::Machine machine;
  machine.topology.kind = sim::TopologyKind::kTorus;
  machine.topology.lengths = {0, 1, 1, 1, 1, 1};
  machine.links = {.lanes = 1, .lane_gb_s = 1, .latency_ps = 1'000'000, .mtu_bytes = 100, .header_bytes = 0};
  machine.interfaces = {.count = 1, .gb_s = 1};
  std::string why;
  auto layout = sim::lay_out(machine, "2x1x1x1x1x1", &why);
  EXPECT_TRUE(layout) << why;
  return {machine, std::move(*layout)};
}

/// Ranks on two nodes. The first sends to the second, which takes what arrives, and no turn.
struct Ranks {
  explicit Ranks(std::uint32_t count)
      : time(count, {}),
        network(make_network()),
        coordinator({.rank_count = count, .per_node = count / 2, .is_quiet = true, .hang_ns = 10'000'000'000}, time,
                    network) {
    for (std::uint32_t rank = 0; rank < count; ++rank) {
      VirtualPage& page = time.page(rank);
      page.nid = kNid;
      page.pid = kFirstPid + rank;
      page.until_ps = kNeverPs;
      page.process = static_cast<std::uint32_t>(getpid());
      page.thread = static_cast<std::uint32_t>(gettid());
    }
  }

  SharedTime time;
  sim::Network network;
  Coordinator coordinator;

  VirtualPage& sender() { return time.page(0); }
  VirtualPage& target() { return time.page(1); }

  void set_state(VirtualPage& page, VirtualState state) {
    page.state = static_cast<std::uint32_t>(state);
    ring_coordinator(time.header());
  }

  void send(std::uint32_t departure = 0) { send(PacketType::kTofuPut, 8, departure); }
  void send(PacketType type, std::uint64_t bytes, std::uint32_t departure = 0) {
    const std::uint32_t given = sender().reports_given;
    VirtualReport report{};
    report.number = given;
    report.bytes = bytes;
    report.nid = kNid;
    report.pid = kFirstPid + 1;
    report.type = static_cast<std::uint8_t>(type);
    report.source_nid = kNid;
    report.source_pid = kFirstPid;
    report.departure = departure;
    sender().reports[given % kReportCount] = report;
    sender().reports_given = given + 1;
    ring_coordinator(time.header());
  }

  /// Until it is so. @return false: the coordinator has complained, or it takes for ever
  template <typename Condition>
  bool wait_until(Condition is_so) {
    bool so = false;
    return eventually([&] { return (so = is_so()) || !coordinator.complaint().empty(); }) && so;
  }

  /// @return whether the coordinator hands the second rank so many messages
  bool has_arrived(std::uint32_t count) {
    return wait_until([&] { return target().delivery_count == count; });
  }
  void take_delivery() {
    ++target().deliveries_taken;
    ring_coordinator(time.header());
  }

  void end() {
    coordinator.rank_ended(0);
    coordinator.rank_ended(1);
    coordinator.end();
  }
};

struct CoordinatorTest : testing::Test, Ranks {
  CoordinatorTest() : Ranks(2) {}
};

/// So many that a look at all takes the coordinator a while. All but the first two have ended.
struct ManyRanks : Ranks {
  static constexpr std::uint32_t kCount = 1000;
  ManyRanks() : Ranks(kCount) {
    for (std::uint32_t rank = 2; rank < kCount; ++rank) {
      time.page(rank).state = static_cast<std::uint32_t>(VirtualState::kGone);
      coordinator.rank_ended(static_cast<int>(rank));
    }
  }

  /// Lets the coordinator look, and comes back somewhere in the middle of that, another place each time.
  void interrupt_look(int round) {
    ring_coordinator(time.header());
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(15 * round);
    while (std::chrono::steady_clock::now() < until) {
    }
  }
};

constexpr int kRounds = 30;

/// Long enough for it to find nothing to do.
void pause_for_look() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }

TEST_F(CoordinatorTest, Messages__arrive_if_their_sender_ends_before_its_first_turn) {
  set_state(target(), VirtualState::kRetired);
  send();
  coordinator.rank_ended(0);
  coordinator.begin();
  EXPECT_TRUE(has_arrived(1)) << coordinator.complaint();
  take_delivery();
  end();
  EXPECT_EQ(coordinator.message_count(), 1u);
}

/// The coordinator stands at the first message while the second is sent.
TEST_F(CoordinatorTest, Messages__arrive_if_their_sender_is_away_and_ends) {
  set_state(sender(), VirtualState::kReady);
  set_state(target(), VirtualState::kRetired);
  coordinator.begin();
  ASSERT_TRUE(wait_until([&] { return sender().turn == 1; })) << coordinator.complaint();
  send();
  set_state(sender(), VirtualState::kAway);
  ASSERT_TRUE(has_arrived(1)) << coordinator.complaint();
  send();
  coordinator.rank_ended(0);
  take_delivery();
  EXPECT_TRUE(has_arrived(2)) << coordinator.complaint();
  take_delivery();
  end();
  EXPECT_EQ(coordinator.message_count(), 2u);
}

/// One program after the other is the second rank. What was sent to the first is lost, and its sender is told.
TEST_F(CoordinatorTest, Messages__to_an_earlier_process_of_a_rank_come_back) {
  set_state(sender(), VirtualState::kRetired);
  set_state(target(), VirtualState::kRetired);
  send();
  send();
  coordinator.begin();
  ASSERT_TRUE(has_arrived(1)) << coordinator.complaint();
  ++target().life;
  for (std::uint32_t lost = 1; lost <= 2; ++lost) {
    ASSERT_TRUE(wait_until([&] { return sender().delivery_count == lost; })) << coordinator.complaint();
    EXPECT_EQ(sender().delivery.is_lost, 1u);
    EXPECT_EQ(sender().delivery.source_pid, kFirstPid + 1) << "of whom it has not reached";
    ++sender().deliveries_taken;
    ring_coordinator(time.header());
  }
  end();
  EXPECT_EQ(target().delivery_count, 1u) << "the first was handed over before";
  EXPECT_TRUE(coordinator.complaint().empty()) << coordinator.complaint();
}

/// The process that has it now would take the number for one of its own.
TEST_F(CoordinatorTest, Messages__of_an_earlier_process_of_a_rank_arrive_and_their_departures_are_told_to_nobody) {
  set_state(sender(), VirtualState::kRetired);
  set_state(target(), VirtualState::kRetired);
  send(/*departure=*/5);
  ++sender().life;
  sender().pid = kFirstPid + 50;
  coordinator.begin();
  ASSERT_TRUE(has_arrived(1)) << coordinator.complaint();
  EXPECT_EQ(target().delivery.source_pid, kFirstPid);
  take_delivery();
  end();
  EXPECT_EQ(sender().delivery_count, 0u);
}

/// Others need not wait until it is plain that it sleeps for a reason of its own, though threads of its process run.
TEST_F(CoordinatorTest, Turn__ends_of_a_rank_that_waits_at_a_barrier_of_its_launcher) {
  std::atomic<bool> ends{false};
  std::atomic<std::uint32_t> id{0};
  std::thread sleeper([&] {
    id = static_cast<std::uint32_t>(gettid());
    ends.wait(false);
  });
  std::thread busy([&] {
    while (!ends) std::this_thread::yield();
  });
  // Else it might be taken to poll its memory.
  ASSERT_TRUE(wait_until([&] { return id != 0 && is_asleep(getpid(), static_cast<pid_t>(id.load())); }));
  sender().thread = id.load();
  set_state(sender(), VirtualState::kReady);
  set_state(target(), VirtualState::kReady);
  coordinator.begin();
  EXPECT_TRUE(wait_until([&] { return sender().turn == 1; })) << coordinator.complaint();
  coordinator.rank_meets(0, true);
  EXPECT_TRUE(wait_until([&] { return target().turn == 1; })) << coordinator.complaint();
  EXPECT_EQ(static_cast<VirtualState>(sender().state.load()), VirtualState::kAway);
  coordinator.rank_meets(0, false);
  end();
  ends = true;
  ends.notify_all();
  sleeper.join();
  busy.join();
}

TEST_F(CoordinatorTest, Messages__count_if_all_end_at_once) {
  send();
  end();
  coordinator.begin();
  coordinator.end();
  EXPECT_EQ(coordinator.message_count(), 1u);
}

/// Ranks free their gates when they have met past the library, so whose words come when is a matter of luck.
TEST_F(CoordinatorTest, Words__of_gates_arrive_and_take_no_time) {
  set_state(sender(), VirtualState::kRetired);
  set_state(target(), VirtualState::kRetired);
  send();
  send(PacketType::kTofuGate, 0);
  coordinator.begin();
  ASSERT_TRUE(has_arrived(1)) << coordinator.complaint();
  const std::uint64_t arrived_ps = target().delivery.time_ps;
  EXPECT_GT(arrived_ps, 0u);
  take_delivery();
  ASSERT_TRUE(has_arrived(2)) << coordinator.complaint();
  EXPECT_EQ(target().delivery.number, 1u);
  EXPECT_EQ(target().delivery.time_ps, arrived_ps) << "it overtakes nothing";
  take_delivery();
  send(PacketType::kTofuGate, 0);
  ASSERT_TRUE(has_arrived(3)) << coordinator.complaint();
  take_delivery();
  end();
  EXPECT_EQ(coordinator.end_ps(), arrived_ps);
  EXPECT_EQ(coordinator.message_count(), 1u);
  EXPECT_EQ(coordinator.times()[0].late_calls, 0u) << "though it was sent at 0";
}

TEST(Coordinator, Job__does_not_hang_if_its_last_rank_ends_while_all_are_looked_at) {
  for (int round = 0; round < kRounds; ++round) {
    ManyRanks ranks;
    ranks.set_state(ranks.sender(), VirtualState::kGone);
    ranks.set_state(ranks.target(), VirtualState::kGone);
    ranks.coordinator.rank_ended(1);
    ranks.coordinator.begin();
    pause_for_look();
    ranks.interrupt_look(round);
    ranks.end();
    ASSERT_EQ(ranks.coordinator.complaint(), "") << round;
  }
}

TEST(Coordinator, Messages__arrive_if_their_sender_ends_while_all_are_looked_at) {
  for (int round = 0; round < kRounds; ++round) {
    ManyRanks ranks;
    ranks.set_state(ranks.sender(), VirtualState::kReady);
    ranks.set_state(ranks.target(), VirtualState::kWaiting);
    ranks.coordinator.begin();
    ASSERT_TRUE(ranks.wait_until([&] { return ranks.sender().turn == 1; })) << ranks.coordinator.complaint();
    ranks.set_state(ranks.sender(), VirtualState::kAway);
    pause_for_look();
    ranks.interrupt_look(round);
    ranks.send();
    ranks.coordinator.rank_ended(0);
    ASSERT_TRUE(ranks.has_arrived(1)) << round << ": " << ranks.coordinator.complaint();
    ranks.take_delivery();
    ASSERT_TRUE(ranks.wait_until([&] { return ranks.target().turn == 1; })) << ranks.coordinator.complaint();
    ranks.end();
  }
}

/// Looks again and again, and nothing comes for an hour: a turn of it ends at once.
void look_for_hours(Ranks* ranks, const std::atomic<bool>* is_over) {
  constexpr std::uint64_t kHourPs = 3600'000'000'000'000;
  for (std::uint32_t seen = 0; !is_over->load();) {
    VirtualPage& page = ranks->target();
    if (page.turn == seen) continue;
    seen = page.turn;
    page.clock_ps = page.granted_ps.load();
    page.until_ps = page.clock_ps + kHourPs;
    ranks->set_state(page, VirtualState::kPolling);
  }
}

/// Many end, and the first one last: it is not looked at any more by then.
TEST(Coordinator, Messages__arrive_if_their_sender_ends_while_another_rank_looks_for_hours) {
  for (int round = 0; round < kRounds && !testing::Test::HasFailure(); ++round) {
    constexpr std::uint32_t kCount = ManyRanks::kCount;
    Ranks ranks(kCount);
    for (std::uint32_t rank = 1; rank < kCount; ++rank) ranks.set_state(ranks.time.page(rank), VirtualState::kWaiting);
    ranks.set_state(ranks.sender(), VirtualState::kReady);
    ranks.coordinator.begin();
    EXPECT_TRUE(ranks.wait_until([&] { return ranks.sender().turn == 1; })) << ranks.coordinator.complaint();
    for (std::uint32_t rank = 2; rank < kCount; ++rank) ranks.set_state(ranks.time.page(rank), VirtualState::kAway);
    ranks.target().until_ps = 1;
    ranks.set_state(ranks.target(), VirtualState::kPolling);
    std::atomic<bool> is_over{false};
    std::thread target([&] { look_for_hours(&ranks, &is_over); });
    ranks.set_state(ranks.sender(), VirtualState::kAway);
    EXPECT_TRUE(ranks.wait_until([&] { return ranks.target().turn > 2; })) << ranks.coordinator.complaint();
    for (std::uint32_t rank = 2; rank < kCount; ++rank) ranks.coordinator.rank_ended(static_cast<int>(rank));
    ranks.send();
    ranks.coordinator.rank_ended(0);
    EXPECT_TRUE(ranks.has_arrived(1)) << round << ": " << ranks.coordinator.complaint();
    is_over.store(true);
    target.join();
    ranks.take_delivery();
    ranks.end();
  }
}

}  // namespace
}  // namespace portofu::tools
