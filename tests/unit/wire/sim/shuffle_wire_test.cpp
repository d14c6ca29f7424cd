// What the shuffle may change, and what not: two senders of a simulated network that itself delays nothing.

#include "engine/wire/sim/shuffle_wire.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "engine/wire/sim/sim_network.h"

namespace portofu {
namespace {

constexpr ProcessId kReceiver{1, 1};
constexpr ProcessId kSenders[2] = {{1, 2}, {1, 3}};
constexpr std::uint32_t kPackets = 12;
constexpr int kEnoughPolls = 100;

/// What the receiver has taken.
struct Taken {
  ProcessId source;
  PacketType type;
  std::uint32_t number;
};

struct ShuffleWireTest : ::testing::Test {
  static SimOptions plain() {
    return {.max_payload_bytes = 4096, .max_link_packets = 64, .max_delay_polls = 0, .max_connect_in_progress = 0};
  }

  void start(std::uint64_t seed) {
    network = std::make_unique<SimNetwork>(1, plain());
    inner = network->attach(kReceiver);
    wire = std::make_unique<ShuffleWire>(*inner, seed);
    for (int i = 0; i < 2; ++i) {
      senders[i] = network->attach(kSenders[i]);
      ASSERT_EQ(senders[i]->connect(kReceiver, &links[i]), ConnectResult::kConnected);
    }
  }

  void TearDown() override {
    wire.reset();
    inner.reset();
    for (auto& sender : senders) sender.reset();
  }

  /// @param length  payload bytes of the whole message; one packet has those of `number`
  /// @return false if the link has no room
  bool send(int sender, PacketType type, std::uint32_t number, std::uint8_t flags = 0,
            std::uint64_t length = sizeof(std::uint32_t)) {
    std::byte* room = senders[sender]->claim(*links[sender], sizeof number);
    if (room == nullptr) return false;
    std::memcpy(room, &number, sizeof number);
    PacketHeader header{};
    header.type = type;
    header.flags = flags;
    header.operation_id = number;
    header.payload_bytes = sizeof number;
    header.length = length;
    senders[sender]->publish(*links[sender], header);
    return true;
  }

  std::vector<Taken> take_all() {
    std::vector<Taken> all;
    for (int idle = 0; idle < kEnoughPolls; ++idle) {
      Packet packet;
      while (wire->peek(packet)) {
        std::uint32_t payload = 0;
        std::memcpy(&payload, packet.payload.here(), sizeof payload);
        EXPECT_EQ(payload, packet.header.operation_id);
        packet.source_context->engines = this;
        all.push_back({packet.source, packet.header.type, packet.header.operation_id});
        wire->release();
        idle = 0;
      }
    }
    return all;
  }

