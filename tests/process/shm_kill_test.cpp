// What the shared-memory wire does when processes are killed at any instruction, are stopped, fork, or come back.

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "tests/process/child_process.h"
#include "tests/process/resources.h"
#include "tests/unit/wire/shm/wire_pair.h"

namespace portofu {
namespace {

constexpr std::uint32_t kTargetPid = 1;
constexpr std::uint32_t kChildPid = 2;

struct ShmKillTest : ::testing::Test {
  ShmKillTest() {
    const char* given = std::getenv("SEED");
    const unsigned seed = given != nullptr ? static_cast<unsigned>(std::atoi(given)) : 1;
    random.seed(seed);
    RecordProperty("seed", static_cast<int>(seed));
  }

  ProcessId child_id() const { return {kTestNid, kChildPid}; }
  unsigned some_us(unsigned longest) { return static_cast<unsigned>(random()) % longest; }

  /// Runs `packet_seen` for every packet until the one source is closed. @return false if that does not happen
  bool receive_until_closed(const std::function<void(const Packet&)>& packet_seen) {
    return eventually([&] {
      Packet packet;
      while (target.wire->peek(packet)) {
        packet_seen(packet);
        target.wire->release();
      }
      target.wire->check_peers();
      ProcessId source;
      void* context = nullptr;
      return target.wire->take_closed_source(&source, &context);
    });
  }

  /// True if no channel of the target is in use, and nothing but the target's segment exists.
  bool everything_is_clean() {
    for (std::uint32_t i = 0; i < target.segment->control().slots_used.load(); ++i) {
      if (read_slot(target.segment->slot(i)).state != SlotState::kFree) return false;
    }
    return directory.name_count() == 1;
  }

