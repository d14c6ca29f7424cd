// What must hold of many processes on a bad network, row by row: death, stop, flood, partition. Virtual time.

#include "tests/simulation/lossy_group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/simulation/seed.h"

namespace portofu::simulation {
namespace {

Topology crossbar(std::uint32_t nodes) { return Topology::crossbar(nodes, kLossyLink); }

void expect_all_well(LossyGroup& group) {
  EXPECT_EQ(group.check(), "");
  EXPECT_EQ(group.check_nothing_left(), "");
}

// Four processes keep each other busy; one dies. Whoever waits for it is told within a second, of everything, and
// the traffic of the others goes on.
TEST(LossyGroup, Killed_at_any_step__others_are_told_within_a_second_and_go_on) {
  constexpr std::size_t kProcesses = 4;
  constexpr std::size_t kVictim = 1;
  run_seeds(40, [&](std::uint64_t seed) -> std::string {
    LossyGroup group(seed, crossbar(kProcesses), bad_network(), kProcesses);
    SimRandom random(seed);
    const auto keep_busy = [&] {
      for (std::size_t from = 0; from < kProcesses; ++from) {
        if ((from == kVictim && group.now_ns() % 2 == 0) || group.open_count(from) > 20) continue;
        const std::size_t to = random.below(kProcesses);
        random.below(2) == 0 ? group.put(from, to, random.below(20'000)) : group.add(from, to);
      }
      return true;
    };
    group.run(1 + random.below(5 * kMillisecondNs), keep_busy);
    const std::uint64_t died_ns = group.now_ns();
    const std::uint64_t posted_before = group.operation_count();
    group.kill(kVictim);
    std::uint64_t others = 0;
    group.run(kSecondNs, [&] {
      if (group.now_ns() % 16 == 0 && others < 3000) {
        group.put(2, 3, 100);
        group.put(3, 0, 100);
        others += 2;
      }
      return true;
    });
    for (std::uint64_t number = 0; number < posted_before; ++number) {
      const GroupOperation& one = group.operation(number);
      if (one.from == kVictim || one.to != kVictim) continue;
      if (one.ended_ns == 0 || one.ended_ns > died_ns + kSecondNs)
        return "operation " + std::to_string(number) + " was not told";
    }
    if (others == 0 || !group.settle(2 * kSecondNs)) return "the others do not go on";
    for (std::uint64_t number = posted_before; number < group.operation_count(); ++number) {
      if (group.operation(number).fail != NiFail::kOk) return "an operation between others failed";
    }
    const std::string wrong = group.check();
    return wrong.empty() ? group.check_nothing_left() : wrong;
  });
}

// What is sent to the dead afterwards is told within a second, too.
TEST(LossyGroup, Sent_to_the_dead__is_told_within_a_second) {
  LossyGroup group(test_seed(), crossbar(2), bad_network(), 2);
  group.add(0, 1);
  ASSERT_TRUE(group.settle(kSecondNs));
  group.kill(1);
  for (int i = 0; i < 5; ++i) {
    const std::uint64_t number = group.put(0, 1, 100);
    group.run(kSecondNs);
    EXPECT_EQ(group.operation(number).acks, 1);
    EXPECT_EQ(group.operation(number).fail, NiFail::kUndeliverable);
  }
  expect_all_well(group);
}

TEST(LossyGroup, Stop_for_five_seconds__loses_nothing_and_recovers_within_a_second) {
  constexpr std::size_t kSenders = 8;
  constexpr std::uint64_t kOpenEach = 500;
  LossyGroup group(test_seed(), crossbar(kSenders + 1), bad_network(), kSenders + 1);
  for (std::size_t from = 1; from <= kSenders; ++from) group.add(from, 0);  // A link that is made has a second only.
  ASSERT_TRUE(group.settle(kSecondNs));
  bool loaded = true;
  const auto load = [&] {
    for (std::size_t from = 1; loaded && from <= kSenders; ++from) {
      while (group.open_count(from) < kOpenEach)
        group.open_count(from) % 2 == 0 ? group.put(from, 0, 4096) : group.add(from, 0);
    }
    return true;
  };
  group.run(20 * kMillisecondNs, load);
  const std::uint64_t ended_before = group.ended_count();
  EXPECT_GT(ended_before, 1000u);
  group.set_stopped(0, true);
  group.run(5 * kSecondNs, load);
  const std::uint64_t ended_stopped = group.ended_count();
  EXPECT_LE(group.operation_count() - ended_stopped, kSenders * kOpenEach);
  std::size_t most_bytes = 0;
  for (std::size_t from = 1; from <= kSenders; ++from) {
    // One window of each class, and no more for however much is posted.
    most_bytes = std::max(most_bytes, group.network().reliable(from)->send_held().most);
    EXPECT_LE(group.network().reliable(from)->send_held().most, 2 * kWindowFrames * (4096 + sizeof(PacketHeader)));
  }
  std::cout << "a sender held " << most_bytes << " bytes at most\n";
  group.set_stopped(0, false);
  loaded = false;
  const std::uint64_t went_on_ns = group.now_ns();
  ASSERT_TRUE(group.settle(kSecondNs)) << "recovery within a second";
  std::cout << "recovered in " << (group.now_ns() - went_on_ns) / kMillisecondNs << " ms of virtual time\n";
  for (std::uint64_t number = 0; number < group.operation_count(); ++number)
    ASSERT_EQ(group.operation(number).fail, NiFail::kOk);
  expect_all_well(group);
}

// A chain of nodes: what A sends to B passes the link from C to D, and B takes nothing.
TEST(LossyGroup, Flood_of_a_stuck_peer__leaves_others_nine_tenths_of_their_rate) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "ten runs of a rate take minutes here; the other tests of this file run the same code";
#endif
  enum : std::size_t { kA, kC, kD, kB, kProcesses };
  constexpr std::uint64_t kFor = 200 * kMillisecondNs;
  const LinkFigures narrow{.latency_ns = 1000, .bytes_per_us = 1000, .queue_datagrams = 64};
  const auto rate = [&](std::uint64_t seed, bool flood) {
    LossyOptions options = bad_network();
    options.receive_datagrams = 64;
    LossyGroup group(seed, Topology::grid({kProcesses, 1, 1, 1, 1, 1}, {}, narrow), options, kProcesses);
    group.add(kA, kB);
    group.add(kC, kD);
    EXPECT_TRUE(group.settle(kSecondNs));
    group.set_stopped(kB, true);
    const std::uint64_t first = group.operation_count();
    group.run(kFor, [&] {
      while (flood && group.open_count(kA) < 2000) group.put(kA, kB, 4096);
      while (group.open_count(kC) < 32) group.put(kC, kD, 4096);
      while (group.open_count(kD) < 32) group.put(kD, kC, 4096);
      return true;
    });
    std::uint64_t ended = 0;
    for (std::uint64_t number = first; number < group.operation_count(); ++number) {
      const GroupOperation& one = group.operation(number);
      ended += one.from != kA && one.acks == 1 ? 1 : 0;
    }
    return ended;
  };
  // One frame that is lost five times in a row stops a link for a quarter of a run, with a flood or without: of the
  // runs the middle one counts.
  const auto middle_rate = [&, first = test_seed()](bool flood) {
    std::vector<std::uint64_t> rates;
    for (std::uint64_t seed = first; seed < first + 5; ++seed) rates.push_back(rate(seed, flood));
    std::ranges::nth_element(rates, rates.begin() + 2);
    return rates[2];
  };
  const std::uint64_t alone = middle_rate(false);
  const std::uint64_t beside = middle_rate(true);
  std::cout << alone << " puts alone, " << beside << " beside the flood\n";
  EXPECT_GT(alone, 1000u);
  EXPECT_GE(beside * 10, alone * 9);
}

TEST(LossyGroup, Partition_of_thirty_seconds__ends_with_errors_or_once_and_traffic_resumes) {
  constexpr std::size_t kProcesses = 4;
  run_seeds(10, [&](std::uint64_t seed) -> std::string {
    LossyGroup group(seed, crossbar(kProcesses), bad_network(), kProcesses);
    SimRandom random(seed);
    const auto keep_busy = [&] {
      const std::size_t from = random.below(kProcesses);
      if (group.open_count(from) < 40) group.add(from, random.below(kProcesses));
      return true;
    };
    group.run(5 * kMillisecondNs, keep_busy);
    group.network().lossy()->set_parts({0, 0, 1, 1});
    group.run(30 * kSecondNs, [&] { return random.below(20) != 0 || keep_busy(); });
    group.network().lossy()->set_parts({});
    group.run(2 * kSecondNs);
    const std::uint64_t healed = group.operation_count();
    for (std::size_t from = 0; from < kProcesses; ++from) {
      for (std::size_t to = 0; to < kProcesses; ++to) group.add(from, to);
    }
    if (!group.settle(15 * kSecondNs)) return "the network never comes to rest";
    std::uint64_t failed = 0;
    for (std::uint64_t number = 0; number < healed; ++number)
      failed += group.operation(number).fail != NiFail::kOk ? 1 : 0;
    if (failed == 0) return "nothing failed: the network was never cut";
    for (std::uint64_t number = healed; number < group.operation_count(); ++number) {
      if (group.operation(number).fail != NiFail::kOk) return "traffic does not resume";
    }
    for (std::size_t at = 0; at < kProcesses; ++at) {
      std::uint64_t executed = 0;
      for (std::uint64_t number = 0; number < group.operation_count(); ++number)
        executed += group.operation(number).to == at ? static_cast<std::uint64_t>(group.operation(number).executed) : 0;
      if (executed != group.added(at)) return "an atomic was executed twice, or told and not executed";
    }
    const std::string wrong = group.check();
    return wrong.empty() ? group.check_nothing_left() : wrong;
  });
}

}  // namespace
}  // namespace portofu::simulation