  std::unique_ptr<SimNetwork> network;
  std::unique_ptr<SimWire> inner;
  std::unique_ptr<ShuffleWire> wire;
  std::unique_ptr<SimWire> senders[2];
  Link* links[2] = {};
};

// 2.7, 3.10.1. Every message has two packets, n and n + 1: requests 0, 4, 8 ..., answers 2, 6, 10 ...
TEST_F(ShuffleWireTest, Requests__of_one_source_keep_their_order_and_its_answers_need_none) {
  int answers_first = 0;
  int answers_overtaken = 0;
  int sources_mixed = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    start(seed);
    std::uint32_t sent = 0;
    for (std::uint32_t i = 0; i < kPackets; ++i) {
      for (int sender = 0; sender < 2; ++sender) {
        sent += i % 2 == 0 ? send(sender, PacketType::kPut, 2 * i, 0, 8)
                           : send(sender, PacketType::kAnswer, 2 * i, kFlagUnordered, 8);
        sent += send(sender, PacketType::kData, 2 * i + 1, i % 2 == 0 ? 0 : kFlagAnswerStream, 8) ? 1 : 0;
      }
    }
    const std::vector<Taken> all = take_all();
    EXPECT_EQ(all.size(), sent) << "each once";
    EXPECT_FALSE(wire->has_packets());
    std::uint32_t last[2][2] = {};
    for (const Taken& one : all) {
      const std::size_t source = one.source == kSenders[0] ? 0 : 1;
      const std::size_t lane = one.number / 2 % 2;
      if (one.number % 2 == 1) {
        EXPECT_EQ(last[source][lane] + 1, one.number) << "rest of a message, seed " << seed;
      } else if (lane == 0) {
        EXPECT_GE(one.number, last[source][0]) << "seed " << seed;
      } else {
        answers_overtaken += one.number < last[source][1] ? 1 : 0;
        answers_first += one.number > last[source][0] + 2 ? 1 : 0;
      }
      sources_mixed += source == 1 && one.number > last[0][lane] + 4 ? 1 : 0;
      last[source][lane] = one.number;
    }
    TearDown();
  }
  EXPECT_GT(answers_first, 0) << "answers overtake requests";
  EXPECT_GT(answers_overtaken, 0) << "answers overtake answers";
  EXPECT_GT(sources_mixed, 0) << "sources overtake each other";
}

// The uTofu guide, 2.2.10: local notices come in order, and a fault answers a put that wanted no answer.
TEST_F(ShuffleWireTest, Answers_and_faults_of_utofu__keep_their_order) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    start(seed);
    for (std::uint32_t i = 0; i < kPackets; ++i) {
      send(0, i % 3 == 0 ? PacketType::kTofuFault : PacketType::kAnswer, i);
    }
    std::uint32_t last = 0;
    for (const Taken& one : take_all()) {
      EXPECT_GE(one.number, last) << "seed " << seed;
      last = one.number;
    }
    TearDown();
  }
}

// 2.7.5. Messages of two packets: those without order begin with 2, 6, 10 ...
TEST_F(ShuffleWireTest, Unordered_messages__overtake_but_never_come_inside_another_one) {
  int overtaking = 0;
  int overtaken = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    start(seed);
    std::uint32_t sent = 0;
    for (std::uint32_t number = 0; number < 4 * kPackets; number += 4) {
      sent += send(0, PacketType::kPut, number, 0, 8) ? 1 : 0;
      sent += send(0, PacketType::kData, number + 1, 0, 8) ? 1 : 0;
      sent += send(0, PacketType::kPut, number + 2, kFlagUnordered, 8) ? 1 : 0;
      sent += send(0, PacketType::kData, number + 3, 0, 8) ? 1 : 0;
    }
    const std::vector<Taken> all = take_all();
    EXPECT_EQ(all.size(), sent) << "each once";
    ASSERT_EQ(all.size() % 2, 0u);
    std::uint32_t last_ordered = 0;
    for (std::size_t k = 0; k < all.size(); k += 2) {
      const std::uint32_t number = all[k].number;
      ASSERT_EQ(number % 2, 0u) << "seed " << seed;
      ASSERT_EQ(all[k + 1].number, number + 1) << "seed " << seed;
      if (number % 4 == 2) {
        overtaking += number > last_ordered + 2 ? 1 : 0;
        overtaken += number < last_ordered ? 1 : 0;
        continue;
      }
      EXPECT_GE(number, last_ordered) << "seed " << seed;
      last_ordered = number;
    }
    TearDown();
  }
  EXPECT_GT(overtaking, 0);
  EXPECT_GT(overtaken, 0);
}

// The bound of waiting packets must not keep out the rest of a message that overtook everything.
TEST_F(ShuffleWireTest, Long_unordered_message__comes_whole_through_a_full_wire) {
  constexpr std::uint32_t kLong = 200;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    start(seed);
    std::uint32_t next = 0;
    std::uint32_t others = 0;
    std::vector<Taken> all;
    while (next < kLong) {
      while (others < next + 20 && send(1, PacketType::kPut, others)) ++others;
      while (next < kLong && send(0, next == 0 ? PacketType::kPut : PacketType::kData, next, kFlagUnordered, 4 * kLong))
        ++next;
      const std::vector<Taken> some = take_all();
      all.insert(all.end(), some.begin(), some.end());
    }
    std::uint32_t expected = 0;
    for (const Taken& one : all) {
      if (one.source != kSenders[0]) continue;
      EXPECT_EQ(one.number, expected++);
    }
    EXPECT_EQ(expected, kLong);
    EXPECT_EQ(all.size(), kLong + others);
    TearDown();
  }
}

