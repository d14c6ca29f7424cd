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

TEST(CopyFreshLine, Packet_header_in_words__is_the_same_header) {
  std::byte bytes[sizeof(PacketHeader)];
  for (std::size_t i = 0; i < sizeof bytes; ++i) bytes[i] = static_cast<std::byte>(i * 37 + 129);
  PacketHeader header;
  std::memcpy(&header, bytes, sizeof header);
  const PacketHeader words = in_words(header);
  EXPECT_EQ(std::memcmp(&words, bytes, sizeof words), 0);
  EXPECT_EQ(offsetof(PacketHeader, wire_word), 60u) << "which is the wire's";
}

}  // namespace
}  // namespace portofu
