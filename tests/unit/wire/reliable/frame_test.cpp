// Tests of engine/wire/reliable/frame.cpp.

#include "engine/wire/reliable/frame.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string_view>
#include <vector>

namespace portofu {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::vector<std::byte> sealed(std::string_view body) {
  FrameHeader header{};
  header.kind = FrameKind::kData;
  header.sequence = 7;
  seal_frame(header, bytes_of(body));
  std::vector<std::byte> datagram(sizeof header + body.size());
  std::memcpy(datagram.data(), &header, sizeof header);
  std::memcpy(datagram.data() + sizeof header, body.data(), body.size());
  return datagram;
}

TEST(Frame, Opened__is_what_was_sealed) {
  const auto datagram = sealed("some body");
  FrameHeader header{};
  std::span<const std::byte> body;
  ASSERT_TRUE(open_frame(datagram, &header, &body));
  EXPECT_EQ(header.sequence, 7u);
  EXPECT_EQ(body.size(), 9u);
}

TEST(Frame, Every_changed_bit_and_every_missing_end__is_found) {
  const auto datagram = sealed("some body");
  FrameHeader header{};
  std::span<const std::byte> body;
  for (std::size_t bit = 0; bit < datagram.size() * 8; ++bit) {
    auto damaged = datagram;
    damaged[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    EXPECT_FALSE(open_frame(damaged, &header, &body)) << "bit " << bit;
  }
  for (std::size_t bytes = 0; bytes < datagram.size(); ++bytes)
    EXPECT_FALSE(open_frame(std::span(datagram).first(bytes), &header, &body)) << bytes;
}

TEST(Frame, Unknown_class_or_format__is_refused_though_the_checksum_is_right) {
  FrameHeader header{};
  header.traffic = static_cast<TrafficClass>(kTrafficClassCount);
  seal_frame(header, {});
  FrameHeader opened{};
  std::span<const std::byte> body;
  EXPECT_FALSE(open_frame(std::as_bytes(std::span(&header, 1)), &opened, &body));
}

}  // namespace
}  // namespace portofu
