// Tests of engine/wire/sim/sim_network.cpp and sim_medium.cpp: one seed decides everything; processes die and come
// back.

#include "engine/wire/sim/sim_network.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>

#include "tests/unit/wire/sim/sim_traffic.h"

namespace portofu {
namespace {

using sim_traffic::connect;
using sim_traffic::numbered;
using sim_traffic::receive;
using sim_traffic::receive_all;
using sim_traffic::Received;
using sim_traffic::send;

constexpr ProcessId kFirst{1, 10};
constexpr ProcessId kSecond{1, 11};

// ---- Seed ----------------------------------------------------------------------------------------------------------

/// What three processes that send to each other receive, in order.
std::vector<Received> run_traffic(std::uint64_t seed) {
  SimNetwork network(seed);
  std::vector<std::unique_ptr<SimWire>> wires;
  for (std::uint32_t pid = 1; pid <= 3; ++pid) wires.push_back(network.attach({1, pid}));
  std::vector<Received> trace;
  for (std::uint32_t step = 0; step < 1000; ++step) {
    SimWire& wire = *wires[network.choose(wires.size())];
    Link* link = nullptr;
    const ProcessId peer{1, static_cast<std::uint32_t>(1 + network.choose(wires.size()))};
    if (wire.connect(peer, &link) == ConnectResult::kConnected) send(wire, *link, step);
    if (const auto received = receive(wire)) trace.push_back(*received);
  }
  return trace;
}

TEST(SimNetworkSeed, Same_seed__same_run) { EXPECT_EQ(run_traffic(42), run_traffic(42)); }

TEST(SimNetworkSeed, Other_seed__other_run) { EXPECT_NE(run_traffic(42), run_traffic(43)); }

TEST(SimNetworkChoose, Numbers__are_all_below_the_bound) {
  SimNetwork network(1);
  std::set<std::uint64_t> chosen;
  for (int draw = 0; draw < 100; ++draw) chosen.insert(network.choose(3));
  EXPECT_EQ(chosen, (std::set<std::uint64_t>{0, 1, 2}));
}

TEST(SimNetworkQuiet, Packet_on_its_way_or_held__is_not_quiet) {
  SimNetwork network(1, {.max_delay_polls = 0});
  const auto alice = network.attach(kFirst);
  const auto bob = network.attach(kSecond);
  EXPECT_TRUE(network.quiet());
  ASSERT_TRUE(send(*alice, *connect(*alice, kSecond), 1));
  EXPECT_FALSE(network.quiet());
  Packet packet;
  ASSERT_TRUE(bob->peek(packet));
  EXPECT_FALSE(network.quiet());
  bob->release();
  EXPECT_TRUE(network.quiet());
}

// ---- Death of the receiver -----------------------------------------------------------------------------------------

TEST(SimNetworkKill, Links_to_the_dead__are_lost_once_the_sender_looks) {
  SimNetwork network(1);
  const auto alice = network.attach(kFirst);
  const auto bob = network.attach(kSecond);
  Link* link = connect(*alice, kSecond);
  EXPECT_EQ(alice->check_peers(), 0);
  network.kill(kSecond);
  EXPECT_FALSE(link->lost);
  EXPECT_EQ(alice->check_peers(), 1);
  EXPECT_TRUE(link->lost);
  EXPECT_EQ(alice->check_peers(), 0);
  EXPECT_EQ(alice->claim(*link, 0), nullptr);
  Link* none = nullptr;
  EXPECT_EQ(alice->connect(kSecond, &none), ConnectResult::kNoSuchPeer);
  alice->disconnect(link);
}

TEST(SimNetworkKill, Full_link_to_the_dead__never_has_room_again) {
  SimNetwork network(1);
  const auto alice = network.attach(kFirst);
  const auto bob = network.attach(kSecond);
  Link* link = connect(*alice, kSecond);
  network.kill(kSecond);
  for (std::uint32_t sent = 0; send(*alice, *link, sent);) ++sent;
  EXPECT_FALSE(alice->has_room_again());
  EXPECT_EQ(alice->check_peers(), 1);
  EXPECT_FALSE(alice->has_room_again());
}

TEST(SimNetworkKill, Death_between_claim_and_publish__is_harmless_on_both_sides) {
  for (const ProcessId dead : {kFirst, kSecond}) {
    SimNetwork network(1);
    const auto alice = network.attach(kFirst);
    const auto bob = network.attach(kSecond);
    Link* link = connect(*alice, kSecond);
    std::byte* room = alice->claim(*link, 4);
    network.kill(dead);
    EXPECT_LE(alice->check_peers(), 1);
    std::memset(room, 1, 4);
    PacketHeader header{};
    header.payload_bytes = 4;
    alice->publish(*link, header);
    EXPECT_TRUE(receive_all(*bob).empty());
  }
}

// ---- Death of the sender -------------------------------------------------------------------------------------------

TEST(SimNetworkKill, Unread_packets_of_the_dead__arrive_in_part_and_in_order) {
  std::set<std::size_t> arrived_counts;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SimNetwork network(seed);
    const auto alice = network.attach(kFirst);
    const auto bob = network.attach(kSecond);
    Link* link = connect(*alice, kSecond);
    for (std::uint32_t sent = 0; sent < 3 && send(*alice, *link, sent);) ++sent;
    network.kill(kFirst);
    const auto all = receive_all(*bob);
    ASSERT_EQ(all, numbered(kFirst, 0, static_cast<std::uint32_t>(all.size())));
    arrived_counts.insert(all.size());
  }
  EXPECT_EQ(arrived_counts, (std::set<std::size_t>{0, 1, 2, 3}));
}

TEST(SimNetworkKill, Source_of_the_dead__closes_once_the_receiver_looks) {
  SimNetwork network(1);
  const auto alice = network.attach(kFirst);
  const auto bob = network.attach(kSecond);
  ASSERT_TRUE(send(*alice, *connect(*alice, kSecond), 0));
  network.kill(kFirst);
  receive_all(*bob);
  ProcessId source;
  void* context = nullptr;
  EXPECT_FALSE(bob->take_closed_source(&source, &context));
  EXPECT_EQ(bob->check_peers(), 0);  // It has no link to alice.
  EXPECT_TRUE(bob->take_closed_source(&source, &context));
  EXPECT_EQ(source, kFirst);
}

TEST(SimNetworkKill, Packet_that_is_held__stays_readable) {
  SimNetwork network(1, {.max_delay_polls = 0});
  auto alice = network.attach(kFirst);
  const auto bob = network.attach(kSecond);
  ASSERT_TRUE(send(*alice, *connect(*alice, kSecond), 9));
  Packet packet;
  ASSERT_TRUE(bob->peek(packet));
  network.kill(kFirst);
  alice.reset();
  bob->check_peers();
  ProcessId source;
  void* context = nullptr;
  EXPECT_FALSE(bob->take_closed_source(&source, &context));
  EXPECT_EQ(packet.payload.here()[0], std::byte{9});
  EXPECT_EQ(packet.source_context->engines, nullptr);
  bob->release();
  EXPECT_TRUE(bob->take_closed_source(&source, &context));
}

TEST(SimNetworkKill, Wire_of_the_dead__does_nothing) {
  SimNetwork network(1, {.max_delay_polls = 0});
  const auto alice = network.attach(kFirst);
  const auto bob = network.attach(kSecond);
  Link* link = connect(*alice, kSecond);
  ASSERT_TRUE(send(*bob, *connect(*bob, kFirst), 1));
  network.kill(kFirst);
  Link* none = nullptr;
  Packet packet;
  ProcessId source;
  void* context = nullptr;
  EXPECT_EQ(alice->connect(kSecond, &none), ConnectResult::kNoSuchPeer);
  EXPECT_EQ(alice->claim(*link, 0), nullptr);
  EXPECT_FALSE(alice->has_packets());
  EXPECT_FALSE(alice->peek(packet));
  EXPECT_FALSE(alice->has_room_again());
  EXPECT_EQ(alice->check_peers(), 0);
  EXPECT_FALSE(alice->take_closed_source(&source, &context));
  alice->disconnect(link);
}

// ---- Orderly end and restart ---------------------------------------------------------------------------------------

TEST(SimNetworkAttach, Wire_destroyed__everything_is_delivered_and_then_the_source_closes) {
  SimNetwork network(1, {.max_link_packets = 1});
  auto alice = network.attach(kFirst);
  const auto bob = network.attach(kSecond);
  ASSERT_TRUE(send(*alice, *connect(*alice, kSecond), 0));
  alice.reset();
  EXPECT_EQ(receive_all(*bob), numbered(kFirst, 0, 1));
  ProcessId source;
  void* context = nullptr;
  EXPECT_TRUE(bob->take_closed_source(&source, &context));
}

TEST(SimNetworkAttach, Restart_with_the_same_id__has_a_link_and_a_source_of_its_own) {
  SimNetwork network(1, {.max_delay_polls = 0});
  const auto alice = network.attach(kFirst);
  const auto first_bob = network.attach(kSecond);
  Link* first_link = connect(*alice, kSecond);
  ASSERT_TRUE(send(*first_bob, *connect(*first_bob, kFirst), 1));
  Packet packet;
  ASSERT_TRUE(alice->peek(packet));
  int mine = 0;
  packet.source_context->engines = &mine;
  alice->release();
  network.kill(kSecond);

  const auto second_bob = network.attach(kSecond);
  Link* second_link = connect(*alice, kSecond);
  EXPECT_NE(second_link, first_link);
  EXPECT_TRUE(first_link->lost);
  EXPECT_FALSE(second_link->lost);
  ASSERT_TRUE(send(*alice, *second_link, 2));
  EXPECT_EQ(receive_all(*second_bob), numbered(kFirst, 2, 3));

  ASSERT_TRUE(send(*second_bob, *connect(*second_bob, kFirst), 3));
  EXPECT_FALSE(alice->peek(packet)) << "the second life is heard before the first one is over";
  alice->check_peers();
  ProcessId source;
  void* context = nullptr;
  ASSERT_TRUE(alice->take_closed_source(&source, &context));
  EXPECT_EQ(context, &mine);
  EXPECT_FALSE(alice->take_closed_source(&source, &context));
  ASSERT_TRUE(alice->peek(packet));
  EXPECT_EQ(packet.source_context->engines, nullptr);
  alice->release();
}

// ---- All together --------------------------------------------------------------------------------------------------

/// Five processes that send, die and come back. Every packet carries the number of its link and its place on the link.
class Chaos {
 public:
  explicit Chaos(std::uint64_t seed) : network_(seed) {
    for (std::uint32_t pid = 1; pid <= kProcessCount; ++pid) wires_.push_back(network_.attach({1, pid}));
  }

