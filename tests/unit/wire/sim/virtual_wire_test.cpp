// A wire in virtual time over the wire to oneself.

#include "engine/wire/sim/virtual_wire.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "engine/wire/loopback/loopback_wire.h"
#include "tests/unit/support/virtual_job.h"

namespace portofu {
namespace {

constexpr ProcessId kOwnId{1, 7};

struct VirtualWireTest : testing::Test {
  VirtualWireTest() {
    EXPECT_NE(clock, nullptr) << why;
    EXPECT_EQ(wire.connect(kOwnId, &link), ConnectResult::kConnected);
  }
  ~VirtualWireTest() override { wire.disconnect(link); }

  /// @param length  of the whole message
  void send(PacketType type, const std::vector<std::uint8_t>& bytes, std::uint64_t length, std::uint8_t flags = 0) {
    const auto count = static_cast<std::uint32_t>(bytes.size());
    std::byte* const room = wire.claim(*link, count);
    ASSERT_NE(room, nullptr);
    std::transform(bytes.begin(), bytes.end(), room, [](std::uint8_t byte) { return std::byte{byte}; });
    PacketHeader header{};
    header.type = type;
    header.flags = flags;
    header.length = length;
    header.payload_bytes = count;
    wire.publish(*link, header);
  }
  VirtualReport report(std::uint32_t index) const { return job.page().reports[index]; }
  std::uint32_t report_count() const { return job.page().reports_given.load(); }

