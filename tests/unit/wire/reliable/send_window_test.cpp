// Tests of engine/wire/reliable/send_window.cpp: what is due, what is freed, and when.

#include "engine/wire/reliable/send_window.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace portofu {
namespace {

constexpr std::uint32_t kFrameBytes = 1000;

struct SendWindowTest : testing::Test {
  void add(std::uint32_t packet_bytes, Delivery delivery = Delivery::kReliable) {
    PacketBuffer buffer(packet_bytes);
    std::memset(buffer.data(), 7, packet_bytes);
    window.add(std::move(buffer), packet_bytes, delivery);
  }

  /// Sends all that is due. @return their sequence numbers
  std::vector<std::uint32_t> send_due(std::uint64_t now_ns, bool first_only = false) {
    std::vector<std::uint32_t> sent;
    FrameHeader header{};
    std::span<const std::byte> body;
    while (window.find_due(now_ns, first_only, &header, &body)) {
      sent.push_back(header.sequence);
      last = header;
      last_body_bytes = body.size();
      window.sent(header.sequence, now_ns, round_trip);
    }
    return sent;
  }

  using Numbers = std::vector<std::uint32_t>;
  HeldBytes held;
  SendWindow window{kFrameBytes, held};
  RoundTrip round_trip;
  FrameHeader last{};
  std::size_t last_body_bytes = 0;
};

TEST_F(SendWindowTest, Long_packet__becomes_frames_of_consecutive_numbers) {
  add(100);
  add(2500);
  EXPECT_EQ(send_due(1), (Numbers{0, 1, 2, 3}));
  EXPECT_EQ(last.fragment_index, 2);
  EXPECT_EQ(last.fragment_count, 3);
  EXPECT_EQ(last.packet_bytes, 2500u);
  EXPECT_EQ(last.packet_offset, 2000u);
  EXPECT_EQ(last_body_bytes, 500u);
  EXPECT_EQ(held.now, 2600u);
  EXPECT_TRUE(send_due(1).empty()) << "once is enough for now";
}

TEST_F(SendWindowTest, Room__is_a_window_of_frames) {
  for (std::uint32_t i = 0; i < kWindowFrames - 1; ++i) add(10);
  EXPECT_TRUE(window.has_room(kFrameBytes));
  EXPECT_FALSE(window.has_room(kFrameBytes + 1));
  send_due(1);
  ASSERT_TRUE(window.acknowledge(1, 0, 0));
  EXPECT_TRUE(window.has_room(kFrameBytes + 1));
}

TEST_F(SendWindowTest, Silence__makes_frames_due_again_each_time_later) {
  add(10);
  send_due(0);
  const std::uint64_t timeout_ns = round_trip.timeout_ns(1);
  EXPECT_EQ(window.next_due_ns(false), timeout_ns);
  EXPECT_TRUE(send_due(timeout_ns - 1).empty());
  EXPECT_EQ(send_due(timeout_ns), Numbers{0});
  EXPECT_EQ(window.next_due_ns(false), timeout_ns + 2 * timeout_ns);
}

TEST_F(SendWindowTest, Silent_peer__is_sent_one_old_frame_and_what_is_new) {
  for (int i = 0; i < 3; ++i) add(10);
  send_due(0);
  add(10);
  EXPECT_EQ(send_due(round_trip.timeout_ns(1), true), (Numbers{0, 3}));
}

TEST_F(SendWindowTest, Acknowledged_frames__are_freed_and_not_sent_again) {
  for (int i = 0; i < 4; ++i) add(10);
  send_due(0);
  ASSERT_TRUE(window.acknowledge(1, 0b10, 0));  // 0 is taken, 2 has arrived.
  EXPECT_EQ(held.now, 20u);
  EXPECT_EQ(send_due(round_trip.timeout_ns(1)), (Numbers{1, 3}));
  ASSERT_TRUE(window.acknowledge(1, 0b10, 0)) << "an old one changes nothing";
  ASSERT_TRUE(window.acknowledge(4, 0, 0));
  EXPECT_TRUE(window.empty());
  EXPECT_EQ(held.now, 0u);
}

TEST_F(SendWindowTest, Frame_that_left_long_before_one_that_arrived__is_due_at_once) {
  add(10);
  send_due(100);
  add(10);
  send_due(5000);
  ASSERT_TRUE(window.acknowledge(0, 0b10, 5000 - 1000));
  EXPECT_EQ(send_due(5001), Numbers{0});
}

TEST_F(SendWindowTest, Late_acknowledgement__of_what_is_free_already_is_nothing) {
  for (int i = 0; i < 3; ++i) add(10);
  send_due(0);
  ASSERT_TRUE(window.acknowledge(3, 0, 0));
  EXPECT_TRUE(window.acknowledge(1, 0b11, 0));
  EXPECT_TRUE(window.empty());
}

TEST_F(SendWindowTest, Lies__are_told) {
  add(10);
  send_due(0);
  EXPECT_FALSE(window.acknowledge(2, 0, 0)) << "never sent";
  EXPECT_FALSE(window.acknowledge(0, 0b100, 0));
}

// Portals 4.3, 2.2: no data is kept or sent again; that there was something is.
TEST_F(SendWindowTest, Packet_that_is_sent_once__leaves_a_gap) {
  add(10, Delivery::kOnce);
  EXPECT_EQ(send_due(0), Numbers{0});
  EXPECT_EQ(last.flags, 0);
  EXPECT_EQ(held.now, 0u);
  EXPECT_EQ(send_due(round_trip.timeout_ns(1)), Numbers{0});
  EXPECT_EQ(last.flags, kFrameGap);
  EXPECT_EQ(last_body_bytes, 0u);
}

TEST_F(SendWindowTest, Sequence_numbers__wrap) {
  EXPECT_TRUE(sequence_before(0xffffffffu, 0));
  EXPECT_FALSE(sequence_before(0, 0xffffffffu));
  EXPECT_FALSE(sequence_before(5, 5));
}

}  // namespace
}  // namespace portofu
