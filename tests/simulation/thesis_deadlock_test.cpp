// The circle of J. C. Hoe's thesis (2.10) as a negative control: a network that blocks, with one class of traffic, and
// interfaces that take no packet for which they could not send the acknowledgement. It stands still. Two classes, or an
// interface that always takes what comes, end it: the reliable wire is the second, and uses the first where it is.

#include <gtest/gtest.h>

#include "tests/simulation/lossy_group.h"

namespace portofu::simulation {
namespace {

constexpr std::uint32_t kDimensions = 2;
constexpr std::size_t kNodes = 1u << kDimensions;
constexpr std::uint64_t kTestNs = 50 * kMillisecondNs;
constexpr std::uint32_t kMessageBytes = 96;        ///< "0 to 21 32-bit words", and some for the router.
constexpr std::uint32_t kMostUnacknowledged = 64;  ///< More than the network holds on a way.

LossyOptions blocking(bool two_classes) {
  LossyOptions options;
  options.receive_datagrams = 3;  // As the input section of a router.
  options.blocking = true;
  options.two_classes = two_classes;
  return options;
}

/// An interface as the thesis describes it before it has two levels: every data packet that it takes is acknowledged,
/// and it takes none while an acknowledgement waits.
struct ThesisInterface {
  ProcessId id;
  std::unique_ptr<LossyEndpoint> endpoint;
  std::uint32_t unacknowledged = 0;
  std::uint64_t delivered = 0;
  std::size_t next = 0;           ///< Whom it sends to next.
  const ThesisInterface* owed{};  ///< Who waits for an acknowledgement that has not left.
};

class ThesisNetwork {
 public:
  explicit ThesisNetwork(bool two_classes) : network_(1, Topology::funet(kDimensions), blocking(two_classes)) {
    for (std::uint32_t i = 0; i < kNodes; ++i) {
      nodes_[i].id = {1 + i, 1};
      nodes_[i].endpoint = network_.attach(nodes_[i].id, i);
    }
  }

  /// Everybody sends to everybody as fast as the network takes it.
  /// @return packets delivered
  std::uint64_t run(std::uint64_t for_ns) {
    const std::uint64_t before = delivered();
    for (const std::uint64_t end_ns = network_.now_ns() + for_ns; network_.now_ns() < end_ns;) {
      for (ThesisInterface& node : nodes_) act(node);
      network_.advance(std::min(end_ns, std::max(network_.next_event_ns(), network_.now_ns() + 40)));
    }
    return delivered() - before;
  }

 private:
  enum Kind : std::uint8_t { kData, kAcknowledgement };

  std::uint64_t delivered() const {
    std::uint64_t sum = 0;
    for (const ThesisInterface& node : nodes_) sum += node.delivered;
    return sum;
  }

  static bool send(ThesisInterface& from, const ThesisInterface& to, Kind kind) {
    std::vector<std::byte> bytes(kind == kData ? kMessageBytes : 8, static_cast<std::byte>(kind));
    return from.endpoint->send(to.id, kind == kData ? TrafficClass::kRequest : TrafficClass::kAnswer, bytes, {});
  }

  void act(ThesisInterface& node) {
    for (int budget = 16; budget > 0; --budget) {
      if (node.owed != nullptr && send(node, *node.owed, kAcknowledgement)) node.owed = nullptr;
      // What waits for room to answer may take acknowledgements, if it can tell them from data.
      if (node.owed != nullptr && !node.endpoint->has_of_class(TrafficClass::kAnswer)) break;
      alignas(64) std::byte buffer[4224];
      ProcessId source;
      if (node.endpoint->receive(buffer, &source) == 0) break;
      if (buffer[0] == static_cast<std::byte>(kAcknowledgement)) {
        --node.unacknowledged;
      } else {
        ++node.delivered;
        node.owed = &nodes_[source.nid - 1];
      }
    }
    while (node.unacknowledged < kMostUnacknowledged) {
      const ThesisInterface& to = nodes_[node.next % kNodes];
      if (&to != &node && !send(node, to, kData)) return;
      node.unacknowledged += &to != &node ? 1 : 0;
      ++node.next;
    }
  }

  LossyNetwork network_;
  ThesisInterface nodes_[kNodes];
};

TEST(ThesisDeadlock, One_class__stands_still) {
  ThesisNetwork network(/*two_classes=*/false);
  network.run(kTestNs);
  EXPECT_EQ(network.run(kTestNs), 0u) << "the negative control: this network must not work";
}

TEST(ThesisDeadlock, Two_classes__go_on) {
  ThesisNetwork network(/*two_classes=*/true);
  network.run(kTestNs);
  EXPECT_GT(network.run(kTestNs), 1000u);
}

/// All processes send to all others in the same network; their wires take whatever comes.
void expect_engines_go_on(bool two_classes) {
  LossyOptions options = blocking(two_classes);
  LossyGroup group(1, Topology::funet(kDimensions), options, kNodes);
  SimRandom random(1);
  group.run(2 * kSecondNs, [&] {
    for (std::size_t from = 0; from < kNodes; ++from) {
      if (group.open_count(from) < 64 && group.operation_count() < 20'000)
        group.put(from, random.below(kNodes), 8 + random.below(2000));
    }
    return true;
  });
  EXPECT_GT(group.ended_count(), 2000u);
  ASSERT_TRUE(group.settle(20 * kSecondNs));
  for (std::uint64_t number = 0; number < group.operation_count(); ++number)
    ASSERT_EQ(group.operation(number).fail, NiFail::kOk);
  EXPECT_EQ(group.check(), "");
  EXPECT_EQ(group.check_nothing_left(), "");
}

TEST(ThesisDeadlock, Engines__go_on_with_two_classes) { expect_engines_go_on(true); }

TEST(ThesisDeadlock, Engines__go_on_even_with_one_class) { expect_engines_go_on(false); }

}  // namespace
}  // namespace portofu::simulation