  void step() {
    const std::uint64_t index = network_.choose(kProcessCount);
    if (network_.choose(100) == 0) {
      restart(index);
    } else if (network_.choose(2) == 0) {
      send_from(*wires_[index], {1, static_cast<std::uint32_t>(1 + network_.choose(kProcessCount))});
    } else {
      receive_at(*wires_[index]);
    }
    if (network_.choose(20) == 0) look_around(*wires_[index]);
  }

  /// Receives until nothing is on its way.
  void drain() {
    for (int round = 0; round < 10000 && !network_.quiet(); ++round) {
      for (const auto& wire : wires_) {
        receive_at(*wire);
        look_around(*wire);  // A process that came back is heard once its former life is taken.
      }
    }
    EXPECT_TRUE(network_.quiet());
  }

  /// Checks that all that was sent between survivors has come.
  void expect_everything_from_survivors() const {
    for (const auto& [link_number, flow] : flows_) {
      if (flow.complete) {
        EXPECT_EQ(flow.received_count, flow.sent_count) << "link " << link_number;
      }
    }
  }

 private:
  static constexpr std::uint32_t kProcessCount = 5;

  /// What has happened on one link.
  struct Flow {
    SimWire* sender;
    SimWire* receiver;
    std::uint32_t sent_count = 0;
    std::uint32_t received_count = 0;
    bool complete = true;  ///< Neither end was killed.
  };

