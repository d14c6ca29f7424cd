// Tests of engine/wire/reliable/receive_window.cpp: frames in any order, packets in theirs, and what nobody honest
// sends.

#include "engine/wire/reliable/receive_window.h"

#include <gtest/gtest.h>

#include <vector>

namespace portofu {
namespace {

constexpr std::uint32_t kMostBytes = 4096 + sizeof(PacketHeader);

struct ReceiveWindowTest : testing::Test {
  static FrameHeader frame(std::uint32_t sequence, std::uint32_t packet_bytes, std::uint32_t offset = 0,
                           std::uint16_t index = 0, std::uint16_t count = 1) {
    FrameHeader header{};
    header.kind = FrameKind::kData;
    header.sequence = sequence;
    header.packet_bytes = packet_bytes;
    header.packet_offset = offset;
    header.fragment_index = index;
    header.fragment_count = count;
    return header;
  }

  Admission admit(const FrameHeader& header, std::size_t bytes) {
    const std::vector<std::byte> body(bytes, static_cast<std::byte>(header.sequence));
    return window.admit(header, body);
  }

  HeldBytes held;
  ReceiveWindow window{kMostBytes, held};
};

TEST_F(ReceiveWindowTest, Frames_out_of_order__wait_for_those_before_them) {
  EXPECT_EQ(admit(frame(2, 100), 100), Admission::kNew);
  EXPECT_EQ(admit(frame(1, 100), 100), Admission::kNew);
  EXPECT_FALSE(window.has_packet());
  EXPECT_EQ(window.selected(), 0b110u);
  EXPECT_EQ(admit(frame(0, 100), 100), Admission::kNew);
  for (std::uint32_t number = 0; number < 3; ++number) {
    ASSERT_TRUE(window.has_packet());
    EXPECT_EQ(window.front()[99], static_cast<std::byte>(number));
    window.release();
  }
  EXPECT_EQ(window.next(), 3u);
  EXPECT_EQ(window.selected(), 0u);
  EXPECT_EQ(held.now, 0u);
}

TEST_F(ReceiveWindowTest, Duplicates__are_seen_before_and_after_the_packet_is_taken) {
  EXPECT_EQ(admit(frame(0, 100), 100), Admission::kNew);
  EXPECT_EQ(admit(frame(0, 100), 100), Admission::kDuplicate);
  ASSERT_TRUE(window.has_packet());
  window.release();
  EXPECT_EQ(admit(frame(0, 100), 100), Admission::kDuplicate);
}

TEST_F(ReceiveWindowTest, Pieces__make_one_packet_when_all_are_here) {
  EXPECT_EQ(admit(frame(1, 250, 100, 1, 3), 100), Admission::kNew);
  EXPECT_EQ(admit(frame(2, 250, 200, 2, 3), 50), Admission::kNew);
  EXPECT_FALSE(window.has_packet());
  EXPECT_EQ(admit(frame(0, 250, 0, 0, 3), 100), Admission::kNew);
  ASSERT_TRUE(window.has_packet());
  const auto whole = window.front();
  ASSERT_EQ(whole.size(), 250u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(whole.data()) % 64, 0u);
  EXPECT_EQ(whole[99], std::byte{0});
  EXPECT_EQ(whole[100], std::byte{1});
  EXPECT_EQ(whole[249], std::byte{2});
  window.release();
  EXPECT_EQ(window.next(), 3u);
}

TEST_F(ReceiveWindowTest, Gap__takes_the_whole_packet_with_it) {
  FrameHeader gap = frame(1, 200, 100, 1, 2);
  gap.flags = kFrameGap;
  EXPECT_EQ(admit(frame(0, 200, 0, 0, 2), 100), Admission::kNew);
  EXPECT_EQ(admit(gap, 0), Admission::kNew);
  EXPECT_EQ(admit(frame(2, 100), 100), Admission::kNew);
  ASSERT_TRUE(window.has_packet());
  EXPECT_EQ(window.next(), 2u);
  EXPECT_EQ(window.front()[0], std::byte{2});
}

TEST_F(ReceiveWindowTest, Beyond_the_window__is_refused) {
  EXPECT_EQ(admit(frame(kWindowFrames - 1, 100), 100), Admission::kNew);
  EXPECT_EQ(admit(frame(kWindowFrames, 100), 100), Admission::kRefused);
}

TEST_F(ReceiveWindowTest, Whole_window__can_be_one_packet) {
  for (std::uint32_t i = 0; i < kWindowFrames; ++i)
    EXPECT_EQ(admit(frame(i, 64 * 10, i * 10, static_cast<std::uint16_t>(i), kWindowFrames), 10), Admission::kNew);
  ASSERT_TRUE(window.has_packet());
  EXPECT_EQ(window.front().size(), 640u);
  window.release();
  EXPECT_EQ(window.next(), kWindowFrames);
}

TEST_F(ReceiveWindowTest, Lies__are_refused_or_dropped) {
  EXPECT_EQ(admit(frame(0, kMostBytes + 1), 100), Admission::kRefused) << "too long";
  EXPECT_EQ(admit(frame(0, 100, 50), 51), Admission::kRefused) << "beyond its packet";
  EXPECT_EQ(admit(frame(0, 100, 0xffffffff), 10), Admission::kRefused);
  EXPECT_EQ(admit(frame(0, 100, 0, 1, 1), 100), Admission::kRefused) << "no such piece";
  EXPECT_EQ(admit(frame(0, 100, 0, 0, 0), 100), Admission::kRefused);
  EXPECT_EQ(admit(frame(0, 100, 0, 0, kWindowFrames + 1), 100), Admission::kRefused);
  EXPECT_EQ(admit(frame(0, 100), 0), Admission::kRefused) << "nothing in it";
  // Pieces that are no packet together are stepped over.
  EXPECT_EQ(admit(frame(0, 200, 0, 0, 2), 100), Admission::kNew);
  EXPECT_EQ(admit(frame(1, 200, 50, 1, 2), 100), Admission::kNew);
  EXPECT_EQ(admit(frame(2, 10), 10), Admission::kNew) << "shorter than a header";
  EXPECT_FALSE(window.has_packet());
  EXPECT_EQ(window.next(), 3u);
  EXPECT_EQ(held.now, 0u);
}

}  // namespace
}  // namespace portofu