  VirtualJob job{1};
  std::string why;
  std::unique_ptr<VirtualClock> clock = VirtualClock::open(job.path(), 0, kOwnId, &why);
  LoopbackWire inner{kOwnId};
  VirtualWire wire{inner, *clock};
  Link* link = nullptr;
  Packet packet;
};

TEST_F(VirtualWireTest, A_message__is_told_and_stays_invisible_until_it_is_shown) {
  send(PacketType::kPut, {1, 2, 3}, 3);
  ASSERT_EQ(report_count(), 1u);
  EXPECT_EQ(report(0).bytes, 3u);
  EXPECT_EQ(report(0).pid, kOwnId.pid);
  EXPECT_EQ(report(0).time_ps, VirtualJob::kPutPs);
  EXPECT_EQ(report(0).type, static_cast<std::uint8_t>(PacketType::kPut));
  EXPECT_TRUE(wire.is_silent());
  EXPECT_FALSE(wire.peek(packet));
  EXPECT_TRUE(wire.has_arrived(kOwnId, report(0).number));
  EXPECT_FALSE(wire.has_arrived(kOwnId, report(0).number + 1));
  EXPECT_FALSE(wire.peek(packet)) << "nobody has said that it has arrived";
  EXPECT_EQ(wire.show(kOwnId, report(0).number), PacketType::kPut);
  EXPECT_FALSE(wire.is_silent());
  ASSERT_TRUE(wire.peek(packet));
  EXPECT_EQ(packet.source, kOwnId);
  EXPECT_EQ(packet.header.payload_bytes, 3u);
  EXPECT_EQ(std::memcmp(packet.payload.here(), "\1\2\3", 3), 0);
  wire.release();
  EXPECT_FALSE(wire.peek(packet));
  wire.hide();
  EXPECT_TRUE(wire.is_silent());
}

TEST_F(VirtualWireTest, A_message__says_by_what_number_its_departure_is_told) {
  ASSERT_TRUE(link->tells_departures());
  PacketHeader header{};
  header.type = PacketType::kPut;
  header.wire_word = departure_word(5, true);
  ASSERT_NE(wire.claim(*link, 0), nullptr);
  wire.publish(*link, header);
  EXPECT_EQ(report(0).departure, 5u);
  EXPECT_EQ(report(0).in_command, 1);
  send(PacketType::kPut, {1}, 1);
  EXPECT_EQ(report(1).departure, 0u);
  EXPECT_EQ(report(1).in_command, 0);
}

/// Gates tell each other when a circuit begins and ends, which those of a machine do not.
TEST_F(VirtualWireTest, A_word_of_gates__costs_nothing_but_what_passes_them_does) {
  send(PacketType::kTofuGate, {}, 0);
  send(PacketType::kTofuGate, {1, 2}, 2);
  ASSERT_EQ(report_count(), 2u);
  EXPECT_EQ(report(0).time_ps, 0u);
  EXPECT_EQ(report(1).time_ps, VirtualJob::kBarrierPs);
  EXPECT_EQ(job.page().count[static_cast<std::size_t>(VirtualSpent::kBarrier)].load(), 1u);
}

TEST_F(VirtualWireTest, A_long_message__is_told_once_and_handed_on_as_a_whole) {
  send(PacketType::kPut, {1}, 3);
  EXPECT_FALSE(wire.has_arrived(kOwnId, report(0).number)) << "its rest is missing";
  send(PacketType::kData, {2}, 0);
  send(PacketType::kData, {3}, 0);
  ASSERT_EQ(report_count(), 1u);
  EXPECT_EQ(report(0).bytes, 3u);
  ASSERT_TRUE(wire.has_arrived(kOwnId, report(0).number));
  wire.show(kOwnId, report(0).number);
  for (const std::uint8_t expected : {1, 2, 3}) {
    ASSERT_TRUE(wire.peek(packet));
    EXPECT_EQ(std::to_integer<std::uint8_t>(*packet.payload.here()), expected);
    wire.release();
  }
  EXPECT_FALSE(wire.peek(packet));
  wire.hide();
}

TEST_F(VirtualWireTest, A_message__that_is_cut_is_whole) {
  send(PacketType::kPut, {1}, 100);
  send(PacketType::kData, {}, 0, kFlagCut);
  EXPECT_TRUE(wire.has_arrived(kOwnId, report(0).number));
}

TEST_F(VirtualWireTest, Messages__arrive_in_any_order) {
  send(PacketType::kPut, {1}, 1);
  send(PacketType::kPut, {2}, 1);
  for (const std::uint32_t index : {1u, 0u}) {
    ASSERT_TRUE(wire.has_arrived(kOwnId, report(index).number));
    wire.show(kOwnId, report(index).number);
    ASSERT_TRUE(wire.peek(packet));
    EXPECT_EQ(std::to_integer<std::uint32_t>(*packet.payload.here()), index + 1);
    wire.release();
    wire.hide();
  }
}

TEST_F(VirtualWireTest, Room__is_always_there) {
  const std::vector<std::uint8_t> bytes(4000, 9);
  constexpr std::uint32_t kCount = 100;  // More than the ring of the wire below takes.
  for (std::uint32_t i = 0; i < kCount; ++i) send(PacketType::kPut, bytes, bytes.size());
  ASSERT_EQ(report_count(), kCount);
  EXPECT_TRUE(wire.has_unsent());
  for (std::uint32_t i = 0; i < kCount; ++i) {
    for (int tries = 0; tries < 100 && !wire.has_arrived(kOwnId, report(i).number); ++tries) wire.send_waiting();
    ASSERT_TRUE(wire.has_arrived(kOwnId, report(i).number)) << i;
  }
  EXPECT_FALSE(wire.has_unsent());
}

TEST_F(VirtualWireTest, Nothing__is_reached_without_packets) {
  EXPECT_EQ(wire.loans(), nullptr);
  EXPECT_EQ(wire.copies(), nullptr);
  EXPECT_EQ(wire.peer_memory(), nullptr);
  EXPECT_EQ(wire.completions(), nullptr);
}

TEST_F(VirtualWireTest, What_is_discarded__is_not_told) {
  ASSERT_NE(wire.claim(*link, 8), nullptr);
  wire.discard(*link);
  EXPECT_EQ(report_count(), 0u);
  send(PacketType::kPut, {1}, 1);
  EXPECT_EQ(report_count(), 1u);
}

}  // namespace
}  // namespace portofu
