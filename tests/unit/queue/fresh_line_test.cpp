// The copy is a copy, of exactly the bytes asked for.

#include "engine/queue/fresh_line.h"

#include <gtest/gtest.h>

#include <cstring>

#include "engine/wire/header.h"

namespace portofu {
namespace {

TEST(CopyFreshLine, Every_byte__arrives_and_none_behind_is_touched) {
  alignas(8) std::byte from[64];
  alignas(8) std::byte to[64];
  for (std::size_t i = 0; i < sizeof from; ++i) from[i] = static_cast<std::byte>(i + 1);
  std::memset(to, 0xee, sizeof to);
  copy_fresh_line<60>(to, from);
  EXPECT_EQ(std::memcmp(to, from, 60), 0);
  for (std::size_t i = 60; i < sizeof to; ++i) EXPECT_EQ(to[i], std::byte{0xee});
}

TEST(CopyFreshLine, Packet_header__arrives_but_for_the_word_of_the_wire) {
  std::byte bytes[sizeof(PacketHeader)];
  for (std::size_t i = 0; i < sizeof bytes; ++i) bytes[i] = static_cast<std::byte>(i * 37 + 129);
  PacketHeader header;
  std::memcpy(&header, bytes, sizeof header);
  alignas(64) std::byte line[sizeof(PacketHeader)];
  std::memset(line, 0xee, sizeof line);
  write_head(header, line);
  ASSERT_EQ(offsetof(PacketHeader, wire_word), 60u);
  EXPECT_EQ(std::memcmp(line, bytes, 60), 0);
  for (std::size_t i = 60; i < sizeof line; ++i) EXPECT_EQ(line[i], std::byte{0xee});
}

}  // namespace
}  // namespace portofu
