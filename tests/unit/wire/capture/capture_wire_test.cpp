// Tests of engine/wire/capture/capture_wire.cpp over a simulated network: it changes nothing of what is carried, and
// everything is in the file.

#include "engine/wire/capture/capture_wire.h"

#include <gtest/gtest.h>

#include <array>

#include "engine/wire/sim/sim_network.h"
#include "tests/unit/wire/capture/captured_blocks.h"
#include "tests/unit/wire/sim/sim_traffic.h"

namespace portofu {
namespace {

using capture_test::CapturedBlock;
using capture_test::read_blocks;
using sim_traffic::kAll;
using sim_traffic::kAnne;
using sim_traffic::kBen;

constexpr int kManyTries = 100;

/// Anne sends to Ben; both are captured.
struct CaptureWireTest : testing::Test {
  CaptureWireTest() {
    std::string why;
    files[0] = CaptureFile::create(path(0), "anne", &why);
    files[1] = CaptureFile::create(path(1), "ben", &why);
    anne = std::make_unique<CaptureWire>(*inner_anne, kAnne, CaptureMedium::kSharedMemory, *files[0]);
    ben = std::make_unique<CaptureWire>(*inner_ben, kBen, CaptureMedium::kSharedMemory, *files[1]);
    EXPECT_EQ(anne->connect(kBen, &link), ConnectResult::kConnected);
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 3);
  }

  std::string path(int of) const { return directory.file(of == 0 ? "anne.pcapng" : "ben.pcapng"); }

  void send(PacketType type, std::uint32_t bytes) {
    std::byte* const room = type == PacketType::kAnswer ? anne->claim_answer(*link, bytes) : anne->claim(*link, bytes);
    ASSERT_NE(room, nullptr);
    std::memcpy(room, data.data(), bytes);
    anne->publish(*link, header_of(type, bytes));
  }

  void lend(std::uint32_t bytes) {
    const Loan loan{data.data(), bytes, anne->loans()->next_packet(*link), 0, true};
    int tries = 0;
    while (!anne->loans()->lend(*link, loan)) ASSERT_LT(++tries, kManyTries);
    anne->publish(*link, header_of(PacketType::kPut, bytes));
  }

  static PacketHeader header_of(PacketType type, std::uint32_t bytes) {
    PacketHeader header{};
    header.type = type;
    header.payload_bytes = bytes;
    header.operation_id = 100 + bytes;
    return header;
  }

  bool has(const CapturedBlock& block, std::uint32_t bytes) const {
    return block.payload.size() == bytes && std::memcmp(block.payload.data(), data.data(), bytes) == 0;
  }

  std::array<std::byte, 512> data{};
  capture_test::TemporaryDirectory directory;
  SimNetwork network{7, kAll};
  std::unique_ptr<SimWire> inner_anne = network.attach(kAnne);
  std::unique_ptr<SimWire> inner_ben = network.attach(kBen);
  std::unique_ptr<CaptureFile> files[2];
  std::unique_ptr<CaptureWire> anne;
  std::unique_ptr<CaptureWire> ben;
  Link* link = nullptr;
};

TEST_F(CaptureWireTest, Packets__are_captured_where_they_leave_and_where_they_arrive) {
  send(PacketType::kPut, 5);
  send(PacketType::kAnswer, 0);
  Packet packet;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(ben->peek(packet));
    ben->release();
  }
  EXPECT_FALSE(ben->peek(packet));
  for (int of = 0; of < 2; ++of) {
    SCOPED_TRACE(of == 0 ? "sender" : "receiver");
    const auto blocks = read_blocks(path(of));
    ASSERT_EQ(blocks.size(), 2u);
    EXPECT_TRUE(has(blocks[0], 5));
    EXPECT_EQ(blocks[0].header.type, PacketType::kPut);
    EXPECT_EQ(blocks[1].header.type, PacketType::kAnswer);
    for (const CapturedBlock& block : blocks) {
      EXPECT_EQ(block.record.direction, of == 0 ? CaptureDirection::kSent : CaptureDirection::kReceived);
      EXPECT_EQ(block.record.medium, CaptureMedium::kSharedMemory);
      EXPECT_EQ(block.record.source, kAnne);
      EXPECT_EQ(block.record.target, kBen);
      EXPECT_NE(block.time_ns, 0u);
    }
  }
}

