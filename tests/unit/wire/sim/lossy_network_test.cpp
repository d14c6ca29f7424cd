// Tests of engine/wire/sim/lossy_network.cpp: every fault happens, about as often as it was asked for, and as the seed
// says.

#include "engine/wire/sim/lossy_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace portofu {
namespace {

constexpr LinkFigures kLink{.latency_ns = 1000, .bytes_per_us = 1000};
constexpr std::uint32_t kManyPackets = 10'000;
constexpr std::uint32_t kPacketBytes = 512;

struct Net {
  explicit Net(const LossyOptions& options = {}, std::uint64_t seed = 1, const LinkFigures& link = kLink)
      : network(seed, Topology::crossbar(3, link), options) {
    for (std::uint32_t i = 0; i < 3; ++i) endpoints[i] = network.attach({1, 10 + i}, i);
  }

  bool send(std::uint32_t from, std::uint32_t to, std::uint32_t number, TrafficClass traffic = TrafficClass::kRequest) {
    std::vector<std::byte> body(kPacketBytes - sizeof number);
    return endpoints[from]->send({1, 10 + to}, traffic, std::as_bytes(std::span(&number, 1)), body);
  }

  /// Takes what is there at the endpoint.
  void take(std::uint32_t at, std::vector<std::uint32_t>* numbers) {
    alignas(64) std::byte buffer[4224];
    ProcessId source;
    while (endpoints[at]->receive(buffer, &source) != 0) {
      std::uint32_t number = 0;
      std::memcpy(&number, buffer, sizeof number);
      numbers->push_back(number);
    }
  }

  /// Sends many from 0 to 1, a microsecond apart, and takes what arrives.
  std::vector<std::uint32_t> stream(std::uint32_t count = kManyPackets) {
    std::vector<std::uint32_t> numbers;
    for (std::uint32_t number = 0; number < count; ++number) {
      send(0, 1, number);
      network.advance(network.now_ns() + 1000);
      take(1, &numbers);
    }
    while (network.next_event_ns() != UINT64_MAX) network.advance(network.next_event_ns());
    take(1, &numbers);
    return numbers;
  }

  LossyNetwork network;
  std::unique_ptr<LossyEndpoint> endpoints[3];
};

TEST(LossyNetwork, Without_faults__all_arrive_in_order_after_the_latency) {
  Net net;
  const std::uint64_t sent_ns = net.network.now_ns();
  ASSERT_TRUE(net.send(0, 1, 7));
  net.network.advance(net.network.next_event_ns());
  while (!net.endpoints[1]->has_datagrams()) net.network.advance(net.network.next_event_ns());
  EXPECT_EQ(net.network.now_ns() - sent_ns, 2 * (1000 + kPacketBytes))
      << "two links of a microsecond and a byte a nanosecond";
  std::vector<std::uint32_t> numbers;
  net.take(1, &numbers);
  EXPECT_EQ(numbers, std::vector<std::uint32_t>{7});
  numbers = net.stream();
  EXPECT_EQ(numbers.size(), kManyPackets);
  EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end()));
}

TEST(LossyNetwork, Bandwidth__is_that_of_the_slowest_link) {
  Net net;
  for (std::uint32_t i = 0; i < 100; ++i) ASSERT_TRUE(net.send(0, 1, i));
  const std::uint64_t sent_ns = net.network.now_ns();
  std::vector<std::uint32_t> numbers;
  while (numbers.size() < 100) {
    net.network.advance(net.network.next_event_ns());
    net.take(1, &numbers);
  }
  EXPECT_NEAR(static_cast<double>(net.network.now_ns() - sent_ns), 100.0 * kPacketBytes + 2000 + kPacketBytes, 100);
}

TEST(LossyNetwork, Loss_and_duplicates__are_about_what_was_asked_for) {
  EXPECT_NEAR(static_cast<double>(Net({.loss = 100}).stream().size()), 0.9 * kManyPackets, 0.02 * kManyPackets);
  EXPECT_NEAR(static_cast<double>(Net({.duplicates = 50}).stream().size()), 1.05 * kManyPackets, 0.02 * kManyPackets);
}