// A sender that dies leaves a message without its end; what was sent before it must still come.
TEST_F(ShuffleWireTest, Unfinished_message__does_not_keep_its_source_open) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    start(seed);
    ASSERT_TRUE(send(0, PacketType::kPut, 0));
    ASSERT_TRUE(send(0, PacketType::kPut, 1, kFlagUnordered, 100));
    const std::size_t before = take_all().size();
    EXPECT_LE(before, 2u);
    senders[0]->disconnect(links[0]);
    ProcessId source;
    void* context = nullptr;
    const bool taken = wire->take_closed_source(&source, &context);
    const std::size_t after = take_all().size();
    EXPECT_EQ(before + after, 2u);
    EXPECT_TRUE(taken || wire->take_closed_source(&source, &context));
    TearDown();
  }
}

TEST_F(ShuffleWireTest, Same_seed__gives_the_same_order) {
  std::vector<std::uint32_t> orders[2];
  for (std::vector<std::uint32_t>& order : orders) {
    start(7);
    for (std::uint32_t i = 0; i < kPackets; ++i) {
      for (int sender = 0; sender < 2; ++sender)
        send(sender, PacketType::kPut, 2 * i + static_cast<std::uint32_t>(sender));
    }
    for (const Taken& one : take_all()) order.push_back(one.number);
    TearDown();
  }
  EXPECT_EQ(orders[0], orders[1]);
}

TEST_F(ShuffleWireTest, Closed_source__is_told_after_its_last_packet) {
  start(3);
  ASSERT_TRUE(send(0, PacketType::kPut, 1));
  ASSERT_TRUE(send(0, PacketType::kAnswer, 2));
  Packet packet;
  if (wire->peek(packet)) wire->release();
  senders[0]->disconnect(links[0]);
  ProcessId source;
  void* context = nullptr;
  EXPECT_FALSE(wire->take_closed_source(&source, &context)) << "at least one packet waits";
  EXPECT_TRUE(wire->has_packets());
  take_all();
  ASSERT_TRUE(wire->take_closed_source(&source, &context));
  EXPECT_EQ(source, kSenders[0]);
  EXPECT_EQ(context, this) << "the engine's own context";
  EXPECT_FALSE(wire->take_closed_source(&source, &context));
}

TEST_F(ShuffleWireTest, Unheard__is_what_waits_here_or_in_the_wire_below_or_is_in_hand) {
  start(4);
  Link* back = nullptr;
  ASSERT_EQ(wire->connect(kSenders[0], &back), ConnectResult::kConnected);
  const std::uint64_t life = back->life;
  EXPECT_FALSE(wire->has_unheard(kSenders[0], life));
  ASSERT_TRUE(send(1, PacketType::kPut, 1));
  EXPECT_FALSE(wire->has_unheard(kSenders[0], life)) << "of another process";
  take_all();
  ASSERT_TRUE(send(0, PacketType::kPut, 2));
  EXPECT_TRUE(wire->has_unheard(kSenders[0], life));
  Packet packet;
  for (int i = 0; i < kEnoughPolls && !wire->peek(packet); ++i) EXPECT_TRUE(wire->has_unheard(kSenders[0], life));
  EXPECT_EQ(packet.source_context->life, life);
  EXPECT_TRUE(wire->has_unheard(kSenders[0], life));
  wire->release();
  EXPECT_FALSE(wire->has_unheard(kSenders[0], life));
  wire->disconnect(back);
}

