// Thesis, 2.8 to 2.10: what a receiver cannot take is rejected, kept by its sender, and sent again.
#include "funi_fixture.h"

using namespace conformance;

namespace {

constexpr std::uint32_t kSlots = 8;
constexpr std::uint32_t kHeld = 10;                   ///< "Buffering of up to ten network packets" (5.5).
constexpr std::uint32_t kTaken = kSlots - 1 + kHeld;  ///< What a node takes that never reads.
constexpr std::uint32_t kForRequests = 6;             ///< Lines of the cache.
constexpr std::uint32_t kLines = 8;

/// So many packets of a class to a node, each with its number.
void send_numbered(Node& node, Class traffic, std::uint32_t to, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) node.send(traffic, FUNI_HEADER(1, 1, to), {i});
}

/// Receives them, in whatever order.
void expect_each_once(Node& node, Class traffic, std::uint32_t count) {
  std::vector<std::uint32_t> seen(count);
  for (std::uint32_t i = 0; i < count; ++i) ++seen.at(node.receive(traffic).words.at(0));
  EXPECT_EQ(seen, Words(count, 1));
  EXPECT_FALSE(node.try_receive(traffic).has_value());
}

/// A receiver whose queue is full has said so often, and all lines that there are for a class have got their packet.
bool has_tried(const funi_counts_t& counts, Class traffic, std::uint32_t retrieved) {
  const auto which = static_cast<std::size_t>(traffic);
  return counts.rejected[which] >= 20 && counts.retrieved[which] >= retrieved;
}

}  // namespace

// "Each dequeued but undelivered packet remains in the packet cache and is transmitted repeatedly after each negative
// acknowledgment until a positive acknowledgment for its delivery is received" (2.9).
TEST(FuniReject, Section2_9__a_full_queue_rejects_and_everything_comes_once) {
  run_processes(2, [](Process& self) {
    Node node(self, self.rank() == 0 ? 64 : kSlots);
    constexpr std::uint32_t kPackets = 50;
    if (self.rank() == 0) {
      send_numbered(node, Class::kRequest, 1, kPackets);
      node.expect_soon([&] { return has_tried(node.counts(), Class::kRequest, kTaken + kForRequests); });
      const funi_counts_t counts = node.counts();
      EXPECT_EQ(counts.accepted[1], kTaken);
      EXPECT_EQ(counts.retrieved[1], kTaken + kForRequests);
      EXPECT_EQ(node.read(FUNI_TICKET), 0xc0u) << "a bit for each line that is free: two are for replies";
      self.barrier();
      node.expect_soon([&] { return node.is_all_accepted(); });
      EXPECT_EQ(node.counts().accepted[1], kPackets);
      EXPECT_EQ(node.counts().dispatched[1], node.counts().accepted[1] + node.counts().rejected[1]);
    } else {
      self.barrier();
      expect_each_once(node, Class::kRequest, kPackets);
      EXPECT_GE(node.counts().held[1], kHeld);
    }
    self.barrier();
  });
}

// "Only reply packets are cached while hi is asserted", "full is asserted when all eight lines are occupied" (5.2.4).
TEST(FuniReject, Section5_2_4__replies_have_two_lines_more) {
  run_processes(2, [](Process& self) {
    Node node(self, self.rank() == 0 ? 64 : kSlots);
    if (self.rank() == 0) {
      send_numbered(node, Class::kReply, 1, kTaken + 20);
      send_numbered(node, Class::kRequest, 1, kTaken + 20);
      node.expect_soon([&] { return has_tried(node.counts(), Class::kReply, kTaken + kLines); });
      EXPECT_EQ(node.counts().retrieved[0], kTaken + kLines);
      EXPECT_EQ(node.read(FUNI_TICKET), 0u);
      // "If both conditions are met, precedence is given to the reply packet" (5.2.2): requests get what is left.
      EXPECT_LE(node.counts().retrieved[1], kTaken);
      self.barrier();
      node.expect_soon([&] { return node.is_all_accepted(); });
    } else {
      self.barrier();
      expect_each_once(node, Class::kReply, kTaken + 20);
      expect_each_once(node, Class::kRequest, kTaken + 20);
    }
    self.barrier();
  });
}

// "Higher priority reply packets must not be blocked by request packets" (5.5): neither by a full request queue at the
// receiver, nor by six requests that wait in the sender's cache.
TEST(FuniReject, Section5_5__requests_do_not_block_replies) {
  run_processes(2, [](Process& self) {
    Node node(self, self.rank() == 0 ? 64 : kSlots);
    constexpr std::uint32_t kReplies = 200;
    if (self.rank() == 0) {
      send_numbered(node, Class::kRequest, 1, kTaken + 30);
      node.expect_soon([&] { return has_tried(node.counts(), Class::kRequest, kTaken + kForRequests); });
      send_numbered(node, Class::kReply, 1, kReplies);
      node.expect_soon([&] { return node.counts().accepted[0] == kReplies; });
      EXPECT_EQ(node.counts().accepted[1], kTaken) << "the requests still wait";
      self.barrier();
      node.expect_soon([&] { return node.is_all_accepted(); });
    } else {
      expect_each_once(node, Class::kReply, kReplies);
      self.barrier();
      expect_each_once(node, Class::kRequest, kTaken + 30);
    }
    self.barrier();
  });
}