TEST_F(CaptureWireTest, Payload_that_is_lent__is_captured_by_its_sender) {
  lend(300);
  Packet packet;
  ASSERT_TRUE(ben->peek(packet));
  ASSERT_TRUE(packet.payload.is_in_memory());
  ben->release();
  const auto sent = read_blocks(path(0)), received = read_blocks(path(1));
  ASSERT_EQ(sent.size(), 1u);
  ASSERT_EQ(received.size(), 1u);
  EXPECT_TRUE(has(sent[0], 300));
  EXPECT_EQ(sent[0].record.payload, CapturePayload::kHere);
  EXPECT_TRUE(received[0].payload.empty());
  EXPECT_EQ(received[0].record.payload, CapturePayload::kAtSender);
  EXPECT_EQ(received[0].packet_bytes, sent[0].packet_bytes);
}

TEST_F(CaptureWireTest, Acknowledgements_without_packets__are_captured) {
  send(PacketType::kPut, 8);
  Packet packet;
  ASSERT_TRUE(ben->peek(packet));
  ASSERT_TRUE(ben->completions()->acknowledge(kAnne, 108));
  ben->release();
  ASSERT_TRUE(anne->completions()->has_acknowledgement(*link));
  EXPECT_EQ(anne->completions()->take_acknowledgement(*link), 108u);
  EXPECT_EQ(anne->completions()->take_acknowledgement(*link), 0u) << "and nothing more is captured";
  for (int of = 0; of < 2; ++of) {
    const auto blocks = read_blocks(path(of));
    ASSERT_EQ(blocks.size(), 2u);
    EXPECT_EQ(blocks[1].record.kind, CaptureKind::kAcknowledgement);
    EXPECT_EQ(blocks[1].record.operation_id, 108u);
    EXPECT_EQ(blocks[1].record.direction, of == 0 ? CaptureDirection::kReceived : CaptureDirection::kSent);
    EXPECT_EQ(blocks[1].record.source, kBen);
    EXPECT_EQ(blocks[1].record.target, kAnne);
  }
}

TEST_F(CaptureWireTest, What_is_not_sent__is_not_captured) {
  ASSERT_NE(anne->claim(*link, 16), nullptr);
  anne->discard(*link);
  send(PacketType::kPut, 4);
  network.kill(kBen);
  anne->check_peers();
  ASSERT_TRUE(link->lost);
  EXPECT_EQ(anne->claim(*link, 16), nullptr);
  EXPECT_EQ(read_blocks(path(0)).size(), 1u);
}

TEST_F(CaptureWireTest, Facets__are_those_below_but_for_memory_of_peers) {
  EXPECT_EQ(anne->copies(), inner_anne->copies());
  EXPECT_NE(anne->loans(), nullptr);
  EXPECT_NE(anne->completions(), nullptr);
  EXPECT_NE(inner_anne->peer_memory(), nullptr);
  EXPECT_EQ(anne->peer_memory(), nullptr) << "nobody would see what is done there";
  EXPECT_EQ(anne->max_payload_bytes(), inner_anne->max_payload_bytes());
  SimNetwork plain(1);
  const auto bare = plain.attach(kAnne);
  CaptureWire over(*bare, kAnne, CaptureMedium::kLoopback, *files[0]);
  EXPECT_EQ(over.loans(), nullptr);
  EXPECT_EQ(over.completions(), nullptr);
  EXPECT_EQ(over.other_nodes(), nullptr);
}

}  // namespace
}  // namespace portofu