TEST(LossyNetwork, Reordered_datagrams__are_overtaken_by_up_to_the_span) {
  const std::vector<std::uint32_t> numbers = Net({.reordered = 100, .reorder_span = 64}).stream();
  ASSERT_EQ(numbers.size(), kManyPackets);
  std::uint32_t most = 0;
  std::uint32_t late = 0;
  for (std::size_t i = 0, highest = 0; i < numbers.size(); ++i) {
    highest = std::max<std::size_t>(highest, numbers[i]);
    late += numbers[i] < highest ? 1 : 0;
    if (i < numbers.size() - 64) most = std::max(most, static_cast<std::uint32_t>(highest - numbers[i]));
  }
  EXPECT_NEAR(late, 0.1 * kManyPackets, 0.02 * kManyPackets);
  EXPECT_GE(most, 60u);
  EXPECT_LE(most, 64u + 10) << "others of those that overtake are set aside, too";
}

TEST(LossyNetwork, Delays__have_their_mean_and_reorder) {
  for (const DelayKind kind : {DelayKind::kUniform, DelayKind::kExponential, DelayKind::kPareto}) {
    const auto numbers = Net({.delay = kind, .mean_delay_ns = 20'000}).stream();
    EXPECT_EQ(numbers.size(), kManyPackets);
    EXPECT_FALSE(std::is_sorted(numbers.begin(), numbers.end()));
  }
}

TEST(LossyNetwork, Damage__changes_something) {
  Net net({.damaged = 1000});
  const std::vector<std::byte> body(kPacketBytes, std::byte{0x11});
  alignas(64) std::byte buffer[4224];
  ProcessId source;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(net.endpoints[0]->send({1, 11}, TrafficClass::kRequest, body, {}));
    while (net.network.next_event_ns() != UINT64_MAX) net.network.advance(net.network.next_event_ns());
    const std::uint32_t bytes = net.endpoints[1]->receive(buffer, &source);
    ASSERT_GT(bytes, 0u);
    ASSERT_LE(bytes, kPacketBytes);
  }
}

TEST(LossyNetwork, Same_seed__same_run) {
  const LossyOptions options{
      .loss = 100, .duplicates = 50, .reordered = 100, .delay = DelayKind::kExponential, .mean_delay_ns = 5000};
  EXPECT_EQ(Net(options, 5).stream(1000), Net(options, 5).stream(1000));
  EXPECT_NE(Net(options, 5).stream(1000), Net(options, 6).stream(1000));
}

TEST(LossyNetwork, Full_queue__drops_and_a_full_link_of_the_sender_refuses) {
  Net net({.receive_datagrams = 8}, 1, {.latency_ns = 1000, .bytes_per_us = 1000, .queue_datagrams = 4});
  std::uint32_t sent = 0;
  while (net.send(0, 1, sent)) ++sent;
  EXPECT_EQ(sent, 5u) << "one on the link, four behind it";
  for (std::uint32_t i = 0; i < 20; ++i) {
    net.network.advance(net.network.now_ns() + 1000);
    net.send(0, 1, i);
  }
  net.network.advance(net.network.now_ns() + 100'000);
  std::vector<std::uint32_t> numbers;
  net.take(1, &numbers);
  EXPECT_EQ(numbers.size(), 8u);
  EXPECT_EQ(net.network.dropped_full(), sent + 20 - 8);
}

TEST(LossyNetwork, Blocking__drops_nothing_and_holds_back_the_sender) {
  Net net({.receive_datagrams = 8, .blocking = true}, 1,
          {.latency_ns = 1000, .bytes_per_us = 1000, .queue_datagrams = 4});
  std::uint32_t sent = 0;
  for (std::uint32_t i = 0; i < 100; ++i) {
    while (net.send(0, 1, sent)) ++sent;
    net.network.advance(net.network.now_ns() + 1000);
  }
  EXPECT_EQ(sent, 8u + 4 + 4) << "what the receiver and both queues hold";
  std::vector<std::uint32_t> numbers;
  for (int i = 0; i < 100; ++i) {
    net.take(1, &numbers);
    net.network.advance(net.network.now_ns() + 1000);
  }
  EXPECT_EQ(numbers.size(), sent);
  EXPECT_EQ(net.network.dropped_full(), 0u);
  EXPECT_TRUE(net.send(0, 1, sent));
}

TEST(LossyNetwork, Reserved_room__takes_answers_only) {
  Net net({}, 1, {.latency_ns = 1000, .bytes_per_us = 1000, .queue_datagrams = 4, .reserved_datagrams = 1});
  std::uint32_t sent = 0;
  while (net.send(0, 1, sent)) ++sent;
  EXPECT_EQ(sent, 4u);
  EXPECT_TRUE(net.send(0, 1, 77, TrafficClass::kAnswer));
  net.network.advance(net.network.now_ns() + 100'000);
  std::vector<std::uint32_t> numbers;
  net.take(1, &numbers);
  ASSERT_EQ(numbers.size(), 5u);
  EXPECT_EQ(numbers.front(), 77u) << "and answers are taken first";
}

TEST(LossyNetwork, Parts__do_not_hear_each_other) {
  Net net;
  net.network.set_parts({0, 1, 0});
  ASSERT_TRUE(net.send(0, 1, 1));
  ASSERT_TRUE(net.send(0, 2, 2));
  net.network.advance(net.network.now_ns() + 100'000);
  EXPECT_FALSE(net.endpoints[1]->has_datagrams());
  EXPECT_TRUE(net.endpoints[2]->has_datagrams());
  net.network.set_parts({});
  ASSERT_TRUE(net.send(0, 1, 1));
  net.network.advance(net.network.now_ns() + 100'000);
  EXPECT_TRUE(net.endpoints[1]->has_datagrams());
}

TEST(LossyNetwork, Dead_process__its_node_says_so_and_a_dead_node_says_nothing) {
  Net net;
  net.network.kill({1, 11});
  ASSERT_TRUE(net.send(0, 1, 1));
  net.network.advance(net.network.now_ns() + 100'000);
  ProcessId peer;
  ASSERT_TRUE(net.endpoints[0]->take_unreachable(&peer));
  EXPECT_EQ(peer, (ProcessId{1, 11}));
  EXPECT_EQ(net.endpoints[0]->unreachable_since_ns(), 1u) << "when the datagram left";
  EXPECT_FALSE(net.endpoints[0]->take_unreachable(&peer));
  net.network.kill_node(2);
  ASSERT_TRUE(net.send(0, 2, 1));
  net.network.advance(net.network.now_ns() + 100'000);
  EXPECT_FALSE(net.endpoints[0]->take_unreachable(&peer));
  const auto again = net.network.attach({1, 12}, 2);
  ASSERT_TRUE(net.send(0, 2, 1));
  net.network.advance(net.network.now_ns() + 100'000);
  EXPECT_TRUE(again->has_datagrams());
}

TEST(LossyNetwork, Dead_process__its_node_says_so_six_times_and_then_once_a_second) {
  Net net({.notices_in_a_row = 6});
  net.network.kill({1, 11});
  const auto told = [&](int asked) {
    int count = 0;
    ProcessId peer;
    for (int i = 0; i < asked; ++i) EXPECT_TRUE(net.send(0, 1, 1));
    net.network.advance(net.network.now_ns() + 1'000'000);
    while (net.endpoints[0]->take_unreachable(&peer)) ++count;
    return count;
  };
  EXPECT_EQ(told(20), 6);
  EXPECT_EQ(told(20), 0);
  net.network.advance(net.network.now_ns() + 1'000'000'000);
  EXPECT_EQ(told(20), 1);
  net.network.advance(net.network.now_ns() + 60'000'000'000);
  EXPECT_EQ(told(20), 6);
}

}  // namespace
}  // namespace portofu
