// Both halves together: traffic in both directions, limits, what one end sees of the other's end.

#include "engine/wire/shm/shm_wire.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <random>
#include <thread>

#include "tests/unit/wire/shm/wire_pair.h"

namespace portofu {
namespace {

struct ShmWireTest : ::testing::Test {
  SegmentDirectory directory;
  WirePeer a{directory.options(1)};
  WirePeer b{directory.options(2)};
};

TEST_F(ShmWireTest, Max_payload__is_a_multiple_of_64_and_large_enough) {
  EXPECT_GE(a.wire->max_payload_bytes(), 4096u);
  EXPECT_EQ(a.wire->max_payload_bytes() % 64, 0u);
}

TEST_F(ShmWireTest, Longest_payload__arrives) {
  const std::string text(a.wire->max_payload_bytes(), 'z');
  ASSERT_TRUE(a.send(a.connect(b), text));
  EXPECT_EQ(b.receive(), text);
}

TEST_F(ShmWireTest, Discarded_claim__sends_nothing) {
  Link* link = a.connect(b);
  ASSERT_NE(a.wire->claim(*link, 100), nullptr);
  a.wire->discard(*link);
  EXPECT_FALSE(b.receive());
  ASSERT_TRUE(a.send(link, "next"));
  EXPECT_EQ(b.receive(), "next");
}

TEST_F(ShmWireTest, Random_traffic_in_both_directions__arrives_as_sent) {
  const unsigned seed = std::getenv("SEED") != nullptr ? static_cast<unsigned>(std::atoi(std::getenv("SEED"))) : 1;
  SCOPED_TRACE("SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  WirePeer* peers[2] = {&a, &b};
  Link* links[2] = {a.connect(b), b.connect(a)};
  std::deque<std::string> expected[2];
  for (int step = 0; step < 40000; ++step) {
    const int from = static_cast<int>(random() % 2);
    if (random() % 2 == 0) {
      const std::string text(random() % 4 == 0 ? random() % 8193 : random() % 100, static_cast<char>(random()));
      if (peers[from]->send(links[from], text)) expected[from].push_back(text);
    } else {
      const auto text = peers[1 - from]->receive();
      ASSERT_EQ(text.has_value(), !expected[from].empty());
      if (!text) continue;
      ASSERT_EQ(*text, expected[from].front());
      expected[from].pop_front();
    }
  }
}

TEST_F(ShmWireTest, Two_threads_that_sleep__lose_nothing) {
  constexpr int kMessages = 20000;
  std::thread sender([this] {
    Link* link = a.connect(b);
    Doorbell bell(a.segment->doorbell(), a.segment->node_guard());
    for (int i = 0; i < kMessages;) {
      if (a.send(link, std::string(i % 5 == 0 ? 5000 : 8, 'x'), i)) {
        ++i;
        continue;
      }
      const std::uint32_t seen = bell.announce();
      if (!a.wire->has_room_again()) bell.wait(seen, -1);
      bell.withdraw();
    }
  });
  Doorbell bell(b.segment->doorbell(), b.segment->node_guard());
  for (int i = 0; i < kMessages;) {
    Packet packet;
    if (const auto text = b.receive(&packet)) {
      EXPECT_EQ(packet.header.hdr_data, static_cast<std::uint64_t>(i));
      EXPECT_EQ(text->size(), i % 5 == 0 ? 5000u : 8u);
      ++i;
      continue;
    }
    const std::uint32_t seen = bell.announce();
    if (!b.wire->has_packets()) bell.wait(seen, -1);
    bell.withdraw();
  }
  sender.join();
}

/// While a packet is in hand, its sender may be told of an operation.
bool acknowledge(WirePeer& by, ProcessId sender, std::uint32_t operation_id) {
  Packet packet;
  EXPECT_TRUE(by.wire->peek(packet));
  const bool done = by.wire->acknowledge(sender, operation_id);
  by.wire->release();
  return done;
}

TEST_F(ShmWireTest, Acknowledgement__reaches_the_sender_of_the_packet_in_hand_without_a_packet) {
  Link* link = a.connect(b);
  EXPECT_FALSE(a.wire->has_acknowledgement(*link));
  for (const std::uint32_t id : {5u, 6u}) {
    ASSERT_TRUE(a.send(link, "put"));
    ASSERT_TRUE(acknowledge(b, a.id(), id));
  }
  EXPECT_FALSE(a.wire->has_packets());
  EXPECT_TRUE(a.wire->has_acknowledgement(*link));
  EXPECT_EQ(a.wire->take_acknowledgement(*link), 5u);
  EXPECT_EQ(a.wire->take_acknowledgement(*link), 6u);
  EXPECT_EQ(a.wire->take_acknowledgement(*link), 0u);
}

TEST_F(ShmWireTest, Acknowledgement__reaches_a_life_whose_packet_was_released) {
  Link* link = a.connect(b);
  ASSERT_TRUE(a.send(link, "put"));
  Packet packet;
  ASSERT_TRUE(b.wire->peek(packet));
  const std::uint64_t life = packet.source_context->life;
  b.wire->release();
  EXPECT_FALSE(b.wire->acknowledge_released(a.id(), life + 1, 5));
  EXPECT_FALSE(b.wire->acknowledge_released(b.id(), life, 5));
  EXPECT_TRUE(b.wire->acknowledge_released(a.id(), life, 5));
  EXPECT_EQ(a.wire->take_acknowledgement(*link), 5u);
}

TEST_F(ShmWireTest, Acknowledgement__is_for_nobody_else_and_only_while_the_packet_is_in_hand) {
  ASSERT_TRUE(a.send(a.connect(b), "put"));
  EXPECT_FALSE(b.wire->acknowledge(a.id(), 5)) << "nothing is in hand";
  EXPECT_FALSE(acknowledge(b, b.id(), 5)) << "it is another one's";
  EXPECT_FALSE(b.wire->acknowledge(a.id(), 5)) << "it was released";
}

TEST_F(ShmWireTest, Acknowledgements__that_are_not_taken_give_way_to_packets) {
  Link* link = a.connect(b);
  for (std::uint32_t id = 1; id <= kAckSlots; ++id) {
    ASSERT_TRUE(a.send(link, "put"));
    ASSERT_TRUE(acknowledge(b, a.id(), id));
  }
  ASSERT_TRUE(a.send(link, "put"));
  EXPECT_FALSE(acknowledge(b, a.id(), 99));
}

TEST_F(ShmWireTest, Acknowledgement__wakes_a_sender_that_sleeps) {
  ASSERT_TRUE(a.send(a.connect(b), "put"));
  Doorbell bell(a.segment->doorbell(), a.segment->node_guard());
  const std::uint32_t seen = bell.announce();
  ASSERT_TRUE(acknowledge(b, a.id(), 5));
  EXPECT_TRUE(bell.wait(seen, 1'000'000'000));
  bell.withdraw();
}

TEST_F(ShmWireTest, Acknowledgement__of_the_dead_is_still_there) {
  Link* link = a.connect(b);
  ASSERT_TRUE(a.send(link, "put"));
  ASSERT_TRUE(acknowledge(b, a.id(), 5));
  b.wire.reset();
  b.die();
  EXPECT_EQ(a.wire->check_peers(), 1);
  EXPECT_EQ(a.wire->take_acknowledgement(*link), 5u);
}

TEST_F(ShmWireTest, Wire_without_membarrier__works_with_one_that_has_it) {
  SegmentOptions options = directory.options(3);
  options.membarrier = false;
  WirePeer fencing(options);
  ASSERT_TRUE(fencing.send(fencing.connect(a), "fenced"));
  EXPECT_EQ(a.receive(), "fenced");
  ASSERT_TRUE(a.send(a.connect(fencing), "back"));
  EXPECT_EQ(fencing.receive(), "back");
}

TEST_F(ShmWireTest, End_of_one_wire__closes_its_links_for_the_other) {
  ASSERT_TRUE(a.send(a.connect(b), "bye"));
  Link* back = b.connect(a);
  a.wire.reset();
  a.segment.reset();
  EXPECT_EQ(b.receive(), "bye");
  EXPECT_FALSE(b.receive());
  ProcessId source;
  void* context = nullptr;
  EXPECT_TRUE(b.wire->take_closed_source(&source, &context));
  EXPECT_EQ(source.pid, 1u);
  EXPECT_EQ(b.wire->check_peers(), 1);
  EXPECT_TRUE(back->lost);
}

}  // namespace
}  // namespace portofu