  void restart(std::uint64_t index) {
    const ProcessId process{1, static_cast<std::uint32_t>(1 + index)};
    network_.kill(process);
    for (auto& [link_number, flow] : flows_) {
      if (flow.sender == wires_[index].get() || flow.receiver == wires_[index].get()) flow.complete = false;
    }
    graveyard_.push_back(std::move(wires_[index]));
    wires_[index] = network_.attach(process);
  }

  void send_from(SimWire& wire, ProcessId peer) {
    Link* link = nullptr;
    if (wire.connect(peer, &link) != ConnectResult::kConnected) return;
    if (!link_numbers_.contains(link)) link_numbers_[link] = ++last_link_number_;
    const std::uint32_t link_number = link_numbers_[link];
    Flow& flow = flows_.try_emplace(link_number, Flow{&wire, wires_[peer.pid - 1].get()}).first->second;
    if (send(wire, *link, link_number << 16 | flow.sent_count)) ++flow.sent_count;
    if (network_.choose(30) == 0) {
      link_numbers_.erase(link);
      wire.disconnect(link);
    }
  }

  void receive_at(SimWire& wire) {
    const auto received = receive(wire);
    if (!received) return;
    Flow& flow = flows_.at(received->number >> 16);
    EXPECT_TRUE(received->payload_right);
    EXPECT_EQ(received->number & 0xffff, flow.received_count++);
    EXPECT_EQ(&wire, flow.receiver);
  }

  void look_around(SimWire& wire) {
    wire.check_peers();
    ProcessId source;
    void* context = nullptr;
    while (wire.take_closed_source(&source, &context)) {
    }
  }

  SimNetwork network_;
  std::vector<std::unique_ptr<SimWire>> wires_;
  std::vector<std::unique_ptr<SimWire>> graveyard_;  ///< Wires of the dead; kept, so that no address comes twice.
  std::map<Link*, std::uint32_t> link_numbers_;      ///< Only for looking up, never walked: addresses are chance.
  std::map<std::uint32_t, Flow> flows_;              ///< By link number.
  std::uint32_t last_link_number_ = 0;
};

TEST(SimNetworkChaos, Every_link__is_a_queue_and_survivors_get_everything) {
  const char* given = std::getenv("PORTOFU_TEST_SEED");
  const std::uint64_t first_seed = given != nullptr ? std::strtoull(given, nullptr, 0) : 0;
  for (std::uint64_t seed = first_seed; seed < first_seed + 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "PORTOFU_TEST_SEED=" << seed);
    Chaos chaos(seed);
    for (int step = 0; step < 1000; ++step) chaos.step();
    chaos.drain();
    chaos.expect_everything_from_survivors();
    if (testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace portofu