// "FUNi can never be indirectly blocked from communication by other misbehaving communication pairs" (2.8): two nodes
// talk, one of them also gets nowhere with a third, which is flooded by all and reads nothing.
TEST(FuniReject, Section2_8__third_parties_are_undisturbed_by_a_flood) {
  run_processes(4, [](Process& self) {
    Node node(self, self.rank() == 3 ? kSlots : 64);
    constexpr std::uint32_t kRounds = 300;
    if (self.rank() == 2) {
      send_numbered(node, Class::kRequest, 3, 60);
      node.expect_soon([&] { return node.counts().rejected[1] >= 100; });
    }
    self.barrier();
    for (std::uint32_t i = 0; self.rank() < 2 && i < kRounds; ++i) {
      const auto peer = static_cast<std::uint32_t>(1 - self.rank());
      node.send(Class::kRequest, FUNI_HEADER(1, 1, peer), {i});
      EXPECT_EQ(node.receive(Class::kRequest).words, Words{i});
    }
    if (self.rank() == 2) {
      // It goes on with the flood, and its replies still go where they are read.
      const std::uint64_t before = node.counts().rejected[1];
      node.send(Class::kReply, FUNI_HEADER(1, 1, 0), {7});
      node.expect_soon([&] { return node.counts().accepted[0] == 1 && node.counts().rejected[1] > before; });
    }
    if (self.rank() == 0) {
      EXPECT_EQ(node.receive(Class::kReply).words, Words{7});
    }
    if (self.rank() < 2) {
      node.expect_soon([&] { return node.is_all_accepted(); });
    }
    self.barrier();
    if (self.rank() == 3) expect_each_once(node, Class::kRequest, 60);
    if (self.rank() == 2) {
      node.expect_soon([&] { return node.is_all_accepted(); });
    }
    self.barrier();
  });
}

namespace {

constexpr std::uint32_t kParts = 4;  ///< Packets of an answer: it needs more room than its request has left.
constexpr std::uint32_t kRequests = 200;

/// A node that asks its peer and answers it. It is done with a request when all of its answer is in a send queue; until
/// then it takes no other.
class Talker {
 public:
  /// @param answers  the class of answers
  Talker(Node& node, Class answers) : node_(node), answers_(answers), peer_(1 - node.number()) {}

  bool is_done() const { return received_ == kRequests * kParts && answered_ == kRequests && owed_ == 0; }

  /// @return whether anything moved
  bool step() {
    if (node_.try_receive(Class::kReply)) {
      ++received_;
      return true;
    }
    if (owed_ != 0) {
      if (!node_.try_send(answers_, FUNI_HEADER(kAnswer, 0, peer_), {})) return false;
      --owed_;
      return true;
    }
    if (sent_ < kRequests && node_.try_send(Class::kRequest, FUNI_HEADER(kQuestion, 0, peer_), {})) {
      ++sent_;
      return true;
    }
    const auto packet = node_.try_receive(Class::kRequest);
    if (!packet) return false;
    if (FUNI_HEADER_TYPE(packet->header) == kAnswer) {
      ++received_;
    } else {
      ++answered_;
      owed_ = kParts;
    }
    return true;
  }

  /// Goes on until it is done, or nothing has moved for so long.
  void run(std::uint32_t patience_ms) {
    while (!is_done() && node_.becomes([&] { return step(); }, patience_ms)) {
    }
  }

 private:
  enum Type : std::uint32_t { kQuestion, kAnswer };

  Node& node_;
  Class answers_;
  std::uint32_t peer_;
  std::uint32_t sent_ = 0;
  std::uint32_t owed_ = 0;
  std::uint32_t answered_ = 0;
  std::uint32_t received_ = 0;
};

}  // namespace

// The circle of 2.10, one level up: whoever answers in the class of the requests waits for room that only the other
// could make, which waits itself. The circle in the network itself is in tests/simulation/thesis_deadlock_test.cpp.
TEST(FuniDeadlock, Section2_10__with_one_class_both_stand_still) {
  run_processes(2, [](Process& self) {
    Node node(self, kSlots);
    Talker talker(node, Class::kRequest);
    talker.run(1000);
    EXPECT_FALSE(talker.is_done()) << "the negative control: this must not work";
    self.barrier();
    const std::uint64_t accepted = node.counts().accepted[1];
    EXPECT_FALSE(node.becomes([&] { return talker.step(); }, 200));
    EXPECT_EQ(node.counts().accepted[1], accepted);
    self.barrier();
  });
}

// "The flow of high priority packets is never blocked by the lower priority packets" (2.10).
TEST(FuniDeadlock, Section2_10__with_two_classes_both_go_on) {
  run_processes(2, [](Process& self) {
    Node node(self, kSlots);
    Talker talker(node, Class::kReply);
    talker.run(kPatienceMs);
    EXPECT_TRUE(talker.is_done());
    node.expect_soon([&] { return node.is_all_accepted(); });
    EXPECT_EQ(node.counts().accepted[0], kRequests * kParts);
    self.barrier();
  });
}
