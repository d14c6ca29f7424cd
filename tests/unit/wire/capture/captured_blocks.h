#pragma once
// What the tests of captures find in a file: a reader of pcapng that knows what CaptureFile writes, and nothing else.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "engine/wire/capture/capture_file.h"

namespace portofu::capture_test {

/// A directory that ends with the test.
class TemporaryDirectory {
 public:
  TemporaryDirectory() : path_(mkdtemp(pattern_)) {}
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  char pattern_[32] = "/tmp/portofu-capture-XXXXXX";
  std::string path_;
};

/// A packet of a file.
struct CapturedBlock {
  std::uint32_t interface_number = 0;
  std::uint64_t time_ns = 0;
  std::uint32_t packet_bytes = 0;  ///< Of the whole packet.
  std::uint32_t flags = 0;         ///< 1: inbound, 2: outbound.
  CaptureRecord record{};
  PacketHeader header{};  ///< Zero if there is none.
  std::vector<std::byte> payload;
};

/// A part of what was read.
template <class T>
T take(const std::vector<char>& bytes, std::size_t offset) {
  T value{};
  EXPECT_LE(offset + sizeof value, bytes.size());
  if (offset + sizeof value <= bytes.size()) std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

/// The packets of a file. Fails the test if its blocks do not fit together.
inline std::vector<CapturedBlock> read_blocks(const std::string& path, std::size_t interfaces = 1) {
  constexpr std::uint32_t kSection = 0x0a0d0d0a, kInterface = 1, kPacket = 6;
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<CapturedBlock> found;
  std::size_t blocks = 0;
  for (std::size_t at = 0; at < bytes.size(); ++blocks) {
    const auto type = take<std::uint32_t>(bytes, at);
    const auto length = take<std::uint32_t>(bytes, at + 4);
    if (length < 12 || length % 4 != 0 || at + length > bytes.size()) {
      ADD_FAILURE() << "block of " << length << " bytes at " << at;
      break;
    }
    EXPECT_EQ(take<std::uint32_t>(bytes, at + length - 4), length) << "at " << at;
    EXPECT_EQ(type, blocks == 0 ? kSection : blocks <= interfaces ? kInterface : kPacket);
    if (type == kPacket) {
      CapturedBlock block;
      block.interface_number = take<std::uint32_t>(bytes, at + 8);
      block.time_ns = std::uint64_t{take<std::uint32_t>(bytes, at + 12)} << 32 | take<std::uint32_t>(bytes, at + 16);
      const auto captured = take<std::uint32_t>(bytes, at + 20);
      block.packet_bytes = take<std::uint32_t>(bytes, at + 24);
      block.record = take<CaptureRecord>(bytes, at + 28);
      const std::size_t begin = at + 28, end = begin + captured;
      constexpr std::size_t kHead = sizeof(CaptureRecord) + sizeof(PacketHeader);
      if (captured >= kHead) block.header = take<PacketHeader>(bytes, begin + sizeof(CaptureRecord));
      for (std::size_t i = begin + kHead; i < end; ++i) block.payload.push_back(static_cast<std::byte>(bytes[i]));
      const std::size_t options = at + 28 + (captured + 3) / 4 * 4;
      EXPECT_EQ(take<std::uint32_t>(bytes, options), 4u << 16 | 2u) << "flags, of four bytes";
      block.flags = take<std::uint32_t>(bytes, options + 4);
      EXPECT_EQ(take<std::uint32_t>(bytes, options + 8), 0u) << "end of options";
      EXPECT_EQ(options + 16, at + length);
      found.push_back(block);
    }
    at += length;
  }
  EXPECT_GE(blocks, 1 + interfaces) << "section and interfaces";
  return found;
}

}  // namespace portofu::capture_test