  SegmentDirectory directory;
  WirePeer target{directory.options(kTargetPid)};
  std::mt19937 random;
};

/// Sends numbered packets of changing size for ever.
int flood(const SegmentDirectory& directory, ProcessId target) {
  WirePeer self(directory.options(kChildPid));
  Link* link = nullptr;
  if (self.wire->connect(target, &link) != ConnectResult::kConnected) return 1;
  for (std::uint64_t i = 0;; ++i) {
    const std::string payload(i % 11 == 0 ? 3000 : i % 70, static_cast<char>(i));
    while (!self.send(link, payload, i)) sched_yield();
  }
}

TEST_F(ShmKillTest, Sender_killed_at_any_instruction__is_delivered_whole_up_to_there) {
  for (int round = 0; round < 60; ++round) {
    ChildProcess child([this] { return flood(directory, target.id()); });
    std::uint64_t next = 0;
    std::uint64_t wrong = 0;
    const auto check = [&](const Packet& packet) {
      const std::uint64_t i = packet.header.hdr_data;
      if (i != next++) ++wrong;
      const std::uint32_t bytes = i % 11 == 0 ? 3000 : static_cast<std::uint32_t>(i % 70);
      if (packet.header.payload_bytes != bytes) ++wrong;
      for (std::uint32_t k = 0; k < packet.header.payload_bytes; ++k) {
        if (packet.payload.here()[k] != static_cast<std::byte>(i)) ++wrong;
      }
    };
    ASSERT_TRUE(eventually([this] { return target.wire->has_packets(); }));
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(some_us(2000));
    Packet packet;
    while (std::chrono::steady_clock::now() < end) {
      if (!target.wire->peek(packet)) continue;
      check(packet);
      target.wire->release();
    }
    child.kill_unreaped();
    ASSERT_TRUE(receive_until_closed(check));
    EXPECT_EQ(wrong, 0u) << "round " << round;
    EXPECT_GT(next, 0u);
    EXPECT_TRUE(everything_is_clean()) << "round " << round;
  }
}

TEST_F(ShmKillTest, Connector_killed_at_any_instruction__leaves_no_channel_behind) {
  for (int round = 0; round < 100; ++round) {
    ChildProcess child([this] {
      WirePeer self(directory.options(kChildPid));
      for (;;) {
        Link* link = nullptr;
        if (self.wire->connect(target.id(), &link) == ConnectResult::kConnected) self.wire->disconnect(link);
      }
      return 0;
    });
    ASSERT_TRUE(eventually([this] { return target.segment->control().directory_epoch.load() > 0; }));
    spend_us(some_us(1000));
    child.kill_unreaped();
    ASSERT_TRUE(eventually([this] {
      target.wire->check_peers();
      ProcessId source;
      void* context = nullptr;
      while (target.wire->take_closed_source(&source, &context)) {
      }
      return everything_is_clean();
    })) << "round "
        << round;
    target.segment->control().directory_epoch.store(0);
  }
}

TEST_F(ShmKillTest, Opener_killed_at_any_instruction__does_not_keep_its_pid) {
  for (int round = 0; round < 100; ++round) {
    ChildProcess child([this] {
      for (;;) directory.create(kChildPid);
      return 0;
    });
    spend_us(some_us(1500));
    child.kill_unreaped();
    const auto next = directory.create(kChildPid);
    ASSERT_NE(next, nullptr) << "round " << round;
    EXPECT_EQ(directory.name_count(), 2u);
  }
}

TEST_F(ShmKillTest, Receiver_killed__is_found_lost_and_its_segment_is_removed) {
  ChildProcess child([this] {
    WirePeer self(directory.options(kChildPid));
    pause();
    return 0;
  });
  Link* link = nullptr;
  ASSERT_TRUE(eventually([&] { return target.wire->connect(child_id(), &link) == ConnectResult::kConnected; }));
  while (target.send(link, "nobody reads this")) {
  }
  EXPECT_EQ(target.wire->check_peers(), 0);
  child.kill_unreaped();
  EXPECT_EQ(target.wire->check_peers(), 1);
  EXPECT_TRUE(link->lost);
  EXPECT_EQ(directory.name_count(), 1u);
  Link* none = nullptr;
  EXPECT_EQ(target.wire->connect(child_id(), &none), ConnectResult::kNoSuchPeer);
}

TEST_F(ShmKillTest, Restarted_process__is_a_new_peer) {
  const auto echo_once = [this] {
    WirePeer self(directory.options(kChildPid));
    Link* link = nullptr;
    if (self.wire->connect(target.id(), &link) != ConnectResult::kConnected) return 1;
    std::optional<std::string> text;
    if (!eventually([&] { return (text = self.receive()).has_value(); })) return 2;
    if (!self.send(link, "echo " + *text)) return 3;
    pause();
    return 0;
  };
  Link* old_link = nullptr;
  for (int life = 0; life < 5; ++life) {
    ChildProcess child(echo_once);
    Link* link = nullptr;
    ASSERT_TRUE(eventually([&] { return target.wire->connect(child_id(), &link) == ConnectResult::kConnected; }));
    EXPECT_NE(link, old_link);
    ASSERT_TRUE(target.send(link, std::to_string(life)));
    std::optional<std::string> text;
    ASSERT_TRUE(eventually([&] {
      ProcessId source;
      void* context = nullptr;
      target.wire->take_closed_source(&source, &context);
      return (text = target.receive()).has_value();
    }));
    EXPECT_EQ(*text, "echo " + std::to_string(life));
    child.kill_unreaped();
    EXPECT_EQ(target.wire->check_peers(), 1);
    if (old_link != nullptr) target.wire->disconnect(old_link);
    old_link = link;
  }
}

TEST_F(ShmKillTest, Stopped_receiver__costs_bounded_memory_and_is_not_lost) {
  constexpr std::uint64_t kMessages = 500;
  ChildProcess child([this] {
    WirePeer self(directory.options(kChildPid));
    for (std::uint64_t i = 0; i < kMessages; ++i) {
      Packet packet;
      if (!eventually([&] { return self.receive(&packet).has_value(); })) return 1;
      if (packet.header.hdr_data != i) return 2;
    }
    return 0;
  });
  Link* link = nullptr;
  ASSERT_TRUE(eventually([&] { return target.wire->connect(child_id(), &link) == ConnectResult::kConnected; }));
  child.send_signal(SIGSTOP);
  std::uint64_t sent = 0;
  for (int tries = 0; tries < 10000; ++tries) sent += target.send(link, "x", sent);
  EXPECT_LE(sent, 2 * RingGeometry{}.cell_count) << "some may have been taken before it stopped";
  EXPECT_EQ(target.wire->check_peers(), 0);
  child.send_signal(SIGCONT);
  EXPECT_TRUE(eventually([&] {
    while (sent < kMessages && target.send(link, "x", sent)) ++sent;
    return sent == kMessages;
  }));
  EXPECT_EQ(child.wait_status(), 0);
}

TEST_F(ShmKillTest, Forked_child_that_exits__leaves_its_parents_segment_alone) {
  ChildProcess peer([this] {
    WirePeer self(directory.options(kChildPid));
    Link* link = nullptr;
    if (self.wire->connect(target.id(), &link) != ConnectResult::kConnected) return 1;
    // The child's copies of segment and wire are destroyed as an ordinary exit would.
    const int status = in_dying_child([&self] {
      self.wire.reset();
      self.segment.reset();
      return 0;
    });
    if (status != 0) return 2;
    return self.send(link, "still alive") ? (pause(), 0) : 3;
  });
  std::optional<std::string> text;
  ASSERT_TRUE(eventually([&] { return (text = target.receive()).has_value(); }));
  EXPECT_EQ(*text, "still alive");
  Link* link = nullptr;
  EXPECT_EQ(target.wire->connect(child_id(), &link), ConnectResult::kConnected);
}

/// Plays ping-pong and sleeps before every answer. @return rounds played, fewer than asked for if a wake-up was lost
int play(WirePeer& self, Link* link, int rounds, bool begins) {
  Doorbell bell(self.segment->doorbell(), self.segment->node_guard());
  for (int i = 0; i < rounds; ++i) {
    if (begins && !self.send(link, "ball")) return i;
    for (int sleeps = 0; !self.receive(); ++sleeps) {
      const std::uint32_t seen = bell.announce();
      if (!self.wire->has_packets() && !bell.wait(seen, -1) && self.wire->has_packets() && sleeps > 2000) return i;
      bell.withdraw();
    }
    if (!begins && !self.send(link, "ball")) return i;
  }
  return rounds;
}

TEST_F(ShmKillTest, Two_processes_that_sleep__wake_each_other) {
  constexpr int kRounds = 1000;
  for (const bool membarrier : {true, false}) {
    SegmentOptions options = directory.options(kChildPid);
    options.membarrier = membarrier;
    ChildProcess child([&] {
      WirePeer self(options);
      Link* link = nullptr;
      if (self.wire->connect(target.id(), &link) != ConnectResult::kConnected) return 1;
      return play(self, link, kRounds, false) == kRounds ? 0 : 2;
    });
    Link* link = nullptr;
    ASSERT_TRUE(eventually([&] { return target.wire->connect(child_id(), &link) == ConnectResult::kConnected; }));
    const FairStopwatch watch({getpid(), child.pid()});
    EXPECT_EQ(play(target, link, kRounds, true), kRounds);
    // A lost wake-up costs a second; a thousand rounds of ordinary ones cost some dozens of milliseconds.
    EXPECT_LT(watch.seconds(), 20);
    EXPECT_EQ(child.wait_status(), 0);
    target.wire->disconnect(link);
    ASSERT_TRUE(receive_until_closed([](const Packet&) {}));
  }
}

}  // namespace
}  // namespace portofu