TEST_F(ShuffleWireTest, Later_link_of_a_process__is_heard_after_the_end_of_the_earlier) {
  start(5);
  ASSERT_TRUE(send(0, PacketType::kPut, 1));
  Packet packet;
  if (wire->peek(packet)) wire->release();
  senders[0]->disconnect(links[0]);
  ASSERT_EQ(senders[0]->connect(kReceiver, &links[0]), ConnectResult::kConnected);
  ASSERT_TRUE(send(0, PacketType::kPut, 2));
  for (int i = 0; i < kEnoughPolls; ++i) {
    if (!wire->peek(packet)) continue;
    EXPECT_EQ(packet.header.operation_id, 1u);
    wire->release();
  }
  ProcessId source;
  void* context = nullptr;
  ASSERT_TRUE(wire->take_closed_source(&source, &context));
  const std::vector<Taken> later = take_all();
  ASSERT_EQ(later.size(), 1u);
  EXPECT_EQ(later[0].number, 2u);
}

// ---- Facets --------------------------------------------------------------------------------------------------------

/// A sender, and a receiver under disorder, with all facets.
class ShuffleWireFacets : public testing::Test {
 protected:
  static constexpr SimOptions kAll{.max_delay_polls = 0,
                                   .max_connect_in_progress = 0,
                                   .max_ack_slots = 100,
                                   .max_lent_bytes = 4096,
                                   .shows_memory = true};

  ShuffleWireFacets() {
    static_cast<void>(sender->connect(kReceiver, &link));
    header.type = PacketType::kPut;
    header.payload_bytes = header.length = static_cast<std::uint32_t>(source.size());
  }

  /// The next packet, which must be there soon.
  Packet take() {
    Packet packet;
    bool found = false;
    for (int i = 0; i < kEnoughPolls && !found; ++i) found = wire.peek(packet);
    EXPECT_TRUE(found);
    return packet;
  }

  SimNetwork network{5, kAll};
  std::unique_ptr<SimWire> sender = network.attach(kSenders[0]);
  std::unique_ptr<SimWire> inner = network.attach(kReceiver);
  ShuffleWire wire{*inner, 9};
  Link* link = nullptr;
  PacketHeader header{};
  std::array<std::byte, 64> source{std::byte{7}};
  std::array<std::byte, 64> target{};
};

TEST_F(ShuffleWireFacets, Wire__has_those_of_the_wire_below_but_for_peer_memory) {
  EXPECT_EQ(wire.loans(), inner->loans());
  EXPECT_EQ(wire.copies(), inner->copies());
  EXPECT_NE(wire.completions(), nullptr);
  EXPECT_EQ(wire.peer_memory(), nullptr);
  EXPECT_EQ(ShuffleWire(*sender, 1).other_nodes(), nullptr);
}

TEST_F(ShuffleWireFacets, Lent_packet__stays_in_hand_below_and_can_be_read_late) {
  while (!sender->lend(*link, {source.data(), 64, 0, 0, true})) {
  }
  sender->publish(*link, header);
  const Packet packet = take();
  ASSERT_TRUE(packet.payload.is_in_memory());
  EXPECT_FALSE(sender->has_taken(*link, 1));
  while (!wire.copies()->read_later(target.data(), 64)) {
  }
  wire.release();
  EXPECT_FALSE(sender->has_taken(*link, 1));
  EXPECT_EQ(wire.copies()->read_now(), 1u);
  EXPECT_TRUE(wire.completions()->acknowledge(kSenders[0], 3));
  wire.copies()->give_back_read();
  EXPECT_TRUE(sender->has_taken(*link, 1));
  EXPECT_EQ(target, source);
  EXPECT_EQ(sender->take_acknowledgement(*link), 3u);
}

TEST_F(ShuffleWireFacets, Acknowledgement__is_sent_though_the_packet_was_released_below) {
  std::byte* const room = sender->claim(*link, 64);
  std::memcpy(room, source.data(), 64);
  sender->publish(*link, header);
  static_cast<void>(take());
  EXPECT_TRUE(sender->has_taken(*link, 1));
  EXPECT_TRUE(wire.completions()->acknowledge(kSenders[0], 4));
  EXPECT_FALSE(wire.completions()->acknowledge(kReceiver, 5));
  wire.release();
  EXPECT_EQ(sender->take_acknowledgement(*link), 4u);
}

}  // namespace
}  // namespace portofu
