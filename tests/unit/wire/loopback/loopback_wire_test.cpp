// Packets to oneself.

#include "engine/wire/loopback/loopback_wire.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace portofu {
namespace {

constexpr ProcessId kSelf{1, 2};

struct LoopbackWireTest : ::testing::Test {
  void SetUp() override { ASSERT_EQ(wire.connect(kSelf, &link), ConnectResult::kConnected); }

  bool send(const std::string& payload) {
    std::byte* room = wire.claim(*link, static_cast<std::uint32_t>(payload.size()));
    if (room == nullptr) return false;
    std::memcpy(room, payload.data(), payload.size());
    PacketHeader header{};
    header.payload_bytes = static_cast<std::uint32_t>(payload.size());
    wire.publish(*link, header);
    return true;
  }

  std::string receive() {
    Packet packet;
    if (!wire.peek(packet)) return "nothing";
    EXPECT_EQ(packet.source, kSelf);
    std::string text(reinterpret_cast<const char*>(packet.payload.here()), packet.header.payload_bytes);
    wire.release();
    return text;
  }

  LoopbackWire wire{kSelf};
  Link* link = nullptr;
};

TEST_F(LoopbackWireTest, Nobody_else__is_there) {
  Link* none = nullptr;
  EXPECT_EQ(wire.connect({1, 3}, &none), ConnectResult::kNoSuchPeer);
  EXPECT_EQ(wire.connect({2, 2}, &none), ConnectResult::kNoSuchPeer);
}

TEST_F(LoopbackWireTest, Packets__come_back_in_order) {
  EXPECT_FALSE(wire.has_packets());
  ASSERT_TRUE(send("one"));
  ASSERT_TRUE(send(std::string(8192, '2')));
  EXPECT_TRUE(wire.has_packets());
  EXPECT_EQ(receive(), "one");
  EXPECT_EQ(receive(), std::string(8192, '2'));
  EXPECT_EQ(receive(), "nothing");
}

TEST_F(LoopbackWireTest, Discarded_claim__sends_nothing) {
  ASSERT_NE(wire.claim(*link, 8), nullptr);
  wire.discard(*link);
  EXPECT_EQ(receive(), "nothing");
}

TEST_F(LoopbackWireTest, Full_ring__has_room_again_after_the_first_release) {
  int sent = 0;
  while (send("x")) ++sent;
  EXPECT_EQ(sent, 128);
  EXPECT_FALSE(wire.has_room_again());
  EXPECT_EQ(receive(), "x");
  EXPECT_TRUE(wire.has_room_again());
  EXPECT_FALSE(wire.has_room_again()) << "told once";
  EXPECT_TRUE(send("y"));
}

TEST_F(LoopbackWireTest, Context__is_kept_until_the_source_is_taken) {
  int number = 0;
  send("x");
  Packet packet;
  ASSERT_TRUE(wire.peek(packet));
  EXPECT_EQ(packet.source_context->engines, nullptr);
  packet.source_context->engines = &number;
  wire.release();
  send("last");
  wire.disconnect(link);
  ProcessId source;
  void* context = nullptr;
  EXPECT_FALSE(wire.take_closed_source(&source, &context)) << "not drained";
  Link* again = nullptr;
  EXPECT_EQ(wire.connect(kSelf, &again), ConnectResult::kInProgress);
  EXPECT_EQ(receive(), "last");
  EXPECT_TRUE(wire.take_closed_source(&source, &context));
  EXPECT_EQ(source, kSelf);
  EXPECT_EQ(context, &number);
  EXPECT_FALSE(wire.take_closed_source(&source, &context));
  EXPECT_EQ(wire.connect(kSelf, &again), ConnectResult::kConnected);
}

TEST_F(LoopbackWireTest, Check_peers__loses_nobody) { EXPECT_EQ(wire.check_peers(), 0); }

}  // namespace
}  // namespace portofu
