// Tests of engine/wire/capture/capture_file.cpp: the blocks of the format, and what does not fit.

#include "engine/wire/capture/capture_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <span>

#include "tests/unit/wire/capture/captured_blocks.h"

namespace portofu {
namespace {

using capture_test::CapturedBlock;
using capture_test::read_blocks;

constexpr std::uint64_t kTime = 1'700'000'000'123'456'789;

CaptureRecord packet_record(CaptureDirection direction) {
  CaptureRecord record{};
  record.magic = kCaptureMagic;
  record.kind = CaptureKind::kPacket;
  record.direction = direction;
  record.source = {1, 10};
  record.target = {1, 11};
  return record;
}

struct CaptureFileTest : testing::Test {
  void SetUp() override {
    std::string why;
    file = CaptureFile::create(path, "10.0.0.1-10", &why);
    ASSERT_NE(file, nullptr) << why;
  }

  capture_test::TemporaryDirectory directory;
  const std::string path = directory.file("one.pcapng");
  std::unique_ptr<CaptureFile> file;
};

TEST_F(CaptureFileTest, Packets__have_time_direction_header_and_payload) {
  PacketHeader header{};
  header.type = PacketType::kPut;
  std::byte payload[9];
  for (std::size_t i = 0; i < sizeof payload; ++i) payload[i] = static_cast<std::byte>(i);
  // Every length that is padded in another way.
  for (std::uint32_t bytes = 0; bytes < sizeof payload; ++bytes) {
    header.payload_bytes = bytes;
    const auto direction = bytes % 2 == 0 ? CaptureDirection::kSent : CaptureDirection::kReceived;
    file->write(kTime + bytes, packet_record(direction), &header, payload);
  }
  const auto blocks = read_blocks(path);
  ASSERT_EQ(blocks.size(), sizeof payload);
  for (std::uint32_t bytes = 0; bytes < sizeof payload; ++bytes) {
    const CapturedBlock& block = blocks[bytes];
    EXPECT_EQ(block.time_ns, kTime + bytes);
    EXPECT_EQ(block.flags, bytes % 2 == 0 ? 2u : 1u);
    EXPECT_EQ(block.record.source, (ProcessId{1, 10}));
    EXPECT_EQ(block.header.type, PacketType::kPut);
    ASSERT_EQ(block.payload.size(), bytes);
    EXPECT_TRUE(std::ranges::equal(block.payload, std::span(payload, bytes)));
    EXPECT_EQ(block.packet_bytes, sizeof(CaptureRecord) + sizeof(PacketHeader) + bytes);
  }
}

TEST_F(CaptureFileTest, Payload_that_is_not_here_or_too_long__is_known_to_be_missing) {
  PacketHeader header{};
  header.payload_bytes = kMostCapturedBytes + 1;
  const std::vector<std::byte> payload(header.payload_bytes, std::byte{7});
  file->write(kTime, packet_record(CaptureDirection::kSent), &header, nullptr);
  file->write(kTime, packet_record(CaptureDirection::kSent), &header, payload.data());
  const auto blocks = read_blocks(path);
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(blocks[0].payload.size(), 0u);
  EXPECT_EQ(blocks[1].payload.size(), kMostCapturedBytes);
  for (const CapturedBlock& block : blocks) {
    EXPECT_EQ(block.packet_bytes, sizeof(CaptureRecord) + sizeof(PacketHeader) + kMostCapturedBytes + 1);
  }
}

TEST_F(CaptureFileTest, Record_without_a_packet__stands_alone) {
  CaptureRecord record = packet_record(CaptureDirection::kReceived);
  record.kind = CaptureKind::kAcknowledgement;
  record.operation_id = 4711;
  file->write(kTime, record, nullptr, nullptr);
  const auto blocks = read_blocks(path);
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_EQ(blocks[0].packet_bytes, sizeof(CaptureRecord));
  EXPECT_EQ(blocks[0].record.operation_id, 4711u);
}

TEST_F(CaptureFileTest, File__is_for_its_user_only_and_never_an_old_one) {
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  std::string why;
  EXPECT_EQ(CaptureFile::create(path, "again", &why), nullptr);
  EXPECT_NE(why.find("File exists"), std::string::npos) << why;
}

TEST_F(CaptureFileTest, Directory_that_is_missing__is_named_with_what_to_do) {
  std::string why;
  EXPECT_EQ(CaptureFile::create(directory.file("none/one.pcapng"), "one", &why), nullptr);
  EXPECT_NE(why.find("none/one.pcapng"), std::string::npos) << why;
  EXPECT_NE(why.find("PORTOFU_PCAPNG"), std::string::npos) << why;
}

// The limit of file sizes is that of a process, so this is one of its own.
TEST_F(CaptureFileTest, File_system_that_is_full__ends_the_capture_and_says_so) {
  const auto fill = [&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(2);
    PacketHeader header{};
    header.payload_bytes = 1000;
    const std::vector<std::byte> payload(1000);
    for (int i = 0; i < 10; ++i) file->write(kTime, packet_record(CaptureDirection::kSent), &header, payload.data());
    _exit(0);
  };
  EXPECT_EXIT(fill(), testing::ExitedWithCode(0), "nothing more is captured");
}

}  // namespace
}  // namespace portofu
